"""Which fields of records and manifests hold secrets or code: the single list for every output.

Facts about plugins and names only: `redaction` hides the values. The list may contain too many fields, never too few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from apisix_ingress.model.formats.patterns import TextPattern, ValuePattern

_REDIS = ("redis_password", "sentinel_password")
_AI_AUTH = ("auth.header", "auth.query", "auth.gcp", "auth.aws")
_FUNCTIONS = ("functions",)

PLUGIN_FIELDS: Mapping[str, tuple[str, ...]] = {
    # Fields that APISIX encrypts in etcd: `encrypt_fields` of the schemas of plugins, consumers and metadata.
    "ai-aliyun-content-moderation": ("access_key_secret",),
    "ai-aws-content-moderation": ("comprehend.secret_access_key",),
    "ai-cache": ("redis_password", "semantic.embedding.openai.api_key", "semantic.embedding.azure_openai.api_key"),
    "ai-lakera-guard": ("api_key",),
    "ai-proxy": (*_AI_AUTH, "auth.gcp.service_account_json", "auth.aws.secret_access_key", "auth.aws.session_token"),
    "ai-proxy-multi": (
        *(f"instances.{path}" for path in _AI_AUTH),
        "instances.auth.gcp.service_account_json",
        "instances.auth.aws.secret_access_key",
        "instances.auth.aws.session_token",
        "semantic_opts.embeddings.auth.header",
        "semantic_opts.embeddings.auth.query",
    ),
    "ai-rag": ("embeddings_provider.azure_openai.api_key", "vector_search_provider.azure_ai_search.api_key"),
    "ai-rate-limiting": _REDIS,
    "authz-casbin": ("policy",),
    "authz-casdoor": ("client_secret",),
    "authz-keycloak": ("client_secret",),
    "aws-lambda": ("authorization.apikey", "authorization.iam.accesskey", "authorization.iam.secretkey"),
    "azure-functions": ("authorization.apikey", "master_apikey"),
    "basic-auth": ("password",),
    "cas-auth": ("cookie.secret",),
    "clickhouse-logger": ("password",),
    "csrf": ("key",),
    "dingtalk-auth": ("app_secret", "secret", "secret_fallbacks"),
    "elasticsearch-logger": ("auth.password", "headers"),
    "error-log-logger": ("clickhouse.password", "kafka.brokers.sasl_config.password"),
    "feishu-auth": ("app_secret", "secret", "secret_fallbacks"),
    "google-cloud-logging": ("auth_config.private_key",),
    "graphql-limit-count": _REDIS,
    "hmac-auth": ("secret_key",),
    "http-logger": ("auth_header",),
    "jwe-decrypt": ("key", "secret"),
    "jwt-auth": ("secret", "private_key"),
    "kafka-logger": ("brokers.sasl_config.password",),
    "kafka-proxy": ("sasl.password",),
    "key-auth": ("key",),
    "lago": ("token",),
    "limit-conn": _REDIS,
    "limit-count": _REDIS,
    "limit-req": _REDIS,
    "loggly": ("customer_token",),
    "loki-logger": ("headers",),
    "openfunction": ("authorization.service_token",),
    "openid-connect": (
        "client_secret",
        "client_rsa_private_key",
        "dpop.private_key",
        "session.secret",
        "session.redis.password",
        "backchannel_logout.redis.password",
    ),
    "openwhisk": ("service_token",),
    "rocketmq-logger": ("secret_key",),
    "sls-logger": ("access_key_secret",),
    "splunk-hec-logging": ("endpoint.token",),
    "tencent-cloud-cls": ("secret_key",),
    # Fields that APISIX does not encrypt although they are secret.
    "ai-request-rewrite": _AI_AUTH,
    "fault-injection": ("abort.body",),
    "forward-auth": ("extra_headers",),
    "mocking": ("response_example",),
    "response-rewrite": ("body",),
    # Code and its inputs, which may contain anything.
    "serverless-pre-function": (*_FUNCTIONS, "ingress_nginx.users", "ingress_nginx.basic.users"),
    "serverless-post-function": _FUNCTIONS,
    "ext-plugin-pre-req": ("conf.value",),
    "ext-plugin-post-req": ("conf.value",),
    "ext-plugin-post-resp": ("conf.value",),
}
"""Plugin → paths below its configuration, without the indexes of lists."""

PLUGIN_VALUES: Mapping[str, tuple[str, ...]] = {
    "proxy-rewrite": ("headers", "headers.set", "headers.add"),
    "traffic-label": ("rules.actions.set_headers",),
}
"""Plugin → mappings whose keys may be shown but not their values: the request headers that it sets."""

_VALUES = {plugin: frozenset(paths) for plugin, paths in PLUGIN_VALUES.items()}

_FIELDS = {plugin: frozenset(paths) for plugin, paths in PLUGIN_FIELDS.items()}
_NO_FIELDS: frozenset[str] = frozenset()
_LONGEST_PATH = max(len(path) for paths in PLUGIN_FIELDS.values() for path in paths)
_NO_PATH = "\0"
"""A path that no plugin has, used for longer ones: appending names to long paths takes quadratic time."""

LONGEST_NAME = 300
"""Maximum length of a checked name; values under longer names are treated as secrets."""

_SECRET_NAMES = frozenset(
    (
        *("key", "token", "password", "passwd", "secret", "credentials", "tls_key"),
        *("authorization", "proxy_authorization", "cookie", "set_cookie"),
        *("auth_header", "passphrase", "secretkey", "secret_fallbacks", "service_account_json"),
    )
)
_SECRET_ENDINGS = (
    *("admin_key", "api_key", "client_key", "private_key", "secret_key", "access_key", "encryption_key"),
    *("apikey", "accesskey", "_token", "_password", "_secret", "_cookie"),
)
_CAMEL_HUMP = TextPattern(r"([a-z0-9])([A-Z])")

_SUGGESTS = TextPattern(
    r"(?i)api-?_?key|secret|token|passw|passphrase|credential|private|^auth(?:_|$|[A-Z])|_auth|csrf|authori[sz]ation|cookie"
    r"|sasl|service_?account|session|^(?:pre_)?functions?$|^script$|filter_func|signature|salt|^keys$|[-_]key$|_iv$"
    r"|dsn$|webhook_url|pwd|^x[-_](?:.{1,99}[-_])?auth|jwt[-_]assertion|passcode|snippet$"
    r"|(?:^|[-_.])(?:jwt|bearer|psk|pass|pw|pin|sig|sid)$"
)
"""Names that suggest secrets or code, beyond the names that logs hide: documents may hide too much."""

_PLAIN = frozenset({"secretRef", "secret_ref", "authentication", "authParameter", "secret_references"})
"""Names outside of plugins that are not secrets: they hold the name of a Secret or further fields."""

_OF_REQUESTS = ValuePattern(r"(?is)\$?(?:(?:sent_|upstream_)?http|arg|cookie|post_arg)[_.](.+)")
"""Variables that contain parts of the request; the rest is the name of a header, parameter or cookie."""

_OPERATORS = frozenset(("!", "==", "~=", ">", ">=", "<", "<=", "~~", "~*", "in", "has", "ipmatch"))
_LONGEST_OPERATOR = max(map(len, _OPERATORS))
_OPERANDS = frozenset(("value", "values", "set"))
ONLY_IN_URLS = frozenset(("code", "sas"))
"""Names of secrets that only URLs use."""

_PARTS = TextPattern(r"[.\[\]]")
"""Separators in names like `form[token]`."""

_PUBLIC = frozenset({"cache_key", "public_key"})
_NAMED = ("Name", "_name", "Namespace", "_namespace")
"""Suffixes of fields that hold the name of an object."""

_LEAD = frozenset({"apiVersion", "kind", "name", "namespace"})

_CALLERS = TextPattern(r"log|auth|^ai-|function|lambda|whisk|splunk|lago|trac|telemetry|zipkin|datadog|tencent")
"""Plugins that call external services; the headers that they send are usually credentials."""

_ONE_VARIABLE = ValuePattern(r"\$[a-z_]{1,64}")
"""A variable of the gateway, as in a `log_format`: a name, not a value."""

_VARIABLE = ValuePattern(
    r"\$?(remote_addr|server_addr|uri|request_uri|host|consumer_name|(http|arg|cookie)_[a-z0-9_]+)"
)
"""Values of a `key` that is not a credential: the variable that a limit counts by or a hash uses."""


def is_secret_name(name: str) -> bool:
    """Return whether a value under this key is a secret, by the key alone."""
    return len(name) > LONGEST_NAME or _is_secret_name(name)


@lru_cache(maxsize=1024)
def _is_secret_name(name: str) -> bool:
    plain = _CAMEL_HUMP.sub(lambda found: f"{found[1]}_{found[2]}", name).lower().replace("-", "_").replace(".", "_")
    return plain in _SECRET_NAMES or plain.endswith(_SECRET_ENDINGS)


def suggests_secret(name: str) -> bool:
    """Return whether a value under this key may be a secret, or code that holds one."""
    return len(name) > LONGEST_NAME or _suggests_secret(name)


@lru_cache(maxsize=4096)
def _suggests_secret(name: str) -> bool:
    return is_secret_name(name) or _SUGGESTS.found(name)


def is_secret_of_request(name: str) -> bool:
    """Return whether the part of a request with this name may be a secret.

    Args:
        name: A header, parameter or cookie, or a variable of the gateway such as `http_authorization`.
    """
    return len(name) > LONGEST_NAME or _is_secret_of_request(name)


@lru_cache(maxsize=4096)
def _is_secret_of_request(name: str) -> bool:
    found = _OF_REQUESTS.fullmatch(name)
    bare = found[1] if found else name
    return bare.lower() in ONLY_IN_URLS or bare.lower().endswith("key") or any(map(suggests_secret, _PARTS.split(bare)))


def is_private_key(name: str, siblings: Mapping[Any, Any]) -> bool:
    """Return whether a field holds a private key, by its name or because it is next to a certificate."""
    if name in ("key", "keys"):
        return "cert" in siblings or "certs" in siblings
    return name == "client_key" or name.endswith("private_key")


_MODIFIER = "requestHeaderModifier"
"""Filter of an HTTPRoute that sets request headers; their values are often credentials, whatever their names."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a field in a document.

    Attributes:
        plugin: The plugin whose configuration this is, or empty.
        path: The names below the plugin or the document root, joined by dots.
        lists_plugins: Whether the names here are names of plugins.
    """

    plugin: str = ""
    path: str = ""
    lists_plugins: bool = False

    def under(self, name: str, siblings: Mapping[Any, Any]) -> Place:
        """Return the place below a field.

        Args:
            name: The field.
            siblings: The mapping that contains it; with `name` and `config` it is a plugin in a manifest.
        """
        if self.lists_plugins or name in _FIELDS:
            return Place(plugin=name)
        if name == "plugins":
            return Place(lists_plugins=True)
        if name in ("config", "metadata") and isinstance(siblings.get("name"), str):
            return Place(plugin=siblings["name"])
        if name.startswith("plugin_metadata/"):
            return Place(plugin=name.partition("/")[2])
        return Place(self.plugin, name if name == _MODIFIER else self._path(name))

    def item(self, items: Sequence[Any], index: int) -> Place:
        """Return the place of a list item; the item after a plugin name is its configuration (`workflow`)."""
        before = items[index - 1] if index else None
        if isinstance(before, str) and before in _FIELDS and isinstance(items[index], Mapping):
            return Place(plugin=before)
        return Place(self.plugin, self.path)

    def is_listed(self, name: str) -> bool:
        """Return whether the plugin here keeps a secret or code under this name."""
        return bool(self.plugin) and self._path(name) in _FIELDS.get(self.plugin, _NO_FIELDS)

    def hides(self, name: str, value: Any, siblings: Mapping[Any, Any]) -> bool:
        """Return whether the value of a field must be hidden."""
        if value is None or isinstance(value, bool) or value in ("", [], {}):
            return False
        if self.is_listed(name):
            return True
        if self._is_harmless(name, value, siblings):
            return False
        return (
            suggests_secret(name)
            or self._are_headers(name, value)
            or self._is_free_value(value)
            or (name == "value" and self.path.startswith(f"{_MODIFIER}."))
            or _is_named_secret(name, siblings)
        )

    def _path(self, name: str) -> str:
        if len(self.path) + len(name) > _LONGEST_PATH:
            return _NO_PATH
        return f"{self.path}.{name}" if self.path else name

    def _is_harmless(self, name: str, value: Any, siblings: Mapping[Any, Any]) -> bool:
        if self.lists_plugins and isinstance(value, Mapping):
            return True
        if name in _PUBLIC or name.endswith(_NAMED):
            return not isinstance(value, Mapping)
        if name == "key":
            return isinstance(value, str) and _selects(value, siblings)
        return not self.plugin and (
            name in _PLAIN or _are_records(name, value) or (isinstance(value, Mapping) and value.keys() <= _LEAD)
        )

    def _is_free_value(self, value: Any) -> bool:
        """Return whether this is a value in a mapping of which only the keys may be shown."""
        if isinstance(value, Mapping | list):
            return False
        if self.path.rpartition(".")[2] == "log_format":
            return not (isinstance(value, str) and _ONE_VARIABLE.fits(value))
        return bool(self.plugin) and self.path in _VALUES.get(self.plugin, _NO_FIELDS)

    def _are_headers(self, name: str, value: Any) -> bool:
        # Elsewhere `header` holds the name of a header.
        named = name.lower().endswith(("header", "headers")) and isinstance(value, Mapping)
        return named and _CALLERS.found(self.plugin)


ANYWHERE = Place()
"""The root of a document that is not the body of a record."""


def place_of(kind: str, id_: str) -> Place:
    """Return the root of the body of a record; the body of plugin metadata belongs to its plugin."""
    return Place(plugin=id_) if kind == "plugin_metadata" else ANYWHERE


def _are_records(name: str, value: Any) -> bool:
    """Return whether this is the list, or the number, of records of secret managers, whose fields are checked."""
    is_list = isinstance(value, list) and all(isinstance(item, Mapping) for item in value)
    return name == "secrets" and (is_list or isinstance(value, int))


def hides_item(items: Sequence[Any], index: int) -> bool:
    """Return whether a list item must be hidden: the value that a condition of `vars` compares a credential with."""
    name, item = items[0], items[index]
    if index == 0 or not isinstance(name, str) or item is None or isinstance(item, bool) or _is_operator(item):
        return False
    return (_OF_REQUESTS.fits(name[:LONGEST_NAME]) or _is_operator(items[1])) and is_secret_of_request(name)


def _is_operator(item: Any) -> bool:
    return isinstance(item, str) and len(item) <= _LONGEST_OPERATOR and item.lower() in _OPERATORS


def _is_named_secret(name: str, siblings: Mapping[Any, Any]) -> bool:
    """Return whether a sibling field names this value as a secret: a header in a list, an operand of an expression."""
    if name not in _OPERANDS:
        return False
    subject = siblings.get("subject", siblings)
    subject_name = subject.get("name") if isinstance(subject, Mapping) else None
    return isinstance(subject_name, str) and is_secret_of_request(subject_name)


def _selects(value: str, siblings: Mapping[Any, Any]) -> bool:
    """Return whether a `key` names the variable to count or hash by."""
    if _VARIABLE.fits(value):
        return True
    return siblings.get("key_type") in ("var", "var_combination") or siblings.get("type") == "chash"

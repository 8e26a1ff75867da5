"""The rules of each kind beyond its schema, in the gateway's order and with its messages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from e2e.devgateway.adminapi.record_kinds import RESOURCES, Refused, Resource, plain_key
from e2e.devgateway.dataplane.expressions import BadExpression, compile_rules
from e2e.devgateway.references import References
from e2e.devgateway.schemas import record_schemas as schemas
from e2e.devgateway.schemas.plugin_names import HTTP_PLUGINS, STREAM_PLUGINS
from e2e.devgateway.schemas.plugin_schemas import Plugin
from e2e.devgateway.schemas.validator import Schema, check

Body = dict[str, Any]

HASH_KEYS: dict[str, Schema] = {
    "vars": schemas.text(
        pattern="^((uri|server_name|server_addr|request_uri|remote_port|remote_addr|query_string|host|hostname"
        "|mqtt_client_id)|arg_[0-9a-zA-z_-]+)$"
    ),
    "header": schemas.text(pattern="^[a-zA-Z0-9-_]+$"),
    "cookie": schemas.text(pattern="^[a-zA-Z0-9-_]+$"),
}
VARS_FAILED = "failed to validate the 'vars' expression: "


def check_schema(schema: Schema, conf: object) -> None:
    """Reject what the schema rejects."""
    if (error := check(schema, conf)) is not None:
        raise Refused(f"invalid configuration: {error}")


def check_vars(rules: list[Any]) -> None:
    try:
        compile_rules(rules)
    except BadExpression as error:
        raise Refused(f"{VARS_FAILED}{error}") from error


# Plugins.


def check_plugins(plugins: Mapping[str, Any], *, consumer: bool = False, stream: bool = False) -> None:
    """Reject unknown plugins and invalid configurations."""
    known = STREAM_PLUGINS if stream else HTTP_PLUGINS
    for name, conf in plugins.items():
        if not isinstance(conf, dict | list):
            raise Refused(f"invalid plugin conf {orjson.dumps(conf).decode()} for plugin [{name}]")
        if name not in known:
            raise Refused(f"unknown plugin [{name}]")
        check_plugin(known[name], conf, consumer=consumer, stream=stream)


def check_plugin(plugin: Plugin, conf: Any, *, consumer: bool, stream: bool = False) -> None:
    meta = conf.get("_meta") if isinstance(conf, dict) else None
    if isinstance(meta, dict):
        if meta.get("disable") is True:
            return
        if isinstance(meta.get("filter"), list):
            check_vars(meta["filter"])
    own = consumer and plugin.consumer is not None
    schema = plugin.consumer if own and plugin.consumer is not None else plugin.schema
    error = check(schema, conf) or (_credential_rule if own else _plugin_rule)(plugin.name, conf)
    if error is not None:
        what = f"stream plugin [{plugin.name}]:" if stream else f"plugin {plugin.name} err:"
        raise Refused(f"failed to check the configuration of {what} {error}")


def _credential_rule(name: str, conf: Any) -> str | None:
    """Return the error of the plugin's own checks in a consumer or credential."""
    if name == "jwt-auth" and conf.get("algorithm", "HS256").startswith("HS") and "secret" not in conf:
        return 'property "secret" is required when using HS based algorithms'
    return None


def _plugin_rule(name: str, conf: Any) -> str | None:
    """Return the error of the plugin's own checks beyond its schema."""
    try:
        for rules in _expressions(name, conf):
            compile_rules(rules)
    except BadExpression as error:
        return f"{error}" if name == "fault-injection" else f"{VARS_FAILED}{error}"
    regex = conf.get("regex_uri") if isinstance(conf, dict) else None
    if name == "proxy-rewrite" and regex:
        for pattern in regex[::2]:
            try:
                re.compile(pattern)
            except re.error as error:
                return f"invalid regex_uri({pattern}): {error}"
    return None


def _expressions(name: str, conf: Any) -> list[list[Any]]:
    if name == "traffic-split":
        return [match["vars"] for rule in conf.get("rules", ()) for match in rule.get("match", ()) if "vars" in match]
    if name == "response-rewrite":
        return [conf["vars"]] if "vars" in conf else []
    if name == "fault-injection":
        return [rules for part in ("abort", "delay") for rules in conf.get(part, {}).get("vars", ())]
    return []


# Upstreams and certificates.


async def check_upstream(conf: Body, references: References | None) -> None:
    """Apply the rules of an upstream, a record or part of another one."""
    check_schema(schemas.UPSTREAM, conf)
    nodes = conf.get("nodes")
    for node in nodes if isinstance(nodes, list) else ():
        if not isinstance(node, dict):  # an empty list is an empty table in Lua
            raise Refused(
                'invalid configuration: property "nodes" validation failed: object matches none of the required'
            )
        if ":" in node["host"] and not node["host"].startswith("["):
            raise Refused("invalid configuration: IPv6 address must be enclosed with '[' and ']'")
    if conf.get("pass_host") == "rewrite" and not conf.get("upstream_host"):
        raise Refused("`upstream_host` can't be empty when `pass_host` is `rewrite`")
    await _check_client_tls(conf.get("tls") or {}, references)
    if conf.get("type") == "chash":
        _check_hash(conf)


def _check_hash(conf: Body) -> None:
    hash_on = conf.get("hash_on", "vars")
    if hash_on != "consumer" and "key" not in conf:
        raise Refused("missing key")
    if hash_on in HASH_KEYS:
        check_schema(HASH_KEYS[hash_on], conf["key"])


async def _check_client_tls(tls: Body, references: References | None) -> None:
    if "client_cert_id" in tls and references is not None:
        await references.need("ssls", "ssl", tls["client_cert_id"])
        if references.certificate_type(str(tls["client_cert_id"])) != "client":
            raise Refused(f"failed to fetch ssl info by ssl id [{tls['client_cert_id']}], wrong ssl type")
    if "client_cert" in tls:
        check_pair(tls["client_cert"], tls["client_key"])


def check_pair(cert: str, key: str | None) -> None:
    """Reject an unreadable certificate or key; whether they match is not checked."""
    if cert.startswith(("$secret://", "$env://")):
        return
    try:
        x509.load_pem_x509_certificate(cert.encode())
    except ValueError as error:
        raise Refused("failed to parse cert: PEM_read_bio_X509_AUX() failed") from error
    if key is None:
        return
    plain = plain_key(key)
    if plain is None:
        raise Refused("failed to decrypt previous encrypted key")
    try:
        load_pem_private_key(plain.encode(), None)
    except (ValueError, TypeError) as error:
        raise Refused("failed to parse key: PEM_read_bio_PrivateKey() failed") from error


async def check_ssl(conf: Body, _: References | None) -> None:
    check_pair(conf["cert"], conf["key"])
    if conf.get("type") == "client":
        return
    certs, keys = conf.get("certs", []), conf.get("keys", [])
    if len(certs) != len(keys):
        raise Refused("mismatched number of certs and keys")
    for index, (cert, key) in enumerate(zip(certs, keys, strict=True), 1):
        try:
            check_pair(cert, key)
        except Refused as error:
            raise Refused(f"failed to handle cert-key pair[{index}]: {error}") from error
    if "client" in conf:
        try:
            check_pair(conf["client"]["ca"], None)
        except Refused as error:
            raise Refused(f"failed to validate client_cert: {error}") from error


# Other kinds.


async def _check_links(conf: Body, references: References | None, **links: tuple[str, str]) -> None:
    for field, (kind, label) in links.items():
        if references is not None and field in conf:
            await references.need(kind, label, conf[field])


async def check_route(conf: Body, references: References | None) -> None:
    if "upstream" in conf:
        await check_upstream(conf["upstream"], references)
    await _check_links(
        conf,
        references,
        upstream_id=("upstreams", "upstream"),
        service_id=("services", "service"),
        plugin_config_id=("plugin_configs", "plugin config"),
    )
    check_plugins(conf.get("plugins") or {})
    check_vars(conf.get("vars") or [])
    function = conf.get("filter_func")
    if function is not None and not function.rstrip().endswith("end"):
        raise Refused(
            f"failed to load 'filter_func' string: [string \"return {function}\"]:1: 'end' expected near '<eof>'"
        )


async def check_service(conf: Body, references: References | None) -> None:
    if "upstream" in conf:
        await check_upstream(conf["upstream"], references)
    await _check_links(conf, references, upstream_id=("upstreams", "upstream"))
    check_plugins(conf.get("plugins") or {})


async def check_stream_route(conf: Body, references: References | None) -> None:
    if "upstream" in conf:
        await check_upstream(conf["upstream"], references)
    await _check_links(conf, references, upstream_id=("upstreams", "upstream"), service_id=("services", "service"))
    check_plugins(conf.get("plugins") or {}, stream=True)


async def check_consumer(conf: Body, references: References | None) -> None:
    _check_consumer_plugins(conf)
    if references is not None:
        references.check_unique(conf.get("plugins") or {}, str(conf["username"]))
    await _check_links(conf, references, group_id=("consumer_groups", "consumer group"))


async def check_credential(conf: Body, _: References | None) -> None:
    _check_consumer_plugins(conf)
    if not all(HTTP_PLUGINS[name].auth for name in conf.get("plugins") or {}):
        raise Refused("only supports auth type plugins in consumer credential")


def _check_consumer_plugins(conf: Body) -> None:
    try:
        check_plugins(conf.get("plugins") or {}, consumer=True)
    except Refused as error:
        raise Refused(f"invalid plugins configuration: {error}") from error


async def check_plugin_set(conf: Body, _: References | None) -> None:
    check_plugins(conf["plugins"])


async def check_proto(conf: Body, _: References | None) -> None:
    """Reject what is obviously not a protobuf definition: the first word must be a keyword of the language."""
    keywords = ("syntax", "package", "import", "option", "message", "enum", "service", "extend", "edition")
    first = re.match(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*([A-Za-z_]\w*)", conf["content"], re.DOTALL)
    if first is not None and first.group(1) not in keywords:
        place = f"1:{first.end() + 1}"
        raise Refused(
            "invalid content: ...//deps/share/lua/5.1/protoc.lua:842: "
            f"filename for loaded:{place}: unknown keyword '{first.group(1)}'"
        )


Check = Callable[[Body, References | None], Awaitable[None]]
CHECKS: dict[str, Check] = {
    "routes": check_route,
    "services": check_service,
    "upstreams": check_upstream,
    "ssls": check_ssl,
    "stream_routes": check_stream_route,
    "consumers": check_consumer,
    "credentials": check_credential,
    "consumer_groups": check_plugin_set,
    "plugin_configs": check_plugin_set,
    "global_rules": check_plugin_set,
    "protos": check_proto,
}


async def check_record(
    resource: Resource, conf: Body, references: References | None, *, name: str | None = None
) -> None:
    """Apply schema and rules; without `references`, other records are not checked."""
    if resource.name == "routes":
        for field in ("host", "remote_addr"):
            if field in conf and f"{field}s" in conf:
                raise Refused(f"only one of {field} or {field}s is allowed")
    check_schema(resource.schema, conf)
    if resource.name == "consumers" and name not in (None, conf["username"]):
        raise Refused("wrong username")
    if resource.name in CHECKS:
        await CHECKS[resource.name](conf, references)


def check_secret(manager: str, conf: Body) -> None:
    if manager not in schemas.SECRETS:
        raise Refused(f"invalid secret manager: {manager}")
    check_schema(schemas.SECRETS[manager], conf)


def check_metadata(plugin: str, conf: Body) -> None:
    if plugin not in HTTP_PLUGINS:
        raise Refused("invalid plugin name")
    check_schema(RESOURCES["plugin_metadata"].schema, conf)

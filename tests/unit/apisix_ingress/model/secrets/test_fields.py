"""Which fields hold secrets: by plugin, by name, and names that are only similar."""

from typing import Any

import pytest

from apisix_ingress.model.secrets.fields import ANYWHERE, PLUGIN_FIELDS, Place, is_private_key, place_of
from apisix_ingress.model.secrets.redaction import masked

# `encrypt_fields` of plugins that are easily missed by the names of their fields.
ENCRYPTED = {
    "ai-proxy": {"auth.header", "auth.query", "auth.gcp.service_account_json", "auth.aws.secret_access_key"},
    "ai-proxy-multi": {"instances.auth.header", "instances.auth.query", "semantic_opts.embeddings.auth.header"},
    "elasticsearch-logger": {"auth.password", "headers"},
    "loki-logger": {"headers"},
    "aws-lambda": {"authorization.apikey", "authorization.iam.accesskey", "authorization.iam.secretkey"},
    "openid-connect": {"client_secret", "client_rsa_private_key", "session.secret", "session.redis.password"},
    "feishu-auth": {"app_secret", "secret", "secret_fallbacks"},
    "kafka-logger": {"brokers.sasl_config.password"},
}


@pytest.mark.parametrize("plugin", ENCRYPTED)
def test_what_apisix_encrypts_is_listed(plugin: str) -> None:
    assert set(PLUGIN_FIELDS[plugin]) >= ENCRYPTED[plugin]


@pytest.mark.parametrize(
    "body",
    [
        {"plugins": {"csrf": {"key": "x"}}},
        {"plugins": [{"name": "csrf", "enable": True, "config": {"key": "x"}}]},
        {"plugins": {"multi-auth": {"auth_plugins": [{"csrf": {"key": "x"}}]}}},
        {"plugins": {"workflow": {"rules": [{"actions": [["csrf", {"key": "x"}]]}]}}},
        {"plugin_metadata/csrf": {"key": "x"}},
    ],
)
def test_plugin_is_known_wherever_it_is_configured(body: Any) -> None:
    assert list(_places(body, ANYWHERE)) == [Place(plugin="csrf")]


def _places(value: Any, place: Place) -> list[Place]:
    """Return the places of fields called `key`."""
    if isinstance(value, dict):
        here = [place] if "key" in value else []
        return here + [found for name, item in value.items() for found in _places(item, place.under(name, value))]
    items = value if isinstance(value, list) else []
    return [found for index, item in enumerate(items) for found in _places(item, place.item(items, index))]


def test_metadata_of_a_plugin_is_a_place_of_the_plugin() -> None:
    assert place_of("plugin_metadata", "azure-functions").is_listed("master_apikey")
    assert place_of("routes", "azure-functions") == ANYWHERE


@pytest.mark.parametrize(
    ("name", "value", "siblings"),
    [
        ("key", "remote_addr", {}),
        ("key", "$http_a $remote_addr", {"key_type": "var_combination"}),
        ("key", "X-Session", {"type": "chash", "hash_on": "header"}),
        ("secret", {"name": "cert", "namespace": "shop"}, {}),
        ("secretName", "cert", {}),
        ("secretRef", {"name": "words"}, {}),
        ("hide_credentials", True, {}),
        ("password", "", {}),
        ("token", None, {}),
        ("cache_key", "$uri", {}),
        ("headers", {"X-Any": "x"}, {}),
        ("key-auth", "x", {}),
        ("shipping", "x", {}),
        ("opw", "x", {}),
    ],
)
def test_names_similar_to_secrets_are_shown(name: str, value: Any, siblings: dict[str, Any]) -> None:
    assert not ANYWHERE.hides(name, value, siblings)


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (Place("key-auth"), "key", "host"),
        (Place("odd-auth"), "secret", {"name": "x"}),
        (Place("http-logger"), "headers", {"X-Any": "x"}),
        (Place("opentelemetry", "collector"), "request_headers", {"X-Any": "x"}),
        (Place(lists_plugins=True), "token", "x"),
        (ANYWHERE, "script", "return 1"),
        (ANYWHERE, "filter_func", "function() end"),
        (Place("prometheus", "_meta"), "pre_function", "return 1"),
        (ANYWHERE, "Ocp-Apim-Subscription-Key", "x"),
        (ANYWHERE, "pin_token", 4711),
    ],
)
def test_what_may_be_a_secret_or_code_is_hidden(place: Place, name: str, value: Any) -> None:
    assert place.hides(name, value, {name: value})


def test_a_key_is_private_by_its_name_or_next_to_a_certificate() -> None:
    assert is_private_key("client_key", {})
    assert is_private_key("client_rsa_private_key", {})
    assert is_private_key("key", {"cert": "x"})
    assert not is_private_key("key", {})


@pytest.mark.parametrize(
    "name", ["pw", "db_pw", "passcode", "userPasscode", "pin", "card-pin", "X-Backend-Auth", "x-auth"]
)
def test_short_names_of_secrets_are_recognized(name: str) -> None:
    assert ANYWHERE.hides(name, "x", {})


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (
            {"plugins": {"proxy-rewrite": {"uri": "/a", "headers": {"set": {"X-Foo": "x"}, "remove": ["X-Bar"]}}}},
            {"plugins": {"proxy-rewrite": {"uri": "/a", "headers": {"set": {"X-Foo": "*"}, "remove": ["X-Bar"]}}}},
        ),
        (
            {"plugins": [{"name": "proxy-rewrite", "config": {"headers": {"X-Foo": "x", "add": {"X-Bar": "x"}}}}]},
            {"plugins": [{"name": "proxy-rewrite", "config": {"headers": {"X-Foo": "*", "add": {"X-Bar": "*"}}}}]},
        ),
        (
            {"plugins": {"traffic-label": {"rules": [{"actions": [{"set_headers": {"X-Foo": "x"}, "weight": 1}]}]}}},
            {"plugins": {"traffic-label": {"rules": [{"actions": [{"set_headers": {"X-Foo": "*"}, "weight": 1}]}]}}},
        ),
        (
            {"plugins": {"http-logger": {"log_format": {"host": "$host", "team": "x", "$y": "$a $b"}}}},
            {"plugins": {"http-logger": {"log_format": {"host": "$host", "team": "*", "$y": "*"}}}},
        ),
        (
            {"plugin_metadata/http-logger": {"log_format": {"team": "x"}}},
            {"plugin_metadata/http-logger": {"log_format": {"team": "*"}}},
        ),
        (
            {"spec": {"filters": [{"requestHeaderModifier": {"set": [{"name": "X-Foo", "value": "x"}]}}]}},
            {"spec": {"filters": [{"requestHeaderModifier": {"set": [{"name": "X-Foo", "value": "*"}]}}]}},
        ),
        (
            [{"plugins": [{"name": "authz-casbin", "metadata": {"model": "m", "policy": "p"}}]}],
            [{"plugins": [{"name": "authz-casbin", "metadata": {"model": "m", "policy": "*"}}]}],
        ),
        (
            {
                "plugins": {
                    "fault-injection": {"abort": {"http_status": 418, "body": "x"}},
                    "response-rewrite": {"body": "x"},
                }
            },
            {
                "plugins": {
                    "fault-injection": {"abort": {"http_status": 418, "body": "*"}},
                    "response-rewrite": {"body": "*"},
                }
            },
        ),
    ],
)
def test_values_of_the_users_own_are_hidden_and_their_names_are_not(body: Any, want: Any) -> None:
    assert masked(body, mark="*") == want

"""Addresses in plugins against a simple model: with the preset, no published body contains an address of the gateway.

The model does not use the tables of the review: the name of a field shows whether it may hold an address, apart from a
list of fields with such names that cause no requests.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apisix_ingress.model.json import JsonObject
from tests.unit.translation.objects import make, route, rule, secret, service
from tests.unit.translation.plugins.policy.fields import FOLDER
from tests.unit.translation.settling import bodies, settle
from translation.core.options import Options

TENANT = Options(plugins="reviewed", code_plugins="refuse", external_addresses="refuse-internal")
FIELDS: dict[str, dict[str, str]] = json.loads((FOLDER / "fields-3.18.json").read_text())

LEADS = re.compile(r"ur[il]|host|endpoint|addr|server|discovery|nodes|broker|domain|file|path$|upstream|_id$|^\*$")
NOWHERE = re.compile(
    r"redirect_ur[il]|redirect\.|proxy-rewrite\.|incoming_uri|checks\.|_paths$|headers|labels|pass_host|upstream_host"
    r"|trusted_addresses|zipkin.server_addr|client_id|app_id|(key|access_key|secret|log|project|tenant|region)_id$"
    r"|(transaction|subscription)_id$|auth\.(header|query)\.|event_properties|severity_map|expr|metadata"
)
"""Fields with such names that cause no requests: headers, redirects of the client, names of accounts."""

TARGETS = [
    (name, path)
    for name, fields in sorted(FIELDS.items())
    for path, kind in sorted(fields.items())
    if kind != "boolean"
    if LEADS.search(path.replace("[]", "").rpartition(".")[2]) and not NOWHERE.search(f"{name}.{path}")
]
ADDRESSES = ("127.0.0.1:19090", "http://127.0.0.1:19090/x", "http://u@127.1:19090", "$arg_19090", "http://$arg_19090/")


def config_with(path: str, value: str) -> JsonObject:
    """Return a configuration that has a text in one field."""
    found: Any = value
    for step in reversed(re.findall(r"\[\]|[^.\[\]]+", path)):
        # In a mapping with arbitrary keys, the keys are addresses.
        found = [found] if step == "[]" else {value if step == "*" else step: 1 if step == "*" else found}
    return dict(found)


wraps = st.lists(st.sampled_from(("workflow", "multi-auth")), max_size=2)
noise: st.SearchStrategy[JsonObject] = st.dictionaries(
    st.sampled_from(("timeout", "policy", "name", "key", "_meta")), st.just({}) | st.just(1), max_size=2
)


def wrapped(name: str, config: JsonObject, by: list[str]) -> tuple[str, JsonObject]:
    for outer in by:
        inner = [name, config] if outer == "workflow" else {name: config}
        config = (
            {"rules": [{"actions": [inner]}]} if outer == "workflow" else {"auth_plugins": [{"key-auth": {}}, inner]}
        )
        name = outer
    return name, config


def published(*objects: JsonObject) -> str:
    found = settle(service(), *objects, options=TENANT)
    return orjson.dumps(bodies(found), option=orjson.OPT_NON_STR_KEYS).decode()


@given(
    target=st.sampled_from(TARGETS),
    value=st.sampled_from(ADDRESSES),
    by=wraps,
    more=noise,
    kind=st.sampled_from(("ApisixRoute", "stream", "ApisixPluginConfig", "ApisixConsumer", "Secret")),
)
@settings(max_examples=400, deadline=None)
def test_no_address_of_the_gateway_is_published_in_a_plugin(
    target: tuple[str, str], value: str, by: list[str], more: JsonObject, kind: str
) -> None:
    name, config = target[0], {**more, **config_with(target[1], value)}
    name, config = wrapped(name, config, by)
    plugin = {"name": name, "enable": True, "config": config}
    assert "19090" not in published(*objects_with(plugin, kind, target, value))


def objects_with(plugin: JsonObject, kind: str, target: tuple[str, str], value: str) -> list[JsonObject]:
    if kind == "Secret" and "[" not in target[1] and "*" not in target[1]:
        # The data of a Secret overrides the configuration.
        plugin = {"name": target[0], "enable": True, "secretRef": "secret"}
        return [secret(**{target[1].replace(".", "__"): value}), route(rule(plugins=[plugin]))]
    if kind == "stream":
        backend = {"serviceName": "web", "servicePort": 80}
        stream = {"name": "s", "protocol": "TCP", "match": {"ingressPort": 1}, "backend": backend, "plugins": [plugin]}
        return [route(stream=[stream])]
    if kind in ("ApisixPluginConfig", "ApisixConsumer"):
        spec: JsonObject = {"plugins": [plugin]}
        if kind == "ApisixConsumer":
            spec["authParameter"] = {"keyAuth": {"value": {"key": "k"}}}
        return [make(kind, "one", spec=spec)]
    return [route(rule(plugins=[plugin]))]


@pytest.mark.parametrize(
    ("name", "field"), [("proxy-mirror", "host"), ("traffic-split", "rules[].weighted_upstreams[].upstream.nodes.*")]
)
def test_the_same_is_published_with_an_address_of_another_client(name: str, field: str) -> None:
    """Otherwise the test above would prove nothing."""
    value = "https://a.example:19091" if field == "host" else "a.example:19091"
    plugin = {"name": name, "enable": True, "config": config_with(field, value)}
    assert (name, field) in TARGETS
    assert "19091" in published(route(rule(plugins=[plugin])))

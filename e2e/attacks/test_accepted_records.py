"""A tenant who writes values at random: the gateway's schemas accept each record that is published.

A rejected record would leave its path to another route. The records are checked with the schemas and rules of the
development gateway, which were recorded from a real one; with `--admin-url`, a real gateway validates them, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from apisix_ingress.diagnostics.collect.offline import Outcome, settle
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.records import Record
from apisix_ingress.settings import load_settings
from apisix_ingress.wiring.options import translation_options
from e2e.attacks.installation import gateway_class
from e2e.attacks.test_operator_tools import CLASS, CONFIG, SERVICE, ingress, write
from e2e.attacks.values import SLOW_TO_MATCH, UNUSABLE
from e2e.definitions.gateway_kinds import gateway, http_route
from e2e.devgateway.adminapi.record_kinds import RESOURCES as KINDS
from e2e.devgateway.adminapi.record_kinds import Refused
from e2e.devgateway.schemas.plugin_names import HTTP_PLUGINS
from e2e.devgateway.schemas.record_checks import check_plugins, check_record
from e2e.gateways import RemoteGateway
from e2e.story import route
from tests.flow.commandline import Cli
from translation.core.options import Options
from translation.nginx.tables.annotations import TABLE

SEED = 24
BATCH = 200
BODIES = 40
TEXTS: Sequence[str] = (
    *("", "true", "0", "-1", "1", "60", "99999999999999999999", "1e9", "0.5", "1m", "10.0.0.0/8", "/", "/x", "x", "*"),
    *("$uri", "$http_x", "${http_x}", "/$1", "$1", "my_host", "a.example:99999", "http://a_b.example/x?y=$host"),
    *(
        "https://a.example/$http_x",
        "a:b/c",
        "JSESSIONID.node1",
        "GET,,POST",
        "a b",
        ", ,",
        ";",
        "%",
        "%zz",
        "'\"",
        "\\",
    ),
    *("é", "\x7f", "\u2028", "a\nb", "(", "(a+)+$", "[", "^/(.*)$ /$1", '"]]..os.execute(1)..[["', "${os}]==] -- %s"),
    *("=", "=a", "a=", "a: b", "a:b:c", "default/x", "default/x/y", "200", "404,503", "999", "a" * 3000, "x" * 300),
)
"""Values for any annotation: of the right kind for some, and wrong in some way for the others."""

BASES: Sequence[Mapping[str, str]] = (
    {},
    {"use-regex": "true", "rewrite-target": "/$1", "affinity": "cookie", "enable-cors": "true"},
    {"auth-url": "http://auth.example/", "auth-signin": "http://in.example/", "mirror-target": "http://copy.example"},
)
"""Annotations that other annotations depend on."""


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    """The options of a controller with the preset for several tenants."""
    config = tmp_path_factory.mktemp("config") / "config.yaml"
    config.write_text(CONFIG)
    return translation_options(load_settings(Path(config)))


@pytest.fixture(scope="module")
def real(request: pytest.FixtureRequest) -> RemoteGateway | None:
    """The gateway of `--admin-url`."""
    found = request.getfixturevalue("gateway") if request.config.getoption("--admin-url") else None
    return found if isinstance(found, RemoteGateway) else None


def translated(items: Iterable[dict[str, Any]], options: Options) -> Outcome:
    return settle((RESOURCES[item["kind"]].decode(item) for item in (CLASS, SERVICE, *items)), options)


def annotated() -> Iterator[dict[str, Any]]:
    """Yield Ingresses with every annotation and many values, each with its own host."""
    chooser = random.Random(SEED)
    for name in TABLE:
        for text in chooser.sample(TEXTS, 4):
            given = {**chooser.choice(BASES), name: text}
            yield with_host(given, chooser)
    for values in (*SLOW_TO_MATCH.values(), *UNUSABLE.values()):
        yield with_host(values, chooser)


def with_host(given: Mapping[str, str], chooser: random.Random) -> dict[str, Any]:
    """Return an Ingress with these annotations, for a host of its own."""
    name = f"i{chooser.getrandbits(64):x}"
    path, kind = chooser.choice([("/", "Prefix"), ("/a", "Exact"), ("/b(.*)", "ImplementationSpecific")])
    return ingress(name, path, kind=kind, **{key.replace("-", "_"): text for key, text in given.items()})


async def rejected(records: Iterable[Record], real: RemoteGateway | None) -> dict[str, str]:
    """Return the errors of the records that the gateway rejects, by record."""
    bodies = {record.key: {"id": record.key.id} | orjson.loads(record.payload) for record in records}
    found = {}
    for key, body in bodies.items():
        if key.kind in KINDS and key.kind != "plugin_metadata":
            try:
                await check_record(KINDS[key.kind], body, None)
            except Refused as error:
                found[str(key)] = f"{error} in {body.get('name')}"
    if real is not None:
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for key, body in bodies.items():
            by_kind.setdefault(key.kind, []).append(body)
        for kind, each in by_kind.items():
            for start in range(0, len(each), BATCH):
                errors = validated(real, kind, each[start : start + BATCH])
                found |= {f"{kind}/{error['resource_id']}": error["error"] for error in errors}
    return found


def validated(real: RemoteGateway, kind: str, bodies: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the errors that a real gateway finds in records, without writing them."""
    url = real.admin_url + "/configs/validate"
    reply = httpx.post(url, json={kind: bodies}, headers={"X-API-KEY": real.admin_key}, timeout=60, trust_env=False)
    assert reply.status_code in (200, 400), reply.text
    errors: list[dict[str, Any]] = reply.json().get("errors", []) if reply.status_code == 400 else []
    return errors


@pytest.fixture(scope="module")
def outcome(options: Options) -> Outcome:
    """The records of Ingresses with every annotation."""
    return translated(annotated(), options)


async def test_every_record_of_an_annotated_ingress_is_accepted(outcome: Outcome, real: RemoteGateway | None) -> None:
    assert len(outcome.records) > len(TABLE)
    assert await rejected(outcome.records, real) == {}


async def test_migrate_calls_exact_only_what_the_gateway_accepts(
    options: Options, real: RemoteGateway | None, tmp_path: Path
) -> None:
    items = [
        ingress(f"shop{number}", "/admin", auth_url="http://auth.example/", **given)
        for number, given in enumerate(UNUSABLE.values())
    ]
    cli = Cli(tmp_path)
    _, report = await cli.json("migrate", write(cli, *items), "--config", "config.yaml")

    exact = {each["ingress"]["name"] for each in report["ingresses"] if each["verdict"] == "exact"}
    served = translated([each for each in items if each["metadata"]["name"] in exact], options)

    assert await rejected(served.records, real) == {}


FUNCTIONS = ("serverless-pre-function", "serverless-post-function")


def test_no_text_of_an_annotation_becomes_code(outcome: Outcome) -> None:
    found = functions(outcome)

    assert [text for text in found if any(word in text for word in TEXTS if len(word) > 10)] == []
    assert 3 < len(found) < 60


def functions(outcome: Outcome) -> set[str]:
    """Return the different texts of functions in records."""
    plugins = [record.body.get("plugins", {}) for record in outcome.records]
    found = (each.get(name, {}).get("functions", ()) for each in plugins for name in FUNCTIONS)
    return {str(text) for texts in found for text in texts}


NAMES = ("X-A", "x_b", "Host", "Content-Length", "$http_x", "a!#%&'*+.^`|~", "A" * 256)
VALUES = ("1", "$http_x", "${a}", "é", "$1", "\\$x", "a b ", "x" * 4096)
PATHS = ("/", "/x", "", "x", ".evil.test:1", "$uri", "/$1", "/${a}", "/a?b", "//x", "/é", "/" + "a" * 1000)
MATCHES = ("/", "/x", "/$1", "/a(b", "/é", "/a*b", "/" + "a" * 1000)
HOSTS = ("a.example", "my-host", "1a.example", "a" * 63 + ".example")
ORIGINS = ("https://a.example", "https://*.a.example", "http://a:8080", "*")
"""Values that the schemas of the Gateway API permit."""


def filters(chooser: random.Random) -> dict[str, Any]:
    """Return a filter of an HTTPRoute with values chosen at random."""
    pick = chooser.choice
    headers: dict[str, Any] = {each: [{"name": pick(NAMES), "value": pick(VALUES)}] for each in ("set", "add")}
    headers["remove"] = [pick(NAMES)]
    full, prefix = {"type": "ReplaceFullPath"}, {"type": "ReplacePrefixMatch"}
    change = pick([full | {"replaceFullPath": pick(PATHS)}, prefix | {"replacePrefixMatch": pick(PATHS)}])
    redirect: dict[str, Any] = {
        "scheme": pick(["http", "https"]),
        "hostname": pick(HOSTS),
        "port": pick([1, 80, 65535]),
    }
    redirect |= {"path": change, "statusCode": pick([301, 302, 303, 307, 308])}
    cors = {"allowOrigins": [pick(ORIGINS)], "allowHeaders": [pick(NAMES)], "maxAge": pick([1, 5, 2**31 - 1])}
    return pick(
        [
            {"type": "RequestHeaderModifier", "requestHeaderModifier": headers},
            {"type": "ResponseHeaderModifier", "responseHeaderModifier": headers},
            {"type": "URLRewrite", "urlRewrite": {"hostname": pick(HOSTS), "path": change}},
            {"type": "RequestRedirect", "requestRedirect": redirect},
            {"type": "CORS", "cors": cors},
        ]
    )


def http_routes() -> Iterator[dict[str, Any]]:
    """Yield a Gateway, its class, and HTTPRoutes with filters and matches chosen at random."""
    chooser = random.Random(SEED)
    yield from (gateway_class(), placed(gateway()))
    for number in range(300):
        kind = chooser.choice(["PathPrefix", "Exact", "RegularExpression"])
        header = {"name": chooser.choice(NAMES), "value": chooser.choice(VALUES)}
        match = {"path": {"type": kind, "value": chooser.choice(MATCHES)}, "headers": [header]}
        yield placed(http_route(f"r{number}.test", name=f"r{number}", matches=[match], filters=[filters(chooser)]))


def placed(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object in the namespace `default`."""
    return {**item, "metadata": {**item["metadata"], "namespace": "default"}}


async def test_every_record_of_an_http_route_is_accepted(options: Options, real: RemoteGateway | None) -> None:
    outcome = translated(http_routes(), options)

    assert len(outcome.records) > 100
    assert await rejected(outcome.records, real) == {}


def body(schema: Mapping[str, Any], chooser: random.Random) -> Any:
    """Return a value chosen at random that has the shape of a JSON schema; patterns and formats are not followed."""
    if "enum" in schema:
        return chooser.choice(schema["enum"])
    branches = schema.get("oneOf") or schema.get("anyOf")
    if branches and "type" not in schema:
        return body(chooser.choice(branches), chooser)
    match schema.get("type"):
        case "object":
            needed = {*schema.get("required", ()), *(chooser.choice(branches).get("required", ()) if branches else ())}
            fields = schema.get("properties", {})
            return {
                name: body(each, chooser) for name, each in fields.items() if name in needed or chooser.random() < 0.4
            }
        case "array":
            number = schema.get("minItems", 0) + chooser.randrange(2)
            return [body(schema.get("items", {"type": "string"}), chooser) for _ in range(number)]
        case "integer" | "number":
            return schema.get("minimum", 0) + chooser.randrange(1, 5)
        case "boolean":
            return chooser.random() < 0.5
        case _:
            return chooser.choice(TEXTS)


def configured(real: RemoteGateway | None) -> Iterator[dict[str, Any]]:
    """Yield ApisixRoutes with plugins whose bodies the gateway accepts."""
    chooser = random.Random(SEED)
    found = []
    for name, plugin in HTTP_PLUGINS.items():
        bodies = [body(plugin.schema, chooser) for _ in range(BODIES)]
        accepted = [each for each in bodies if isinstance(each, dict) and is_accepted(name, each)]
        found += [(f"{name}-{number}", name, config) for number, config in enumerate(accepted[:5])]
    refused = refused_ids(real, {id_: {"uri": "/", "plugins": {name: config}} for id_, name, config in found})
    for id_, name, config in found:
        if id_ not in refused:
            yield placed(route(f"{id_}.test", name=id_, plugins={name: config}))


def refused_ids(real: RemoteGateway | None, bodies: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the ids of the routes that a real gateway rejects: it knows more rules than the recorded ones."""
    if real is None:
        return set()
    errors = validated(real, "routes", [{"id": id_, **each} for id_, each in bodies.items()])
    return {each["resource_id"] for each in errors}


def is_accepted(name: str, config: Mapping[str, Any]) -> bool:
    try:
        check_plugins({name: config})
    except Refused:
        return False
    return True


@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")  # A text as a pattern of the gateway.
async def test_a_plugin_that_a_gateway_accepts_is_accepted_in_a_record(
    options: Options, real: RemoteGateway | None
) -> None:
    outcome = translated(configured(real), options)

    kinds = {name for record in outcome.records for name in record.body.get("plugins", {})}
    assert len(kinds) > 15
    assert await rejected(outcome.records, real) == {}

"""A kind is one row of the table and three files: no other module names it."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import crds
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.gateway_api import CA_BUNDLE
from apisix_ingress.model.kinds.indexes import HOST_INDEX, MATCHER_INDEX
from apisix_ingress.model.kinds.resource import imported
from apisix_ingress.model.kinds.table import PREFIXES, RESOURCES, kinds_with
from apisix_ingress.model.names import object_name
from apisix_ingress.model.network.host_claims import HOST_READERS
from apisix_ingress.model.network.route_keys import RULE_READERS
from apisix_ingress.model.record_owner import origin_of_name
from providers.core.base import Provider
from providers.core.dependency import DependencyProvider

ROOT = Path(crds.__file__).parents[1]
TABLE = "apisix_ingress/model/kinds/table.py"
PACKAGES = ("apisix_ingress", "providers", "translation", "crds")
TRANSLATED = frozenset(kind for kind, row in RESOURCES.items() if row.translator)

READERS: Mapping[str, tuple[set[str], str]] = {
    "apisix_ingress/diagnostics/wanted_certificates.py": (
        {"ApisixTls", "Ingress"},
        "lists the certificates that objects name",
    ),
    "apisix_ingress/commands/gateways/verify.py": ({"Ingress"}, "compares how requests to Ingresses are answered"),
    "apisix_ingress/lint/structure.py": ({"Ingress"}, "checks fields that the API server checks beyond the schema"),
    "apisix_ingress/commands/manifests/migrate.py": ({"Ingress"}, "rewrites Ingresses of another controller"),
    "apisix_ingress/diagnostics/doctor/api_server.py": ({"Ingress"}, "IngressClasses are for Ingresses"),
    "apisix_ingress/diagnostics/doctor/ingress_addresses.py": ({"Ingress"}, "only Ingresses show addresses"),
    "apisix_ingress/diagnostics/reports/migration.py": ({"Ingress"}, "ingress-nginx has no other kind"),
    "apisix_ingress/model/network/host_claims.py": (
        {"ApisixRoute", "ApisixTls", "Ingress"},
        "reads the hosts of raw specs for the indexes, below the table",
    ),
    "apisix_ingress/model/network/route_keys.py": (
        {"ApisixRoute", "Ingress"},
        "reads the matchers of raw specs for the indexes, below the table",
    ),
    "apisix_ingress/model/network/tls_hosts.py": ({"Ingress"}, "reads certificates of raw specs, below the table"),
    "apisix_ingress/webhook/checks/nginx_ingress.py": ({"Ingress"}, "ingress-nginx has no other kind"),
    "providers/core/current_nodes.py": ({"ApisixClusterConfig"}, "may change the address of a cluster"),
    "providers/nginx/host.py": ({"Ingress"}, "ingress-nginx has no other kind"),
    "providers/status/host_records.py": ({"Ingress"}, "ingress-nginx has no other kind"),
    "providers/status/status_addresses.py": ({"GatewayProxy"}, "may name the addresses"),
    "apisix_ingress/app.py": ({"Ingress"}, "only Ingresses show addresses of ingress-nginx"),
    "apisix_ingress/lint/assumed.py": ({"GatewayProxy"}, "may be missing among files"),
    "apisix_ingress/model/kinds/extensions.py": ({"GatewayProxy", "PluginConfig"}, "has their rows"),
    "apisix_ingress/model/decoders.py": ({"GatewayProxy"}, "parameters of IngressClasses refer to them"),
    "apisix_ingress/model/kinds/indexes.py": ({"GatewayProxy"}, "parameters of Gateways refer to them"),
    "translation/policies.py": ({"ApisixUpstream"}, "routes of several gateways claim its upstreams"),
    "translation/serving.py": ({"Ingress"}, "only Ingresses name an IngressClass, which may be missing"),
    "translation/targets.py": ({"Ingress"}, "may have no class, and then belongs to the default one"),
    "translation/core/scope.py": ({"Ingress"}, "the rules of IngressClass are for Ingresses"),
    "translation/gateway/extensions/backend_traffic_policy.py": (
        {"ApisixUpstream"},
        "takes precedence over a policy of the same Service",
    ),
    "translation/gateway/extensions/standings.py": ({"Ingress"}, "an HTTPRoutePolicy may apply to one"),
    "translation/gateway/extensions/http_route_policy.py": ({"Ingress"}, "one rule stands for a whole Ingress"),
    "translation/gateway/routes/extensions.py": (
        {"ApisixPluginConfig", "PluginConfig"},
        "filters of routes refer to them",
    ),
    "translation/hosts/certificate_conflicts.py": ({"Ingress"}, "only an Ingress leaves its hosts to a certificate"),
    "translation/hosts/host_certificates.py": ({"ApisixTls"}, "compares client CAs, which only an ApisixTls has"),
    "translation/ingress_tls.py": ({"ApisixTls"}, "ids of 1.8 are hashes of a document with this word"),
    "translation/nginx/classes.py": ({"Ingress"}, "ingress-nginx has no other kind"),
    "translation/nginx/sources.py": ({"Ingress"}, "ingress-nginx has no other kind"),
    "translation/nginx/effects/destinations.py": ({"Ingress"}, "ingress-nginx has no other kind"),
    "translation/nginx/native/objects/apisix_route.py": ({"ApisixPluginConfig", "ApisixRoute"}, "writes manifests"),
    "translation/nginx/native/objects/http_route.py": ({"ApisixPluginConfig"}, "writes manifests"),
    "translation/nginx/native/objects/tls.py": ({"ApisixTls"}, "writes manifests"),
    "translation/nginx/native/objects/upstreams.py": ({"ApisixUpstream"}, "writes manifests"),
    "translation/plugins/configs.py": ({"ApisixGlobalRule"}, "a plugin of every request is judged in any case"),
    "translation/plugins/policy/judge.py": ({"ApisixConsumer"}, "some plugins are only for consumers"),
    "translation/consumer.py": ({"ApisixConsumerGroup"}, "consumers refer to their group"),
    "translation/plugins/protos.py": ({"ApisixProto"}, "grpc-transcode refers to one"),
    "translation/route.py": ({"ApisixPluginConfig", "ApisixUpstream"}, "routes refer to them"),
    "translation/service.py": ({"ApisixUpstream"}, "settings of a Service"),
    "translation/upstreams/backends.py": ({"ApisixUpstream"}, "routes refer to them"),
    "translation/upstreams/settings.py": ({"ApisixUpstream"}, "settings of a Service"),
}
"""Module → the kinds that it names, and why. Other differences between kinds belong in the table."""


def kinds_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and text in TRANSLATED}


def naming() -> Iterator[tuple[str, str]]:
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        where = str(path.relative_to(ROOT))
        yield from ((where, kind) for kind in kinds_in(path) if where not in (TABLE, *own_files(kind)))


def references(kind: str) -> dict[str, str]:
    row = RESOURCES[kind]
    found = {name: getattr(row, name) for name in ("spec", "translator", "provider", "unnamed", "webhook", "lint")}
    return {name: reference for name, reference in found.items() if reference}


def own_files(kind: str) -> set[str]:
    modules = {name: each.partition(":")[0].replace(".", "/") + ".py" for name, each in references(kind).items()}
    return {modules[name] for name in ("spec", "translator", "provider") if name in modules}


def test_no_module_but_its_own_files_names_a_kind() -> None:
    want = {(path, kind) for path, (kinds, _) in READERS.items() for kind in kinds}
    assert set(naming()) == want


@pytest.mark.parametrize("kind", sorted(RESOURCES))
def test_what_a_row_names_exists(kind: str) -> None:
    row = RESOURCES[kind]
    found = {name: imported(reference) for name, reference in references(kind).items()}
    assert all(map(callable, found.values()))
    assert row.label
    if provider := found.get("provider"):
        assert issubclass(provider, Provider | DependencyProvider)
        assert provider.kind == kind
    if spec := found.get("spec"):
        assert issubclass(spec, crds.Spec)
        assert (row.short, row.description) != ("", "")


def test_no_namespace_has_the_name_of_a_record_prefix() -> None:
    """`ing` is that of 1.8; a route of an ApisixRoute in such a namespace can be distinguished by its body."""
    assert {prefix for prefix in PREFIXES if not prefix[0].isupper()} == {"ing"}


@pytest.mark.parametrize("kind", sorted(RESOURCES))
def test_a_record_name_leads_to_its_kind(kind: str) -> None:
    """Whatever the order of the rows is: the patterns of kinds without a prefix match nearly every name."""
    row = RESOURCES[kind]
    for record_kind, rest in row.record_names.items():
        if row.record_prefix or not rest:
            name = object_name("shop", "web", row.record_prefix) + ("_1" if rest else "")
            assert origin_of_name(record_kind, name) == ObjectKey(kind, "shop", "web")


@pytest.mark.parametrize(
    ("index", "readers"), [(HOST_INDEX, HOST_READERS), (MATCHER_INDEX, RULE_READERS)], ids=["hosts", "matchers"]
)
def test_an_indexed_kind_has_a_reader(index: str, readers: Mapping[str, object]) -> None:
    """Without one, the index is empty: hosts have no owner, and no conflict is found."""
    assert set(readers) == set(kinds_with(index))


def test_short_names_are_used_once() -> None:
    rows = [row for row in RESOURCES.values() if row.kind != CA_BUNDLE]  # ConfigMaps are read for two purposes
    names = [name for row in rows for name in {row.kind.lower(), row.plural, row.short} - {""}]
    assert len(names) == len({*names})

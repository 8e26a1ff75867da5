"""Which requests a canary gets: backends of ingress-nginx, across hosts and namespaces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.model.keys import IndexKey, ObjectKey
from tests.unit.translation.nginx.objects import OPTIONS, SERVICE, ingress, translated

OWNED = replace(OPTIONS, host_ownership="namespace")


def service(name: str, namespace: str = "shop", *ports: int) -> dict[str, Any]:
    spec = {"clusterIP": "10.0.0.2", "ports": [{"port": port, "name": f"p{port}"} for port in ports or (80,)]}
    return {**SERVICE, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def canary(*paths: str, namespace: str = "shop", **given: str) -> dict[str, Any]:
    """Return a canary with the Service `next`, newer than other Ingresses."""
    weight = {} if "canary_by_header" in given else {"canary_weight": "30"}
    every: dict[str, Any] = {"age": 30, "canary": "true", **weight, **given}
    found = ingress("canary", *((path, "Prefix") for path in paths or ("/",)), service="next", **every)
    found["metadata"]["namespace"] = namespace
    return found


def split(outcome: Outcome) -> set[tuple[str, str]]:
    """Return host and path of the routes that give a canary its share."""
    found = (record.body for record in outcome.records if record.key.kind == "routes")
    return {
        (body["hosts"][0], uri) for body in found if "traffic-split" in body.get("plugins", {}) for uri in body["uris"]
    }


def test_a_canary_of_another_namespace_gets_its_share() -> None:
    got = translated(ingress("web", ("/", "Prefix")), canary(namespace="team"), service("next", "team"))

    assert split(got) == {("shop.test", "/*")}
    (target,) = {str(claim.target) for claim in _claims(got) if claim.target.name == "next"}
    assert target == "Service team/next"


def _claims(outcome: Outcome) -> list[Any]:
    names = ("web", "next")
    every = (ObjectKey("Service", space, name) for space in ("shop", "team") for name in names)
    return [claim for key in every for _, claim in outcome.world.claims.distinct(key)]


def test_a_canary_of_another_namespace_is_refused_where_hosts_belong_to_namespaces() -> None:
    got = translated(ingress("web", ("/", "Prefix")), canary(namespace="team"), service("next", "team"), options=OWNED)

    assert split(got) == set()
    assert ("Ingress team/canary", "HostNotOwned") in [(str(key), problem.code) for key, problem in got.problems]


def test_a_canary_of_another_namespace_gets_its_share_of_a_host_that_is_shared_with_it() -> None:
    web, other = ingress("web", ("/", "Prefix")), ingress("other", ("/", "Prefix"), host="other.test")
    web["metadata"]["annotations"]["apisix.apache.org/share-hosts-with"] = "team"

    got = translated(web, other, canary(namespace="team"), service("next", "team"), options=OWNED)

    # The Service is the same, but other.test is not shared.
    assert split(got) == {("shop.test", "/*")}


def test_a_canary_takes_its_share_of_the_service_on_every_host() -> None:
    web, other = ingress("web", ("/", "Prefix")), ingress("other", ("/x", "Prefix"), host="other.test")

    got = translated(web, other, canary(), service("next"))

    assert split(got) == {("shop.test", "/*"), ("other.test", "/x"), ("other.test", "/x/*")}


@pytest.mark.parametrize("number", [3, 40])
def test_a_canary_is_found_however_many_hosts_have_the_service(number: int) -> None:
    hosts = [f"h{place:02}.test" for place in range(number)]
    mains = [ingress(host[:3], ("/", "Prefix"), host=host) for host in hosts]

    got = translated(*mains, canary(host=hosts[-1]), service("next"))

    assert split(got) == {(host, "/*") for host in hosts}


def test_a_canary_of_one_port_leaves_other_ports_of_the_service_alone() -> None:
    web, admin = ingress("web", ("/", "Prefix")), ingress("admin", ("/admin", "Prefix"))
    admin["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["port"] = {"number": 81}

    got = translated(web, admin, canary(), service("web", "shop", 80, 81), service("next"))

    assert split(got) == {("shop.test", "/*")}


def test_a_path_that_an_older_ingress_serves_does_not_attract_a_canary() -> None:
    older = ingress("older", ("/a", "Prefix"), service="old")
    newer = ingress("newer", ("/a", "Prefix"), ("/b", "Prefix"), age=1)

    got = translated(older, newer, canary("/a"), service("old"), service("next"))

    assert split(got) == {("shop.test", "/a"), ("shop.test", "/a/*")}


def test_a_canary_gets_its_share_of_the_default_backend_of_its_host() -> None:
    web = ingress("web", ("/a", "Prefix"))
    web["spec"]["defaultBackend"] = {"service": {"name": "rest", "port": {"number": 80}}}

    got = translated(web, canary("/"), service("rest"), service("next"))

    assert split(got) == {("shop.test", "/*")}


def test_the_first_ingress_with_the_service_of_a_canary_says_its_share() -> None:
    preview = ingress("preview", ("/", "Prefix"), host="preview.test", service="next")

    got = translated(ingress("web", ("/", "Prefix")), preview, canary(), service("next"))

    # In ingress-nginx, too, a Service that an older Ingress serves has no share.
    assert split(got) == set()


def test_a_service_of_the_host_is_not_a_canary_of_the_locations_after_its_own() -> None:
    web = ingress("web", ("/a", "Prefix"), ("/c", "Prefix"))
    mine = ingress("next", ("/b", "Prefix"), age=40, service="next")

    before = translated(web, mine, canary("/a"), service("next"))
    mine["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    after = translated(web, mine, canary("/a"), service("next"))

    assert split(before) == {("shop.test", path) for path in ("/a", "/a/*", "/c", "/c/*")}
    assert split(after) == set()


def test_an_edit_of_a_canary_concerns_only_hosts_with_the_service() -> None:
    web, other = ingress("web", ("/", "Prefix")), ingress("other", ("/", "Prefix"), host="other.test", service="old")

    outcome = translated(web, other, canary(), service("next"), service("old"))

    assert _canary_reads(outcome, "other.test") == {"other.test"}
    assert _canary_reads(outcome, "shop.test") == {"shop.test"}


def _canary_reads(outcome: Outcome, host: str) -> set[str]:
    reads = outcome.world.dependents.reads_of(ObjectKey("NginxHost", "", host))
    return {read.value for read in reads if isinstance(read, IndexKey) and read.by == "nginx-canary"}

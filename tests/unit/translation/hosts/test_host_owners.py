"""Hosts belong to the namespace of the oldest object with them."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.kinds.indexes import NGINX_INDEXES
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.network import host_claims as hostclaims
from providers.core.registry import resources
from tests.unit.translation.hosts.owning import (
    STRICT,
    born,
    hosts,
    key,
    namespace,
    reported,
    route,
    settled,
    surroundings,
)
from tests.unit.translation.objects import OPTIONS, fill, make
from tests.unit.translation.settling import bodies, prepare, settle


def ingress(namespace: str, day: int, *hosts: str, **spec: Any) -> JsonObject:
    target = {"service": {"name": "web", "port": {"number": 80}}}
    http = {"paths": [{"path": "/", "pathType": "Prefix", "backend": target}]}
    rules = [{"host": host, "http": http} for host in hosts]
    return born(
        make("Ingress", "ing", namespace=namespace, spec={"ingressClassName": "apisix", "rules": rules, **spec}), day
    )


def tls(namespace: str, day: int, *hosts: str) -> JsonObject:
    spec = {"hosts": [*hosts], "secret": {"name": "pair", "namespace": namespace}}
    return born(make("ApisixTls", "tls", namespace=namespace, spec=spec), day)


LEFT_OUT = (
    "host {0} is skipped: it belongs to namespace victim; use another one, or ask its owner to annotate the object "
    "that names it "
    "with apisix.apache.org/share-hosts-with: evil"
)


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        (route("victim", 1, "own.test"), route("evil", 2, "own.test", priority=9999), "spec.http[0].match.hosts"),
        (route("victim", 1, "own.test"), route("evil", 2, "OWN.test."), "spec.http[0].match.hosts"),
        (route("victim", 1, "own.test"), route("evil", 2, "own.test:80"), "spec.http[0].match.hosts"),
        (route("victim", 1, "*.own.test"), ingress("evil", 2, "pay.own.test"), "spec.rules[0].host"),
        (ingress("victim", 1, "own.test"), tls("evil", 2, "own.test"), "spec.hosts"),
        (tls("victim", 1, "*.own.test"), tls("evil", 2, "SHOP.own.test"), "spec.hosts"),
        (tls("victim", 1, "*.own.test"), route("evil", 2, "a.b.own.test"), "spec.http[0].match.hosts"),
        (tls("victim", 1, "*.own.test"), tls("evil", 2, "*.b.own.test"), "spec.hosts"),
    ],
)
def test_a_host_of_another_namespace_is_skipped(old: JsonObject, new: JsonObject, path: str) -> None:
    found = settled(new, old)
    assert hosts(found, new) == []
    (text,) = reported(found, new)
    assert text.startswith(f"{path}: host ")
    assert "belongs to namespace victim" in text
    assert "share-hosts-with: evil" in text
    assert "web" not in text
    assert (reported(found, old), len(hosts(found, old))) == ([], 1)


def test_the_message_names_host_namespace_and_remedy() -> None:
    new = route("evil", 2, "own.test")
    found = settled(route("victim", 1, "own.test"), new)
    assert reported(found, new) == [f"spec.http[0].match.hosts: {LEFT_OUT.format('own.test')}"]
    (problem,) = found.reports[key(new)].problems
    assert (problem.code, problem.severity) == ("HostNotOwned", "degraded")


def test_other_hosts_of_a_rule_and_other_rules_stay() -> None:
    new = route("evil", 2, "own.test", "mine.test")
    found = settled(route("victim", 1, "own.test"), new)
    assert hosts(found, new) == ["mine.test"]
    assert reported(found, new) == [f"spec.http[0].match.hosts[0]: {LEFT_OUT.format('own.test')}"]


def test_objects_of_one_namespace_share_their_hosts() -> None:
    one, two = route("victim", 1, "own.test"), ingress("victim", 3, "own.test", "a.own.test")
    found = settled(one, route("evil", 2, "own.test"), two)
    assert (hosts(found, one), hosts(found, two)) == (["own.test"], ["a.own.test", "own.test"])
    # Nor does the object in between take precedence over the owner's newer one, or report that it does.
    assert reported(found, two) == [f"spec.rules[0].http.paths[0]: {CONFLICT}"]


CONFLICT = (
    "host/path conflict: requests for own.test and / go to ApisixRoute victim/web, which is older; "
    "remove one of them, or change its host, path or method"
)


def test_a_newer_wildcard_over_a_name_of_another_namespace_is_skipped() -> None:
    old, new = route("victim", 1, "pay.own.test"), route("evil", 2, "*.own.test")
    found = settled(old, new)
    assert (hosts(found, old), hosts(found, new)) == (["pay.own.test"], [])
    assert reported(found, new) == [
        "spec.http[0].match.hosts: host *.own.test is skipped: namespace victim has a name below it; list your hosts "
        "one by one, or ask the operator to add *.own.test to the annotation apisix.apache.org/hosts of Namespace evil"
    ]


def test_a_wildcard_that_is_skipped_owns_no_name_below_it() -> None:
    old, refused, late = (
        route("victim", 1, "pay.own.test"),
        route("evil", 2, "*.own.test"),
        route("third", 3, "x.own.test"),
    )
    found = settled(old, refused, late)
    assert [hosts(found, each) for each in (old, refused, late)] == [["pay.own.test"], [], ["x.own.test"]]


def test_a_later_wildcard_of_the_owner_of_the_names_is_used_despite_an_older_one() -> None:
    old, refused, mine = (
        route("victim", 1, "pay.own.test", name="a"),
        route("evil", 2, "*.own.test"),
        route("victim", 3, "*.own.test"),
    )
    found = settled(old, refused, mine)
    assert [hosts(found, each) for each in (old, refused, mine)] == [["pay.own.test"], [], ["*.own.test"]]


def test_a_name_of_another_namespace_that_is_skipped_does_not_affect_a_wildcard_over_it() -> None:
    old, refused, mine = (
        route("victim", 1, "pay.own.test", name="a"),
        route("evil", 2, "pay.own.test"),
        route("victim", 3, "*.own.test"),
    )
    found = settled(old, refused, mine)
    assert [hosts(found, each) for each in (old, refused, mine)] == [["pay.own.test"], [], ["*.own.test"]]


def test_an_older_wildcard_owns_later_names_despite_older_names_of_its_namespace() -> None:
    mine, wild, late = route("a", 1, "x.own.test", name="x"), route("a", 2, "*.own.test"), route("b", 3, "y.own.test")
    found = settled(late, wild, mine)
    assert (hosts(found, mine), hosts(found, wild), hosts(found, late)) == (["x.own.test"], ["*.own.test"], [])


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (route("evil", 2), "spec.http[0].match.hosts"),
        (route("evil", 2, "*"), "spec.http[0].match.hosts"),
        (ingress("evil", 2, ""), "spec.rules[0].host"),
        (
            ingress("evil", 2, defaultBackend={"service": {"name": "web", "port": {"number": 80}}}),
            "spec.defaultBackend",
        ),
    ],
)
def test_a_rule_for_every_host_needs_the_operator(raw: JsonObject, path: str) -> None:
    found = settled(raw)
    (text,) = reported(found, raw)
    assert text.startswith(
        f"{path}: matches requests for every host, including those of other namespaces: add hosts, or"
    )
    assert not found.desired.of_owner(key(raw))
    found = settled(raw, namespace("evil", " *, a.test "))
    assert (reported(found, raw), len(found.desired.of_owner(key(raw)))) == ([], 1)


@pytest.mark.parametrize("raw", [route("evil", 1, "_"), route("evil", 1, "_.:80"), ingress("evil", 1, "_")])
def test_requests_without_a_host_need_the_operator(raw: JsonObject) -> None:
    """APISIX 3.18 matches a request without the header Host, such as `GET / HTTP/1.0`, as one for the host `_`."""
    found = settled(raw)
    (text,) = reported(found, raw)
    assert "host _ is skipped: gateways use it for requests without a host; ask the operator to add _ to" in text
    assert not found.desired.of_owner(key(raw))
    for given in ("_", "*"):
        found = settled(raw, namespace("evil", given))
        assert (reported(found, raw), len(found.desired.of_owner(key(raw)))) == ([], 1)


def test_a_wildcard_that_is_not_of_whole_labels_is_skipped() -> None:
    raw = tls("evil", 1, "*own.test")
    found = settled(raw)
    assert hosts(found, raw) == []
    assert "a wildcard has to begin with '*.'; list the hosts or write *.own.test" in reported(found, raw)[0]


@pytest.mark.parametrize("host", ["x:bank.test", "x:y.bank.test", "a.test:80:bank.test"])
def test_a_host_with_a_colon_that_begins_no_port_is_skipped(host: str) -> None:
    raw, ported = route("evil", 1, host), route("evil", 1, "own.test:8080", name="ported")
    found = settled(raw, ported)
    assert (hosts(found, raw), hosts(found, ported)) == ([], ["own.test:8080"])
    assert f"host {host} is skipped: it contains ':' but is not an IPv6 address in brackets" in reported(found, raw)[0]


@pytest.mark.parametrize("shared", ["own.test", "*.test"])
def test_an_object_of_the_owner_shares_its_hosts(shared: str) -> None:
    grant = route("victim", 3, shared, name="grant", annotations={hostclaims.SHARED_WITH: "others , evil"})
    stolen = route("evil", 1, "x.test", name="x", annotations={hostclaims.SHARED_WITH: "evil"})
    new, third = route("evil", 4, "own.test"), route("third", 4, "own.test")
    found = settled(route("victim", 2, "own.test"), grant, new, third, stolen)
    assert (hosts(found, new), hosts(found, third)) == (["own.test"], [])


def test_only_the_owner_shares() -> None:
    asking = route("evil", 2, "own.test", annotations={hostclaims.SHARED_WITH: "evil"})
    found = settled(route("victim", 1, "own.test"), asking)
    assert hosts(found, asking) == []


def test_revoking_a_grant_removes_the_rules() -> None:
    new = route("evil", 2, "own.test")
    old = route("victim", 1, "own.test", annotations={hostclaims.SHARED_WITH: "evil"})
    found, loop = prepare(*surroundings([old, new]), options=STRICT)
    loop.settle()
    assert hosts(found, new) == ["own.test"]
    fill(found, [route("victim", 1, "own.test")])
    loop.settle()
    assert hosts(found, new) == []


def stream(namespace: str, day: int, port: int, host: str = "") -> JsonObject:
    match = {"ingressPort": port, **({"host": host} if host else {})}
    rule = {"name": "s", "protocol": "TCP", "match": match, "backend": {"serviceName": "web", "servicePort": 80}}
    return born(make("ApisixRoute", "stream", namespace=namespace, spec={"stream": [rule]}), day)


def test_server_names_and_ports_of_stream_rules_belong_to_one_namespace_too() -> None:
    owner = [namespace("blue", ":9300"), route("victim", 1, "own.test")]
    named, free, port = stream("evil", 2, 9200, "own.test"), stream("blue", 3, 9300), stream("red", 2, 9300)
    other, mine = stream("violet", 1, 9100), stream("green", 2, 9100, "green.test")
    found = settled(*owner, named, free, port, other, mine)
    assert [len(found.desired.of_owner(key(each))) for each in (named, free, port, other, mine)] == [0, 1, 0, 0, 1]
    skipped = "spec.stream[0].match.ingressPort: port 9300 is skipped: it belongs to namespace blue"
    assert reported(found, port)[0].startswith(skipped)
    assert reported(found, other) == [
        "spec.stream[0].match.ingressPort: port 9100 is skipped: it is not assigned to any namespace; ask the operator"
        " to add :9100 to the annotation apisix.apache.org/hosts of Namespace violet"
    ]


def test_hosts_that_only_a_certificate_names_have_to_be_named() -> None:
    raw = ingress("a", 1, tls=[{"secretName": "pair"}])
    found = settled(raw)
    assert reported(found, raw) == [
        "spec.tls[0]: host a.example.com is skipped: no object names it; add it to the hosts of this one"
    ]


def test_the_oldest_wins_while_it_cannot_be_translated_and_the_next_one_takes_over() -> None:
    old, new = (
        route("victim", 1, "own.test", backends=[{"serviceName": "none", "servicePort": 80}]),
        route("b", 2, "own.test"),
    )
    found, loop = prepare(*surroundings([old, new]), options=STRICT)
    loop.settle()
    assert hosts(found, new) == []
    found.stores["ApisixRoute"].delete(key(old))
    loop.settle()
    assert (hosts(found, new), reported(found, new)) == (["own.test"], [])


def test_last_good_records_go_with_the_host() -> None:
    old, new = route("victim", 1, "own.test"), route("b", 2, "own.test")
    found, loop = prepare(*surroundings([old, new]), options=STRICT)
    loop.settle()
    broken = route("victim", 1, "other.test", backends=[{"serviceName": "none", "servicePort": 80}])
    fill(found, [broken])
    loop.settle()
    assert (hosts(found, old), hosts(found, new)) == ([], ["own.test"])


def test_an_object_with_too_many_hosts_owns_none_and_loses_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostclaims, "MOST_NAMES", 5)
    old = route("victim", 1, "a.test")
    found, loop = prepare(*surroundings([old]), options=STRICT)
    loop.settle()
    assert hosts(found, old) == ["a.test"]
    fill(found, [route("victim", 1, "a.test", "b.test", "c.test", "d.test", "e.test")])
    loop.settle()
    assert hosts(found, old) == []
    assert [problem.code for problem in found.reports[key(old)].problems] == ["TooManyHosts"]


def test_a_wildcard_with_very_many_older_names_below_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("translation.hosts.host_owners.MOST_BELOW", 3)
    older = [route("a", 1, f"h{number}.test", name=f"h{number}") for number in range(4)]
    wild = route("a", 2, "*.test")
    assert "one of more than 3 older objects has a name below it" in reported(settled(*older, wild), wild)[0]
    assert hosts(settled(*older[1:], wild), wild) == ["*.test"]


def test_the_setting_is_required_for_indexing_and_omission() -> None:
    tables = [{kind.kind: kind for kind in resources(options)} for options in (OPTIONS, STRICT)]
    assert ["host" in table["ApisixRoute"].indexes for table in tables] == [False, True]
    assert tables[1]["Ingress"] == RESOURCES["Ingress"].without(NGINX_INDEXES)
    old, new = route("victim", 1, "own.test"), route("evil", 2, "own.test", priority=1)
    found = settle(*surroundings([old, new]))
    assert len([path for path in bodies(found) if path.startswith("routes")]) == 2


@pytest.mark.parametrize(
    ("host", "want"),
    [
        ("a.b.c", ["*.b.c", "*.c"]),
        ("*.b.c", ["*.c"]),
        ("c", []),
        ("*.c", []),
        ("*b.c", ["*.c"]),
        (".c", ["*.c"]),
        ("a..c", ["*..c", "*.c"]),
        ("[::1]", []),
        (":9100", []),
    ],
)
def test_wildcards_over_a_host(host: str, want: list[str]) -> None:
    assert list(hostclaims.wildcards_over(host)) == want
    assert all(host.removeprefix("*").endswith(each[1:]) for each in want)


@pytest.mark.parametrize(
    ("host", "want"),
    [("A.Test.", "a.test"), ("a.test:80", "a.test"), ("[::1]:80", "[::1]"), ("[0:0::1]", "[::1]"), (":9100", ":9100")],
)
def test_a_host_is_claimed_in_one_spelling(host: str, want: str) -> None:
    assert hostclaims.claimed_name(host) == want


def test_a_recreated_broken_object_keeps_only_records_for_its_own_hosts() -> None:
    """The gateway still has the records of an object from before the start: it may name other hosts now."""
    broken: dict[str, Any] = {"backends": [{"serviceName": "none", "servicePort": 80}]}
    mine, taken = route("evil", 2, "own.test", "mine.test", **broken), route("victim", 1, "own.test")
    found = settled(mine, taken)
    record = RecordKey("routes", "any")
    held = {
        hosts: found.desired.is_held(record, "evil_web_r", hosts)
        for hosts in (("mine.test",), ("own.test",), ("mine.test", "own.test"), ("other.test",), ("*",), None)
    }
    assert [hosts for hosts, stays in held.items() if stays] == [("mine.test",), None]
    shared = settle(*surroundings([mine, taken]))
    assert shared.desired.is_held(record, "evil_web_r", ("other.test",))
    given = settled(mine, taken, namespace("evil", "*"))
    assert given.desired.is_held(record, "evil_web_r", ("*",))


def test_without_the_setting_both_objects_say_that_they_share_a_host() -> None:
    old, new = route("victim", 1, "own.test"), route("evil", 2, "own.test", priority=1)
    found, loop = prepare(*surroundings([old, new]))
    loop.settle()
    for raw, other in ((old, "evil"), (new, "victim")):
        (problem,) = found.reports[key(raw)].problems
        assert (problem.code, problem.severity) == ("HostShared", "warning")
        assert problem.message == (
            f"host own.test is also used in namespace {other}: routes there and here may match the same requests; "
            "use different hosts, or ask the operator to set kubernetes.host_ownership: namespace"
        )
    found.stores["ApisixRoute"].delete(key(new))
    loop.settle()
    assert found.reports[key(old)].problems == ()

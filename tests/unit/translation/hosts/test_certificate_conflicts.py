"""Hosts in every kind: one canonical form in records, and mistakes with their field."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from apisix_ingress.model.json import JsonObject
from tests.unit.translation.core.test_text_checks import translate
from tests.unit.translation.objects import bodies, ingress, ingress_rule, make, pem, reported, route, rule, secret
from translation.core.outcome import records_of

LONG = "a" * 65536
PAIR = pem(names=("a.com", "*.b.com"))
CERTIFICATE = secret(tls__crt=PAIR.certificate, tls__key=PAIR.key)


def tls(host: str) -> JsonObject:
    return make("ApisixTls", spec={"hosts": [host], "secret": {"name": "secret", "namespace": "default"}})


def stream(host: str) -> JsonObject:
    backend = {"serviceName": "web", "servicePort": 80}
    return route(
        stream=[{"name": "s", "protocol": "TCP", "match": {"ingressPort": 9100, "host": host}, "backend": backend}]
    )


PLACES: Mapping[str, tuple[Callable[[str], JsonObject], str, Callable[[JsonObject], object]]] = {
    "route": (
        lambda host: route(rule(match={"hosts": [host]})),
        "spec.http[0].match.hosts[0]",
        lambda body: body["hosts"][0],
    ),
    "stream": (stream, "spec.stream[0].match.host", lambda body: body["sni"]),
    "ingress": (lambda host: ingress(ingress_rule(host=host)), "spec.rules[0].host", lambda body: body["host"]),
    "tls": (tls, "spec.hosts[0]", lambda body: body["snis"][0]),
    "ingress tls": (
        lambda host: ingress(tls=[{"hosts": [host], "secretName": "secret"}]),
        "spec.tls[0].hosts[0]",
        lambda body: body["snis"][0],
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("host", [LONG, "b" * 64 + ".com", ".".join(["abcdefghi"] * 26)])
def test_host_that_is_too_long_is_refused(place: str, host: str) -> None:
    make_object, field, _ = PLACES[place]
    got = translate(make_object(host), CERTIFICATE)
    assert [line for line in reported(got) if line.startswith("error")] == [f"error InvalidHost {field}"]
    assert records_of(got) == ()
    assert max(len(str(problem)) for problem in got.problems) < 1500


@pytest.mark.parametrize("place", PLACES)
def test_dot_at_the_end_of_a_host_is_skipped(place: str) -> None:
    make_object, _, host_of = PLACES[place]
    got = translate(make_object("a.com."), CERTIFICATE)
    assert reported(got) == []
    assert host_of(bodies(got)[0]) == "a.com"


@pytest.mark.parametrize("place", PLACES)
def test_a_confusable_host_is_reported(place: str) -> None:
    make_object, field, _ = PLACES[place]
    got = translate(make_object("xn--pple-43d.com"), CERTIFICATE)
    assert f"warning HostMixesScripts {field}" in reported(got)
    assert records_of(got)


def test_hosts_that_differ_only_by_a_trailing_dot_are_one() -> None:
    got = translate(route(rule(match={"hosts": ["a.com.", "a.com"]})))
    assert bodies(got)[0]["hosts"] == ["a.com"]


def test_host_in_other_letters_is_refused_with_what_to_write() -> None:
    got = translate(ingress(ingress_rule(host="bücher.example")))
    assert [str(problem) for problem in got.problems] == [
        "spec.rules[0].host: 'bücher.example' is not a host name; write xn--bcher-kva.example"
    ]


def test_names_of_a_certificate_cover_hosts_however_they_are_written() -> None:
    for host in ("A.COM", "a.com.", "X.B.com"):
        assert reported(translate(tls(host), CERTIFICATE)) == []

"""Tenants with certificates for the same hosts: the winner depends on the state, not on the order of events."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.state.world import World
from tests.property.isolation.tenants import HOSTS, SHUFFLES, TENANTS, Wanting
from tests.unit.translation.objects import fill, pem, secret
from tests.unit.translation.settling import prepare

SECRETS = ("one", "two")

Certificates = Mapping[tuple[str, str], int]
"""Namespace and name of a Secret → its certificate."""


@dataclass(frozen=True, kw_only=True)
class Wish(Wanting):
    """An object with a certificate for its hosts."""

    secret: str


def manifest(wish: Wish) -> JsonObject:
    if wish.kind == "Ingress":
        return wish.with_spec({"tls": [{"hosts": [*wish.hosts], "secretName": wish.secret}]})
    return wish.with_spec({"hosts": [*wish.hosts], "secret": {"name": wish.secret, "namespace": wish.namespace}})


def wish_of(seed: random.Random, number: int) -> Wish:
    kind = seed.choice(("Ingress", "ApisixTls"))
    return Wish(
        namespace=seed.choice(TENANTS),
        name=f"o{number}",
        kind=kind,
        day=seed.randint(1, 4),
        hosts=tuple(seed.sample(HOSTS, seed.randint(1, 2))),
        secret=seed.choice(SECRETS),
        foreign=kind == "Ingress" and seed.random() < 0.2,
    )


def wanted(wish: Wish, wishes: Iterable[Wish], certificates: Certificates) -> set[str]:
    """The reference: the published hosts of an object whose Secret exists."""
    own = certificates[wish.namespace, wish.secret]
    found = set()
    for host in wish.hosts:
        winner = min((each for each in wishes if host in each.hosts and not each.foreign), key=lambda each: each.age)
        its = certificates.get((winner.namespace, winner.secret))
        if winner.namespace == wish.namespace or its == own:
            found.add(host)
    return found


def check(found: World, wishes: Iterable[Wish], certificates: Certificates) -> None:
    wishes = tuple(wishes)
    for wish in wishes:
        if wish.foreign:
            assert not found.desired.of_owner(wish.key)
        # An object that cannot be translated keeps its records, which depend on history.
        elif (wish.namespace, wish.secret) in certificates:
            got = {host for record in found.desired.of_owner(wish.key).values() for host in record.body["snis"]}
            want = wanted(wish, wishes, certificates)
            assert got == want
            problems = [problem for problem in found.reports[wish.key].problems if problem.severity != "warning"]
            assert {problem.code for problem in problems} == ({"HostConflict"} if got != set(wish.hosts) else set())
            others = [each.name for each in wishes if each.namespace != wish.namespace]
            assert not any(f"/{name} " in str(problem) for problem in problems for name in others)


@pytest.mark.parametrize("number", range(SHUFFLES))
def test_order_of_events_changes_nothing(number: int) -> None:
    seed = random.Random(number)
    wishes = [wish_of(seed, index) for index in range(8)]
    found, loop = prepare()
    there: dict[ObjectKey, Wish] = {}
    certificates: dict[tuple[str, str], int] = {}
    for _ in range(60):
        if seed.random() < 0.4:
            place = (seed.choice(TENANTS), seed.choice(SECRETS))
            _turn(found, place, seed.choice((None, 1, 1, 2)), certificates)
        else:
            wish = seed.choice(wishes)
            if there.pop(wish.key, None):
                found.stores[wish.kind].delete(wish.key)
            else:
                found.stores[wish.kind].set(RESOURCES[wish.kind].decode(manifest(wish)))
                there[wish.key] = wish
        if seed.random() < 0.4:
            loop.settle()
            check(found, there.values(), certificates)
    loop.settle()
    check(found, there.values(), certificates)


def _turn(found: World, place: tuple[str, str], serial: int | None, certificates: dict[tuple[str, str], int]) -> None:
    """Put a certificate into a Secret, or delete the Secret."""
    namespace, name = place
    if serial is None:
        found.stores["Secret"].delete(ObjectKey("Secret", namespace, name))
        certificates.pop(place, None)
        return
    pair = pem(serial)
    fill(found, [secret(name, namespace=namespace, tls__crt=pair.certificate, tls__key=pair.key)])
    certificates[place] = serial

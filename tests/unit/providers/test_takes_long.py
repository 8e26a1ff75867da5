"""Objects with many records are translated in a thread, although they are small themselves."""

from __future__ import annotations

import pytest

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.view import View
from providers.nginx.host import MANY, NginxHostProvider
from tests.unit.translation.gateway.objects import CLASS, gateway, listener, route, rule
from tests.unit.translation.nginx.objects import CLASS as NGINX_CLASS
from tests.unit.translation.nginx.objects import OPTIONS as NGINX
from tests.unit.translation.nginx.objects import ingress
from tests.unit.translation.objects import service
from tests.unit.translation.settling import bodies, prepare
from translation.core.outcome import Outcome
from translation.nginx.options import host_key

HOST = host_key("shop.test")
PATHS = [(f"/{number}", "Exact") for number in range(200)]


def test_a_route_with_few_matches_at_many_listeners_takes_long() -> None:
    many = gateway(*(listener(f"l{number}", hostname=f"h{number}.test") for number in range(64)))
    _, loop = prepare(CLASS, many, route(rule(), name="one"), route(rule(), rule(), name="two"), service())
    routes = loop.providers["HTTPRoute"]

    assert [routes.takes_long(ObjectKey("HTTPRoute", "default", name)) for name in ("one", "two", "none")] == [
        False,
        True,
        False,
    ]


def test_a_host_with_a_large_ingress_or_many_of_them_takes_long() -> None:
    hosts = {
        "small.test": [ingress("small", ("/", "Prefix"), host="small.test")],
        "large.test": [ingress("large", *PATHS, host="large.test")],
        "wordy.test": [ingress("wordy", ("/", "Prefix"), host="wordy.test", auth_signin=f"/{'x' * 9000}")],
        "many.test": [ingress(f"m{number}", ("/", "Prefix"), host="many.test") for number in range(MANY + 1)],
    }
    _, loop = prepare(*(item for items in hosts.values() for item in items), options=NGINX)
    provider = loop.providers["NginxHost"]

    assert [host for host in hosts if provider.takes_long(host_key(host))] == ["large.test", "wordy.test", "many.test"]


def test_a_host_whose_translation_crashes_keeps_its_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    found, loop = prepare(NGINX_CLASS, service(namespace="shop"), ingress("web", ("/", "Prefix")), options=NGINX)
    loop.settle()
    before = bodies(found)

    def crash(self: NginxHostProvider, key: ObjectKey, item: object, view: View) -> Outcome:
        raise RuntimeError("a bug")

    monkeypatch.setattr(NginxHostProvider, "evaluate", crash)
    loop.enqueue(HOST)
    loop.settle()

    assert bodies(found) == before != {}

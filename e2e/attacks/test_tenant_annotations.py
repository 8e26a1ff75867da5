"""A tenant who may create Ingresses of ingress-nginx: annotations that reach further than the tenant's own hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from threading import Thread

from e2e.attacks.installation import NGINX, Installation, Tenants, hosts
from e2e.attacks.values import SLOW_TO_MATCH, UNUSABLE
from e2e.cluster.client import Manifest, wait_until

MIRROR = "10.244.0.77"
"""The address of another team's server, which a tenant may not reach."""


def test_no_annotation_keeps_the_controller_busy(tenants_of_own: Tenants) -> None:
    here = tenants_of_own
    host = f"shop.{here.domain}"
    here.apply(here.ingress("shop", host))
    here.traffic.until_status(200, host)
    for number, given in enumerate(SLOW_TO_MATCH.values()):
        here.attack(here.ingress(f"slow{number}", f"slow{number}.{here.domain}", service="evil", **given))
    (pod,) = here.victim.pods
    here.victim.create("moved", labels={"app": "web"})
    here.victim.terminate(pod, wait=True)

    here.traffic.until(lambda answer: answer.pod == "moved", host)

    assert here.installation.controller.probe("/healthz")[0] == 200


@contextmanager
def listening(address: str) -> Iterator[list[str]]:
    """Serve an address of another team; provides the request lines that arrive there."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.requestline)
            self.send_response(200)
            self.end_headers()

        do_PUT = do_POST = do_GET

    server = ThreadingHTTPServer((address, 80), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_mirrored_request_does_not_go_where_its_client_wants(tenants: Tenants) -> None:
    host = f"mirror.{tenants.domain}"
    beginning, rest = MIRROR.rsplit(".", 1)
    with listening(MIRROR) as seen:
        for number, target in enumerate((f"http://{beginning}$http_x", f"http://{beginning}${{http_x}}/")):
            tenants.attack(
                tenants.ingress(f"mirror{number}", f"m{number}.{host}", service="evil", mirror_target=target)
            )
        tenants.settled()
        for number in range(2):
            sent = tenants.traffic.send(f"m{number}.{host}", headers={"X": f".{rest}/latest?"}, method="PUT", body="b")
            assert (sent.status, sent.pod) in ((200, "evil"), (503, ""))
        tenants.settled()

    assert seen == []
    # The development gateway mirrors nothing: there, no record may contain the beginning of the address.
    assert [
        each for n in range(2) for each in tenants.installation.routes(f"m{n}.{host}") if beginning in str(each)
    ] == []


REFUSED = ("http://127.0.0.1/", "http://169.254.169.254/latest", "http://$host/")


def warnings(tenants: Tenants, name: str) -> list[str]:
    """Return the warnings about an object of the hostile tenant."""
    return [message for kind, message in tenants.events(name) if kind == "Warning"]


def test_an_event_says_that_a_mirror_was_refused(tenants: Tenants) -> None:
    names = [f"mirror{number}" for number in range(len(REFUSED))]
    for name, target in zip(names, REFUSED, strict=True):
        tenants.attack(tenants.ingress(name, f"{name}.{tenants.domain}", service="evil", mirror_target=target))

    for name in names:
        warned = wait_until(partial(warnings, tenants, name), bool, "a warning")
        assert f"{NGINX}/mirror-target" in warned[0]


GUARDS: Mapping[str, Mapping[str, str]] = {
    "auth-url": {"auth_url": "http://auth.example/"},
    "auth-secret": {"auth_type": "basic", "auth_secret": "users"},
}


def users() -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "users"}, "stringData": {"auth": "me:{SHA}x"}}


def test_a_protected_path_is_not_open_if_the_gateway_rejects_its_records(tenants: Tenants) -> None:
    tenants.apply(users())
    guarded = {}
    for number, (guard, why) in enumerate(product(GUARDS, UNUSABLE)):
        host = guarded[guard, why] = f"h{number}.{tenants.domain}"
        given = {**GUARDS[guard], **UNUSABLE[why]}
        tenants.apply(tenants.ingress(f"open{number}", host, "/"))
        tenants.apply(tenants.ingress(f"guarded{number}", host, "/admin", **given))
    tenants.settled()
    for host in guarded.values():
        tenants.traffic.until_status(200, host, "/")

    assert {each for each, host in guarded.items() if is_open(tenants, host, "/admin")} == set()


def is_open(tenants: Tenants, host: str, path: str) -> bool:
    """Return whether a request without credentials reaches the Pod.

    The development gateway does not run the Lua that checks credentials. There, a response of the Pod is not open if a
    route of the host has the check: it is the route that the request has matched.
    """
    answer = tenants.traffic.send(host, path)
    if tenants.installation.runs_lua or answer.pod == "":
        return answer.pod != ""
    at_path = (each for each in tenants.installation.routes(host) if path in str((each["uris"], each.get("vars"))))
    return not any(guards(each) for each in at_path)


def guards(record: Mapping[str, object]) -> bool:
    """Return whether a route checks credentials."""
    return any(word in json.dumps(record) for word in ("auth.example", "users", "authorization"))


def foreign_references(victim: str) -> Mapping[str, Mapping[str, str]]:
    """Return annotations that refer to objects of another namespace."""
    return {
        "auth-secret": {"auth_type": "basic", "auth_secret": f"{victim}/canary"},
        "auth-tls-secret": {"auth_tls_secret": f"{victim}/canary"},
        "proxy-ssl-secret": {"proxy_ssl_secret": f"{victim}/canary", "backend_protocol": "HTTPS"},
        "custom-headers": {"custom_headers": f"{victim}/canary"},
        "auth-proxy-set-headers": {"auth_url": "http://auth.example/", "auth_proxy_set_headers": f"{victim}/canary"},
        "fastcgi-params-configmap": {"backend_protocol": "FCGI", "fastcgi_params_configmap": f"{victim}/canary"},
    }


def test_no_record_contains_a_value_of_an_object_in_another_namespace(tenants: Tenants) -> None:
    for kind, field, word in (("Secret", "stringData", "of-a-secret"), ("ConfigMap", "data", "of-a-config-map")):
        names = ("auth", "ca.crt", "tls.crt", "tls.key", "X-Canary")
        data = dict.fromkeys(names, f"me:{word}-of-the-victim")
        tenants.apply({"apiVersion": "v1", "kind": kind, "metadata": {"name": "canary"}, field: data})
    for name, given in foreign_references(tenants.victim.namespace).items():
        tenants.attack(tenants.ingress(name, f"{name}.{tenants.domain}", service="evil", **given))

    tenants.settled()

    assert leaks(tenants.installation, "-of-the-victim") == []


def leaks(installation: Installation, text: str) -> list[str]:
    """Return the kinds of records that contain a text."""
    kinds = ("routes", "upstreams", "services", "ssls", "plugin_configs", "consumers", "global_rules")
    return [kind for kind in kinds if text in json.dumps(installation.gateway.records(kind))]


def foreign_hosts(tenants: Tenants, host: str, wild: str) -> list[Manifest]:
    """Return Ingresses of the hostile tenant that ask for the hosts of the victim."""

    def one(name: str, asked: str, path: str = "/login", **given: str) -> Manifest:
        return tenants.ingress(name, asked, path, service="evil", **given)

    other = f"evil.{tenants.domain}"
    every, only_tls = one("every", host), one("tls", other)
    del every["spec"]["rules"][0]["host"]
    only_tls["spec"]["tls"] = [{"hosts": [host], "secretName": "evil"}]
    by_default = one("default", host)
    by_default["spec"]["defaultBackend"] = {"service": {"name": "evil", "port": {"number": 80}}}
    return [
        one("same", host),
        one("below", f"pay.{wild}"),
        one("over", f"*.{host.partition('.')[2]}"),
        one("alias", f"a.{other}", server_alias=host),
        one("alias-wild", f"b.{other}", server_alias=f"*.{wild}"),
        one("alias-regex", f"c.{other}", server_alias=f"~^{host}$"),
        one("canary", host, "/", canary="true", canary_weight="100"),
        one("canary-elsewhere", f"*.{wild}", "/", canary="true", canary_by_header="X-Canary"),
        every,
        only_tls,
        by_default,
    ]


def test_no_ingress_takes_requests_from_another_namespace(tenants: Tenants) -> None:
    host, wild = f"shop.zone.{tenants.domain}", f"wild.{tenants.domain}"
    tenants.apply([tenants.ingress("shop", host), tenants.ingress("wild", f"*.{wild}")])
    for each in (host, f"pay.{wild}"):
        tenants.traffic.until_status(200, each)
    for attempt in foreign_hosts(tenants, host, wild):
        tenants.attack(attempt)

    tenants.settled()

    asked = [
        (name, path)
        for name in (host, host.upper(), f"pay.{wild}", f"{host}:80", f"{host}.")
        for path in ("/", "/login")
    ]
    sent = {each: tenants.traffic.send(*each, headers={"X-Canary": "always"}).pod for each in asked}
    assert set(sent.values()) == {"web"}


def test_a_refused_wildcard_reserves_no_new_names(tenants: Tenants) -> None:
    zone = f"zone.{tenants.domain}"
    tenants.apply(tenants.ingress("old", f"old.{zone}"))
    tenants.traffic.until_status(200, f"old.{zone}")
    tenants.attack(tenants.ingress("wild", f"*.{zone}", service="evil"))
    tenants.settled()

    tenants.apply(tenants.ingress("new", f"new.{zone}"))

    assert tenants.traffic.until_status(200, f"new.{zone}").pod == "web"
    assert tenants.traffic.send(f"other.{zone}").status == 404


USERS, PATHS = 1500, 60
MOST_WRITTEN = 2 * 2**20
"""Bytes of records that one edit of a Secret of 50 kB may change."""


def test_an_edit_of_a_password_file_is_not_written_to_every_path(tenants: Tenants) -> None:
    """Otherwise a few edits fill the storage of the gateway for every team."""
    host = f"users.{tenants.domain}"
    paths = [f"/p{number}" for number in range(PATHS)]
    tenants.attack(password_file("first"))
    tenants.attack(tenants.ingress("users", host, *paths, service="evil", auth_type="basic", auth_secret="many"))
    first = wait_until(lambda: written(tenants, host), lambda found: is_complete(found, "first"), "users", 60)

    tenants.attack(password_file("other"))
    after = wait_until(lambda: written(tenants, host), lambda found: is_complete(found, "other"), "new users", 60)

    assert sum(len(each) for key, each in after.items() if first.get(key) != each) < MOST_WRITTEN


def password_file(name: str) -> Manifest:
    """Return a Secret with many users."""
    lines = "\n".join(f"{name}{number}:{{SHA}}{'x' * 20}" for number in range(USERS))
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "many"}, "stringData": {"auth": lines}}


def is_complete(records: Mapping[tuple[str, str], str], user: str) -> bool:
    """Return whether every path has a route, and no record has other users."""
    other = {"first": "other", "other": "first"}[user]
    return len([kind for kind, _ in records if kind == "routes"]) >= PATHS and not any(
        f'"{other}0"' in each for each in records.values()
    )


def written(tenants: Tenants, host: str) -> Mapping[tuple[str, str], str]:
    """Return the records of a host, and the records that may contain its users, without the times of the gateway."""
    kept = {}
    for kind in ("routes", "plugin_configs", "services", "consumers"):
        for id_, body in tenants.installation.gateway.records(kind).items():
            if kind != "routes" or host in hosts(body):
                kept[kind, id_] = json.dumps({name: each for name, each in body.items() if not name.endswith("_time")})
    return kept

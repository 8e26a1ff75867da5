"""The recording of a live ingress-nginx 1.15.1, replayed against the development gateway.

`python -m e2e.nginx` replays the same against a real APISIX, and every case there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.devgateway.process import DevGateway
from e2e.nginx.client import Client
from e2e.nginx.corpus import Case, cases
from e2e.nginx.replay import Replay, Result, Setup, replaying
from e2e.nginx.world import Certificates
from translation.nginx.native.model import Target

NOT_IN_THE_DEVELOPMENT_GATEWAY = frozenset(
    {
        *("serverless-pre-function", "serverless-post-function", "proxy-mirror"),
        *("limit-conn", "workflow", "client certificate", "HTTP/2"),
    }
)
"""Features that the development gateway does not simulate. Cases with them are replayed against a real APISIX only."""

UNLIKE_APISIX = {
    "annotation-number-forms": "a slow endpoint is not asked again",
    "config-proxy-read-timeout": "a slow endpoint is not asked again",
    "proxy-read-timeout": "a slow endpoint is not asked again",
    "proxy-read-timeout-retry": "a slow endpoint is not asked again",
    "proxy-next-upstream-default": "requests with a body are sent again",
    "proxy-connect-timeout": "a connection that times out gives 502",
    "canary-by-header": "a header that is sent twice",
    "edge-big-response-header": "response headers have no limit",
    "edge-body-size": "Expect: 100-continue is answered before the length is looked at",
    "edge-http10": "HTTP/1.0 without Host is served",
    "edge-rewrite-encoding": "a percent sign in a rewritten path is not escaped",
    "regex-encoded": "a question mark in a rewritten path is not escaped",
    "path-encoded": "malformed escapes are served",
    "whitelist-forwarded": "real-ip takes the last address, also where it is recursive",
    "wild-percent": "a space in the request line is served",
    "limit-rps-two-paths": "routes with one plugin config do not share its counts",
    "edge-chunked": "an empty chunked body gets no Content-Length",
    "edge-methods": "TRACE and CONNECT are served",
    "host-case": "an empty Host is looked up",
    "gzip-options": "nothing is compressed",
    "svc-externalname": "names of nodes are not resolved",
}
"""Cases in which the development gateway differs from a real APISIX, and how."""

DIFFERENT_FOR_ALL = {
    "protocol-grpc-dead": "A gRPC backend that refuses connections gives 502.",
    "wild-oauth2-proxy": "Requests from 127.0.0.1, as those of `auth-url` may be, have the client address",
    "config-limit-status": "An invalid value in the ConfigMap does not stop changes.",
    "default-404-shape": "`/healthz` and `/nginx_status` of ingress-nginx do not exist.",
    "flag-no-validation": "Values of annotations are always validated",
    "headers-default": "request headers with an underscore",
    "live-broken-config-blocks-others": "An invalid Ingress does not affect other Ingresses.",
    "live-broken-config-endpoints": "An invalid Ingress does not affect other Ingresses.",
    "live-refused-update": "An Ingress that becomes invalid is withdrawn.",
    "protocol-same-service": "ingress-nginx may reuse a connection with TLS",
    "ssl-passthrough-other-host": "With `--enable-ssl-passthrough`, ingress-nginx may report 127.0.0.1",
    "tls-wildcard-host": "one level below a wildcard certificate",
}
"""Cases with a difference for every host → its description in docs/reference/ingress-nginx.md."""

PAGE = Path(__file__).parents[3] / "docs/reference/ingress-nginx.md"


def test_the_reference_page_names_the_differences_for_every_host() -> None:
    words = " ".join(PAGE.read_text(encoding="utf-8").split())

    assert [name for name, difference in DIFFERENT_FOR_ALL.items() if difference not in words] == []


PARTS = 16
"""The number of tests among which the cases are divided."""


@pytest.fixture(scope="module")
def gateway() -> Iterator[DevGateway]:
    with DevGateway(stream=False, faults=False) as found:
        yield found


async def _replayed(gateway: DevGateway, part: int) -> list[Result]:
    certificates = Certificates()
    host, _, http = gateway.proxy_address.partition(":")
    client = Client(host, int(http), int(gateway.tls_address.partition(":")[2]), certificates.context)
    admin = f"http://{gateway.admin_address}/apisix/admin"
    async with replaying(Setup(admin, gateway.admin_key, client, certificates, 5353, http2=False)) as replay:
        return [await replay.run(case) for case in _replayable(replay, part)]


NATIVE = (
    "basic-route",
    "canary-by-header-value",
    "cors-origin",
    "path-",
    "redirect-",
    "regex-",
    "rewrite-",
    "whitelist",
)
"""Cases that are replayed with the manifests of `migrate --write`."""

DIFFERENT_IN_MANIFESTS = {"path-encoded", "regex-encoded", "whitelist-forwarded", "whitelist-forwarded-proxy-cidr"}
"""Of these, the cases that the development gateway serves differently with the provider, too."""


async def _replayed_native(gateway: DevGateway, target: Target) -> list[Result]:
    certificates = Certificates()
    host, _, http = gateway.proxy_address.partition(":")
    client = Client(host, int(http), int(gateway.tls_address.partition(":")[2]), certificates.context)
    admin = f"http://{gateway.admin_address}/apisix/admin"
    setup = Setup(admin, gateway.admin_key, client, certificates, 5353, target, http2=False)
    async with replaying(setup) as replay:
        wanted = [case for case in cases() if case.name.startswith(NATIVE) and not case.why_skipped]
        return [await replay.run(case) for case in wanted if not replay.needs(case) & NOT_IN_THE_DEVELOPMENT_GATEWAY]


@pytest.mark.parametrize("target", ["apisixroute", "httproute"])
def test_written_manifests_serve_what_was_recorded_or_note_the_difference(gateway: DevGateway, target: Target) -> None:
    results = asyncio.run(_replayed_native(gateway, target))

    assert len(results) > 30
    silent = {each.case.name: each.differences[0] for each in results if each.differences and not each.verdicts}
    assert {name: line for name, line in silent.items() if name not in DIFFERENT_IN_MANIFESTS} == {}
    lost = {each.case.name for each in results if any(map(_loses_protection, each.differences))}
    assert lost - DIFFERENT_IN_MANIFESTS == set()
    if target == "apisixroute":
        exact = [each.case.name for each in results if not each.differences]
        assert len(exact) >= 0.9 * len(results)


def _replayable(replay: Replay, part: int) -> Iterator[Case]:
    for case in cases()[part::PARTS]:
        if not case.why_skipped and not replay.needs(case) & NOT_IN_THE_DEVELOPMENT_GATEWAY:
            yield case


@pytest.mark.parametrize("part", range(PARTS))
def test_every_case_is_as_recorded_or_has_a_verdict_that_names_the_difference(gateway: DevGateway, part: int) -> None:
    results = asyncio.run(_replayed(gateway, part))

    known = UNLIKE_APISIX.keys() | DIFFERENT_FOR_ALL.keys()
    silent = {each.case.name: each.differences[0] for each in results if each.differences and not each.verdicts}
    assert {name: line for name, line in silent.items() if name not in known} == {}
    lost = {each.case.name for each in results if any(map(_loses_protection, each.differences))}
    assert lost - UNLIKE_APISIX.keys() == set()


def _loses_protection(line: str) -> bool:
    return any(f"status {status} -> 200" in line for status in (401, 403))

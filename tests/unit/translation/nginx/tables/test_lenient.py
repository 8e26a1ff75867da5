"""`strict: false`: snippets that only tune performance are ignored; nothing else is relaxed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.translation.nginx.host.bodies import routes, status
from tests.unit.translation.nginx.objects import OPTIONS, ingress, translated
from translation.nginx.tables.findings import judged
from translation.nginx.tables.judges import tunes_only
from translation.nginx.tables.values import Values

TUNING = "gzip on;\nproxy_buffers 8 16k; # large headers\nkeepalive_timeout 30;"
SNIPPETS_ALLOWED = {
    "kind": "ConfigMap",
    "metadata": {"name": "config", "namespace": "ingress-nginx"},
    "data": {"allow-snippet-annotations": "true", "annotations-risk-level": "Critical"},
}


@pytest.mark.parametrize(
    ("snippet", "want"),
    [
        (TUNING, True),
        ("proxy_read_timeout 5s", True),
        ("", False),
        ("# a comment", False),
        ("deny all;", False),
        ("gzip on; deny all;", False),
        ("gzip on; if ($a) { return 403; }", False),
        ("gzip on;\nauth_basic off;", False),
        ("proxy_pass http://x;", False),
        ("access_log off; limit_req zone=a;", False),
    ],
)
def test_a_snippet_only_tunes_if_each_directive_does(snippet: str, want: bool) -> None:
    assert tunes_only(snippet) is want


@pytest.mark.parametrize(("strict", "want"), [(True, {503}), (False, {None})])
def test_a_tuning_snippet_closes_the_path_in_strict_mode_only(strict: bool, want: set[int | None]) -> None:
    assert OPTIONS.nginx is not None
    options = replace(OPTIONS, nginx=replace(OPTIONS.nginx, strict=strict))

    got = routes(
        translated(ingress("web", ("/", "Prefix"), configuration_snippet=TUNING), SNIPPETS_ALLOWED, options=options)
    )

    assert {status(body) for body in got} == want


@pytest.mark.parametrize(
    "given",
    [
        {"enable-modsecurity": "true"},
        {"proxy-ssl-verify": "on", "proxy-ssl-secret": "a/b"},
        {"configuration-snippet": "deny all;"},
        {"server-snippet": "gzip on; allow 10.0.0.0/8;"},
    ],
)
def test_protections_are_never_relaxed(given: dict[str, str]) -> None:
    assert list(judged(Values(given), strict=False)) == list(judged(Values(given)))

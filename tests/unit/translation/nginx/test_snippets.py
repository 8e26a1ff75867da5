"""Typed replacements for directives in snippets."""

from __future__ import annotations

import pytest

from translation.nginx.snippets import suggestions


@pytest.mark.parametrize(
    ("snippet", "want"),
    [
        (
            'more_set_headers "X-Frame-Options: DENY";',
            'more_set_headers: the plugin response-rewrite with {"headers": {"set": {"X-Frame-Options": "DENY"}}}',
        ),
        (
            "add_header X-A 'b; c' always;",
            'add_header: the plugin response-rewrite with {"headers": {"set": {"X-A": "b; c"}}}',
        ),
        ("proxy_set_header Host $service_name;", 'proxy_set_header: the annotation upstream-vhost: "$service_name"'),
        (
            'proxy_set_header Accept-Encoding "";',
            'proxy_set_header: the plugin proxy-rewrite with {"headers": {"remove": ["Accept-Encoding"]}}',
        ),
        ("client_max_body_size 8m;", 'client_max_body_size: the annotation proxy-body-size: "8m"'),
        ("proxy_read_timeout 300s;", 'proxy_read_timeout: the annotation proxy-read-timeout: "300"'),
        (
            "return 301 https://new.test$request_uri;",
            'return: the annotation permanent-redirect: "https://new.test$request_uri" with'
            ' permanent-redirect-code: "301"',
        ),
        ("return 403;", 'return: the plugin fault-injection with {"abort": {"http_status": 403}}'),
        ("deny 10.0.0.0/8;", 'deny: the annotation denylist-source-range: "10.0.0.0/8"'),
        ("deny all;", "deny: the annotation whitelist-source-range with the allowed networks"),
        (
            "rewrite ^/a/(.*)$ /b/$1 permanent;",
            'rewrite: the plugin redirect with {"regex_uri": ["^/a/(.*)$", "/b/$1"], "ret_code": 301}',
        ),
        ("lua_code_cache off;", "lua_code_cache: no equivalent annotation; look for a plugin"),
        ("# only a comment", None),
    ],
)
def test_a_directive_has_a_replacement_with_its_values(snippet: str, want: str | None) -> None:
    assert next(suggestions(snippet), None) == want


def test_a_block_and_its_content_are_named() -> None:
    got = [line.partition(":")[0] for line in suggestions("if ($a) { return 403; }\ndeny all;")]

    assert got == ["if", "return", "deny"]

"""Replacements of snippets, none of which changes more than the snippet did."""

from __future__ import annotations

import json

import pytest

from translation.nginx.snippets.statements import statements_of
from translation.nginx.snippets.suggestions import Scope, suggestions

SCOPE = Scope(
    {"namespace": "books", "service_name": "web", "service_port": "7000"}, ("shop.test",), ("/shop", "/shop/*")
)
CONFIGURATION, SERVER = "configuration-snippet", "server-snippet"


def lines(snippet: str, annotation: str = CONFIGURATION, scope: Scope = SCOPE) -> list[str]:
    """Return the replacements in a snippet, without the quoted lines."""
    return [line.partition("`: ")[2] for line in suggestions(annotation, snippet, scope)]


def rule(plugins: str, **match: object) -> str:
    """Return the replacement of a block."""
    shown = json.dumps({"hosts": ["shop.test"], **match})
    return f"a rule of an ApisixRoute with a high priority, match {shown} and {plugins}"


ORDERED = "no equivalent: nginx uses the first line that matches; write a list yourself"


SESSIONS = '["$http_authorization", "$http_cookie"]'


@pytest.mark.parametrize(
    ("snippet", "want"),
    [
        (
            "proxy_cache zone;",
            f'the plugin proxy-cache with {{"cache_bypass": {SESSIONS}, "no_cache": {SESSIONS}}}: without these fields,'
            " clients may get responses for other users",
        ),
        (
            "real_ip_header X-Forwarded-For;",
            'the plugin real-ip with {"source": "http_x_forwarded_for", "trusted_addresses": […]}, the addresses of'
            " set_real_ip_from: without these, it trusts every client",
        ),
        ("set_real_ip_from 10.0.0.0/8;", 'the plugin real-ip, in trusted_addresses: ["10.0.0.0/8"]'),
        ("real_ip_header proxy_protocol;", "a setting of the whole gateway (nginx_config in config.yaml)"),
        (
            'more_set_headers "X-Frame-Options: DENY";',
            'the plugin response-rewrite with {"headers": {"set": {"X-Frame-Options": "DENY"}}}',
        ),
        (
            "add_header X-A 'b; c' always;",
            'the plugin response-rewrite with {"headers": {"add": ["X-A: b; c"]}}',
        ),
        ("proxy_set_header Host $service_name;", 'the annotation upstream-vhost: "web"'),
        (
            'proxy_set_header Accept-Encoding "";',
            'the plugin proxy-rewrite with {"headers": {"remove": ["Accept-Encoding"]}}',
        ),
        ("client_max_body_size 8m;", 'the annotation proxy-body-size: "8m"'),
        ("proxy_read_timeout 300s;", 'the annotation proxy-read-timeout: "300"'),
        ("proxy_send_timeout 1h30m;", 'the annotation proxy-send-timeout: "5400"'),
        ("proxy_read_timeout 500ms;", "no equivalent: the annotation proxy-read-timeout takes whole seconds"),
        ("proxy_read_timeout $a;", "no equivalent: the annotation proxy-read-timeout takes whole seconds"),
        ("proxy_next_upstream error timeout http_502;", 'the annotation proxy-next-upstream: "error timeout http_502"'),
        (
            "return 301 https://new.test$request_uri;",
            'the plugin redirect with {"uri": "https://new.test$request_uri", "ret_code": 301}',
        ),
        (
            "return 301 https://new.test/;",
            'the annotation permanent-redirect: "https://new.test/" with permanent-redirect-code: "301"',
        ),
        ("return 403;", 'the plugin fault-injection with {"abort": {"http_status": 403}}'),
        ("deny 10.0.0.0/8;", 'the annotation denylist-source-range: "10.0.0.0/8"'),
        ("deny all;", 'the plugin fault-injection with {"abort": {"http_status": 403}}'),
        ("deny 10.0.0.1; deny ::1; allow all;", 'the annotation denylist-source-range: "10.0.0.1,::1"'),
        ("allow 10.0.0.1; allow ::1; deny all;", 'the annotation whitelist-source-range: "10.0.0.1,::1"'),
        ("allow 10.0.0.1;", "not needed: without a line `deny`, all clients are allowed"),
        ("allow all;", "not needed: all clients are allowed"),
        ("deny 10.0.0.1; allow 10.0.0.0/8; deny all;", ORDERED),
        ("allow all; deny all;", ORDERED),
        (
            "auth_request_set $user $upstream_http_x_user;",
            'the annotation auth-response-headers: "X-User", if the backend gets it under this name',
        ),
        ("auth_request_set $user $remote_user;", "no equivalent annotation; look for a plugin"),
        ("auth_basic off;", "no equivalent; put the path into an Ingress without auth-type"),
        ("auth_basic users;", "the annotations auth-type and auth-secret"),
        (
            "more_clear_input_headers X-A;",
            'the plugin proxy-rewrite with {"headers": {"remove": ["X-A"]}}',
        ),
        (
            "rewrite ^/a/(.*)$ /b/$1 permanent;",
            'the plugin redirect with {"regex_uri": ["^/a/(.*)$", "/b/$1"], "ret_code": 301, '
            '"append_query_string": true}',
        ),
        (
            "rewrite /old /new? permanent;",
            'the plugin redirect with {"regex_uri": ["^[\\\\s\\\\S]*?(?:/old)[\\\\s\\\\S]*$", "/new"], '
            '"ret_code": 301}',
        ),
        (
            "rewrite ^/a$ https://new.test/ last;",
            'the plugin redirect with {"regex_uri": ["^/a$", "https://new.test/"], "ret_code": 302, '
            '"append_query_string": true}',
        ),
        (
            "rewrite ^/a/(.*)$ /b/$1 last;",
            "no equivalent: another path would answer the request; write a rule of an ApisixRoute for it",
        ),
        ("gzip off;", "not needed, unless the ConfigMap sets use-gzip"),
        ("gzip on;", "the plugin gzip"),
        (
            "add_header X-Id $req_id always;",
            'the plugin response-rewrite with {"headers": {"add": ["X-Id: $apisix_request_id"]}}',
        ),
        ("lua_code_cache off;", "no equivalent annotation; look for a plugin"),
        ("# only a comment", None),
    ],
)
def test_a_directive_has_a_replacement_with_its_values(snippet: str, want: str | None) -> None:
    assert lines(snippet) == ([want] if want else [])


def test_a_variable_of_an_authentication_has_no_value_elsewhere() -> None:
    got = lines("auth_request_set $user $upstream_http_x_user; add_header X-User $user;")
    assert got[1] == "no equivalent: $user is set by another line of the snippet"


def test_a_rewritten_path_that_stays_in_its_location_is_a_plugin() -> None:
    (line,) = lines("rewrite ^/a/(.*)$ /b/$1 break;")
    assert line.startswith('the plugin proxy-rewrite with {"regex_uri": ["')


def test_a_rewrite_replaces_the_whole_path_as_in_nginx() -> None:
    (line,) = lines("rewrite ^/v1/users /users break;")
    assert (
        line == 'the plugin proxy-rewrite with {"regex_uri": ["^[\\\\s\\\\S]*?(?:^/v1/users)[\\\\s\\\\S]*$", "/users"]}'
    )


def test_a_header_without_always_is_only_added_to_successes() -> None:
    (line,) = lines("add_header X-A b;")
    assert line.startswith('the plugin response-rewrite with {"headers": {"add": ["X-A: b"]}, "vars": [["status", "in"')


def test_a_directive_with_an_option_has_no_replacement_for_all_responses() -> None:
    assert lines("more_set_headers -s 404 'X-A: b';") == ["no equivalent annotation; look for a plugin"]


@pytest.mark.parametrize(
    "snippet",
    [
        "proxy_set_header Upgrade $http_upgrade;",
        'proxy_set_header Connection "upgrade";',
        "proxy_http_version 1.1;",
        "proxy_set_header X-Forwarded-Proto $scheme;",
        "proxy_set_header X-Request-ID $req_id;",
    ],
)
def test_what_the_gateway_does_anyway_is_not_needed(snippet: str) -> None:
    (line,) = lines(snippet)
    assert line.startswith("not needed: ")


def test_a_block_becomes_one_rule_and_its_directives_have_no_replacement_of_their_own() -> None:
    got = lines('if ($http_user_agent ~* "badbot") { return 403; }')
    expression = {"subject": {"scope": "Variable", "name": "http_user_agent"}, "op": "RegexMatchCaseInsensitive"}
    plugin = 'the plugin fault-injection with {"abort": {"http_status": 403}}'
    assert got == [rule(plugin, paths=["/shop", "/shop/*"], exprs=[{**expression, "value": "badbot"}])]


def test_a_condition_of_an_ingress_with_patterns_has_no_replacement() -> None:
    (line,) = lines("if ($a) { return 403; }", scope=Scope(hosts=("shop.test",)))
    assert line == "no equivalent for the block; write a rule of an ApisixRoute yourself"


@pytest.mark.parametrize(
    "snippet",
    [
        "location /a { allow 10.0.0.0/8; deny all; }",
        "location /a { proxy_pass http://other; }",
        "location @named { return 403; }",
        "limit_except GET { deny all; }",
        'if ($a = "$b") { return 403; }',
        "if ($a) { set $b 1; }",
        "location /a { if ($b) { return 403; } }",
    ],
)
def test_a_block_without_an_equivalent_is_reported(snippet: str) -> None:
    (line,) = lines(snippet, SERVER)
    assert line.startswith("no equivalent for the block")


def test_a_variable_that_the_snippet_sets_has_no_value_elsewhere() -> None:
    got = lines('set $auth ""; if ($host ~ x) { set $auth y; } proxy_set_header Authorization $auth;')
    why = "no equivalent: $auth is set by another line of the snippet"
    assert got == ["the value itself, where the variable is used", why, why]


def test_the_lines_of_nginx_are_quoted_and_long_ones_are_cut_off() -> None:
    (line,) = suggestions(SERVER, "location = /a {\n  return 403; # why\n}", SCOPE)
    assert line.startswith("`location = /a { return 403; }`: ")
    (line,) = suggestions(CONFIGURATION, f"add_header A {'b' * 1000} always;", SCOPE)
    assert line.partition("`: ")[0].endswith("…")


def test_the_snippet_of_nextcloud_redirects_only_its_paths() -> None:
    got = lines(
        """
        server_tokens off;
        location = /.well-known/carddav { return 301 $scheme://$host/remote.php/dav; }
        location = /robots.txt { allow all; log_not_found off; access_log off; }
        location ~ ^/(?:build|tests|config)/ { deny all; }
        """,
        SERVER,
    )
    redirect = 'the plugin redirect with {"uri": "$scheme://$host/remote.php/dav", "ret_code": 301}'
    closed = 'the plugin fault-injection with {"abort": {"http_status": 403}}'
    pattern = {"subject": {"scope": "Path"}, "op": "RegexMatch", "value": "^/(?:build|tests|config)/"}
    assert got == [
        "no equivalent annotation; look for a plugin, in every Ingress of the host",
        rule(redirect, paths=["/.well-known/carddav"]),
        "not needed: without the block, the backend of the Ingress answers",
        rule(closed, paths=["/*"], exprs=[pattern]),
    ]


def test_the_snippet_of_authentik_changes_requests_to_the_authentication_service() -> None:
    assert lines("proxy_set_header X-Forwarded-Host $http_host;", "auth-snippet") == [
        "the annotation auth-proxy-set-headers with the name of a ConfigMap that contains"
        ' {"X-Forwarded-Host": "$http_host"}'
    ]
    assert lines("return 403;", "auth-snippet") == ["no equivalent for requests to the authentication service"]


def test_the_snippet_of_linkerd_has_the_values_of_the_ingress() -> None:
    snippet = """
    proxy_set_header l5d-dst-override $service_name.$namespace.svc.cluster.local:$service_port;
    proxy_hide_header l5d-remote-ip;
    """
    assert lines(snippet) == [
        'the plugin proxy-rewrite with {"headers": {"set": {"l5d-dst-override": "web.books.svc.cluster.local:7000"}}}',
        'the plugin response-rewrite with {"headers": {"remove": ["l5d-remote-ip"]}}',
    ]
    # An Ingress with several Services has no single value.
    assert lines(snippet, scope=Scope())[0] == (
        "no equivalent: the gateway has no variable $service_name; write the value itself"
    )


@pytest.mark.parametrize(
    ("annotation", "word"), [("modsecurity-snippet", "ModSecurity"), ("stream-snippet", "gateway")]
)
def test_a_snippet_without_any_equivalent_has_one_line(annotation: str, word: str) -> None:
    (line,) = lines("SecRuleEngine On\nSecRule a b", annotation)
    assert (line.startswith("no equivalent"), word in line) == (True, True)


def test_blocks_are_nested_and_may_be_unbalanced() -> None:
    (outer,) = statements_of("a { b { c d; } e; }")
    assert (outer.quoted, outer.name) == ("a { b { c d; } e; }", "a")
    assert [each.quoted for each in statements_of("} a; }; b { c")] == ["a;", "b { c; }"]
    assert len(statements_of("a {" * 100)) == 1

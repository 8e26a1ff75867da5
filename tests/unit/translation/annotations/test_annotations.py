"""Annotations of an Ingress, one by one."""

import pytest

from apisix_ingress.state.claims import UpstreamOverrides
from tests.unit.translation.objects import OPTIONS, world
from translation.annotations import RouteAnnotations, read_annotations
from translation.core.context import Context
from translation.plugins.configs import Plugins


def read(**values: str) -> tuple[RouteAnnotations, list[str]]:
    """Read annotations; underscores in keywords become dashes."""
    scope = Context("ApisixRoute", "default", world().view(), OPTIONS)
    given = {f"k8s.apisix.apache.org/{name.replace('_', '-')}": value for name, value in values.items()}
    found = read_annotations(scope, given)
    prefix = "metadata.annotations[k8s.apisix.apache.org/"
    return found, [f"{item.severity} {item.path.removeprefix(prefix).removesuffix(']')}" for item in scope.problems]


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ({"auth_type": "keyAuth"}, {"key-auth": {}}),
        (
            {"auth_uri": "https://a/v", "auth_ssl_verify": "false", "auth_request_headers": "A, B,"},
            {"forward-auth": {"uri": "https://a/v", "ssl_verify": False, "request_headers": ["A", "B"]}},
        ),
        (
            {"auth_uri": "http://a", "auth_upstream_headers": "U", "auth_client_headers": "C"},
            {
                "forward-auth": {
                    "uri": "http://a",
                    "ssl_verify": True,
                    "upstream_headers": ["U"],
                    "client_headers": ["C"],
                }
            },
        ),
        ({"allowlist_source_range": "10.0.0.1, fd00::/8"}, {"ip-restriction": {"whitelist": ["10.0.0.1", "fd00::/8"]}}),
        ({"blocklist_source_range": "10.0.0.0/8"}, {"ip-restriction": {"blacklist": ["10.0.0.0/8"]}}),
        ({"http_to_https": "true"}, {"redirect": {"http_to_https": True}}),
        ({"http_redirect": "/b", "http_redirect_code": "308"}, {"redirect": {"uri": "/b", "ret_code": 308}}),
        ({"http_redirect": "/b"}, {"redirect": {"uri": "/b", "ret_code": 301}}),
        (
            {"enable_response_rewrite": "true", "response_rewrite_set_header": "Location:https://a:1/x, B: c"},
            {"response-rewrite": {"headers": {"set": {"Location": "https://a:1/x", "B": " c"}}}},
        ),
        (
            {
                "enable_response_rewrite": "true",
                "response_rewrite_body": "YQ==",
                "response_rewrite_body_base64": "true",
            },
            {"response-rewrite": {"body": "YQ==", "body_base64": True}},
        ),
        ({"enable_cors": "true", "cors_allow_origin": "*"}, {"cors": {"allow_origins": "*"}}),
        # Settings without effect stay as 1.8 wrote them, so that its records are adopted without a write.
        ({"enable_response_rewrite": "true"}, {"response-rewrite": {}}),
        (
            {"http_to_https": "true", "http_redirect_code": "308"},
            {"redirect": {"http_to_https": True, "ret_code": 308}},
        ),
        ({"http_redirect_code": "308"}, {}),
        # In texts that are served or used to sign, every character matters.
        (
            {"enable_response_rewrite": "true", "response_rewrite_body": " a\nb\n"},
            {"response-rewrite": {"body": " a\nb\n"}},
        ),
        ({"enable_csrf": "true", "csrf_key": " k "}, {"csrf": {"key": " k "}}),
        (
            {"enable_cors": "true", "cors_allow_origin": "https://a.com, https://b.com"},
            {"cors": {"allow_origins": "https://a.com,https://b.com"}},
        ),
        ({"http_allow_methods": ""}, {}),
        ({"allowlist_source_range": ""}, {}),
        (
            {"http_allow_methods": "GET,PROPFIND,M-SEARCH"},
            {
                "response-rewrite": {
                    "status_code": 405,
                    "vars": [["request_method", "!", "in", ["GET", "PROPFIND", "M-SEARCH"]]],
                }
            },
        ),
        (
            {"http_block_methods": "PUT", "enable_response_rewrite": "true"},
            {"response-rewrite": {"status_code": 405, "vars": [["request_method", "in", ["PUT"]]]}},
        ),
        (
            {"http_block_methods": "PUT", "enable_response_rewrite": "true", "response_rewrite_body": "b"},
            {
                "fault-injection": {"abort": {"http_status": 405, "vars": [[["request_method", "in", ["PUT"]]]]}},
                "response-rewrite": {"body": "b"},
            },
        ),
    ],
)
def test_good_values_become_plugins(values: dict[str, str], want: Plugins) -> None:
    found, problems = read(**values)
    assert found.plugins == want
    assert problems == []


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ({"auth_type": "keyauth"}, ["error auth-type"]),
        ({"auth_uri": "auth.example.com"}, ["error auth-uri"]),
        ({"auth_uri": "http://"}, ["error auth-uri"]),
        ({"auth_uri": "http://[a"}, ["error auth-uri"]),
        ({"allowlist_source_range": "10.0.0.0/99,x"}, ["error allowlist-source-range", "error allowlist-source-range"]),
        (
            {"allowlist_source_range": "10.0.0.1", "blocklist_source_range": "10.0.0.2"},
            ["error blocklist-source-range"],
        ),
        ({"http_allow_methods": "GET,get"}, ["error http-allow-methods"]),
        ({"http_allow_methods": ","}, ["error http-allow-methods"]),
        ({"http_block_methods": " "}, ["error http-block-methods"]),
        ({"allowlist_source_range": ","}, ["error allowlist-source-range"]),
        ({"blocklist_source_range": " , "}, ["error blocklist-source-range"]),
        ({"rewrite_target": "public/only"}, ["error rewrite-target"]),
        ({"enable_cors": "true", "cors_allow_origin": "example.org"}, ["error cors-allow-origin"]),
        ({"enable_cors": "true", "cors_allow_origin": "*,https://a.com"}, ["error cors-allow-origin"]),
        ({"http_redirect": "/"}, ["error http-redirect"]),
    ],
)
def test_bad_guard_fails_the_ingress(values: dict[str, str], want: list[str]) -> None:
    assert read(**values)[1] == want


@pytest.mark.parametrize(
    ("values", "problems", "plugins"),
    [
        ({"enable_cors": "True"}, ["warning enable-cors"], {}),
        ({"rewrite_target_regex_template": "/$1"}, ["warning rewrite-target-regex"], {}),
        (
            {"http_to_https": "true", "http_redirect": "/b"},
            ["warning http-redirect"],
            {"redirect": {"http_to_https": True}},
        ),
        (
            {"enable_response_rewrite": "true", "response_rewrite_status_code": "700", "response_rewrite_body": "b"},
            ["warning response-rewrite-status-code"],
            {"response-rewrite": {"body": "b"}},
        ),
        (
            {"enable_response_rewrite": "true", "response_rewrite_add_header": "a,:b,c:d"},
            ["warning response-rewrite-add-header", "warning response-rewrite-add-header"],
            {"response-rewrite": {"headers": {"add": ["c:d"]}}},
        ),
        # The gateway's schema has no such value; `set` accepts it.
        (
            {"enable_response_rewrite": "true", "response_rewrite_add_header": "A:http://b,C:d/,E:,F:g"},
            ["warning response-rewrite-add-header"] * 3,
            {"response-rewrite": {"headers": {"add": ["F:g"]}}},
        ),
        (
            {"http_to_https": "true", "http_redirect_code": "200"},
            ["warning http-redirect-code"],
            {"redirect": {"http_to_https": True}},
        ),
    ],
)
def test_other_bad_value_is_skipped_and_reported(values: dict[str, str], problems: list[str], plugins: Plugins) -> None:
    found, reported = read(**values)
    assert reported == problems
    assert found.plugins == plugins


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ({}, UpstreamOverrides()),
        ({"upstream_scheme": "GRPCS"}, UpstreamOverrides(scheme="grpcs")),
        ({"upstream_retries": "0"}, UpstreamOverrides(retries=0)),
        ({"upstream_retries": "+2"}, UpstreamOverrides(retries=2)),
        ({"upstream_read_timeout": "5s"}, UpstreamOverrides(timeout=(0, 0, 5))),
        ({"upstream_connect_timeout": "2", "upstream_send_timeout": "500ms"}, UpstreamOverrides(timeout=(2, 0.5, 0))),
    ],
)
def test_upstream_settings(values: dict[str, str], want: UpstreamOverrides) -> None:
    found, problems = read(**values)
    assert found.overrides == want
    assert problems == []


def test_bad_upstream_value_does_not_touch_the_others() -> None:
    found, problems = read(
        upstream_scheme="ftp", upstream_retries="-1", upstream_read_timeout="x", upstream_send_timeout="3"
    )
    assert found.overrides == UpstreamOverrides(timeout=(0, 3, 0))
    assert problems == [
        "warning upstream-read-timeout",
        "warning upstream-scheme",
        "warning upstream-retries",
    ]


def test_route_flags_and_names() -> None:
    found, _ = read(enable_websocket="true", use_regex="true", plugin_config_name="pc", svc_namespace="b")
    assert (found.websocket, found.use_regex, found.plugin_config, found.service_namespace) == (True, True, "pc", "b")

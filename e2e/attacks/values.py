"""Values of annotations that several attackers use."""

from __future__ import annotations

from collections.abc import Mapping

SLOW_TO_MATCH: Mapping[str, Mapping[str, str]] = {
    "auth-response-headers": {"auth_url": "http://auth.example/", "auth_response_headers": ",  " * 30 + "!"},
    "cors-expose-headers": {"enable_cors": "true", "cors_expose_headers": "a" * 36 + "!"},
    "cors-allow-origin": {"enable_cors": "true", "cors_allow_origin": ":11" * 30 + "!"},
    "session-cookie-max-age": {"affinity": "cookie", "session_cookie_max_age": "1" * 200_000 + "x"},
    "session-cookie-expires": {"affinity": "cookie", "session_cookie_expires": "1" * 200_000 + "x"},
    "ssl-ciphers": {"ssl_ciphers": "AES" * 60_000},
}
"""Values for which the time of a backtracking matcher grows exponentially or with the square of the length."""

UNUSABLE: Mapping[str, Mapping[str, str]] = {
    "underscore": {"upstream_vhost": "my_host"},
    "port": {"upstream_vhost": "my_app.internal:8080"},
    "variable": {"upstream_vhost": "$http_host"},
    "uri": {"rewrite_target": "$uri"},
    "request uri": {"rewrite_target": "$request_uri"},
    "scheme": {"rewrite_target": "$scheme"},
    "host": {"rewrite_target": "$host/y"},
    "cookie": {"affinity": "cookie", "session_cookie_name": "a:b/c"},
    "cookie with a dot": {"affinity": "cookie", "session_cookie_name": "JSESSIONID.node1"},
}
"""Values that ingress-nginx accepts, and that the schemas of the gateway reject in some field."""

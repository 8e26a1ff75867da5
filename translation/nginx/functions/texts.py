"""Every function that translations attach to routes: a record has no other Lua of ours."""

from __future__ import annotations

from translation.nginx.functions.attached import PASS
from translation.nginx.functions.copies import MIRROR
from translation.nginx.functions.external_auth import ASK
from translation.nginx.functions.guards import COOKIES, GUARD
from translation.nginx.functions.headers import (
    ADDRESS,
    ANSWERS,
    CONNECTION,
    FORWARDED,
    GROUPS,
    INVALID,
    MANY,
    UNDERSCORES,
    UPSTREAM_HOST,
)
from translation.nginx.functions.limits import LIMIT
from translation.nginx.functions.proxy_ssl import BACKEND_TLS
from translation.nginx.functions.proxying import DEFAULT, EMPTY, SEND_REQUEST
from translation.nginx.functions.shared_data import NOTHING

TEXTS = frozenset(
    {
        ADDRESS,
        ANSWERS,
        ASK,
        BACKEND_TLS,
        CONNECTION,
        COOKIES,
        DEFAULT,
        EMPTY,
        FORWARDED,
        GROUPS,
        GUARD,
        INVALID,
        LIMIT,
        MANY,
        MIRROR,
        NOTHING,
        PASS,
        SEND_REQUEST,
        UNDERSCORES,
        UPSTREAM_HOST,
    }
)
"""They are constants: their values are in a field of the plugin, never in the text."""

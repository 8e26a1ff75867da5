"""The largest numbers in plugins: how much of a gateway one small request may occupy.

A gateway accepts any size of a buffer, a pool or a generated text, and any delay. It allocates and waits accordingly,
also after the client has closed its connection, and its workers serve every team.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import inf

_BODY = 64 * 2**20
"""The default of APISIX for bodies that a plugin reads."""

_LOGGED = 512 * 2**10
"""The default of APISIX for a body in a log: a worker keeps thousands of them while their server does not respond."""

_POOL = 1000
"""Idle connections: workers allocate the whole pool with its first connection."""

_MINUTE = 60_000
"""Milliseconds: a request waits for a server also after its client has left, and occupies a connection."""

MOST: Mapping[str, int] = {
    "mocking.delay": 30,
    "fault-injection.delay.duration": 30,
    "limit-conn.default_conn_delay": 1,
    "limit-conn.burst": 1000,
    "limit-conn.rules[].burst": 1000,
    "limit-req.burst": 1000,
    "request-id.range_id.length": 256,
    "gzip.buffers.number": 64,
    "gzip.buffers.size": 64 * 2**10,
    "data-mask.max_body_size": 2**20,
    "data-mask.max_req_post_args": 1000,
    "feishu-auth.timeout": _MINUTE,
    "dingtalk-auth.timeout": _MINUTE,
    "ai-lakera-guard.timeout": _MINUTE,
    "semantic_opts.embeddings.timeout": _MINUTE,
    "keepalive_timeout": 5 * _MINUTE,
    "keepalive_pool.idle_timeout": 300,
    "keepalive_pool.size": _POOL,
    "keepalive_pool": _POOL,
    "redis_keepalive_pool": _POOL,
    "max_req_body_size": _BODY,
    "max_resp_body_size": _BODY,
    "max_req_body_bytes": _LOGGED,
    "buffer_duration": 600,
    "inactive_timeout": 600,
    "max_retry_count": 2,
    "retry_delay": 1,
    "retries": 100,
    "max_retries": 100,
}
"""The end of the path of a field, or plugin and path → its maximum. The longest entry applies."""

COMPARED = frozenset(
    [
        "cache_http_status",
        "cache_ttl",
        "clock_skew",
        "comp_level",
        "connect",
        "cookie_expires_in",
        "count",
        "deny_code",
        "exp",
        "expires",
        "fraction",
        "http_failures",
        "http_status",
        "http_statuses",
        "idle_timeout",
        "interval",
        "keepalive_timeout",
        "key_ttl",
        "lgblock",
        "lgwin",
        "lifetime_grace_period",
        "limit",
        "max_age",
        "max_body_size",
        "max_response_bytes",
        "max_stream_duration_ms",
        "min_length",
        "mode",
        "percentage",
        "port",
        "priority",
        "protocol_level",
        "rate",
        "read",
        "redis_connect_timeout",
        "redis_database",
        "redis_keepalive_timeout",
        "redis_port",
        "redis_read_timeout",
        "redis_timeout",
        "rejected_code",
        "requests",
        "response_code",
        "response_status",
        "ret_code",
        "retry_on_failure_within_ms",
        "retry_timeout",
        "sample_ratio",
        "send",
        "status_code",
        "streaming_flush_interval_ms",
        "successes",
        "sync_interval",
        "tcp_failures",
        "threshold",
        "time_window",
        "timeout",
        "timeouts",
        "weight",
    ]
)
"""Names of fields whose numbers a gateway only compares, counts or sends, or that its schema limits."""


@cache
def most(plugin: str, path: str) -> float:
    """Return the maximum of a field, such as `rules[].burst`; infinity without one."""
    full = f"{plugin}.{path}"
    found = [name for name in MOST if full == name or full.endswith(f".{name}")]
    return MOST[max(found, key=len)] if found else inf

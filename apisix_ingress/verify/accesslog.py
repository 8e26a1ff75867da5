"""Requests from access logs: the combined format of nginx, the format of ingress-nginx, and JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.verify.model import Probe

_COMBINED = TextPattern(r'^\S+ \S+ .{0,200}? \[[^\]]{1,64}\] "(?P<method>[A-Z]{1,20}) (?P<target>\S+) HTTP/[\d.]+"')
_HOSTS = ("host", "http_host", "vhost", "server_name", "authority", ":authority", "request_host")
_TARGETS = ("request_uri", "uri", "path", "url")
_METHODS = ("method", "request_method", "verb")


def probes_of(lines: Iterable[str], name: str, *, host: str) -> Iterator[Probe | None]:
    """Yield a request for each line; None for a line without one.

    Args:
        lines: The lines of a log.
        name: Of the log, for reports.
        host: The host of lines that do not contain one, such as the combined format; empty: such lines are skipped.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        found = _of_json(line) if line.lstrip().startswith("{") else _of_text(line)
        yield _probe(found, f"{name}:{number}", host) if found else None


def _probe(found: tuple[str, str, str, str], origin: str, default: str) -> Probe | None:
    method, scheme, host, target = found
    host = host or default
    if not host or not target.startswith("/"):
        return None
    return Probe(host, target, "https" if scheme == "https" else "http", method.upper(), origin=origin)


def _of_text(line: str) -> tuple[str, str, str, str] | None:
    found = _COMBINED.match(line)
    if found is None:
        return None
    return found["method"], "", "", found["target"]


def _of_json(line: str) -> tuple[str, str, str, str] | None:
    try:
        document: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    target, request = _first(document, _TARGETS), _first(document, ("request",))
    method = _first(document, _METHODS)
    if not target and (parts := request.split(" ")) and len(parts) >= 2:
        method, target = parts[0], parts[1]
    url = urlsplit(target) if "://" in target else None
    if url is not None:
        target = f"{url.path or '/'}{f'?{url.query}' if url.query else ''}"
    arguments = _first(document, ("args", "query_string"))
    if arguments and "?" not in target:
        target = f"{target}?{arguments}"
    host = _first(document, _HOSTS) or (url.netloc if url is not None else "")
    scheme = _first(document, ("scheme", "x_forwarded_proto")) or (url.scheme if url is not None else "")
    return (method or "GET", scheme, host.partition(":")[0], target) if target else None


def _first(document: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((value for name in names if isinstance(value := document.get(name), str) and value), "")

"""Documents of a running controller, read from its status page, without access to the API server or gateways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from apisix_ingress.diagnostics.reports.status import Filter
from apisix_ingress.diagnostics.reports.tree import Wanted
from apisix_ingress.errors import IngressError, UsageError
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.runtime.tasks import in_daemon

SECONDS = 20.0
"""Time limit for the request and its response."""

LARGEST = 64 * 2**20
"""Maximum size of a response, in bytes."""

LARGEST_LIST = 256 * 2**20
"""Maximum size of all pages of a list together, in bytes."""

MOST_PAGES = 1_000
"""Maximum number of pages of a list."""

_PATH = "/status/api/"


class _NoRedirects(HTTPRedirectHandler):
    """Reports a redirect as an error: a controller sends none, and another server could name any address."""

    def redirect_request(self, *args: object) -> None:
        """Return no request."""


async def read_status(url: str, only: Filter) -> JsonObject:
    """Return the document of `status` from the controller at an address such as http://localhost:8080.

    Raises:
        UsageError: Not the URL of a server.
        IngressError: It does not respond, or the response is not a status.
    """
    query = {"namespace": only.namespace, "all": "yes" if only.healthy else "", "kind": sorted(only.kinds)}
    return await _document(url, "status", query, field="healthy")


async def read_explanation(url: str, question: Mapping[str, str]) -> JsonObject:
    """Return the document of `explain` from a controller; the question has the fields of the form on its page.

    Raises:
        UsageError: Not the URL of a server.
        IngressError: It does not respond, rejects the question, or the response is not the document.
    """
    return await _document(url, "explain", question, field="outcome")


async def read_list(url: str, name: str, query: Mapping[str, str]) -> JsonObject:
    """Return a list of the page, such as `hosts` or `changes`, with the items of all of its pages.

    Raises:
        UsageError: Not the URL of a server.
        IngressError: It does not respond, rejects the query, or the response is not the list.
    """
    found, total = await _sized(url, name, dict(query), field="items")
    for page in range(2, min(int(found.get("pages") or 1), MOST_PAGES) + 1):
        more, size = await _sized(url, name, {**query, "page": str(page)}, field="items")
        total += size
        if total > LARGEST_LIST:
            raise IngressError(f"controller at {url}: the list {name} is larger than {LARGEST_LIST // 2**20} MiB")
        found["items"] += more["items"]
    return found


async def read_wanted(url: str) -> Wanted:
    """Return the desired records of a controller, masked, without the names of Pods.

    Raises:
        UsageError: Not the URL of a server.
        IngressError: It does not respond, or the response is not the list.
    """
    bodies: dict[RecordKey, FrozenJson] = {}
    owners: dict[RecordKey, ObjectKey] = {}
    for kind in ("routes", "stream_routes", "upstreams"):
        for item in (await read_list(url, "records", {"kind": kind, "body": "yes"}))["items"]:
            key, owner = RecordKey(item["kind"], item["id"]), item["owner"]
            bodies[key] = item["body"]
            owners[key] = ObjectKey(owner["kind"], owner["namespace"], owner["name"])
    return Wanted(bodies, owners, lambda namespace, address: "")


async def _document(url: str, name: str, query: Mapping[str, str | list[str]], *, field: str) -> JsonObject:
    """Return a document of the page of the leader, which has a field with this name."""
    document, _ = await _sized(url, name, query, field=field)
    return document


async def _sized(url: str, name: str, query: Mapping[str, str | list[str]], *, field: str) -> tuple[JsonObject, int]:
    """Return such a document and its size in bytes."""
    place, document, size = await _answer(url, name, query, field=field)
    replica = document.pop("replica", None) or {"leads": True}  # controllers before this field are not refused
    if replica["leads"]:
        return document, size
    pod = str(replica.get("pod") or "")
    whom = f"ask Pod {pod}, which leads" if pod else "no leader is known yet"
    raise IngressError(
        f"controller at {place}: not the leader, so it does not know the gateways: {whom}; `apisix-ingress dashboard`"
        " finds the leader and forwards its port"
    )


async def _answer(
    url: str, name: str, query: Mapping[str, str | list[str]], *, field: str
) -> tuple[str, JsonObject, int]:
    """Return the address of a controller, a document of its page, and the size of the document in bytes."""
    parts = urlsplit(url if "//" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--url {url}: write the address of the controller as http://localhost:8080")
    place = f"{parts.scheme}://{parts.netloc}"
    address = f"{place}{_PATH}{name}?{urlencode(query, doseq=True)}"
    try:
        # The timeout of the request is the one of each read, and a response may arrive byte by byte.
        async with asyncio.timeout(SECONDS):
            return place, *await in_daemon(lambda: _read(place, address, field), name=name)
    except TimeoutError:
        raise IngressError(
            f"controller at {place}: no complete response within {SECONDS:g} s: is it the address of http.listen?"
        ) from None


def _read(place: str, url: str, field: str) -> tuple[JsonObject, int]:
    # Proxies are for external addresses; a controller is reached by its address or a port-forward.
    opener: OpenerDirector = build_opener(ProxyHandler({}), _NoRedirects())
    request = Request(url, headers={"Accept": "application/json"})  # the scheme was checked
    try:
        with opener.open(request, timeout=SECONDS) as response:
            content = response.read(LARGEST + 1)
    except HTTPError as error:
        with error:
            raise IngressError(f"controller at {place}: {error.code}: {_remedy(error)}") from None
    except (URLError, HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise IngressError(
            f"controller at {place}: no response: {reason}; check http.listen, or the port-forward"
        ) from None
    document = _parsed(content)
    if field not in document:
        raise IngressError(
            f"controller at {place}: the response is not of its status page: is it the address of http.listen?"
        )
    return document, len(content)


def _parsed(content: bytes) -> JsonObject:
    try:
        document = json.loads(content) if len(content) <= LARGEST else None
    except (ValueError, RecursionError):
        document = None
    return document if isinstance(document, dict) else {}


def _remedy(error: HTTPError) -> str:
    match error.code:
        case 301 | 302 | 303 | 307 | 308:
            return "redirects are not followed: set --url to the address of http.listen, or to a port-forward"
        case 400 | 503:
            try:
                return str(_parsed(error.read(LARGEST + 1)).get("error") or "see its log")
            except (HTTPException, OSError):
                return "see its log"
        case 403:
            return "its status page is for loopback only: use `kubectl port-forward`, or set http.status_page: everyone"
        case 404:
            return "it has no status page: set http.status_page, or upgrade the controller"
    return "see its log"

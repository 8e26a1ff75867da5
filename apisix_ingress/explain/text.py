"""The document of `explain`, as people read it on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.json import JsonObject


def lines(document: JsonObject) -> Iterator[str]:
    """Yield the document as people read it."""
    asked = document["request"]
    yield f"{asked['method']} {asked['scheme']}://{asked['host'] or '(no host)'}{asked['path']}"
    if "certificate" in document:
        yield from _certificate_lines(document["certificate"])
    if route := document["route"]:
        unsure = "probably " if document["outcome"] == "may be" else ""
        yield f"  {unsure}answered by route {_who(route)}"
        yield from _route_lines(route)
    elif document["outcome"] == "none":
        yield "  answered by no route: 404"
    yield from _candidate_lines(document)
    yield from (f"  note: {note}" for note in document["notes"])


def _certificate_lines(found: JsonObject | None) -> Iterator[str]:
    if found is None:
        yield "  no certificate for this name: the handshake fails"
        return
    asks = ", the client must show one as well" if found["client_certificate"] else ""
    yield f"  certificate {found['id']}{_of(found)} ({', '.join(found['snis'])}){asks}"


def _route_lines(route: JsonObject) -> Iterator[str]:
    if route["plugins"]:
        yield f"    plugins: {', '.join(route['plugins'])}"
    if route["global_plugins"]:
        yield f"    plugins of every route: {', '.join(route['global_plugins'])}"
    for upstream in route["upstreams"]:
        nodes = ", ".join(f"{node['address']} (weight {node['weight']})" for node in upstream["nodes"])
        where = (
            upstream.get("discovery")
            or nodes
            or ("which is missing: 502" if "missing" in upstream else "no nodes: 503")
        )
        by = f" by {upstream['by']}" if "by" in upstream else ""
        yield f"    sent to upstream {upstream['name'] or upstream['id'] or 'of its own'}{by}: {where}"


def _candidate_lines(document: JsonObject) -> Iterator[str]:
    losers = [found for found in document["candidates"] if found["outcome"] != "wins"]
    for found in losers:
        yield f"  {found['outcome']}: {_who(found)}: {found['reason']}"
    for found in document["others"]:
        yield f"  not asked: {_who(found)}: {found['reason']}"
    if document["more"]:
        yield f"  not asked: {document['more']} more routes of other hosts or paths"


def _who(found: JsonObject) -> str:
    name = f" ({found['name']})" if found["name"] else ""
    return f"{found['id']}{name}{_of(found)}"


def _of(found: JsonObject) -> str:
    return f" of {found['owner']}" if found["owner"] else ""

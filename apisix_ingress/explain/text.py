"""The document of `explain` as text for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from apisix_ingress.model.json import JsonObject


def lines(document: JsonObject, *, verbose: bool = False) -> Iterator[str]:
    """Yield the document as text; routes of other hosts and paths only if `verbose`."""
    asked = document["request"]
    yield f"{asked['method']} {asked['scheme']}://{asked['host'] or '(no host)'}{asked['path']}"
    summary, elsewhere = document["answer"]["summary"], document.get("elsewhere", ())
    yield f"  {_where(document) if elsewhere else ''}{summary}"
    yield from _unverified(document["answer"])
    for each in elsewhere:
        yield f"  {_where(each)}{'the same' if each['summary'] == summary else each['summary']}"
        yield from _unverified(each)
    yield from (f"    depends on: {each}" for each in document["answer"]["depends_on"])
    if "certificate" in document:
        yield from _certificate_lines(document["certificate"])
    if route := document["route"]:
        if document["outcome"] == "may be":
            yield f"  probably answered by route {_who(route)}"
        yield from _route_lines(route, document["answer"]["upstreams"])
    yield from _object_lines(document)
    if document["similar_hosts"]:
        yield f"  no route has this host; similar hosts: {', '.join(document['similar_hosts'])}"
    yield from _candidate_lines(document, verbose=verbose)
    yield from (f"  note: {note}" for note in document["notes"])


def _unverified(answer: JsonObject) -> Iterator[str]:
    """Yield why an answer is not verified, unless its summary contains the reason."""
    why = answer.get("unverified", "")
    if why not in answer["summary"]:
        yield f"  not verified: {why}"


def _where(found: JsonObject) -> str:
    return f"in gateway cluster {found['cluster']}: "


def _object_lines(document: JsonObject) -> Iterator[str]:
    for found in document["objects"]:
        what = "matches this request" if found["names_path"] else "names this host with another path,"
        yield f"  {found['object']} {what} but has problems:"
        yield from (f"    {reason}" for reason in found["reasons"])
    if document["objects_more"]:
        yield f"  {document['objects_more']} more objects name this host and have problems"


def _certificate_lines(found: JsonObject | None) -> Iterator[str]:
    if found is None:
        yield "  no certificate for this name: the handshake fails"
        return
    client_part = ", and clients must present one" if found["client_certificate"] else ""
    yield f"  certificate {found['id']}{_of(found)} ({', '.join(found['snis'])}){client_part}"
    if lost := found.get("missing"):
        yield f"  the certificate for this host is missing: {lost}"
    if invalid := found.get("invalid"):
        yield f"  clients reject the certificate: {invalid}"


def _route_lines(route: JsonObject, upstreams: Sequence[JsonObject]) -> Iterator[str]:
    if route["plugins"]:
        yield f"    plugins: {', '.join(route['plugins'])}"
    if route["global_plugins"]:
        yield f"    plugins of every route: {', '.join(route['global_plugins'])}"
    for upstream in upstreams:
        nodes = ", ".join(f"{node['address']} (weight {node['weight']})" for node in upstream["nodes"])
        where = (
            upstream.get("discovery")
            or nodes
            or ("which is missing: 502" if "missing" in upstream else "no nodes: 503")
        )
        by = f" by {upstream['by']}" if "by" in upstream else ""
        yield f"    sent to upstream {upstream['name'] or upstream['id'] or 'of its own'}{by}: {where}"


def _candidate_lines(document: JsonObject, *, verbose: bool) -> Iterator[str]:
    losing = [found for found in document["candidates"] if found["outcome"] != "wins"]
    for found, siblings in _folded(losing, verbose=verbose):
        more = f" (and {siblings} more of this path)" if siblings else ""
        yield f"  {found['outcome']}: {_who(found)}: {found['reason']}{more}"
    others = document["others"] if verbose else [found for found in document["others"] if found["same_host"]]
    for found in others:
        yield f"  does not match: {_who(found)}: {found['reason']}"
    if left := len(document["others"]) - len(others) + document["more"]:
        routes = f"{left} more route{'' if left == 1 else 's'} of other hosts or paths"
        yield f"  does not match: {routes}{'' if verbose else '; list them with -v'}"


def _folded(losing: Sequence[JsonObject], *, verbose: bool) -> Iterator[tuple[JsonObject, int]]:
    """Yield routes with the number of unlisted routes that follow with the same object, host and path."""
    for _, group in groupby(losing, key=lambda found: (found["owner"], found["host"], found["uri"], found["outcome"])):
        routes = list(group)
        listed = routes if verbose or not routes[0]["owner"] else routes[:1]
        yield from ((found, len(routes) - len(listed)) for found in listed)


def _who(found: JsonObject) -> str:
    name = f" ({found['name']})" if found["name"] else ""
    return f"{found['id']}{name}{_of(found)}"


def _of(found: JsonObject) -> str:
    return f" of {found['owner']}" if found["owner"] else ""

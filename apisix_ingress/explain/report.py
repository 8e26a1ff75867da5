"""The handling of one request as a document: the certificate, the route, its plugins and its destination.

`explain -o json` prints the document, and the status page shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from apisix_ingress.explain.answer import Claimant, Unapplied, answer, claims, similar_hosts
from apisix_ingress.explain.certificates import certificate_of, invalidity, snis_of
from apisix_ingress.explain.patterns import RouteFacts, fits_host
from apisix_ingress.explain.request import ProbeRequest
from apisix_ingress.explain.response import (
    NO_HANDSHAKE,
    Destination,
    Records,
    Response,
    destinations,
    global_rules_of,
    named,
    plugins_of,
    respond,
)
from apisix_ingress.explain.routing import TIED, Candidate, Choice, Missed, choose
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import RecordKey

SHOWN_MISSES = 20
"""Maximum number of listed routes that do not match; routes with the same host come first."""


def explain(
    request: ProbeRequest,
    records: Records,
    owner_of: Callable[[RecordKey], str],
    *,
    unapplied: Mapping[RecordKey, Unapplied] | None = None,
    claimants: Iterable[Claimant] = (),
    unverified: str = "",
    missing: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> JsonObject:
    """Return how a gateway with these records handles a request.

    Args:
        request: The request.
        records: Bodies of all its records, including services (kind `services`) if there are any.
        owner_of: Returns the owner of a record; empty if unknown.
        unapplied: Records that should exist in a version that the gateway does not have.
        claimants: Objects that may name the request's host without being published.
        missing: Host → why a certificate for it is missing.
        now: The time, for the validity of the certificate; None: it is not checked.
        unverified: Why it is not known whether the gateway has these records; empty if it is.

    Returns:
        `request`, `certificate` (https only), `answer` (see `answer.answer`), `cluster` and `elsewhere` (the answers of
        other gateway clusters, see `of_clusters`), `outcome` (route, may be, none), `route`,
        `should` (the route that would answer if everything were applied, if it is not), `objects` (unpublished ones
        that name the host) with `objects_more`, `candidates`, `others` with `more` for routes that are not listed,
        `similar_hosts`, and `notes`.
    """
    routes = list(routes_of(records))
    choice = choose(request, routes)
    winner = choice.winner
    formatter = _Formatter(owner_of)
    others = sorted(choice.missed, key=lambda found: (not fits_host(found.route, request.host), found.route.id))
    asked, asked_more = claims(claimants, request.host, request.path)
    response = response_of(request, choice, records)
    lost = (missing or {}).get(_server_name(request), "") if request.scheme == "https" else ""
    if response is NO_HANDSHAKE and lost:
        response = replace(response, cause=f"{response.cause}. {lost}")
    if tied := _tied(choice):
        response = replace(response, depends_on=(*response.depends_on, f"the order of equal routes: {', '.join(tied)}"))
    route = _route(winner, records, owner_of) if winner else None
    should = _should(request, records, unapplied or {}, formatter)
    document: JsonObject = {
        "request": {"method": request.method, "host": request.host, "path": request.path, "scheme": request.scheme},
        "answer": {
            **answer(response, choice, route, should, asked, is_verified=not unverified),
            "upstreams": [_upstream(each) for each in response.destinations],
            "unverified": unverified,
        },
        "cluster": "",
        "elsewhere": [],
        "outcome": _outcome(choice),
        "route": route,
        "should": should,
        "objects": asked,
        "objects_more": asked_more,
        "candidates": [formatter.candidate(found) for found in choice.candidates],
        "others": [formatter.missed(found, request.host) for found in others[:SHOWN_MISSES]],
        "more": max(0, len(others) - SHOWN_MISSES),
        "similar_hosts": [],
        "notes": list(_notes(choice)),
    }
    if request.host and not asked and not any(fits_host(each, request.host) for each in routes):
        document["similar_hosts"] = similar_hosts(request.host, routes)
    if request.scheme == "https":
        found = _certificate(request, records, owner_of, now)
        document["certificate"] = {**found, "missing": lost} if found is not None else None
    return document


def of_clusters(documents: Mapping[str, JsonObject]) -> JsonObject:
    """Return the document of the first of some gateway clusters, with its name and the answers of the others."""
    (cluster, document), *others = documents.items()
    elsewhere = [{"cluster": name, **each["answer"]} for name, each in others]
    return {**document, "cluster": cluster, "elsewhere": elsewhere}


def response_of(request: ProbeRequest, choice: Choice, records: Records) -> Response:
    """Return the response to a request for which the gateway makes this choice."""
    if request.scheme == "https" and certificate_of(_server_name(request), records) is None:
        return NO_HANDSHAKE
    if request.rejection is not None:
        status, cause = request.rejection
        return Response("error", status, cause)
    route = choice.winner.route.body if choice.winner else None
    return respond(request, route, records, global_rules_of(records))


def routes_of(records: Records) -> Iterator[RouteFacts]:
    """Yield the routes among records, in the order of their ids."""
    return (_facts(key, body, records) for key, body in sorted(records.items()) if key.kind == "routes")


def _should(
    request: ProbeRequest, records: Records, unapplied: Mapping[RecordKey, Unapplied], formatter: _Formatter
) -> JsonObject | None:
    """Return the route that would answer if everything were applied, unless the gateway has its desired version."""
    if not any(key.kind == "routes" for key in unapplied):
        return None
    wanted = {**records, **{key: each.body for key, each in unapplied.items()}}
    winner = choose(request, routes_of(wanted)).winner
    missing = unapplied.get(RecordKey("routes", winner.route.id)) if winner else None
    if winner is None or missing is None:
        return None
    state = {"reason": missing.reason, "has_earlier": missing.has_earlier, "is_closed": missing.is_closed}
    return {**formatter.who(winner.route), **state}


def _facts(key: RecordKey, body: FrozenJson, records: Records) -> RouteFacts:
    service = named(records, "services", body.get("service_id"))
    return RouteFacts(key.id, body, service_hosts=tuple(service.get("hosts") or ()))


def _outcome(choice: Choice) -> str:
    if not choice.is_certain:
        return "may be"
    return "route" if choice.winner else "none"


def _notes(choice: Choice) -> Iterator[str]:
    unsure = [found.route.id for found in choice.candidates if found.outcome == "may win"]
    if unsure:
        after = choice.winner.route.id if choice.winner else "none (404)"
        yield (
            f"{', '.join(unsure)} may answer first, depending on conditions that only the gateway can evaluate;"
            f" otherwise the result is {after}"
        )
    if tied := _tied(choice):
        yield (
            f"{', '.join(tied)} and the winner have the same host, uri and priority: which one answers is undefined;"
            " set different priorities"
        )


def _tied(choice: Choice) -> list[str]:
    """Return the routes that only the order of routes separates from the winner."""
    return [found.route.id for found in choice.candidates if found.reason.startswith(TIED)]


class _Formatter:
    def __init__(self, owner_of: Callable[[RecordKey], str]) -> None:
        self._owner_of = owner_of

    def candidate(self, found: Candidate) -> JsonObject:
        shown = {"host": found.host, "uri": found.uri, "priority": found.route.priority}
        return {**self.who(found.route), **shown, "outcome": found.outcome, "reason": found.reason}

    def missed(self, found: Missed, host: str) -> JsonObject:
        return {**self.who(found.route), "reason": found.reason, "same_host": fits_host(found.route, host)}

    def who(self, route: RouteFacts) -> JsonObject:
        """Return id, name and owner of a route."""
        owner = self._owner_of(RecordKey("routes", route.id))
        return {"id": route.id, "name": str(route.body.get("name") or ""), "owner": owner}


def _route(winner: Candidate, records: Records, owner_of: Callable[[RecordKey], str]) -> JsonObject:
    body = winner.route.body
    return {
        "id": winner.route.id,
        "name": str(body.get("name") or ""),
        "owner": owner_of(RecordKey("routes", winner.route.id)),
        "plugins": sorted(plugins_of(body, records)),
        "global_plugins": sorted({name for rule in global_rules_of(records) for name in rule.get("plugins") or ()}),
        "upstreams": [_upstream(each) for each in destinations(body, records)],
    }


def _upstream(destination: Destination) -> JsonObject:
    body, key = destination.body, destination.key
    shown: JsonObject = {"id": key.id if key else "", "name": str(body.get("name") or ""), "nodes": list(_nodes(body))}
    if body.get("service_name"):
        shown["discovery"] = f"{body.get('discovery_type', '')} {body['service_name']}".strip()
    if key and not body:
        shown["missing"] = True
    return {**shown, "by": destination.by} if destination.by else shown


def _nodes(body: FrozenJson) -> Iterator[JsonObject]:
    nodes = body.get("nodes") or ()
    if isinstance(nodes, dict):
        yield from ({"address": address, "weight": weight} for address, weight in nodes.items())
        return
    for node in nodes:
        host = f"[{node['host']}]" if ":" in node["host"] and not node["host"].startswith("[") else node["host"]
        yield {"address": f"{host}:{node['port']}" if "port" in node else host, "weight": node.get("weight", 1)}


def _certificate(
    request: ProbeRequest, records: Records, owner_of: Callable[[RecordKey], str], now: datetime | None
) -> JsonObject | None:
    key = certificate_of(_server_name(request), records)
    if key is None:
        return None
    body = records[key]
    shown = {"id": key.id, "owner": owner_of(key), "snis": snis_of(body), "client_certificate": "client" in body}
    return {**shown, "invalid": invalidity(body, now) if now is not None else ""}


def _server_name(request: ProbeRequest) -> str:
    return request.server_name or request.host

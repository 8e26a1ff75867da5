"""The handling of one request as a document: the certificate, the route, its plugins and its destination.

`explain -o json` prints the document, and the status page shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from apisix_ingress.explain.answer import Claimant, Unapplied, answer, claims, similar_hosts
from apisix_ingress.explain.patterns import RouteFacts, fits_host
from apisix_ingress.explain.request import ProbeRequest
from apisix_ingress.explain.routing import TIED, Candidate, Choice, Missed, choose
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import RecordKey

SHOWN_MISSES = 20
"""Maximum number of listed routes that do not match; routes with the same host come first."""

Records = Mapping[RecordKey, FrozenJson]


def explain(
    request: ProbeRequest,
    records: Records,
    owner_of: Callable[[RecordKey], str],
    *,
    unapplied: Mapping[RecordKey, Unapplied] | None = None,
    claimants: Iterable[Claimant] = (),
) -> JsonObject:
    """Return how a gateway with these records handles a request.

    Args:
        request: The request.
        records: Bodies of all its records, including services (kind `services`) if there are any.
        owner_of: Returns the owner of a record; empty if unknown.
        unapplied: Records that should exist in a version that the gateway does not have.
        claimants: Objects that may name the request's host without being published.

    Returns:
        `request`, `certificate` (https only), `answer` (the client's response: `status`, `summary`), `outcome` (route,
            may
        be, none), `route`, `should` (the route that would answer if everything were applied, if it is not), `objects`
        (unpublished ones that name the host) with `objects_more`, `candidates`, `others` with `more` for routes that
            are
        not listed, `similar_hosts`, and `notes`.
    """
    routes = list(_routes(records))
    choice = choose(request, routes)
    winner = choice.winner
    formatter = _Formatter(owner_of)
    others = sorted(choice.missed, key=lambda found: (not fits_host(found.route, request.host), found.route.id))
    asked, asked_more = claims(claimants, request.host, request.path)
    route = _route(winner, records, owner_of) if winner else None
    should = _should(request, records, unapplied or {}, formatter)
    document: JsonObject = {
        "request": {"method": request.method, "host": request.host, "path": request.path, "scheme": request.scheme},
        "answer": answer(choice, route, should, asked),
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
    if request.host and not any(fits_host(each, request.host) for each in routes):
        document["similar_hosts"] = similar_hosts(request.host, routes)
    if request.scheme == "https":
        document["certificate"] = _certificate(request.host, records, owner_of)
    return document


def _routes(records: Records) -> Iterator[RouteFacts]:
    return (_facts(key, body, records) for key, body in sorted(records.items()) if key.kind == "routes")


def _should(
    request: ProbeRequest, records: Records, unapplied: Mapping[RecordKey, Unapplied], formatter: _Formatter
) -> JsonObject | None:
    """Return the route that would answer if everything were applied, unless the gateway has its desired version."""
    if not any(key.kind == "routes" for key in unapplied):
        return None
    wanted = {**records, **{key: each.body for key, each in unapplied.items()}}
    winner = choose(request, _routes(wanted)).winner
    missing = unapplied.get(RecordKey("routes", winner.route.id)) if winner else None
    if winner is None or missing is None:
        return None
    return {**formatter.who(winner.route), "reason": missing.reason, "has_earlier": missing.has_earlier}


def _facts(key: RecordKey, body: FrozenJson, records: Records) -> RouteFacts:
    service = _named(records, "services", body.get("service_id"))
    return RouteFacts(key.id, body, service_hosts=tuple(service.get("hosts") or ()))


def _named(records: Records, kind: Any, id_: Any) -> FrozenJson:
    return records.get(RecordKey(kind, str(id_)), {}) if id_ is not None else {}


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
    tied = [found.route.id for found in choice.candidates if found.reason.startswith(TIED)]
    if tied:
        yield (
            f"{', '.join(tied)} and the winner have the same host, uri and priority: which one answers is undefined;"
            " set different priorities"
        )


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
    service = _named(records, "services", body.get("service_id"))
    shared = _named(records, "plugin_configs", body.get("plugin_config_id"))
    # Plugins replace each other as a whole: the route's, its plugin config's, its service's (matching fact 8).
    plugins = {**(service.get("plugins") or {}), **(shared.get("plugins") or {}), **(body.get("plugins") or {})}
    key = RecordKey("routes", winner.route.id)
    return {
        "id": winner.route.id,
        "name": str(body.get("name") or ""),
        "owner": owner_of(key),
        "plugins": sorted(plugins),
        "global_plugins": sorted(_global_plugins(records)),
        "upstreams": list(_upstreams(body, service, plugins, records)),
    }


def _global_plugins(records: Records) -> Iterator[str]:
    for key, body in records.items():
        if key.kind == "global_rules":
            yield from body.get("plugins") or ()


def _upstreams(body: FrozenJson, service: FrozenJson, plugins: FrozenJson, records: Records) -> Iterator[JsonObject]:
    """Yield the destinations of a request: the route's upstream, and those of its traffic-split."""
    for holder in (body, service):
        if "upstream" in holder or "upstream_id" in holder:
            yield _upstream(holder, records, "")
            break
    split = plugins.get("traffic-split")
    for rule in split.get("rules") or () if isinstance(split, dict) else ():
        for target in rule.get("weighted_upstreams") or ():
            if "upstream" in target or "upstream_id" in target:
                yield _upstream(target, records, f"traffic-split weight {target.get('weight', 1)}")


def _upstream(holder: FrozenJson, records: Records, by: str) -> JsonObject:
    id_ = str(holder.get("upstream_id") or "")
    body = holder.get("upstream") or _named(records, "upstreams", id_)
    shown: JsonObject = {"id": id_, "name": str(body.get("name") or ""), "nodes": list(_nodes(body))}
    if body.get("service_name"):
        shown["discovery"] = f"{body.get('discovery_type', '')} {body['service_name']}".strip()
    if id_ and not body:
        shown["missing"] = True
    return {**shown, "by": by} if by else shown


def _nodes(body: FrozenJson) -> Iterator[JsonObject]:
    nodes = body.get("nodes") or ()
    if isinstance(nodes, dict):
        yield from ({"address": address, "weight": weight} for address, weight in nodes.items())
        return
    for node in nodes:
        host = f"[{node['host']}]" if ":" in node["host"] and not node["host"].startswith("[") else node["host"]
        yield {"address": f"{host}:{node['port']}" if "port" in node else host, "weight": node.get("weight", 1)}


def _certificate(host: str, records: Records, owner_of: Callable[[RecordKey], str]) -> JsonObject | None:
    """Return the certificate for a server name: exact, then a wildcard for one label, then `*` (fact 10)."""
    found = min(_fitting(host, records), default=None)
    if found is None:
        return None
    key = RecordKey("ssls", found[1])
    body = records[key]
    snis = [body["sni"]] if "sni" in body else list(body.get("snis") or ())
    return {"id": key.id, "owner": owner_of(key), "snis": snis, "client_certificate": "client" in body}


def _fitting(host: str, records: Records) -> Iterator[tuple[int, str]]:
    _, _, parent = host.partition(".")
    ranks = {host: 0, f"*.{parent}": 1, "*": 2}
    for key, body in records.items():
        if key.kind == "ssls" and body.get("status", 1) != 0 and body.get("type", "server") == "server":
            for sni in [body["sni"]] if "sni" in body else body.get("snis") or ():
                if (rank := ranks.get(str(sni).lower())) is not None:
                    yield rank, key.id

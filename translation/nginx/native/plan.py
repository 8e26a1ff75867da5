"""Plans of hosts: the provider's records, with the location and the Ingress that each of them comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from apisix_ingress.model import names
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service
from apisix_ingress.state.claims import UpstreamClaim
from apisix_ingress.state.view import View
from translation.core.options import Options
from translation.core.outcome import Published
from translation.nginx.effects.balancing.backends import port_number
from translation.nginx.host import ALIAS_OPERATOR, ranked, translate_host
from translation.nginx.native.model import STEPS, Certificate, HostPlan, PathKind, Place, Share, Step, Var
from translation.nginx.native.plugins import refused
from translation.nginx.options import CATCH_ALL, NginxOptions, host_key
from translation.nginx.servers import Location, Server, build_server
from translation.nginx.sources import Source, sources_of_host
from translation.policies import PolicyInputs, fold

SPLIT = "traffic-split"
_PATH = "uri"
_VERIFIED = "ssl_client_verify"

_Key = tuple[tuple[str, ...], tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class _Records:
    """What the routes of a host refer to, by id."""

    claims: Mapping[str, UpstreamClaim]
    limits: Mapping[str, Mapping[str, JsonObject]]


_DEFAULT = "default"
"""The namespace of objects that belong to no Ingress."""


class _Fields(TypedDict):
    plugins: Mapping[str, JsonObject]
    main: Share | None
    timeout: Mapping[str, float]
    limits: Mapping[str, JsonObject]


def plan_host(host: str, view: View, options: Options, nginx: NginxOptions) -> HostPlan | None:
    """Return the plan of a host, or None if no Ingress defines a server for it that can be published."""
    sources = sources_of_host(view, options, nginx, host)
    server = build_server(host, sources)
    translated = translate_host(host, view, options, replace(nginx, compact=False))
    outcome = fold(translated, PolicyInputs(host_key(host), None, view, options))
    if server is None or not isinstance(outcome, Published):
        return None
    known = _Records(_claims(outcome, view), _limits(outcome))
    places = tuple(_places(outcome, server, known, view))
    certificates = tuple(_certificates(outcome, sources))
    if not certificates and host != CATCH_ALL:
        # The provider has one record with the default certificate for all of these hosts.
        certificates = (Certificate((host,), nginx.default_certificate),)
    return HostPlan(host, _namespace(server), places, certificates, _secrets(sources, view))


def _namespace(server: Server) -> str:
    """Return the namespace of the oldest Ingress of a host."""
    return server.sources[0].meta.namespace if server.sources else _DEFAULT


def _claims(outcome: Published, view: View) -> dict[str, UpstreamClaim]:
    found = {}
    for claim in outcome.claims:
        _, namespace, name = claim.target
        variant = claim.variant.name if claim.variant else ""
        record = names.service_upstream_name(
            namespace, name, claim.port, granularity=claim.granularity, variant=variant
        )
        found[view.record_id("upstreams", record)] = claim
    return found


def _limits(outcome: Published) -> dict[str, Mapping[str, JsonObject]]:
    records = (record for record in outcome.records if record.key.kind == "plugin_configs")
    return {record.key.id: record.body["plugins"] for record in records}


def _places(outcome: Published, server: Server, known: _Records, view: View) -> Iterator[Place]:
    """Yield the locations: routes that match the same host and path."""
    groups: dict[_Key, list[FrozenJson]] = {}
    for record in outcome.records:
        if record.key.kind == "routes" and not _is_of_pattern(record.body) and not _is_for_errors(record.body):
            groups.setdefault(_key(record.body), []).append(record.body)
    located = {(tuple(match["uris"]), _text(match.get("vars", ()))): each for each, match in ranked(server)}
    for (hosts, uris, pattern), bodies in groups.items():
        ordered = sorted(bodies, key=lambda body: -body["priority"])
        steps = tuple(step for body in ordered for step in _steps(body, known))
        at = located.get((uris, pattern))
        place = _place(hosts, uris, _pattern(ordered[0]), at, steps, _namespace(server))
        yield replace(place, backend=_backend(place, at, view))


def _is_of_pattern(body: FrozenJson) -> bool:
    """Return whether a route is for a server-alias with a regular expression, which manifests cannot have as host."""
    return any(each[0] == "host" and each[1] == ALIAS_OPERATOR for each in body.get("vars", ()))


def _is_for_errors(body: FrozenJson) -> bool:
    """Return whether a route responds if a pattern fails: manifests with the pattern get one, too."""
    pattern = _pattern(body)
    return pattern is not None and pattern[1] == "!"


def _place(
    hosts: tuple[str, ...],
    uris: tuple[str, ...],
    pattern: Var | None,
    at: Location | None,
    steps: tuple[Step, ...],
    other: str,
) -> Place:
    source = at.source if at else None
    claims = (step.main.claim.target.namespace for step in steps if step.main)
    namespace = next(claims, source.meta.namespace if source else other)
    kind: PathKind = "Pattern" if pattern else "Prefix" if uris[0].endswith("*") else "Exact"
    path = at.given or at.path if at else uris[0].rstrip("*")
    return Place(hosts, uris, pattern, namespace, source.meta.key if source else None, path, kind, steps)


def _backend(place: Place, at: Location | None, view: View) -> Share | None:
    served = next((step.main for step in place.steps if step.main), None)
    if served or at is None or at.backend is None:
        return served
    key = ObjectKey("Service", place.namespace, at.backend.name)
    service = view.get(Service, key)
    number = port_number(service, at.backend.port) if service else 0
    return Share(UpstreamClaim(key, number)) if number else None


def _steps(body: FrozenJson, known: _Records) -> Iterator[Step]:
    """Yield a step for each rule of a canary, in their order, and one for the requests that no rule matches."""
    at = _pattern(body)
    when = tuple(each for each in body.get("vars", ()) if each is not at)
    plugins, upstream = dict(body.get("plugins", {})), body.get("upstream_id", "")
    if answer := refused(plugins):
        plugins, upstream = dict(answer), ""
    if upstream and any(each[0] == _VERIFIED for each in when):
        # The page for clients without a certificate; with a manifest they are rejected instead.
        when = tuple(each for each in when if each[0] != "request_method")
        plugins, upstream = {"fault-injection": {"abort": {"http_status": 400}}}, ""
    split = plugins.pop(SPLIT, None)
    main = Share(known.claims[upstream]) if upstream else None
    fields: _Fields = {
        "plugins": plugins,
        "main": main,
        "timeout": body.get("timeout", {}) if upstream else {},
        "limits": known.limits.get(body.get("plugin_config_id", ""), {}),
    }
    first = body["priority"] * STEPS + STEPS - 1
    rules = split["rules"] if split else ()
    for number, rule in enumerate(rules):
        conditions = tuple(each for match in rule.get("match", ()) for each in match["vars"])
        shares = tuple(Share(known.claims[each["upstream_id"]], each["weight"]) for each in rule["weighted_upstreams"])
        yield Step((*when, *conditions), first - number, shares=shares, **fields)
        if not conditions:
            return
    yield Step(when, first - len(rules), shares=(main,) if main else (), **fields)


def _key(body: FrozenJson) -> _Key:
    pattern = _pattern(body)
    return tuple(body.get("hosts", ())), tuple(body["uris"]), _text([pattern] if pattern else ())


def _pattern(body: FrozenJson) -> Var | None:
    return next((each for each in body.get("vars", ()) if each[0] == _PATH), None)


def _text(conditions: Iterable[Var]) -> str:
    return next((" ".join(map(str, each)) for each in conditions if each[0] == _PATH), "")


def _certificates(outcome: Published, sources: Sequence[Source]) -> Iterator[Certificate]:
    for record in outcome.records:
        body = record.body
        if record.key.kind == "ssls" and body.get("type") != "client" and "snis" in body:
            labels = body.get("labels", {})
            secret = ObjectKey("Secret", labels.get("meta_secret_namespace", ""), labels.get("meta_secret_name", ""))
            client = body.get("client", {})
            yield Certificate(
                tuple(body["snis"]), secret if secret.name else None, client, _authority(sources) if client else None
            )


def _authority(sources: Sequence[Source]) -> ObjectKey | None:
    text = next((each for source in sources if "/" in (each := source.values.text("auth-tls-secret"))), "")
    namespace, _, name = text.partition("/")
    return ObjectKey("Secret", namespace, name) if name else None


def _secrets(sources: Sequence[Source], view: View) -> dict[str, ObjectKey]:
    found = {}
    for source in sources:
        namespace, _, name = source.values.text("proxy-ssl-secret").partition("/")
        if name:
            for verified in (False, True):
                record = names.nginx_client_certificate(namespace, name, verified=verified)
                found[view.record_id("ssls", record)] = ObjectKey("Secret", namespace, name)
    return found

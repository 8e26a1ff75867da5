"""A location as one route: the steps of the provider become plugins with conditions.

An HTTPRoute has one action for each path, while the provider has a route for each response. The order
of the gateway's phases is that of nginx: redirects and preflights first, then addresses, then the backend.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apisix_ingress.model.json import JsonObject
from translation.nginx.native.model import Place, Share, Step, Var
from translation.nginx.native.plugins import CLOSED, plain_plugins

Plugins = Mapping[str, JsonObject]
_ANSWER, _REDIRECT, _REWRITE, _RESPONSE = "fault-injection", "redirect", "proxy-rewrite", "response-rewrite"
_PREFLIGHT = ("request_method", "==", "OPTIONS")
_ALWAYS: Var = ("uri", "~~", "^")
_TO_HTTPS = "https://$host$request_uri"
_LABELS = "a wildcard host matches several labels: a.b.example.org belongs to *.example.org"
_NO_COOKIE = "affinity: the gateway sets no cookie; let the application set it, or use --to apisixroute"


@dataclass(frozen=True, slots=True)
class Merged:
    """The action of a path.

    Attributes:
        plugins: By name.
        shares: Backends; empty if the plugins respond.
        main: The backend of which a canary takes a share; None if the plugins respond.
        timeout: Seconds by phase.
        cases: Requests with other backends, first match first: conditions on headers, and the backends.
        closed: Why it responds with 503; empty if it does not.
        differs: What differs from the provider.
    """

    plugins: Plugins
    shares: tuple[Share, ...] = ()
    main: Share | None = None
    timeout: Mapping[str, float] = field(default_factory=dict)
    cases: tuple[tuple[tuple[Var, ...], tuple[Share, ...]], ...] = ()
    closed: str = ""
    differs: tuple[str, ...] = ()

    def as_closed(self, why: str) -> Merged:
        """Return a path that responds with 503."""
        return Merged(CLOSED, closed=why)


@dataclass(slots=True)
class _Merge:
    plugins: dict[str, JsonObject]
    differs: dict[str, None] = field(default_factory=dict)
    cases: list[tuple[tuple[Var, ...], tuple[Share, ...]]] = field(default_factory=list)


def merged(place: Place, *, scheme: str) -> Merged:
    """Return the action of a location for requests with a scheme."""
    if any(each[0] in ("OR", "AND") for step in place.steps for each in step.when):
        return Merged(CLOSED, closed="use-forwarded-headers: conditions on forwarded schemes need --to apisixroute")
    of_place = (_without(step, "host") for step in place.steps)
    steps = [_without(step, "scheme") for step in _of_scheme(of_place, scheme)]
    *earlier, last = _until_unconditional(steps)
    plain = plain_plugins(last.plugins)
    if plain.closed:
        return Merged(CLOSED, closed=plain.closed)
    found = _Merge({**plain.plugins, **last.limits}, dict.fromkeys(plain.differs))
    for step in earlier:
        if why := _add(found, step, last):
            return Merged(CLOSED, closed=why)
    while found.cases and found.cases[-1][1] == last.shares:
        found.cases.pop()
    if any(host.startswith("*.") for host in place.hosts):
        found.differs[_LABELS] = None
    cases, differs = tuple(found.cases), tuple(found.differs)
    return Merged(found.plugins, last.shares, last.main, last.timeout, cases, differs=differs)


def _without(step: Step, name: str) -> Step:
    return replace(step, when=tuple(each for each in step.when if each[0] != name))


def _of_scheme(steps: Iterable[Step], scheme: str) -> Iterator[Step]:
    for step in steps:
        asked = [each[2] for each in step.when if each[0] == "scheme"]
        if not asked or scheme in asked:
            yield step


def _until_unconditional(steps: Sequence[Step]) -> list[Step]:
    found = []
    for step in steps:
        found.append(step)
        if not step.when:
            break
    return found


def _add(found: _Merge, step: Step, last: Step) -> str:
    """Add a step for some of the requests; return why that is impossible, or empty."""
    if step.shares:
        return _other_backend(found, step, last)
    if _REDIRECT in step.plugins:
        return _redirect(found, step)
    status = step.plugins[_ANSWER]["abort"]["http_status"]
    if _PREFLIGHT in map(tuple, step.when):
        _preflight(found, step, status)
    else:
        _return(found, step.when, status)
    return ""


def _preflight(found: _Merge, step: Step, status: int) -> None:
    """Respond to preflights before the plugin cors, which uses another status."""
    if _ANSWER in found.plugins:
        if "vars" in found.plugins[_ANSWER]["abort"]:
            return  # The first one takes them all.
        _as_workflow(found)
    headers = step.plugins.get(_RESPONSE, {}).get("headers", {}).get("set", {})
    abort = {"http_status": status, "vars": [[list(each) for each in step.when]]}
    found.plugins[_ANSWER] = {"abort": abort | ({"headers": headers} if headers else {})}


def _redirect(found: _Merge, step: Step) -> str:
    if _REDIRECT in found.plugins:
        return "the path has two redirects; use --to apisixroute"
    config = step.plugins[_REDIRECT]
    if _REWRITE in step.plugins:
        config = {**config, "uri": _TO_HTTPS}
        found.differs["the redirect to https keeps a slash at the end of the address"] = None
    found.plugins[_REDIRECT] = {**config, "_meta": {"filter": [list(each) for each in step.when]}}
    return ""


def _other_backend(found: _Merge, step: Step, last: Step) -> str:
    plain = plain_plugins(step.plugins)
    if plain.closed or any(each[0] == "remote_addr" for each in step.when):
        return plain.closed or "satisfy any: a path cannot require a password only from some addresses"
    if all(_is_header(each) for each in step.when) and (step.shares != last.shares or step.plugins == last.plugins):
        # Also with the backends of the last step: it keeps these requests from the steps between.
        found.cases.append((step.when, step.shares))
    else:
        found.differs[_NO_COOKIE] = None
    return ""


def _is_header(condition: Var) -> bool:
    return str(condition[0]).startswith("http_") and condition[1] in ("==", "~~")


def _return(found: _Merge, when: Iterable[Var], status: int) -> None:
    rule = {"case": [list(each) for each in when], "actions": [["return", {"code": status}]]}
    rules = found.plugins.get("workflow", {}).get("rules", [])
    found.plugins["workflow"] = {"rules": [*rules, rule]}


def _as_workflow(found: _Merge) -> None:
    """Turn the response of the path into the last rule of a workflow: the plugin is needed for preflights."""
    abort = found.plugins.pop(_ANSWER)["abort"]
    conditions: list[Any] = abort.get("vars", [[_ALWAYS]])[0]
    _return(found, conditions, abort["http_status"])

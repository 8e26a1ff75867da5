"""Routes of a host as gateways get them: fewer routes, with fewer plugins, that respond as those of the branches do.

A gateway spends most of its time per request on conditions and plugins. Plugins for headers and buffering become one
function, which serves http and https, so that routes that differ only in the scheme or the path can be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import JsonObject
from translation.nginx.effects.redirects import https_redirect
from translation.nginx.effects.requests import (
    FORWARDED_FOR,
    FORWARDED_HOST,
    UNBUFFERED,
    headers_of_scheme,
    request_id,
)
from translation.nginx.effects.responses import CORS, HSTS
from translation.nginx.functions.attached import FIELD, PLUGINS
from translation.nginx.functions.headers import CONNECTION
from translation.nginx.functions.requests import HOST, PORTS, REMOVED, REQUEST

Plugins = Mapping[str, JsonObject]
_SCHEME = "scheme"
_HEADER = ValuePattern(r"\$http_([a-z0-9_]+)")
_VARIABLE = ValuePattern(r"\$([a-z0-9_]+)")
_SECURE = "secure"


@dataclass(frozen=True, slots=True)
class Route:
    """A route before it becomes a record.

    Attributes:
        part: Its name among those of the host.
        uris: Its paths.
        vars: Its conditions.
        priority: Its priority; routes with other paths do not compete.
        plugins: By name.
        fields: Other fields of the record.
    """

    part: str
    uris: tuple[str, ...]
    vars: tuple[Sequence[object], ...]
    priority: int
    plugins: Plugins
    fields: JsonObject

    @property
    def scheme(self) -> str:
        """The scheme of its requests; empty if it serves both."""
        return next((str(each[2]) for each in self.vars if _is_of_scheme(each)), "")


def compacted(routes: Sequence[Route]) -> list[Route]:
    """Return routes that respond to each request as the given ones do.

    Args:
        routes: The routes of a host; each of its locations has the same order here and by priority.
    """
    lowered = [replace(route, plugins=_lowered(route.plugins, route.scheme)) for route in routes]
    # A merged route has a name of its own: if an edit splits it, its parts are new, so they exist before it is deleted.
    return _of_all_paths(_of_both_schemes(lowered))


def _of_both_schemes(routes: Sequence[Route]) -> Iterator[Route]:
    """Yield the routes; two in succession that differ only in the scheme become one."""
    waiting: Route | None = None
    for route in routes:
        merged = _merged(waiting, route) if waiting else None
        if waiting and merged is None:
            yield waiting
        waiting = merged or route
    if waiting:
        yield waiting


def _merged(first: Route, second: Route) -> Route | None:
    """Return the route for the requests of both, or None if they do different things.

    Priorities within a location are successive, so that no third route is between them.
    """
    if {first.scheme, second.scheme} != set(PORTS) or first.priority != second.priority + 1:
        return None
    if (redirect := _https_redirect(first)) and _is_same_place(first, second):
        plugins = _with_values(second.plugins, {"https": redirect})
        return replace(_of_any_scheme(second), part=f"{second.part}-any", plugins=plugins)
    http, https = sorted((first, second), key=lambda each: each.scheme)
    secure = _values(https.plugins).get(_SECURE)
    plugins = _with_values(http.plugins, {_SECURE: secure}) if secure else http.plugins
    same = _is_same_place(first, second) and https.plugins == plugins and https.fields == http.fields
    return replace(_of_any_scheme(first), part=f"{first.part}-any", plugins=plugins) if same else None


def _of_any_scheme(route: Route) -> Route:
    return replace(route, vars=tuple(each for each in route.vars if not _is_of_scheme(each)))


def _is_same_place(first: Route, second: Route) -> bool:
    """Return whether two routes match the same requests, apart from the scheme."""
    hosts = first.fields.get("hosts") == second.fields.get("hosts")
    return hosts and first.uris == second.uris and _of_any_scheme(first).vars == _of_any_scheme(second).vars


def _https_redirect(route: Route) -> JsonObject:
    """Return the values with which the function redirects as a route does that redirects all of http; or empty."""
    if route.scheme != "http" or "upstream_id" in route.fields:
        return {}
    code = route.plugins.get("redirect", {}).get("ret_code", 0)
    for keeps in (False, True):
        if route.plugins == https_redirect("$host", code, keeps_slash=keeps):
            return {"code": code, "keeps_slash": keeps}
    return {}


def _of_all_paths(routes: Iterable[Route]) -> list[Route]:
    """Return the routes; one for a path and one for all paths below it become one, if they do the same."""
    every = list(routes)
    single = {(route.uris[0], route.priority): route for route in every if len(route.uris) == 1}
    found = {route.part: route for route in every}
    for route in every:
        place = (route.uris[0].removesuffix("/*"), route.priority)
        above = single.get(place) if _is_subtree(route) else None
        if above and replace(above, part=route.part, uris=route.uris) == route:
            found[route.part] = replace(route, part=f"{route.part}-tree", uris=(*above.uris, *route.uris))
            del found[above.part], single[place]  # /foo and /foo/ have the same subtree
    return list(found.values())


def _is_subtree(route: Route) -> bool:
    return len(route.uris) == 1 and route.uris[0].endswith("/*") and route.uris[0] != "/*"


def _is_of_scheme(condition: Sequence[object]) -> bool:
    return len(condition) == 3 and condition[0] == _SCHEME and condition[1] == "=="


def _lowered(plugins: Plugins, scheme: str) -> Plugins:
    """Return the plugins of a route, with the function instead of the plugins that it replaces."""
    kept, values = dict(plugins), JsonObject()
    _take_headers(kept, values, scheme)
    if kept.get("request-id") == request_id():
        del kept["request-id"]
        values["id"] = True
    for name, body in UNBUFFERED.items():
        if kept.get("proxy-buffering") == body:
            del kept["proxy-buffering"]
            values["unbuffered"] = name
    _take_constant(kept, values, "headers", lambda name: name.startswith(CORS))
    if scheme == "https":
        _take_constant(kept, values, _SECURE, lambda name: name == HSTS)
    if "client" in values and "serverless-post-function" in kept and "proxy-rewrite" not in kept:
        values["uri"] = True
    if not kept.keys().isdisjoint(PLUGINS):
        values["functions"] = True
    return _with_values(kept, values) if values else kept


def _take_headers(kept: dict[str, JsonObject], values: JsonObject, scheme: str) -> None:
    """Move the headers about the client, which every request to a backend has, from `proxy-rewrite` to the function."""
    rewrite = kept.get("proxy-rewrite", {})
    given = rewrite.get("headers", {}).get("set", {})
    addresses = _HEADER.fullmatch(given.get(FORWARDED_FOR, ""))
    host = _VARIABLE.fullmatch(given.get(FORWARDED_HOST, ""))
    if not scheme or not addresses or not host:
        return
    _drop(kept, CONNECTION)
    values["client"] = {"addresses": addresses[1].replace("_", "-"), "host": host[1]}
    own = {FORWARDED_FOR: addresses[0], FORWARDED_HOST: host[0], **headers_of_scheme(scheme)}
    rest = {name: text for name, text in given.items() if own.get(name) != text}
    written = {name.lower() for name in rest}
    removed = [name for name in rewrite["headers"]["remove"] if name not in REMOVED or name.lower() in written]
    headers = ({"set": rest} if rest else {}) | ({"remove": removed} if removed else {})
    body = {name: value for name, value in rewrite.items() if name != "headers"} | (
        {"headers": headers} if headers else {}
    )
    if body == {"use_real_request_uri_unsafe": True}:
        del kept["proxy-rewrite"]
    else:
        kept["proxy-rewrite"] = body


def _drop(kept: dict[str, JsonObject], text: str) -> None:
    """Remove a function without values from the ones that run before the request to the backend."""
    plugin = kept.pop("serverless-pre-function", {})
    texts = [each for each in plugin.get("functions", ()) if each != text]
    if texts:
        kept["serverless-pre-function"] = {**plugin, "functions": texts}


def _take_constant(kept: dict[str, JsonObject], values: JsonObject, name: str, is_taken: Callable[[str], bool]) -> None:
    """Move headers of responses, if their values are constant, from `response-rewrite` to a value of the function."""
    given = kept.get("response-rewrite", {}).get("headers", {})
    every = given.get("set", {})
    taken = {header: text for header, text in every.items() if is_taken(header) and "$" not in text}
    if not taken:
        return
    values[name] = taken
    rest = {header: text for header, text in every.items() if header not in taken}
    headers = {part: value for part, value in given.items() if part != "set"} | ({"set": rest} if rest else {})
    if headers:
        kept["response-rewrite"] = {"headers": headers}
    else:
        del kept["response-rewrite"]


def _values(plugins: Plugins) -> JsonObject:
    """Return the values of the function."""
    found: JsonObject = plugins.get(HOST, {}).get(FIELD, {})
    return found


def _with_values(plugins: Plugins, values: JsonObject) -> Plugins:
    """Return the plugins with the function and further values for it."""
    added: JsonObject = {"_meta": {"pre_function": REQUEST}, FIELD: {**_values(plugins), **values}}
    return {**plugins, HOST: {**plugins.get(HOST, {}), **added}}

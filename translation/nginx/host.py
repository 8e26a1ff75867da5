"""A host of ingress-nginx → its routes and certificate, from all Ingresses that name it, in any namespace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from apisix_ingress.model import names
from apisix_ingress.model.formats.patterns import escaped_literal
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import CustomObject, Meta
from apisix_ingress.state.view import View
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import NOT_SERVED, Outcome
from translation.nginx.certificates import (
    add_certificate,
    client_check,
    covered_aliases,
    default_certificate,
    is_secure,
    is_under_secure_wildcard,
)
from translation.nginx.effects.balancing.canaries import canaries_at
from translation.nginx.effects.branches import Branch, Services, Site, answer, is_on_one_line
from translation.nginx.effects.location import is_denied, location_branches
from translation.nginx.effects.protection.access import blocked
from translation.nginx.effects.protection.authentication import authentication
from translation.nginx.effects.protection.client_certificates import wrong_names
from translation.nginx.effects.protection.pattern_errors import fails_open
from translation.nginx.effects.protection.proxy_ssl import host_wide, inheriting
from translation.nginx.effects.redirects import app_root, configured, slash_redirect, twin_of, www_redirects
from translation.nginx.effects.responses import response_headers, with_headers
from translation.nginx.functions.attached import FIELD
from translation.nginx.options import CATCH_ALL, KIND, NginxOptions
from translation.nginx.places import HIGHEST, places
from translation.nginx.routes import Route, compacted
from translation.nginx.servers import ROOT, Location, Server, build_server
from translation.nginx.sources import Source, read_config, sources_of_host
from translation.nginx.streams import add_streams
from translation.nginx.tables.gateway_fields import ROUTE_HOST
from translation.nginx.tables.values import Values, compiles
from translation.plugins.pattern_errors import on_failure

_STEP = 64
"""Distance between the priorities of two locations of a host: a location has fewer branches."""

ALIAS_OPERATOR = "~*"
"""The operator of the condition on the host in routes for a server-alias with a regular expression."""

_APP_ROOT_PRIORITY = 2 * HIGHEST * _STEP
_ALIAS_PRIORITY = 3 * HIGHEST * _STEP
"""Routes for names that match a pattern precede those for every host."""
_LABEL = r"^[A-Za-z0-9_-]+\."


def translate_host(host: str, view: View, options: Options, nginx: NginxOptions) -> Outcome:
    """Return the records of a host; it is not served if no Ingress names it."""
    sources = sources_of_host(view, options, nginx, host)
    server = build_server(host, sources)
    if server is None:
        return NOT_SERVED
    builder = Builder(Meta(KIND, "", host), view, options)
    builder.protect("routes", prefix=names.nginx_prefix(host))
    canaries = canaries_at(builder, nginx, server)
    routes = _Host(builder, nginx, server, canaries).translate()
    for route in compacted(routes) if nginx.compact else routes:
        _record(builder, host, route)
    if host == CATCH_ALL:
        add_streams(builder, nginx)
    return builder.finish()._replace(canaries=canaries)


class _Host:
    """The translation of one host.

    Args:
        builder: Takes the records.
        nginx: The options.
        server: The host.
        canaries: Its canaries.
        pattern: If not empty, only routes for names that match this regular expression are added.
    """

    def __init__(
        self,
        builder: Builder,
        nginx: NginxOptions,
        server: Server,
        canaries: tuple[CustomObject, ...],
        *,
        pattern: str = "",
    ) -> None:
        self._pattern = pattern
        self._builder = builder
        self._nginx = nginx
        self._server = server
        self._by_pattern = uses_patterns(server)
        self._config = read_config(builder.view, nginx)
        self._check = client_check(builder, self._config, server)
        self._proxy_ssl = host_wide(builder, self._config, server.every)
        self._secure = not pattern and is_secure(builder, nginx, server)
        self._aliases = self._find_aliases()
        self._covered = covered_aliases(builder, server, self._aliases)
        self._plain_aliases = self._find_plain_aliases()
        self._named: set[str] = set()
        self._routes: list[Route] = []
        self._services = Services(canaries)

    def translate(self) -> list[Route]:
        """Add the records of the host except its routes, and return these."""
        rejects = self._config.flag("ssl-reject-handshake")
        default = None if rejects else default_certificate(self._builder, self._nginx)
        uncovered = [alias for alias in self._aliases if alias not in self._covered]
        add_certificate(self._builder, self._server, self._covered, self._check, default, uncovered=uncovered)
        self.serve()
        self._www()
        pattern = self._alias_pattern()
        if pattern:
            of_pattern = _Host(self._builder, self._nginx, self._server, self._services.own, pattern=pattern)
            self._routes += of_pattern.serve()
        return self._routes

    def serve(self) -> list[Route]:
        """Return the routes of the host's own names, or of names that match the pattern."""
        locations = list(ranked(self._server))
        bases = places([location for location, _ in locations], exact_first=not self._server.regex)
        for base, (location, match) in zip(bases, locations, strict=True):
            base = base * _STEP if self._by_pattern else 0
            if self._server.host == CATCH_ALL and location.source is None and not self._nginx.default_backend:
                # Without a route the gateway responds with 404, and other classes may have routes for every host.
                continue
            site = self._site(inheriting(location, self._proxy_ssl))
            branches = list(location_branches(site, self._check))
            for rank, branch in zip(range(len(branches), 0, -1), branches, strict=True):
                self._route(_part(location, _place(rank, branch)), match, branch, base + rank)
            if self._server.regex and fails_open(site):
                failed = {**match, "vars": on_failure(location.path, "~*")}
                self._route(_part(location, "error"), failed, Branch(plugins=answer(500)), base)
        if not (self._check and self._check.closed):
            self._app_root()
            self._slashes()
        return self._routes

    def _site(self, location: Location) -> Site:
        return Site(
            self._builder,
            self._nginx,
            self._config,
            self._server,
            location,
            self._secure,
            self._plain_aliases,
            self._services,
        )

    def _find_plain_aliases(self) -> tuple[str, ...]:
        """Return the aliases without a certificate, of a host that has one."""
        if not self._secure:
            return ()
        uncovered = (alias for alias in self._aliases if alias not in self._covered)
        return tuple(each for each in uncovered if not is_under_secure_wildcard(self._builder, self._nginx, each))

    def _route(
        self, part: str, match: JsonObject, branch: Branch, priority: int, *, hosts: Sequence[str] | None = None
    ) -> None:
        """Add a route; `part` names it among those of the host, so that others keep their ids."""
        part += "~" if self._pattern else ""
        while part in self._named:
            part += "-"
        self._named.add(part)
        if self._builder.options.judges_plugins and not all(map(is_on_one_line, _heads(branch))):
            branch = Branch(branch.when, answer(503))
        priority += _ALIAS_PRIORITY if self._pattern else 0
        conditions = [*match.get("vars", ()), *branch.when]
        names_of = tuple(hosts) if hosts is not None else self._hosts()
        conditions += [("host", ALIAS_OPERATOR, self._pattern)] if self._pattern else []
        conditions += _one_label(self._server.host, self._aliases) if names_of and hosts is None else []
        fields: JsonObject = {"hosts": list(names_of)} if names_of else {}
        if branch.upstream:
            fields |= {"upstream_id": branch.upstream, "enable_websocket": True}
        fields |= branch.fields
        self._routes.append(Route(part, tuple(match["uris"]), tuple(conditions), priority, branch.plugins, fields))

    def _hosts(self) -> tuple[str, ...]:
        is_named = self._server.host != CATCH_ALL and not self._pattern
        return (self._server.host, *self._aliases) if is_named else ()

    def _app_root(self) -> None:
        for location in self._server.locations:
            branch = app_root(self._site(location))
            if branch:
                self._before_locations("app-root", ROOT, [branch], _APP_ROOT_PRIORITY)
                return

    def _before_locations(
        self, part: str, path: str, branches: Sequence[Branch], priority: int, *, hosts: Sequence[str] | None = None
    ) -> None:
        """Add routes that respond before a location is looked up, except to the requests that are rejected before."""
        named = () if hosts else wrong_names(self._check)
        every = [*named, *blocked(self._config), *branches]
        for rank, branch in zip(range(len(every), 0, -1), every, strict=True):
            name = part if len(every) == 1 else f"{part}-{_place(rank, branch)}"
            self._route(name, {"uris": [path]}, branch, priority + rank - 1, hosts=hosts)

    def _slashes(self) -> None:
        """Redirect `/foo` to `/foo/` if only the latter is a path, as in nginx."""
        if self._by_pattern:
            return
        exact = {location.path for location in self._server.locations if location.type == "Exact"}
        for location in self._server.locations:
            bare = location.path.rstrip("/")
            asked = location.given.endswith("/") and location.given != ROOT
            if asked and bare not in exact and location.path == location.given:
                exact.add(bare)
                site = self._site(location)
                redirect, custom = Branch(plugins=slash_redirect(site)), response_headers(site)
                if not is_denied(site, custom, authentication(site)):
                    answers = list(with_headers(site, redirect, custom or {}, cors=False))
                    self._before_locations(f"slash-{_part(location, 0)}", bare, answers, _STEP)

    def _www(self) -> None:
        asking = (each.source for each in self._server.locations if each.source and not each.is_default)
        wanted = next((source for source in asking if _redirects_www(source.values)), None)
        host = self._server.host
        if wanted is None or host == CATCH_ALL or host.startswith("*."):
            return
        twin = twin_of(host)
        if self._builder.owners.refusal_of_unnamed(wanted.meta.namespace, twin):
            return
        if sources_of_host(self._builder.view, self._builder.options, self._nginx, twin):
            return
        answers = list(www_redirects(host, self._config))
        self._before_locations("www", "/*", answers, _STEP, hosts=[twin])

    def _with_aliases(self) -> Source | None:
        """Return the Ingress whose server-alias applies to the host."""
        return next((source for source in self._server.sources if source.values.has("server-alias")), None)

    def _alias_pattern(self) -> str:
        """Return the regular expression of further names of the host; empty without one, or if it may not be used.

        Client certificates are only requested by server name, so a host that requires them has no such names.
        """
        first = self._with_aliases()
        if first is None or self._check or self._builder.options.host_ownership != "shared":
            return ""
        given = (part.strip() for part in first.values.text("server-alias").split(","))
        patterns = [part[1:] for part in given if part.startswith("~") and compiles(part[1:])]
        return "|".join(f"(?:{pattern})" for pattern in patterns) if self._server.host != CATCH_ALL else ""

    def _find_aliases(self) -> list[str]:
        """Return the names in the first server-alias of the host, except patterns and hosts of other Ingresses."""
        first = self._with_aliases()
        if first is None:
            return []
        names_of = dict.fromkeys(first.values.text("server-alias").replace(" ", "").lower().split(","))
        return [alias for alias in names_of if self._is_alias(alias, first.meta.namespace)]

    def _is_alias(self, name: str, namespace: str) -> bool:
        if not ROUTE_HOST.fits(name) or name == self._server.host:
            return False
        if self._builder.owners.refusal(namespace, name):
            return False
        return not sources_of_host(self._builder.view, self._builder.options, self._nginx, name)


def _record(builder: Builder, host: str, route: Route) -> None:
    """Add the record of a route."""
    name = names.nginx_name(host, route.part)
    body = builder.new_body("routes", name) | {"priority": route.priority, "uris": list(route.uris)}
    if route.vars:
        body["vars"] = [_listed(condition) for condition in route.vars]
    if route.plugins:
        body["plugins"] = dict(route.plugins)
    builder.record("routes", name, body | route.fields)


def _redirects_www(values: Values) -> bool:
    return values.flag("from-to-www-redirect") and configured(values)


def uses_patterns(server: Server) -> bool:
    """Return whether paths are tried in turn as patterns: regular expressions, or paths with a `*`."""
    return server.regex or any("*" in location.path for location in server.locations)


def _part(location: Location, place: int | str) -> str:
    """Return the part of a record's name for a branch of a location."""
    return f"{names.short_id(f'{location.type} {location.path}')}-{place}"


def _place(rank: int, branch: Branch) -> str:
    """Return the name of a branch among those of its location, by its rank from the last one and its conditions.

    An edit of an annotation then adds and deletes routes, but moves none to other requests: between two writes, a guard
    would be missing. Lists, such as addresses, may change.
    """
    fixed = (str(part) for condition in branch.when for part in condition if not isinstance(part, list))
    return f"{rank}-{names.short_id(' '.join(fixed))}"


def ranked(server: Server) -> Iterator[tuple[Location, JsonObject]]:
    """Yield the locations in the order in which they are tried, each with its matcher."""
    if server.regex:
        yield from _patterns(server.locations)
    elif uses_patterns(server):
        # Exact paths come first, then the longest prefix.
        ordered = sorted(server.locations, key=lambda each: each.type != "Exact")
        for location in ordered:
            escaped = escaped_literal(location.path)
            pattern = f"^{escaped}$" if location.type == "Exact" else f"^{escaped}"
            yield location, {"uris": ["/*"], "vars": [("uri", "~~", pattern)]}
    else:
        for location in server.locations:
            path = location.path
            yield location, {"uris": [path if location.type == "Exact" else f"{path}*"]}


def _patterns(locations: Iterable[Location]) -> Iterator[tuple[Location, JsonObject]]:
    """Yield the locations of a host with regular expressions; if patterns are equal, only the first one."""
    seen: set[str] = set()
    for location in locations:
        if location.path not in seen:
            seen.add(location.path)
            yield location, {"uris": ["/*"], "vars": [("uri", "~*", f"^{location.path}")]}


def _heads(branch: Branch) -> Iterator[object]:
    """Yield the parts of a branch's plugins that become heads of requests and responses."""
    for name, plugin in branch.plugins.items():
        yield plugin.get(FIELD) if name.startswith("serverless-") else plugin


def _one_label(host: str, aliases: Sequence[str]) -> list[Sequence[object]]:
    """Return the condition that a wildcard matches exactly one label, unless the request is for an alias."""
    if not host.startswith("*."):
        return []
    one_label = ("host", "~~", f"{_LABEL}{escaped_literal(host[2:])}$")
    if not aliases:
        return [one_label]
    names_of = (escaped_literal(alias).replace(r"\*", ".+", 1) for alias in aliases)
    return [("OR", one_label, ("host", "~~", f"^({'|'.join(names_of)})$"))]


def _listed(condition: object) -> object:
    return [_listed(each) for each in condition] if isinstance(condition, tuple | list) else condition

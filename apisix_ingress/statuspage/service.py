"""The status page as a part of the HTTP server: URLs, parameters, and views.

==========================  ===========================================================================
/status                     the overview: headline, totals, gateway clusters, latest changes
/status/problems            everything that needs attention; `q`, `severity`, `page`
/status/hosts               hosts with their state, owners and certificate; `q`, `state`, `sort`, `page`
/status/records             hosts, paths, objects, upstreams; `kind`, `q`, `state`, `page`
/status/record              one record: references, states, body; `kind`, `id`
/status/object              one object: problems, records; `kind`, `namespace`, `name`
/status/certificates        certificates, the first to expire first; `q`, `page`
/status/changes             changes of the last hour; `q`, `page`
/status/gateway-api         listeners and routes of the Gateway API; `q`, `page`
/status/conflicts           which object wins, and which ones lose
/status/explain which route handles a request
/status/search              all of this; `q`
/status/api/…               the same as JSON, under the same names, `overview` and, for records, `routes`
/status/api/status          the document of the command `status`; `namespace`, `kind`, `all`
/status/events              server-sent events
/, /status/                 redirect to /status
==========================  ===========================================================================
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import orjson
from aiohttp import hdrs, web

from apisix_ingress.diagnostics.reports.references import with_references
from apisix_ingress.diagnostics.reports.status import Filter
from apisix_ingress.errors import UsageError
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RECORD_KINDS, ObjectKey, RecordKey
from apisix_ingress.model.states import SEVERITIES
from apisix_ingress.statuspage.access import REFUSAL, Audience, is_local, tagged
from apisix_ingress.statuspage.conflicting_objects import conflicts
from apisix_ingress.statuspage.explain_form import Busy, Explainer, Question
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.lazy_page import mount
from apisix_ingress.statuspage.live_updates import LiveUpdates
from apisix_ingress.statuspage.record_masking import redacted
from apisix_ingress.statuspage.render import ASSETS, asset, render, texts_of
from apisix_ingress.statuspage.snapshot import Snapshot, SnapshotCache
from apisix_ingress.statuspage.views.certificates import certificates
from apisix_ingress.statuspage.views.changes import changes
from apisix_ingress.statuspage.views.details.object_details import thing
from apisix_ingress.statuspage.views.details.record_details import add_bodies, record
from apisix_ingress.statuspage.views.gateway_api import gateway_api
from apisix_ingress.statuspage.views.headline import navigation
from apisix_ingress.statuspage.views.hosts import FILTERS as HOST_FILTERS
from apisix_ingress.statuspage.views.hosts import SORTS, hosts
from apisix_ingress.statuspage.views.overview import overview, replica
from apisix_ingress.statuspage.views.problems import problems
from apisix_ingress.statuspage.views.records import FILTERS, is_kind, records, states
from apisix_ingress.statuspage.views.search import search
from apisix_ingress.statuspage.views.status_report import status_report

NO_URL = "add the URL: /status/api/explain?url=https://host/path"

LONGEST_QUERY = 200
"""Maximum length of a search, in characters."""

JSON = "application/json; charset=utf-8"
HTML = "text/html; charset=utf-8"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
View = Callable[[web.Request, Snapshot], Awaitable[JsonObject]]


class StatusPage:
    """Serves the page; read-only.

    Args:
        facts: The inputs.
        audience: local: clients on loopback; everyone: clients that can reach the port.
    """

    def __init__(self, facts: PageInputs, audience: Audience) -> None:
        self._facts = facts
        self._audience = audience
        self._keeper = SnapshotCache(facts)
        self._live = LiveUpdates(facts)
        self._explainer = Explainer()
        self._handlers = dict(self._addresses())

    def install(self, app: web.Application) -> None:
        """Add the routes, for GET and HEAD only."""
        mount(app, self.serve, self.close)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        if self._audience == "local" and not is_local(request):
            return web.Response(status=403, text=REFUSAL)
        handler = self._handlers.get(request.path)
        if handler is None:
            raise web.HTTPNotFound
        return await handler(request)

    async def close(self, _app: web.Application) -> None:
        """End the streams of live updates."""
        self._live.close()
        self._keeper.close()

    def _addresses(self) -> Iterator[tuple[str, Handler]]:
        """Yield each path with what answers it."""
        pages: dict[str, View] = {
            "overview": self._overview,
            "problems": self._problems,
            "hosts": self._hosts,
            "records": self._records,
            "record": self._record,
            "object": self._object,
            "certificates": self._certificates,
            "changes": self._changes,
            "gateway-api": self._gateway_api,
            "conflicts": self._conflicts,
            "explain": self._explain,
            "search": self._search,
        }
        for name, view in pages.items():
            yield "/status" if name == "overview" else f"/status/{name}", self._html(name, view)
            yield f"/status/api/{name}", self._json(name, view)
        yield "/status/api/routes", self._json("records", self._records)
        yield "/status/api/status", self._json("status", self._status)
        yield "/status/events", self._live.serve
        yield from ((f"/status/assets/{name}", _asset(name)) for name in ASSETS)
        yield from ((path, _to_overview) for path in ("/", "/status/"))

    def _html(self, name: str, view: View) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            data, snapshot, status = await self._look(view, request)
            shown = {
                "page": name,
                "search": request.query.get("q", "")[:LONGEST_QUERY] if name == "search" else "",
                "replica": replica(self._facts),
                "navigation": navigation(self._facts, snapshot),
                "now": self._facts.clock.now(),
                "revision": snapshot.revision,
                "kinds": RECORD_KINDS,
            }
            template = "error.html" if "error" in data and name != "explain" else f"{name}.html"
            # In a thread: the first page compiles its templates, and a long one takes some 10 ms.
            body = await asyncio.to_thread(render, template, data=data, **shown)
            return tagged(request, body, HTML, status)

        return handle

    def _json(self, name: str, view: View) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            data, _, status = await self._look(view, request)
            if name == "explain":
                data = with_references(data.get("document")) or {"error": data["error"] or NO_URL}
            data = {"replica": replica(self._facts), **data}
            if name == "record" and status == 200:
                texts, data = data["texts"], {key: value for key, value in data.items() if key != "texts"}
                if request.query.get("format") == "yaml":
                    return _yaml(request, texts["yaml"])
            return tagged(request, orjson.dumps(data, option=orjson.OPT_INDENT_2), JSON, status)

        return handle

    async def _look(self, view: View, request: web.Request) -> tuple[JsonObject, Snapshot, int]:
        """Return the response of a view, or an error."""
        snapshot = await self._keeper.latest()
        try:
            data = await view(request, snapshot)
            return data, snapshot, data.get("status_code", 200)
        except UsageError as error:
            return {"error": redacted(str(error))}, snapshot, 400
        except LookupError as error:
            return {"error": redacted(str(error.args[0]))}, snapshot, 404

    async def _overview(self, _request: web.Request, snapshot: Snapshot) -> JsonObject:
        return overview(self._facts, snapshot)

    async def _problems(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        severity = _choice(request, "severity", SEVERITIES)
        return await problems(self._facts, snapshot, _search(request), severity, _page(request))

    async def _hosts(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        state = _choice(request, "state", HOST_FILTERS)
        sort = _choice(request, "sort", tuple(SORTS))
        return await hosts(self._facts, snapshot, _search(request), state, _page(request), sort=sort)

    async def _records(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        kind, state = request.query.get("kind") or "routes", _choice(request, "state", FILTERS)
        if not is_kind(kind):
            raise UsageError(f"unknown kind {kind!r}; use one of {', '.join(sorted(RECORD_KINDS))}")
        found = await records(self._facts, snapshot, kind, _search(request), state, _page(request))
        if request.query.get("body") == "yes":
            await add_bodies(self._facts, snapshot, found["items"])
        return found

    async def _record(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        kind: Any = request.query.get("kind", "")
        key = RecordKey(kind, request.query.get("id", ""))
        if (found := await record(self._facts, snapshot, key)) is None:
            raise LookupError(f"unknown record {key}")
        return {**found, "texts": await asyncio.to_thread(texts_of, found["body"])}

    async def _object(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        key = ObjectKey(*(request.query.get(name, "") for name in ("kind", "namespace", "name")))
        if (found := thing(self._facts, snapshot, key)) is None:
            raise LookupError(f"{key} does not exist, is not served, or has no records")
        return found

    async def _certificates(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        return await certificates(self._facts, snapshot, _search(request), _page(request))

    async def _changes(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        return changes(self._facts, snapshot, _search(request), _page(request))

    async def _gateway_api(self, request: web.Request, _snapshot: Snapshot) -> JsonObject:
        return await gateway_api(self._facts, _search(request), _page(request))

    async def _search(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        return await search(self._facts, snapshot, _search(request))

    async def _conflicts(self, _request: web.Request, snapshot: Snapshot) -> JsonObject:
        return await conflicts(self._facts, snapshot)

    async def _explain(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        question, clusters = Question.of(request.query), [cluster.name for cluster in self._facts.clusters]
        shown: JsonObject = {"question": question, "clusters": clusters, "error": "", "document": None}
        if not question.url:
            return shown
        try:
            if question.cluster not in ("", *clusters):
                raise UsageError(f"unknown gateway cluster {question.cluster!r}")
            asked = [question.cluster] if question.cluster else clusters
            document = await self._explainer.answer(question, self._facts, snapshot, asked)
        except (UsageError, Busy) as error:
            return {**shown, "error": redacted(str(error)), "status_code": 503 if isinstance(error, Busy) else 400}
        found = states(snapshot, RecordKey("routes", document["route"]["id"])) if document["route"] else []
        compared = any(
            each.taken_over for each in self._facts.clusters if each.name == (question.cluster or clusters[0])
        )
        return {**shown, "document": redacted(document), "states": found, "compared": compared}

    async def _status(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        kinds = frozenset(request.query.getall("kind", []))
        only = Filter(request.query.get("namespace", ""), kinds, healthy=request.query.get("all") == "yes")
        return await status_report(self._facts, snapshot, only)


def _asset(name: str) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        return tagged(request, asset(name), ASSETS[name])

    return handle


def _yaml(request: web.Request, text: str) -> web.Response:
    if not text:
        return web.Response(status=413, text="the body is too large for YAML; remove format to get JSON\n")
    return tagged(request, text.encode(), "text/plain; charset=utf-8")


async def _to_overview(_request: web.Request) -> web.StreamResponse:
    return web.Response(status=302, headers={hdrs.LOCATION: "/status"})


def _choice(request: web.Request, name: str, choices: Sequence[str]) -> str:
    """Return a parameter that is empty or one of a few words."""
    value = request.query.get(name, "")
    if value and value not in choices:
        raise UsageError(f"unknown {name} {value!r}; use one of {', '.join(choices)}")
    return value


def _search(request: web.Request) -> str:
    query = request.query.get("q", "").strip()
    if len(query) > LONGEST_QUERY:
        raise UsageError(f"the search is too long: the limit is {LONGEST_QUERY} characters")
    return query


def _page(request: web.Request) -> int:
    text = request.query.get("page") or "1"
    if not (text.isascii() and text.isdecimal() and len(text) <= 6 and int(text) > 0):
        raise UsageError(f"invalid page {text!r}; use a number of at least 1")
    return int(text)

"""The status page as a part of the HTTP server: URLs, parameters, and views.

==========================  ===========================================================================
/status                     gateway clusters, rejected records, drift, watches
/status/records             hosts, paths, objects, upstreams; `kind`, `q`, `state`, `page`
/status/record              one record: references, states, body; `kind`, `id`
/status/object              one object: problems, records; `kind`, `namespace`, `name`
/status/problems            mistakes in objects; `q`, `page`
/status/conflicts           which object wins, and which are behind it
/status/explain             which route answers a request
/status/api/…               the same as JSON, under the same names, `overview` and, for records, `routes`
/status/api/status          the document of the command `status`; `namespace`, `kind`, `all`
/status/events              server-sent events
==========================  ===========================================================================
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from apisix_ingress.diagnostics.reports.references import with_references
from apisix_ingress.diagnostics.reports.status import Filter
from apisix_ingress.errors import UsageError
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RECORD_KINDS, ObjectKey, RecordKey
from apisix_ingress.statuspage import views
from apisix_ingress.statuspage.access import REFUSAL, Audience, is_local, protect, tagged
from apisix_ingress.statuspage.conflicting_objects import conflicts
from apisix_ingress.statuspage.explain_form import Busy, Explainer, Question
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.live_updates import LiveUpdates
from apisix_ingress.statuspage.record_masking import redacted
from apisix_ingress.statuspage.render import ASSETS, asset, render, texts_of
from apisix_ingress.statuspage.snapshot import Snapshot, SnapshotCache
from apisix_ingress.statuspage.status_report import status_report

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

    def install(self, app: web.Application) -> None:
        """Add the routes, for GET and HEAD only."""
        pages: dict[str, View] = {
            "overview": self._overview,
            "records": self._records,
            "record": self._record,
            "object": self._object,
            "problems": self._problems,
            "conflicts": self._conflicts,
            "explain": self._explain,
        }
        for name, view in pages.items():
            self._add(app, "/status" if name == "overview" else f"/status/{name}", self._html(name, view))
            self._add(app, f"/status/api/{name}", self._json(name, view))
        self._add(app, "/status/api/routes", self._json("records", self._records))
        self._add(app, "/status/api/status", self._json("status", self._status))
        self._add(app, "/status/events", self._live.serve)
        self._add(app, "/status/assets/{name}", self._asset)
        app.on_response_prepare.append(protect)
        app.on_shutdown.append(self._shut_down)

    async def _shut_down(self, _app: web.Application) -> None:
        self._live.close()
        self._keeper.close()

    def _add(self, app: web.Application, path: str, handler: Handler) -> None:
        async def guarded(request: web.Request) -> web.StreamResponse:
            if self._audience == "local" and not is_local(request):
                return web.Response(status=403, text=REFUSAL)
            return await handler(request)

        app.router.add_get(path, guarded)

    def _html(self, name: str, view: View) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            data, snapshot, status = await self._look(view, request)
            replica = views.replica(self._facts)
            shown = {"page": name, "replica": replica, "revision": snapshot.revision, "kinds": RECORD_KINDS}
            template = "error.html" if "error" in data and name != "explain" else f"{name}.html"
            return tagged(request, render(template, data=data, **shown), HTML, status)

        return handle

    def _json(self, name: str, view: View) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            data, _, status = await self._look(view, request)
            if name == "explain":
                data = with_references(data.get("document")) or {"error": data["error"] or NO_URL}
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
        return views.overview(self._facts, snapshot)

    async def _records(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        kind, state = request.query.get("kind") or "routes", request.query.get("state", "")
        if not views.is_kind(kind):
            raise UsageError(f"unknown kind {kind!r}; use one of {', '.join(sorted(RECORD_KINDS))}")
        if state and state not in (*views.STATES, "unsettled"):
            raise UsageError(f"unknown state {state!r}; use one of unsettled, {', '.join(views.STATES)}")
        found = await views.records(self._facts, snapshot, kind, _search(request), state, _page(request))
        if request.query.get("body") == "yes":
            await views.add_bodies(self._facts, snapshot, found["items"])
        return found

    async def _record(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        kind: Any = request.query.get("kind", "")
        key = RecordKey(kind, request.query.get("id", ""))
        if (found := await views.record(self._facts, snapshot, key)) is None:
            raise LookupError(f"unknown record {key}")
        return {**found, "texts": await asyncio.to_thread(texts_of, found["body"])}

    async def _object(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        key = ObjectKey(*(request.query.get(name, "") for name in ("kind", "namespace", "name")))
        if (found := views.thing(self._facts, snapshot, key)) is None:
            raise LookupError(f"{key} does not exist, is not served, or has no records")
        return found

    async def _problems(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        return await views.problems(snapshot, _search(request), _page(request))

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
            document = await self._explainer.answer(question, self._facts, snapshot, question.cluster or clusters[0])
        except (UsageError, Busy) as error:
            return {**shown, "error": redacted(str(error)), "status_code": 503 if isinstance(error, Busy) else 400}
        states = views.states(snapshot, RecordKey("routes", document["route"]["id"])) if document["route"] else []
        compared = any(
            each.taken_over for each in self._facts.clusters if each.name == (question.cluster or clusters[0])
        )
        return {**shown, "document": redacted(document), "states": states, "compared": compared}

    async def _status(self, request: web.Request, snapshot: Snapshot) -> JsonObject:
        kinds = frozenset(request.query.getall("kind", []))
        only = Filter(request.query.get("namespace", ""), kinds, healthy=request.query.get("all") == "yes")
        return await status_report(self._facts, snapshot, only)

    async def _asset(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in ASSETS:
            raise web.HTTPNotFound
        return tagged(request, asset(name), ASSETS[name])


def _yaml(request: web.Request, text: str) -> web.Response:
    if not text:
        return web.Response(status=413, text="the body is too large for YAML; remove format to get JSON\n")
    return tagged(request, text.encode(), "text/plain; charset=utf-8")


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

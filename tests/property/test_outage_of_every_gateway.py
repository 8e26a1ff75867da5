"""With every gateway down, nothing is green: no host, route, record or certificate is called live, valid or applied."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apisix_ingress.diagnostics.reports.status import Filter
from apisix_ingress.gateway.sync.observer import APPLIED, PENDING, Outage, RecordState
from apisix_ingress.model.states import HEALTHY_HOSTS
from apisix_ingress.statuspage.explain_form import Explainer, Question
from apisix_ingress.statuspage.snapshot import Snapshot, gather
from apisix_ingress.statuspage.views.headline import headline, tiles
from apisix_ingress.statuspage.views.problems import all_findings
from apisix_ingress.statuspage.views.status_report import status_report
from tests.unit.apisix_ingress.statuspage.harness import PageHarness, ScriptedCluster, make_harness
from tests.unit.translation.objects import make, rule, service, slice_of

DOWN = Outage("unreachable", "10.0.0.9:9180: Connection refused", datetime(2026, 11, 22, 8, tzinfo=UTC))
STATES = (
    APPLIED,
    PENDING,
    RecordState("unknown", "not compared"),
    RecordState("waiting", "for another record"),
    RecordState("rejected", "unknown plugin"),
    RecordState("rejected", "unknown plugin", is_closed=True),
    RecordState("unreachable", "no response", is_away=True),
)
HOSTS = ("a.example.org", "b.example.org", "*.example.org")
REDIRECT = [{"name": "redirect", "enable": True, "config": {"uri": "/there"}}]


@st.composite
def routes(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from("stuvwxyz"))
    match = {"hosts": [draw(st.sampled_from(HOSTS))], "paths": [draw(st.sampled_from(("/a", "/*")))]}
    backend = draw(st.sampled_from(("web", "idle", "gone")))
    plugins = draw(st.sampled_from(([], REDIRECT)))
    fields: dict[str, Any] = {"backends": [{"serviceName": backend, "servicePort": 80}], "plugins": plugins}
    return make("ApisixRoute", name, spec={"http": [rule(match=match, **fields)]})


@st.composite
def outages(draw: st.DrawFn) -> PageHarness:
    """Return the page of a leader whose gateways are all down, whatever it knew about them before."""
    clusters = [
        ScriptedCluster(name, taken_over=draw(st.booleans()), outage=DOWN)
        for name in draw(st.sampled_from((("one",), ("one", "two"))))
    ]
    found = draw(st.lists(routes(), max_size=5, unique_by=lambda item: item["metadata"]["name"]))
    consumer = make("ApisixConsumer", "jack", spec={"authParameter": {"keyAuth": {"value": {"key": "k"}}}})
    objects = (service(), service("idle"), slice_of([{"addresses": ["10.0.0.7"]}]), consumer, *found)
    harness = make_harness(*objects, clusters=clusters)
    for cluster in clusters:
        cluster.states = {key: draw(st.sampled_from(STATES)) for key in sorted(harness.world.desired.keys())}
    return harness


@given(outages())
def test_nothing_is_green_while_every_gateway_is_down(harness: PageHarness) -> None:
    asyncio.run(_check(harness))


async def _check(harness: PageHarness) -> None:
    facts = harness.facts
    found: Snapshot = await gather(facts)
    assert not [each.name for each in found.summary.hosts if each.status in HEALTHY_HOSTS - {"not used"}]
    assert not [key for key, entry in found.entries.items() if entry.status == "applied"]
    assert not [tile for tile in tiles(facts, found) if tile["good"]]
    assert headline(facts, found, all_findings(facts, found))["tone"] == "bad"
    report = await status_report(facts, found, Filter(healthy=True))
    assert not report["healthy"]
    assert not [each for each in report["clusters"] if each["in_sync"] or each["reachable"]]
    names = [each.name for each in facts.clusters]
    for host in ("a.example.org", "x.example.org"):
        document = await Explainer().answer(Question(f"{host}/a"), facts, found, names)
        answers = (document["answer"], *document["elsewhere"])
        assert all(each["unverified"] and each["summary"].startswith("unknown") for each in answers)

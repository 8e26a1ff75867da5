"""Stories about API server faults, simulated by a proxy in front of the real one: nothing is lost or deleted.

All share one setup. Each begins and ends with a gateway in sync; measurements are recorded.
"""

import itertools
import re
from collections.abc import Iterator

import pytest

from e2e.cluster.client import wait_until
from e2e.controller import Controller
from e2e.faults.figures import note
from e2e.faults.stand import BASE, ROUTES, WATCHES, ApiStand, in_order
from e2e.story import route

LISTS = {"verb": "list", "resource": ROUTES}
SILENCE = 20.0
"""Seconds within which a silent watch is detected."""
STALL = {"match": WATCHES, "action": "stall"}


@pytest.fixture(scope="module")
def own(made: ApiStand) -> Iterator[Controller]:
    """The controller; it lists in one page and audits often, so that drift is detected."""
    with made.controller(made.proxy.kubeconfig, sync={"audit_interval": "2s"}) as started:
        made.until_right()
        yield started


@pytest.fixture
def scene(made: ApiStand, own: Controller) -> Iterator[ApiStand]:
    """The setup with everything in sync, which is restored at the end."""
    with in_order(made, own):
        yield made
    assert own.process.pid is not None


def hide_changes(scene: ApiStand) -> None:
    """Silence the watch of routes, and change routes meanwhile."""
    played = scene.faults("stall")
    scene.proxy.play(STALL)
    scene.until_played("stall", played + 1)
    scene.change()


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        ([{"match": WATCHES, "action": "gone", "times": 1}], 1),
        (
            [
                {"match": WATCHES, "action": "end", "times": 1},
                {"match": WATCHES, "action": "status", "status": 410, "times": 1},
            ],
            1,
        ),
        (
            [
                {"match": WATCHES, "action": "gone", "times": 1},
                {"match": WATCHES, "action": "status", "status": 410, "times": 1},
            ],
            2,
        ),
    ],
    ids=["event", "status", "twice in a row"],
)
def test_a_410_causes_one_list_which_finds_deletions(
    scene: ApiStand, rules: list[dict[str, object]], want: int
) -> None:
    hide_changes(scene)
    before, writes = len(scene.asked("list")), scene.writes()
    scene.proxy.play(*rules)
    note("F-3", caught_up_s=scene.until_right())
    wait_until(lambda: len(scene.asked("list", after=before)), lambda got: got >= want, f"{want} lists")
    scene.change()
    scene.until_right()
    assert len(scene.asked("list", after=before)) == want
    assert scene.overlapping() == []
    assert scene.wrong_deletes(writes) == []


@pytest.mark.parametrize(
    "rule",
    [
        {"action": "cut"},
        {"action": "inject", "line": "<html>bad gateway</html>"},
        {"action": "inject", "line": '{"type":"NEWS","object":{}}'},
        {"action": "end"},
    ],
    ids=["cut inside a line", "no JSON", "unknown event", "end"],
)
def test_a_broken_watch_resumes_without_a_list(scene: ApiStand, rule: dict[str, object]) -> None:
    hide_changes(scene)
    before = len(scene.asked("list"))
    scene.proxy.play({"match": WATCHES, "times": 1, **rule})
    note("F-6", caught_up_s=scene.until_right())
    assert scene.asked("list", after=before) == []


def test_connections_closed_after_each_response_are_harmless(scene: ApiStand, own: Controller) -> None:
    lists, terms = len(scene.asked("list")), len(own.events("term.started"))
    scene.proxy.play({"action": "close"}, {"match": WATCHES, "action": "end", "after": 1})
    for _ in range(2):
        scene.change()
        scene.until_right()
    assert scene.asked("list", after=lists) == []
    assert len(own.events("term.started")) == terms


@pytest.mark.parametrize("action", ["drop_bookmarks", "repeat"])
def test_lost_bookmarks_and_repeated_events_have_no_effect(scene: ApiStand, action: str) -> None:
    before, lists = scene.writes(), len(scene.asked("list"))
    scene.proxy.play({"match": {"verb": "watch"}, "action": action})
    for _ in range(3):
        scene.change()
        scene.until_right()
        scene.until_said(BASE[0])
    # Each call adds two routes, changes two, and deletes two; at the first call, there may be none to delete.
    assert 12 <= scene.writes() - before <= 18
    assert scene.asked("list", after=lists) == []


def test_silent_watches_are_reopened_within_20_seconds_without_a_list(scene: ApiStand) -> None:
    """With the default settings; a query selects the watches that are open now: later watches have no fault."""
    lists, stalled = len(scene.asked("list")), scene.faults("stall")
    open_now = {line["query"] for line in scene.asked("watch")}
    scene.proxy.play({"match": {**WATCHES, "query": "|".join(map(re.escape, open_now))}, "action": "stall"})
    scene.until_played("stall", stalled + 1)
    scene.change()
    took = scene.until_right(2 * SILENCE)
    note("F-4", until_served_s=round(took, 1))
    assert scene.asked("list", after=lists) == []


def test_throttled_watches_honour_retry_after_and_do_not_list(scene: ApiStand) -> None:
    hide_changes(scene)
    lists, watches = len(scene.asked("list")), len(scene.asked("watch"))
    scene.proxy.play(
        {"match": WATCHES, "action": "end", "times": 1},
        {"match": WATCHES, "action": "status", "status": 429, "retry_after": 1, "times": 3},
    )
    note("F-7", caught_up_s=scene.until_right())
    refused = [line["monotonic"] for line in scene.asked("watch", after=watches)]
    assert len(refused) == 4
    assert all(later - earlier >= 1.0 for earlier, later in itertools.pairwise(refused))
    assert scene.asked("list", after=lists) == []


@pytest.mark.parametrize("keep", [0, 5], ids=["empty", "partial"])
def test_a_list_that_lacks_most_objects_deletes_none(scene: ApiStand, own: Controller, keep: int) -> None:
    writes, held = scene.writes(), len(own.events("relist.deletes_held_back"))
    scene.proxy.play(
        {"match": WATCHES, "action": "gone", "times": 1},
        {"match": LISTS, "action": "shorten", "keep": keep, "times": 1},
    )
    wait_until(lambda: own.metric("apisix_ingress_controller_deletes_held", kind="ApisixRoute"), bool, "the metric")
    line = own.events("relist.deletes_held_back")[held]
    # Namespaces of other stories may be terminating, with their routes.
    assert line["kind"] == "ApisixRoute"
    assert line["missing"] >= len(scene.want) - keep
    assert "relisting" in line["remedy"]
    assert scene.traffic.send(scene.host, scene.want[BASE[-1]]).status == 200
    gone = wait_until(
        lambda: own.metric("apisix_ingress_controller_deletes_held", kind="ApisixRoute"),
        lambda got: got == 0,
        "its end",
    )
    note("F-8", deletes=len(scene.wrong_deletes(writes)))
    assert (gone, scene.wrong_deletes(writes)) == (0, [])


def test_an_empty_list_of_a_few_objects_removes_no_backend(scene: ApiStand, own: Controller) -> None:
    slices = {"resource": "endpointslices"}
    before = len(scene.asked("list", "endpointslices"))
    writes = scene.writes()
    scene.proxy.play(
        {"match": {"verb": "watch", **slices}, "action": "gone", "times": 1},
        {"match": {"verb": "list", **slices}, "action": "shorten", "times": 1},
    )
    wait_until(lambda: len(scene.asked("list", "endpointslices", after=before)), lambda got: got == 2, "two lists")
    scene.change()
    scene.until_right()
    assert [write["path"] for write in scene.gateway.write_log(writes) if "/upstreams" in write["path"]] == []
    assert len(own.events("relist.deletes_held_back")) > 0


def test_conflicts_of_status_writes_cause_no_hot_loop(scene: ApiStand) -> None:
    # Changes of an earlier story may be reported with a delay after they reached the gateway.
    scene.until_said(BASE[0])
    before = len(scene.asked("patch"))
    scene.proxy.play({"match": {"verb": "patch", "name": BASE[0]}, "action": "status", "status": 409, "times": 3})
    scene.put(BASE[0], version="conflict")
    scene.until_said(BASE[0])
    scene.until_right()
    asked = len([line for line in scene.asked("patch", after=before) if line["name"] == BASE[0]])
    note("F-23", status_writes=asked)
    assert asked == 4


def test_an_object_of_1400_kilobytes_arrives_by_watch_and_by_list(scene: ApiStand) -> None:
    text = "x" * 1_400_000
    large = route(scene.host, name="large", path="/large", plugins={"response-rewrite": {"body": text}})
    scene.api.apply(large, namespace=scene.namespace)
    scene.traffic.until(lambda answer: answer.text == text, scene.host, "/large")
    scene.want["large"] = "/large"
    scene.proxy.play({"match": WATCHES, "action": "gone", "times": 1})
    scene.change()
    scene.until_right()
    scene.drop("large")

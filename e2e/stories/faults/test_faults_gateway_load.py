"""Stories about load on one gateway: deleted namespaces, bursts, flapping objects, all pods of a Service deleted.

A proxy in front of the gateway records the order and the number of writes.
"""

import threading
import time
from contextlib import ExitStack

from e2e.cluster.client import wait_until
from e2e.conftest import OWN
from e2e.everything import count
from e2e.faults import checks
from e2e.faults.figures import note, spread
from e2e.faults.proxies.admin_proxy import AdminProxy
from e2e.faults.world import slice_of
from e2e.story import Stage, route, says
from e2e.traffic import RequestLoop

GONE = 120
BURST = 100
FLAPS = 120
NETWORK = "10.250.0"


def bare_service(stage: Stage, name: str, *, namespace: str = "", **spec: object) -> None:
    """Create a Service without a selector; the story writes its EndpointSlices."""
    where = namespace or stage.namespace
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    meta = {"name": name, "namespace": where}
    stage.api.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports, **spec}})


def nodes(stage: Stage, service: str) -> dict[str, int]:
    """Return address → weight of the nodes of a Service's upstream; {} if it does not exist."""
    name = f"{stage.namespace}_{service}_80"
    found = next((each for each in stage.gateway.records("upstreams").values() if each["name"] == name), {})
    return {node["host"]: node["weight"] for node in found.get("nodes") or []}


def test_deleting_a_large_namespace_does_not_delay_others(stage: Stage, proxy: AdminProxy) -> None:
    own = stage.start({"default": proxy})
    stage.serve()
    stage.apply(route(stage.host, path="/0"))
    with ExitStack() as stack:
        label = OWN | {"e2e-story": stage.mark}
        doomed = stack.enter_context(stage.api.namespace("doomed", labels=label))
        for number in range(10):
            bare_service(stage, f"s{number}", namespace=doomed)
        for number in range(GONE):
            item = route(f"{doomed}.example.org", name=f"r{number}", service=f"s{number % 10}", path=f"/{number}")
            stage.api.apply(item, namespace=doomed)
        wait_until(lambda: count(stage.gateway, "routes"), lambda got: got == GONE + 1, "every route")
        before, calm = len(proxy.entries()), _change(stage, "/calm")
        began = time.monotonic()
        stage.api.delete("Namespace", doomed)
        busy = [_change(stage, f"/busy/{number}") for number in range(3)]
        wait_until(lambda: count(stage.gateway, "routes"), lambda got: got == 1, "its routes to be gone")
        wait_until(lambda: count(stage.gateway, "upstreams"), lambda got: got == 1, "its upstreams to be gone")
        took = time.monotonic() - began
    journal = proxy.entries(before)
    assert checks.dangling(journal) == checks.forced(journal) == []
    assert len([entry for entry in journal if entry.method == "DELETE"]) == GONE + 10
    assert own.events("deletes.held_back") == []
    note("F-20", routes=GONE, gone_s=round(took, 2), other_calm_s=round(calm, 3), other_meanwhile_s=spread(busy))


def _change(stage: Stage, path: str) -> float:
    """Change the route to another path; return the seconds until requests match there."""
    began = time.monotonic()
    stage.apply(route(stage.host, path=path))
    stage.traffic.until_status(200, stage.host, path)
    return time.monotonic() - began


def test_an_endpoint_change_overtakes_a_burst_of_writes_to_a_slow_gateway(stage: Stage, proxy: AdminProxy) -> None:
    stage.start({"default": proxy})
    bare_service(stage, "web")
    stage.apply(slice_of("web", {f"{NETWORK}.1": {"ready": True}}))
    stage.apply(route(stage.host))
    wait_until(lambda: nodes(stage, "web"), lambda got: got == {f"{NETWORK}.1": 100}, "the first address")
    for number in range(BURST):
        stage.apply(route(stage.host, name=f"web-{number}", path=f"/old/{number}"))
    wait_until(lambda: count(stage.gateway, "routes"), lambda got: got == BURST + 1, "every route")
    # Slower than routes are edited, so that a queue builds up.
    proxy.play({"match": {"method": "PUT"}, "action": "delay", "seconds": 3.0})
    before = len(proxy.entries())
    began = time.monotonic()
    for number in range(BURST):
        stage.apply(route(stage.host, name=f"web-{number}", path=f"/new/{number}"))
    stage.apply(slice_of("web", {f"{NETWORK}.2": {"ready": True}}))
    changed = time.monotonic()
    wait_until(lambda: nodes(stage, "web"), lambda got: got == {f"{NETWORK}.2": 100}, "the second address")
    proxy.play()
    wait_until(
        lambda: [each["uris"][0] for each in stage.gateway.records("routes").values()],
        lambda got: not any(path.startswith("/old") for path in got),
        "every route to be edited",
    )
    writes = sorted(proxy.writes(before), key=lambda entry: entry.received)
    place = next(number for number, entry in enumerate(writes) if entry.record.startswith("upstreams/"))
    # Only the writes that were already in flight precede it.
    in_front = [entry for entry in writes[:place] if entry.received > changed]
    assert len(in_front) <= 16
    assert place < len(writes) - 1, "there was nothing to overtake"
    assert len(writes) == BURST + 1
    waited = writes[place].answered - changed
    note("F-21", burst=BURST, apply_s=round(changed - began, 2), endpoint_change_s=round(waited, 2), place=place)


def test_a_flapping_object_causes_two_writes_per_second_and_its_last_state_wins(
    stage: Stage, proxy: AdminProxy
) -> None:
    stage.start({"default": proxy})
    bare_service(stage, "web")
    stage.apply(slice_of("web", {f"{NETWORK}.250": {"ready": True}}))
    stage.apply(route(stage.host))
    wait_until(lambda: nodes(stage, "web"), lambda got: got == {f"{NETWORK}.250": 100}, "the address")
    stage.wait_route(says("True"), "to be synced")
    before = len(proxy.entries())
    began = time.monotonic()
    ticker = threading.Event()
    for number in range(1, FLAPS + 1):
        stage.apply(slice_of("web", {f"{NETWORK}.{number}": {"ready": True}}))
        ticker.wait(max(0.0, began + number * 0.02 - time.monotonic()))
    took = time.monotonic() - began
    last = {f"{NETWORK}.{FLAPS}": 100}
    wait_until(lambda: nodes(stage, "web"), lambda got: got == last, "the last address")
    writes = proxy.writes(before)
    assert {entry.record.partition("/")[0] for entry in writes} == {"upstreams"}
    # A burst of four, then two per second, and one for the last state.
    span = max(entry.received for entry in writes) - began
    assert len(writes) <= 4 + 2 * span + 1
    note("F-22", changes=FLAPS, seconds=round(took, 2), changes_per_s=round(FLAPS / took), writes=len(writes))


READY: dict[str, bool] = {"ready": True, "serving": True, "terminating": False}
STARTING: dict[str, bool] = {"ready": False, "serving": False, "terminating": False}
LEAVING: dict[str, bool] = {"ready": False, "serving": True, "terminating": True}
LEFT: dict[str, bool] = {"ready": False, "serving": False, "terminating": True}


def test_endpoints_serve_while_all_of_them_terminate(stage: Stage, proxy: AdminProxy) -> None:
    stage.start({"default": proxy})
    one, two, new = (stage.pods.create(name).address for name in ("one", "two", "new"))
    bare_service(stage, "web")
    bare_service(stage, "early", publishNotReadyAddresses=True)

    def become(**conditions: dict[str, bool]) -> None:
        addresses = {"one": one, "two": two, "new": new}
        named = {addresses[name]: each for name, each in conditions.items()}
        for service in ("web", "early"):
            stage.apply(slice_of(service, named, port=80))

    def wait_nodes(service: str, *addresses: str) -> None:
        want = dict.fromkeys(addresses, 100)
        wait_until(lambda: nodes(stage, service), lambda got: got == want, f"the addresses of {service}")

    become(one=READY, two=READY)
    stage.apply([route(stage.host), route(f"early.{stage.host}", name="early", service="early")])
    assert stage.traffic.until_status(200, stage.host).status == 200
    wait_nodes("web", one, two)
    with RequestLoop(stage.traffic, stage.host, pause=0.02) as loop:
        become(one=LEAVING, two=READY)
        wait_nodes("web", two)
        become(one=LEAVING, two=LEAVING)
        wait_nodes("web", one, two)
        become(one=LEAVING, two=LEFT, new=STARTING)
        wait_nodes("web", one)
        wait_nodes("early", one, new, two)
        become(one=LEAVING, two=LEFT, new=READY)
        wait_nodes("web", new)
    assert loop.failures == []
    become(one=LEFT, new=STARTING)
    wait_nodes("web")
    stage.traffic.until_status(503, stage.host)
    stage.wait_route(says("True"), "to be synced all the same")
    assert "DELETE" not in {entry.method for entry in proxy.writes()}

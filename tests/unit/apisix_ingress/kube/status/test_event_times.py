"""Since when Ingresses fail, according to Events."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from apisix_ingress.kube.client.api import Page
from apisix_ingress.kube.status.event_times import failing_since, since_of
from apisix_ingress.kube.status.events import COMPONENT, FAILED_EVENT, SYNCED_EVENT
from apisix_ingress.model.condition import SYNCED
from apisix_ingress.model.keys import ObjectKey

WEB = ObjectKey("Ingress", "shop", "web")
GONE = (WEB, "ServiceNotFound")


def event(first: str, last: str, *, reason: str = "ServiceNotFound", message: str = "", **rest: Any) -> dict[str, Any]:
    return {
        "reportingComponent": COMPONENT,
        "involvedObject": {"kind": "Ingress", "namespace": "shop", "name": "web"},
        "reason": reason,
        "message": message or (SYNCED_EVENT if reason == SYNCED else f"{FAILED_EVENT}no Service"),
        "firstTimestamp": f"2026-11-22T{first}Z",
        "lastTimestamp": f"2026-11-22T{last}Z",
        **rest,
    }


def at(hour: int, minute: int) -> datetime:
    return datetime(2026, 11, 22, hour, minute, tzinfo=UTC)


def test_the_first_failure_counts() -> None:
    assert since_of([event("08:30:00", "08:50:00"), event("08:10:00", "08:20:00")]) == {
        (WEB, "ServiceNotFound"): at(8, 10)
    }


def test_a_success_ends_a_failure() -> None:
    synced = event("08:40:00", "08:40:00", reason=SYNCED)
    assert since_of([event("08:10:00", "08:20:00"), synced]) == {}
    assert since_of([event("08:10:00", "08:20:00"), synced, event("08:45:00", "08:50:00")]) == {
        (WEB, "ServiceNotFound"): at(8, 45)
    }


def test_other_events_are_ignored() -> None:
    other = event("08:10:00", "08:20:00", reportingComponent="other")
    warning = event("08:10:00", "08:20:00", message="an annotation is ignored")
    broken = [event("x", "y"), {}, {**event("08:10:00", "08:20:00"), "involvedObject": None}]
    assert since_of([other, warning, *broken]) == {}


class Lists:
    """An API server with two pages of Events."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages, self.asked = list(pages), list[tuple[str, str]]()

    async def page(self, path: str, *, limit: int, more: str = "", fields: str = "") -> Page:
        self.asked.append((path, more))
        return self.pages.pop(0)


async def test_every_page_of_every_namespace_is_read() -> None:
    lists = Lists(
        [
            Page([event("08:30:00", "08:50:00")], "1", "next"),
            Page([event("08:10:00", "08:20:00")], "1", ""),
            Page([], "1", ""),
        ]
    )
    assert await failing_since(lists, ["shop", "blog"]) == {GONE: at(8, 10)}
    shop, blog = "/api/v1/namespaces/shop/events", "/api/v1/namespaces/blog/events"
    assert lists.asked == [(shop, ""), (shop, "next"), (blog, "")]


def test_each_reason_has_a_time_of_its_own() -> None:
    later = event("08:30:00", "08:50:00", reason="GatewayRejected")
    want = {GONE: at(8, 10), (WEB, "GatewayRejected"): at(8, 30)}
    assert since_of([event("08:10:00", "08:20:00"), later]) == want

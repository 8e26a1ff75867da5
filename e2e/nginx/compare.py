"""Compares responses with the recording: status, headers, backend, the requests to backends, cookies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

_ID = re.compile(r"^(<hex32>|<uuid>|[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOT_COMPARED = frozenset(
    {
        *("connection", "content-length", "content-type", "date", "keep-alive", "server", "transfer-encoding", "vary"),
        *("location", "set-cookie", "x-backend"),
    }
)
"""Headers that the server sets, and headers that are compared separately."""
_UNSEEN = frozenset({"connection", "x-echo"})


def differences(recorded: Json, got: Json, unstable: frozenset[str]) -> Iterator[str]:
    """Yield each difference as one line.

    Args:
        recorded: The response of ingress-nginx.
        got: The gateway's response in the same format.
        unstable: Fields in which two recordings of the same differed.
    """
    if "times" in recorded or "statuses" in recorded:
        yield from _counted(recorded, got, unstable)
        return
    if recorded.get("status") != got.get("status"):
        yield f"status {recorded.get('status')} -> {got.get('status') or got.get('error')}"
        return
    for name, of in (("Location", _header(recorded, "location")), ("backend", recorded.get("backend"))):
        mine = _header(got, "location") if name == "Location" else got.get("backend")
        if of != mine and not (name == "backend" and (".backend" in unstable or _same_asked(recorded, got))):
            yield f"{name} {of} -> {mine}"
    theirs, ours = (sorted(map(cookie_shape, _headers(answer, "set-cookie"))) for answer in (recorded, got))
    if theirs != ours:
        yield f"cookies {theirs} -> {ours}"
    lost, gained = _others(recorded) - _others(got), _others(got) - _others(recorded)
    unknown_host = recorded.get("status") == 404 and not recorded.get("backend")
    if (lost or gained) and not unknown_host and ".headers" not in unstable:
        yield f"headers of the answer: lost {sorted(lost)} gained {sorted(gained)}"
    if ".seen" not in unstable:
        yield from _seen(recorded.get("seen", []), got.get("seen", []))


def _same_asked(recorded: Json, got: Json) -> bool:
    """Return whether several endpoints of one Service were tried, so that any of them may be the last."""
    theirs, ours = (Counter(item["backend"] for item in answer.get("seen", [])) for answer in (recorded, got))
    return theirs == ours and len(theirs) > 2


def cookie_shape(text: str) -> str:
    """Return a cookie without its value: name and attributes."""
    first, *rest = [part.strip() for part in text.split(";")]
    shown = [re.sub(r"(?i)^expires=.*", "Expires", part) for part in rest]
    return "; ".join([first.partition("=")[0], *sorted(shown)])


def _counted(recorded: Json, got: Json, unstable: frozenset[str]) -> Iterator[str]:
    theirs, ours = recorded.get("statuses", {}), got.get("statuses", {})
    total = sum(theirs.values()) or 1
    for status in sorted({*theirs, *ours}):
        if ".statuses" in unstable and len(theirs) == len(ours) == 1:
            break
        if abs(theirs.get(status, 0) - ours.get(status, 0)) > max(1, total // 10):
            yield f"statuses {theirs} -> {ours}"
            break
    if any(".backends" in place for place in unstable):
        # Random choices for few requests may miss an endpoint; check only whether they spread or stay with one.
        if (len(recorded["backends"]) > 1) != (len(got["backends"]) > 1):
            yield f"backends {recorded.get('backends')} -> {got.get('backends')}"
    elif set(recorded.get("backends", {})) != set(got.get("backends", {})):
        yield f"backends {recorded.get('backends')} -> {got.get('backends')}"
    elif total >= 50:
        for name, count in recorded.get("backends", {}).items():
            if abs(count - got["backends"].get(name, 0)) > total * 0.2 and not any(
                "backends" in each for each in unstable
            ):
                yield f"backends {recorded.get('backends')} -> {got.get('backends')}"
                break


def _seen(recorded: list[Json], got: list[Json]) -> Iterator[str]:
    got = [{**item, "line": _UUID.sub("<uuid>", item["line"])} for item in got]
    theirs = sorted((item["backend"], item["line"], item.get("body", "")) for item in recorded)
    ours = sorted((item["backend"], item["line"], item.get("body", "")) for item in got)
    if [each[:2] for each in theirs] != [each[:2] for each in ours]:
        yield f"seen {[each[:2] for each in theirs]} -> {[each[:2] for each in ours]}"
        return
    for item in recorded:
        mine = next(other for other in got if (other["backend"], other["line"]) == (item["backend"], item["line"]))
        lost, gained = _flat(item) - _flat(mine), _flat(mine) - _flat(item)
        if lost or gained:
            yield f"headers of {item['backend']}: lost {sorted(lost)} gained {sorted(gained)}"
            return


def _flat(item: Json) -> Counter[tuple[str, str]]:
    pairs = (
        (name.lower(), "<id>" if name.lower() == "x-request-id" and _ID.match(value) else value)
        for name, value in item["headers"]
    )
    return Counter(
        pair if not _is_certificate(pair) else (pair[0], "<certificate>") for pair in pairs if pair[0] not in _UNSEEN
    )


def _is_certificate(pair: tuple[str, str]) -> bool:
    return pair[0] == "ssl-client-cert" and "BEGIN" in pair[1]


def _others(answer: Json) -> Counter[tuple[str, str]]:
    return Counter(
        (name.lower(), "<id>" if _ID.match(value) else value)
        for name, value in answer.get("headers", [])
        if name.lower() not in _NOT_COMPARED
    )


def _header(answer: Json, name: str) -> str | None:
    return next(iter(_headers(answer, name)), None)


def _headers(answer: Json, name: str) -> list[str]:
    return [value for key, value in answer.get("headers", []) if key.lower() == name]

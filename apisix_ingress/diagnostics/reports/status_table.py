"""The text form of `status`: a headline, a table of gateway clusters, one of kinds, one of objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from apisix_ingress.diagnostics.reports.ages import UNKNOWN, age
from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.states import OBJECT_STATUSES, ClusterStatus

_COLOURS = {"failed": "red", "waiting": "yellow", "pending": "yellow", "ok": ""}
_GAP = "  "

_FIELD = TextPattern(r"^spec\.\S+: ")
"""The field at the start of a message: it differs between kinds that have the same problem."""

MOST_SAME = 3
"""Objects with the same message that are listed."""

Row = Sequence[str]


def status_lines(document: JsonObject, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield the lines of a status, each with its colour, empty for none."""
    yield headline(document), "green" if document["healthy"] else "red"
    yield f"controller {document['controller']}: {_led_by(document['leader'])}", ""
    yield "", ""
    yield from _clusters(document["clusters"], now)
    if document["objects"]:
        yield "", ""
        yield from _kinds(document["objects"])
    if document["items"]:
        yield "", ""
        yield from _objects(document["items"], now)
    if hint := document.get("hint"):  # older controllers send none
        yield "", ""
        yield hint["text"], ""
        if hint["command"]:
            yield f"Next: {hint['command']}", ""
    for each in document["unread"]:
        yield f"cannot read {each['kind']}: {each['reason']}", "red"


def headline(document: JsonObject) -> str:
    """Return the summary of the status in one sentence."""
    tallies = document["objects"].values()
    failing = sum(count for tally in tallies for state, count in tally.items() if state not in ("ok", "waiting"))
    waiting = sum(tally["waiting"] for tally in tallies)
    behind = sum(not each["in_sync"] for each in document["clusters"])
    total = sum(sum(tally.values()) for tally in tallies)
    counts = {"object": failing, "gateway cluster": behind, "unreadable kind": len(document["unread"])}
    wrong = [_count(number, noun) for noun, number in counts.items() if number]
    parts = [f"{_joined(wrong)} need{'s' if sum(counts.values()) == 1 else ''} attention"] if wrong else []
    if waiting:
        verb = "waits" if waiting == 1 else "wait"
        parts.append(f"{_count(waiting, 'object')} {verb} for a gateway that does not respond")
    if parts:
        return "; ".join(parts)
    if not document["healthy"]:
        return "there is no leader: nothing is written to the gateways"
    return f"{_count(total, 'object')} in sync with {_count(len(document['clusters']), 'gateway cluster')}"


def table(header: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Yield lines with aligned columns; the last column has any width."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header) - 1)]
    for row in (header, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield _GAP.join([*cells, row[-1]]).rstrip()


def _clusters(clusters: Sequence[JsonObject], now: datetime) -> Iterator[tuple[str, str]]:
    rows = [
        (each["name"], _state(each), _records(each), _checked(each, now), each["version"] or "-", each["url"] or "-")
        for each in clusters
    ]
    lines = list(table(("CLUSTER", "STATE", "RECORDS", "CHECKED", "VERSION", "ADMIN API"), rows))
    yield lines[0], "dim"
    for line, each in zip(lines[1:], clusters, strict=True):
        yield line, "" if each["in_sync"] else "red"
        if each["trouble"]:
            known = age(each.get("since", ""), now)
            yield f"  {each['trouble']}{'' if known == UNKNOWN else f' (for {known})'}", "red"


def _state(cluster: JsonObject) -> ClusterStatus:
    if not cluster["reachable"]:
        return "unreachable"
    return "in sync" if cluster["in_sync"] else "incomplete"


def _checked(cluster: JsonObject, now: datetime) -> str:
    """Return when the records were compared: changes by other clients since then are not known."""
    found = age(cluster.get("checked", ""), now)
    return found if found == UNKNOWN else f"{found} ago"


def _records(cluster: JsonObject) -> str:
    counts = dict(cluster["records"] or {})
    if not counts:
        return "-"
    begin = f"{counts.pop('there')}/{counts.pop('wanted')}"
    others = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return f"{begin} ({others})" if others else begin


def _kinds(objects: JsonObject) -> Iterator[tuple[str, str]]:
    rows = [(kind, *(str(tally[state]) for state in OBJECT_STATUSES)) for kind, tally in objects.items()]
    lines = list(table(("KIND", *(state.upper() for state in OBJECT_STATUSES)), rows))
    yield lines[0], "dim"
    for line, tally in zip(lines[1:], objects.values(), strict=True):
        yield line, next((_COLOURS[state] for state in OBJECT_STATUSES[1:] if tally[state]), "")


def _objects(items: Sequence[JsonObject], now: datetime) -> Iterator[tuple[str, str]]:
    groups = _same(items)
    shown = [each for group in groups for each in group[:MOST_SAME]]
    keys = [ObjectKey(**each["object"]) for each in shown]
    rows = [
        (key.kind, key.place, each["state"], each["reason"] or "-", age(each.get("since", ""), now), each["message"])
        for key, each in zip(keys, shown, strict=True)
    ]
    header, *lines = table(("KIND", "OBJECT", "STATE", "REASON", "SINCE", "MESSAGE"), rows)
    yield header, "dim"
    following = iter(lines)
    for group in groups:
        colour = _COLOURS[group[0]["state"]]
        yield from ((line, colour) for line in islice(following, min(len(group), MOST_SAME)))
        if len(group) > MOST_SAME:
            yield f"  and {len(group) - MOST_SAME} more with the same message; list them with -o json", colour


def _same(items: Sequence[JsonObject]) -> list[list[JsonObject]]:
    """Return the objects in groups with the same state and message, apart from the field; the healthy ones singly."""
    groups: dict[tuple[str, ...], list[JsonObject]] = {}
    for each in items:
        message = _FIELD.sub("", each["message"])
        own = tuple(map(str, each["object"].values())) if each["state"] == "ok" else ()
        groups.setdefault((each["state"], message, *own), []).append(each)
    return list(groups.values())


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _led_by(leader: JsonObject) -> str:
    where = f" (lease {leader['lease']})" if leader["lease"] else ""
    age = leader["renewed_seconds_ago"]
    match leader["state"]:
        case "held":
            renewed = f", renewed {age:g} s ago" if age is not None else ""
            return f"{leader['holder']} leads{renewed}{where}"
        case "stale":
            since = f"for {age:g} s" if age is not None else "since an unknown time"
            return f"no leader: {leader['holder']} has not renewed {since}{where}"
        case "free":
            return f"no leader: the last one released the lease{where}"
        case "absent":
            return f"there has never been a leader{where}; set --namespace to the namespace of the controller"
        case "off":
            return "leader election is disabled"
    return f"the leader is unknown{where}: {leader['problem']}"

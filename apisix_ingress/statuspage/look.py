"""How states look: tones, icons, rings, relative times. The stylesheet has a colour for each tone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

from apisix_ingress.diagnostics.reports.ages import in_words
from apisix_ingress.model.json import JsonObject

_TONES: Mapping[str, tuple[str, ...]] = {
    "good": ("applied", "in sync", "live", "redirect", "wins", "valid", "ok", "created", "restored"),
    "busy": ("pending", "waiting", "writing", "starting", "updated"),
    "warn": ("degraded", "warning", "incomplete", "expires soon", "may win", "partial"),
    "bad": (
        "critical",
        "error",
        "rejected",
        "unreachable",
        "closed",
        "failing",
        "unauthorized",
        "redirected",
        "audit failed",
        "admin key rejected",
        "not published",
        "expired",
        "missing",
        "not valid yet",
        "unreadable",
    ),
}
_TONE_OF = {state: tone for tone, states in _TONES.items() for state in states}

TITLES: Mapping[str, str] = {
    "routes": "Routes",
    "stream_routes": "Stream routes",
    "upstreams": "Upstreams",
    "ssls": "Certificates",
    "consumer_groups": "Consumer groups",
    "consumers": "Consumers",
    "protos": "Protobuf definitions",
    "secrets": "Secret managers",
    "plugin_configs": "Plugin configs",
    "global_rules": "Global rules",
    "plugin_metadata": "Plugin metadata",
    "hosts": "Hosts",
    "problems": "Problems",
    "objects": "Objects",
    "certificates": "Certificates",
}
ONE_OF: Mapping[str, str] = {
    "routes": "route",
    "stream_routes": "stream route",
    "upstreams": "upstream",
    "ssls": "certificate",
    "consumer_groups": "consumer group",
    "consumers": "consumer",
    "protos": "Protobuf definition",
    "secrets": "secret manager",
    "plugin_configs": "plugin config",
    "global_rules": "global rule",
    "plugin_metadata": "plugin metadata",
}

NAMES: Mapping[str, str] = {
    "overview": "Overview",
    "problems": "Problems",
    "hosts": "Hosts",
    "records": "Routes",
    "certificates": "Certificates",
    "gateway-api": "Gateway API",
    "changes": "Changes",
    "conflicts": "Conflicts",
    "explain": "Explain",
}
"""Pages of the navigation, in this order, with their names."""

KEYS: Mapping[str, str] = {
    "overview": "o",
    "problems": "p",
    "hosts": "h",
    "records": "r",
    "certificates": "c",
    "gateway-api": "g",
    "changes": "d",
    "conflicts": "x",
    "explain": "e",
}
"""Page → the key that opens it after `g`."""

ICONS: Mapping[str, str] = {
    "overview": "M4 4h7v7H4zM13 4h7v4h-7zM13 11h7v9h-7zM4 14h7v6H4z",
    "problems": "M12 4 2.5 20h19zM12 10v4.5M12 17.4v.2",
    "hosts": "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12h18M12 3c5 5.5 5 12.5 0 18M12 3c-5 5.5-5 12.5 0 18",
    "records": "M3 12h5c5 0 3-7 8-7h4M8 12h12M8 12c5 0 3 7 8 7h4M18 3l2.5 2L18 7M18 10l2.5 2-2.5 2M18 17l2.5 2-2.5 2",
    "certificates": "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3M12 14.5v2",
    "gateway-api": "m12 3 9 5-9 5-9-5zM3.5 12.5 12 17l8.5-4.5M3.5 16.5 12 21l8.5-4.5",
    "changes": "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 7v5.2l3.5 2",
    "conflicts": "M7 4v16M7 13c0-5 10-2 10-9M4 7l3-3 3 3M14 7l3-3 3 3",
    "explain": "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M9.3 9.3a2.8 2.8 0 1 1 3.9 2.6c-.9.4-1.2 1-1.2 1.9M12 16.8v.2",
    "search": "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M15.5 15.5 21 21",
    "done": "M4 12.5 9.5 18 20 6.5",
    "good": "M5 12.5 10 17.5 19.5 7",
    "bad": "M12 5v9M12 18v.4",
    "warn": "M12 5v9M12 18v.4",
    "busy": "M19.5 12a7.5 7.5 0 1 1-2.3-5.4M18 3v4.2h-4.2",
    "idle": "M12 11v7M12 6.6v.3",
}
"""Name → path in a box of 24 by 24, drawn as a line."""

_LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="none" stroke="#fff" stroke-width="3">'
    '<rect width="32" height="32" rx="7" fill="{}" stroke="none"/>'
    '<path d="M5 16h6c5 0 4-8 9-8h6M11 16h15M11 16c5 0 4 8 9 8h6" stroke-linecap="round"/></svg>'
)
_COLOURS = {"good": "#3346c2", "busy": "#3346c2", "idle": "#56637a", "warn": "#b06a00", "bad": "#c62839"}


def tone(state: str) -> str:
    """Return the tone of a state."""
    return _TONE_OF.get(state, "idle")


def favicon(tone: str) -> str:
    """Return the icon of the browser's tab, coloured by the state, as a data URL."""
    return f"data:image/svg+xml,{quote(_LOGO.format(_COLOURS[tone]))}"


def arcs(tile: JsonObject) -> list[JsonObject]:
    """Return the arcs of a ring of length 100; each that is not empty can be seen."""
    found, offset, total = [], 25.0, sum(tile[each] for each in ("bad", "warn", "idle", "good"))
    for each in ("bad", "warn", "idle", "good"):
        if tile[each]:
            length = min(max(100 * tile[each] / total, 4.0), 100.0)
            found.append({"tone": each, "length": round(length, 2), "offset": round(offset, 2)})
            offset -= length
    return found


def relative(text: str, now: datetime) -> str:
    """Return how long ago a time is, or how far ahead, in its largest unit."""
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    seconds = round((now - moment).total_seconds())
    return f"in {in_words(-seconds)}" if seconds < 0 else f"{in_words(seconds)} ago"

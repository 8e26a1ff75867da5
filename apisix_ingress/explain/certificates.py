"""The certificate that a gateway uses for a TLS server name, by its rules (matching fact 10).

An exact name wins over the longest wildcard, and that over `*`. Only the best match counts: a wildcard matches one
label, and a name below it with more labels has no certificate, even if there is one for `*` (APISIX,
`radixtree_sni.lua`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from apisix_ingress.explain.response import Records
from apisix_ingress.model.formats.certificates import read_chain
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey


def certificate_of(name: str, records: Records) -> RecordKey | None:
    """Return the certificate for a server name, or None: the handshake fails."""
    best = min(_matching(name.lower(), records), default=None)
    if best is None:
        return None
    key = RecordKey("ssls", best[1])
    is_exact = best[0] < 0 and name.lower() in snis_of(records[key])
    return key if is_exact or _covers(records[key], name.lower()) else None


def snis_of(body: FrozenJson) -> list[str]:
    """Return the server names of a certificate, in lower case."""
    return [str(sni).lower() for sni in ([body["sni"]] if "sni" in body else body.get("snis") or ())]


def invalidity(body: FrozenJson, now: datetime) -> str:
    """Return why clients reject a certificate at an instant; empty if they accept its period of validity."""
    try:
        found = read_chain(str(body.get("cert", "")).encode())[0]
    except ValueError:
        return ""
    if found.not_valid_after_utc <= now:
        return f"expired {(now - found.not_valid_after_utc).days} days ago, on {found.not_valid_after_utc:%Y-%m-%d}"
    begins = found.not_valid_before_utc
    return f"not valid before {begins:%Y-%m-%d %H:%M} UTC" if begins > now else ""


def _matching(name: str, records: Records) -> Iterator[tuple[float, str]]:
    """Yield how well each certificate matches, the smallest for the best, and its id."""
    for key, body in records.items():
        if key.kind == "ssls" and body.get("status", 1) != 0 and body.get("type", "server") == "server":
            for sni in snis_of(body):
                if sni == name:
                    yield float("-inf"), key.id
                elif sni == "*":
                    yield 0.0, key.id
                elif sni.startswith("*") and name.endswith(sni[1:]):
                    yield float(-len(sni)), key.id


def _covers(body: FrozenJson, name: str) -> bool:
    """Return whether a certificate serves a name that one of its wildcards matches, as `match_and_set` decides it."""
    if body.get("sni") == "*":
        return True
    return any("." not in name[::-1][max(len(sni) - 1, 0) :] for sni in snis_of(body))

"""Fields with two spellings: which of both counts, and the one that is out of use. Both are read; nothing is refused.

Told at `kubectl apply` only, where somebody can act on it: an object that works is no problem to the controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apisix_ingress.model.objects import CustomObject
from translation.core.options import Options


def consumer_notes(item: CustomObject, options: Options) -> Iterator[str]:
    """Yield a warning for each field of an ApisixConsumer with a deprecated or a duplicate name."""
    value = _below(item.spec, "authParameter", "hmacAuth", "value")
    yield from _hmac(value, "spec.authParameter.hmacAuth.value")


def upstream_notes(item: CustomObject, options: Options) -> Iterator[str]:
    """Yield a warning for each field of an ApisixUpstream with a duplicate name."""
    yield from _health_check(item.spec, "spec")
    levels = item.spec.get("portLevelSettings")
    for index, level in enumerate(levels if isinstance(levels, list) else ()):
        yield from _health_check(level, f"spec.portLevelSettings[{index}]")


def _hmac(value: Mapping[str, Any], path: str) -> Iterator[str]:
    old, new = value.get("access_key"), value.get("key_id")
    if old and not new:
        yield f"{path}.access_key: is deprecated, gateways call it key_id since APISIX 3.11; rename it"
    elif old and old != new:
        yield f"{path}.access_key: does nothing beside key_id, which counts; remove it"


def _health_check(settings: Any, path: str) -> Iterator[str]:
    for mode in ("active", "passive"):
        found = _below(settings, "healthCheck", mode, "unhealthy")
        ours, other = found.get("timeouts"), found.get("timeout")
        if ours is not None and other is not None and ours != other:
            where = f"{path}.healthCheck.{mode}.unhealthy.timeout"
            yield f"{where}: does nothing beside timeouts, which is the same and counts; remove one of them"


def _below(value: Any, *names: str) -> Mapping[str, Any]:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}

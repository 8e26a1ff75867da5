"""Fields with two spellings: which one takes effect, and deprecated ones. Both are accepted.

Reported at `kubectl apply` only, where the author can act on it: an object that works is not a problem to the
controller.
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
        yield f"{path}.access_key: is ignored, because key_id takes precedence; remove it"


def _health_check(settings: Any, path: str) -> Iterator[str]:
    for mode in ("active", "passive"):
        found = _below(settings, "healthCheck", mode, "unhealthy")
        ours, other = found.get("timeouts"), found.get("timeout")
        if ours is not None and other is not None and ours != other:
            where = f"{path}.healthCheck.{mode}.unhealthy.timeout"
            yield f"{where}: is ignored, because timeouts takes precedence; remove one of them"


def _below(value: Any, *names: str) -> Mapping[str, Any]:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}

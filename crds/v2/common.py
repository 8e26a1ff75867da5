"""Shared by the kinds: the model base, rules over several fields, durations, plugins, references, timeouts.

Every model describes a part of `spec`. An absent optional string is `""`, an absent list `()`; `None` is used where the
gateway's default differs from every value. Shapes only: `translation/` defines what a field turns into.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from apisix_ingress.model.formats.duration import LONGEST
from apisix_ingress.model.formats.patterns import TextPattern, ValuePattern

DURATION_PATTERN = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
"""A Go duration string; RE2 and Python parse it alike."""

HOST_PATTERN = r"^(\*|\*?[0-9a-zA-Z\-._\[\]:]+)$"
"""Hosts that the route schema of APISIX accepts; wider than 1.8's CRD, because 2.2 had no pattern at all."""

NANOSECONDS_FROM = 1_000_000
"""Plain numbers from here on are nanoseconds: 2.2 accepted `timeout: 5000000000`, and twelve days are not plausible."""

_UNITS = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),  # Go takes the micro sign and the Greek letter
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}
_WHOLE = ValuePattern(DURATION_PATTERN)
_PART = TextPattern(r"([0-9.]+)([a-zµμ]+)")


@lru_cache(maxsize=1024)
def duration_seconds(text: str) -> float:
    """Return the seconds of a Go duration string, e.g. `1m30s`, `500ms`, `-5s`.

    Raises:
        ValueError: Not a duration. The text is not echoed.
    """
    if not _WHOLE.fits(text):
        raise ValueError("not a duration")
    parts = (found.groups() for found in _PART.finditer(text))
    total = sum((Decimal(number) * _UNITS[unit] for number, unit in parts), Decimal(0))
    if total > LONGEST:
        raise ValueError("longer than any duration")
    return float(-total if text.startswith("-") else total)


def _duration(value: object) -> float:
    """Validate a duration string."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return duration_seconds(value)
    raise PydanticCustomError("duration", "must be a duration with its unit, such as 500ms, 30s or 1m30s")


def _seconds(value: object) -> float:
    """Validate a duration string or a plain number of seconds, not negative."""
    seconds = -1.0
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            seconds = duration_seconds(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        seconds = float(value) / 1e9 if value >= NANOSECONDS_FROM else float(value)
    if seconds < 0:
        raise PydanticCustomError(
            "duration", "must be a duration such as 500ms, 30s or 1m30s, or a number of seconds such as 0.5"
        )
    return seconds


def _service_port(value: object) -> int | str:
    """Validate the number or name of a Service port."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535:
        return value
    raise PydanticCustomError("port", "must be the number (1 to 65535) or the name of a port of the Service")


Duration = Annotated[float, PlainValidator(_duration), WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN})]
"""A Go duration string; seconds in Python."""

Seconds = Annotated[
    float,
    PlainValidator(_seconds),
    # "A number or a string" is not a structural type. Both constraints apply to their own type only.
    WithJsonSchema(
        {
            "x-kubernetes-preserve-unknown-fields": True,
            "minimum": 0,
            "pattern": DURATION_PATTERN,
            "maxProperties": 0,
            "maxItems": 0,
        }
    ),
]
"""A Go duration string, or a number of seconds (fractions allowed); seconds in Python."""

ServicePort = Annotated[
    int | str,
    PlainValidator(_service_port),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "minimum": 1, "maximum": 65535, "minLength": 1}),
]
"""The number or the name of a Service port."""

Name = Annotated[str, Field(min_length=1)]
Port = Annotated[StrictInt, Field(ge=1, le=65535)]
Weight = Annotated[StrictInt, Field(ge=0)]
Host = Annotated[str, Field(pattern=HOST_PATTERN)]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule over several fields of one model.

    Attributes:
        message: What is wrong and what to do; the same text from the API server and in a condition.
        holds: Whether a model satisfies the rule.
        cel: The same in CEL, for the CRD. None: the API server does not check it, because earlier releases accepted
            such
            objects and they must stay editable; they get a False condition.
        field: The invalid field, as the YAML spells it; empty for the whole mapping.
    """

    message: str
    holds: Callable[[Any], bool]
    cel: str | None
    field: str = ""


def _describe_rules(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Add the rules of a model to its JSON schema."""
    found = [_validation(rule) for rule in getattr(model, "rules", ()) if rule.cel is not None]
    if found:
        schema["x-kubernetes-validations"] = found


def _validation(rule: Rule) -> dict[str, str]:
    where = {"fieldPath": f".{rule.field}"} if rule.field else {}
    return {"rule": rule.cel or "", "message": rule.message, **where}


class SpecPart(BaseModel):
    """Base of every part of a spec: frozen, unknown fields ignored, inputs never echoed in errors."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        hide_input_in_errors=True,
        # Kinds that are not used cost nothing at the start.
        defer_build=True,
        json_schema_extra=_describe_rules,
    )


class RuledPart(SpecPart):
    """A part with rules over several of its fields."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        for rule in self.rules:
            if not rule.holds(self):
                raise PydanticCustomError("rule", "{text}", {"text": rule.message, "field": rule.field})
        return self


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; with a priority it is shown by `-o wide` only."""

    name: str
    path: str
    priority: int = 0
    type: str = "string"


class Spec(RuledPart):
    """Base of the specs."""

    columns: ClassVar[tuple[Column, ...]] = ()
    """Columns of `kubectl get` before the common columns."""

    is_consumer: ClassVar[bool] = False
    """Whether its plugins are those of a consumer, for which plugins have another schema."""

    ingress_class_name: str = Field(default="", description="Class of the controller that handles the object.")

    def plugin_lists(self) -> Iterator[tuple[tuple[Plugin, ...], str, bool]]:
        """Yield each list of plugins with its path, and whether its plugins work on connections."""
        yield getattr(self, "plugins", ()), "spec.plugins", False


class SecretName(SpecPart):
    """A Secret in the namespace of the object; without a name it is treated as absent."""

    # 2.2 required the mapping, possibly empty, even if the values are present.
    name: str = Field(default="", description="Name of the Secret.")


class SecretLocation(SpecPart):
    """A Secret in any namespace."""

    name: Name = Field(description="Name of the Secret.")
    namespace: Name = Field(description="Namespace of the Secret.")


class Plugin(SpecPart):
    """A plugin and its configuration."""

    name: Name = Field(description="Name of the plugin, such as limit-count.")
    enable: StrictBool = Field(default=True, description="Whether the plugin is used (default true).")
    config: dict[str, Any] | None = Field(
        default=None, description="Configuration, as the plugin defines it.", repr=False
    )
    secret_ref: str = Field(
        default="",
        description="Secret (same namespace) merged over config; a dot in a key names a nested field.",
    )


class Timeout(SpecPart):
    """Timeouts towards the upstream; a part that is absent or not positive is 60 s."""

    connect: Duration | None = Field(default=None, description="Time to connect, such as 5s.")
    send: Duration | None = Field(default=None, description="Time between two writes, such as 60s.")
    read: Duration | None = Field(default=None, description="Time between two reads, such as 60s.")


Granularity = Literal["endpoint", "endpoints", "service", ""]
"""`service`: the cluster IP. Everything else: the endpoints (2.2's documentation spelled it `endpoints`)."""

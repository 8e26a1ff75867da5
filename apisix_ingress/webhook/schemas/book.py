"""Compiles the plugin schemas that gateways publish, and validates plugin configurations against them.

Only patterns of a gateway are run, on an engine that gives up after a number of steps. Whatever a gateway accepts must
not be rejected here: where its validator is known to be more lenient, so is this one. No message contains a value.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema_rs import Draft7Validator, FancyRegexOptions, ValidationError, ValidationErrorKind

from apisix_ingress.model.formats.schema_defaults import with_defaults
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.webhook.schemas.known_options import unknown_options
from apisix_ingress.webhook.schemas.messages import choice, path_of, schema_at, sentence

STEPS = 20_000
"""Maximum steps of one pattern on one text; beyond it, the text is assumed to match."""

_PATTERNS = FancyRegexOptions(backtrack_limit=STEPS)
# Anchors that only PCRE has.
_ANCHORS = (("\\A", "^"), ("\\z", "$"), ("\\Z", "$"))


Mistake = tuple[str, str]
"""A field of a configuration, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class PluginSchema:
    """The schema of one plugin and its validator."""

    document: FrozenJson
    validator: Draft7Validator = field(repr=False, compare=False)

    def mistakes(self, config: JsonObject) -> tuple[Mistake, ...]:
        """Return the mistakes in a configuration: the field, such as `rules[0].count` (empty: all), and a sentence."""
        # Without them, conditions on an absent field (`if: {properties: {policy: …}}`) would hold.
        filled = with_defaults(self.document, config)
        errors = (error for error in self.validator.iter_errors(filled) if not _is_forgiven(error))
        return tuple(dict.fromkeys((path_of(error.instance_path), self._sentence(error)) for error in errors))

    def _sentence(self, error: ValidationError) -> str:
        return choice(schema_at(self.document, error.schema_path), error) or sentence(error)

    def with_defaults(self, config: JsonObject) -> JsonObject:
        """Return a configuration with the defaults of the schema."""
        filled: JsonObject = with_defaults(self.document, config)
        return filled


@dataclass(frozen=True, slots=True)
class Subsystem:
    """The plugins that a gateway runs for requests, or for connections.

    Attributes:
        plugins: Plugin → schema of its configuration; None if it cannot be compiled: then nothing is checked.
        consumers: The same for plugins that have another schema inside a consumer.
    """

    plugins: Mapping[str, PluginSchema | None] = field(default_factory=dict)
    consumers: Mapping[str, PluginSchema | None] = field(default_factory=dict)

    def mistakes(self, name: str, config: JsonObject, *, in_consumer: bool = False) -> tuple[Mistake, ...]:
        """Return the mistakes in the configuration of an existing plugin; a disabled plugin is not checked."""
        meta = config.get("_meta")
        if isinstance(meta, dict) and meta.get("disable") is True:
            return ()
        table = self.consumers if in_consumer and name in self.consumers else self.plugins
        schema = table.get(name)
        return schema.mistakes(config) if schema else ()

    def with_defaults(self, name: str, config: JsonObject, *, in_consumer: bool = False) -> JsonObject:
        """Return the configuration of a plugin with the defaults of its schema."""
        table = self.consumers if in_consumer and name in self.consumers else self.plugins
        schema = table.get(name)
        return schema.with_defaults(config) if schema else config

    def unknown_options(
        self, name: str, config: JsonObject, *, in_consumer: bool = False
    ) -> tuple[tuple[str, str | None], ...]:
        """Return the options that the schema of a plugin does not name, each with the most similar one."""
        table = self.consumers if in_consumer and name in self.consumers else self.plugins
        schema = table.get(name)
        return tuple(unknown_options(schema.document, config)) if schema else ()

    def nearest(self, name: str) -> str | None:
        """Return the plugin with the most similar name, if any is similar."""
        found = difflib.get_close_matches(name, self.plugins, n=1)
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class SchemaBook:
    """The schemas of one gateway cluster. A subsystem without plugins is not checked: it may be disabled."""

    http: Subsystem = Subsystem()
    stream: Subsystem = Subsystem()


def compile_subsystem(document: FrozenJson) -> Subsystem:
    """Return the plugins in the response of `plugins?all=true`: name → {schema, consumer_schema, …}."""
    entries = {name: entry for name, entry in document.items() if isinstance(entry, dict)}
    return Subsystem(
        {name: compiled(entry.get("schema")) for name, entry in entries.items()},
        {name: compiled(entry["consumer_schema"]) for name, entry in entries.items() if "consumer_schema" in entry},
    )


def compiled(schema: object) -> PluginSchema | None:
    """Return a schema with its validator; None if it cannot be compiled."""
    if not isinstance(schema, dict):
        return None
    try:
        document = _with_known_patterns(schema)
        # `mask` keeps values out of the library's messages, `offline` prevents network access.
        validator = Draft7Validator(document, mask="value", pattern_options=_PATTERNS, offline=True)
    except (ValueError, TypeError, RecursionError):
        return None
    return PluginSchema(document, validator)


def _with_known_patterns(value: Any) -> Any:
    """Return a copy of a schema without the patterns that cannot be compiled, which are not checked."""
    if isinstance(value, list):
        return [_with_known_patterns(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: JsonObject = {}
    for key, item in value.items():
        if key == "pattern" and isinstance(item, str):
            pattern = _translated(item)
            if not _is_pattern(pattern):
                continue
            item = pattern
        result[key] = _with_known_patterns(item)
    return result


def _translated(pattern: str) -> str:
    for anchor, sign in _ANCHORS:
        pattern = pattern.replace(anchor, sign)
    return pattern


def _is_pattern(text: str) -> bool:
    try:
        Draft7Validator({"pattern": text}, pattern_options=_PATTERNS)
    except ValueError:
        return False
    return True


def _is_forgiven(error: ValidationError) -> bool:
    """Return whether a gateway would accept it: it does not distinguish empty lists from empty mappings.

    A pattern that took too many steps is ignored.
    """
    match error.kind:
        case ValidationErrorKind.Type():
            return isinstance(error.instance, list | dict) and not error.instance
        case ValidationErrorKind.AnyOf(context) | ValidationErrorKind.OneOfNotValid(context):
            return any(branch and all(map(_is_forgiven, branch)) for branch in context)
        case ValidationErrorKind.BacktrackLimitExceeded() | ValidationErrorKind.RegexEngineFailure():
            return True
    return False

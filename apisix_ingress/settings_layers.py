"""Where raw configuration comes from (YAML file, environment, overrides), and how the layers are merged.

Values pass through as plain mappings, lists and scalars. What they mean is known to `settings` only.
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from apisix_ingress.errors import ConfigError

ENVIRONMENT_PREFIX = "APISIX_INGRESS_"
_NESTING = "__"
_MISSING = object()

Location = Sequence[str | int]


@dataclass(frozen=True, slots=True)
class Layer:
    """The values of one source. A mapping keyed by digits stands for single items of a list.

    Attributes:
        source: the file's name, ``environment`` or ``command line``; for messages.
        values: nested mappings, keys as in the configuration file.
    """

    source: str
    values: Mapping[str, object]


class _StrictLoader(yaml.SafeLoader):
    """A safe loader that refuses a key given twice, of which YAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            if key_node.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key_node.value!r} is given twice", problem_mark=key_node.start_mark
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def read_file(path: Path) -> Layer:
    """Read a YAML file; an empty one holds no values.

    Raises:
        ConfigError: it can't be read, is no YAML (line and column are named) or no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"{path}: can't be read: {reason}") from None
    try:
        values = yaml.load(text, _StrictLoader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{path}{_position(error.problem_mark)}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {str(error).splitlines()[0]}") from None
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: the top level must be a mapping such as `log: {{level: info}}`")
    return Layer(str(path), values)


def _position(mark: yaml.Mark | None) -> str:
    return "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"


def read_environment(environ: Mapping[str, str], sections: Sequence[str]) -> Layer:
    """Read ``APISIX_INGRESS_<SECTION>__<KEY>…`` from `environ`.

    A value that starts with ``[`` or ``{`` is JSON. Other variables with the prefix are ignored unless they
    nest: for a Service called apisix-ingress Kubernetes itself sets ``APISIX_INGRESS_SERVICE_HOST`` and more.
    """
    values: dict[str, object] = {}
    for variable in sorted(environ):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        keys = [key.lower() for key in variable.removeprefix(ENVIRONMENT_PREFIX).split(_NESTING)]
        if len(keys) == 1 and keys[0] not in sections:
            continue
        _put(values, keys, _decode(variable, environ[variable]), variable)
    return Layer("environment", values)


def _put(values: dict[str, object], keys: Sequence[str], value: object, variable: str) -> None:
    """Store `value` under nested `keys`; items of a list stay a mapping keyed by digits until `merge`."""
    for key in keys[:-1]:
        child = values.setdefault(key, {})
        if not isinstance(child, dict):
            raise ConfigError(f"environment variable {variable}: a shorter one sets {key} as a whole")
        values = child
    values[keys[-1]] = value


def _decode(variable: str, text: str) -> object:
    if not text.startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise ConfigError(f"environment variable {variable}: starts like JSON but is none") from None


def read_overrides(overrides: Mapping[str, object]) -> Layer:
    """Take flags as the last layer; a None is a flag that was not given and leaves no trace."""
    return Layer("command line", _without_nones(overrides))


def _without_nones(values: Mapping[str, object]) -> dict[str, object]:
    kept: dict[str, object] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            value = _without_nones(value) or None
        if value is not None:
            kept[str(key)] = value
    return kept


def merge(layers: Sequence[Layer]) -> dict[str, object]:
    """Lay the layers over one another, the later over the earlier: mappings by key, lists by index.

    A list given as such replaces the one below it.

    Raises:
        ConfigError: an index lies beyond the end of its list.
    """
    merged: dict[str, object] = {}
    for layer in layers:
        for key, value in layer.values.items():
            merged[str(key)] = _lay(merged.get(str(key)), value, str(key))
    return merged


def _lay(base: object, over: object, path: str) -> object:
    if not isinstance(over, Mapping):
        return over
    if over and all(str(key).isdecimal() for key in over):
        return _lay_items(base, over, path)
    result = dict(base) if isinstance(base, Mapping) else {}
    for key, value in over.items():
        result[str(key)] = _lay(result.get(str(key)), value, f"{path}.{key}")
    return result


def _lay_items(base: object, over: Mapping[str, object], path: str) -> list[object]:
    items = list(base) if isinstance(base, list | tuple) else []
    for index, value in sorted((int(key), value) for key, value in over.items()):
        if index > len(items):
            raise ConfigError(f"{path}[{index}]: the next free index is {len(items)}")
        base_item = items[index] if index < len(items) else None
        items[index : index + 1] = [_lay(base_item, value, f"{path}[{index}]")]
    return items


def origin(layers: Sequence[Layer], location: Location) -> str:
    """Name the source that the value at `location` comes from, empty for a default."""
    for layer in reversed(layers):
        if _holds(layer.values, location):
            if layer.source != "environment":
                return layer.source
            return "environment, " + ENVIRONMENT_PREFIX + _NESTING.join(str(part).upper() for part in location)
    return ""


def _holds(values: object, location: Location) -> bool:
    for part in location:
        if isinstance(values, Mapping):
            # YAML keys may be numbers, a mapping keyed by digits stands for a list.
            values = {str(key): value for key, value in values.items()}.get(str(part), _MISSING)
        elif isinstance(values, list | tuple) and isinstance(part, int) and part < len(values):
            values = values[part]
        else:
            return False
        if values is _MISSING:
            return False
    return True

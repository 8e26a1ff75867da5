"""The sources of raw configuration (YAML file, environment, overrides), and how the layers are merged.

Values are plain mappings, lists and scalars; only `settings` knows their meaning.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from apisix_ingress.errors import ConfigError
from apisix_ingress.model.formats.safe_yaml import DocumentError, read_yaml
from apisix_ingress.runtime.regular_files import read_regular

ENVIRONMENT_PREFIX = "APISIX_INGRESS_"
_NESTING = "__"
_MISSING = object()
_IPV6_ADDRESS = re.compile(r"\[[^\[\]{}\"]*\]:.*")

LARGEST_FILE = 2**20
"""Maximum size of a configuration file, in bytes."""
DEEPEST = 50
"""Maximum nesting of a configuration file; the settings have five levels."""

Location = Sequence[str | int]


@dataclass(frozen=True, slots=True)
class Layer:
    """The values of one source.

    Attributes:
        source: the file's name, ``environment`` or ``command line``; for messages.
        values: nested mappings, keys as in the configuration file.
        indexed: whether a mapping keyed by digits represents single items of a list, as in the environment and flags.
            In a file such keys are keys, for example ports.
    """

    source: str
    values: Mapping[str, object]
    indexed: bool = True


def read_file(path: Path) -> Layer:
    """Read a YAML file; an empty one has no values.

    Raises:
        ConfigError: it cannot be read, is invalid YAML (with line and column), exceeds a limit, or is not a mapping.
    """
    documents = _parse(path, _content(path))
    if len(documents) > 1:
        raise ConfigError(f"{path}: contains {len(documents)} documents; write one, without --- between its parts")
    values = documents[0] if documents else {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: the top level must be a mapping such as `log: {{level: info}}`")
    return Layer(str(path), values, indexed=False)


def _content(path: Path) -> bytes:
    try:
        content = read_regular(path, LARGEST_FILE)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{path}: cannot be read: larger than {LARGEST_FILE // 2**20} MB: is it the right file?")
    return content


def _parse(path: Path, content: bytes) -> list[object]:
    """Return the documents that are not empty."""
    try:
        return [values for values in read_yaml(content, deepest=DEEPEST) if values is not None]
    except DocumentError as error:
        raise ConfigError(f"{path}: {error}") from None


def read_environment(environ: Mapping[str, str], sections: Sequence[str]) -> Layer:
    """Read ``APISIX_INGRESS_<SECTION>__<KEY>…`` from `environ`.

    A value that starts with ``[`` or ``{`` is JSON, except an address like ``[::]:8080``. Other variables with the
    prefix are ignored unless they nest: for a Service called apisix-ingress Kubernetes itself sets
    ``APISIX_INGRESS_SERVICE_HOST`` and more.
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
            raise ConfigError(f"environment variable {variable}: another variable already sets {key} as a whole")
        values = child
    values[keys[-1]] = value


def _decode(variable: str, text: str) -> object:
    if not text.startswith(("[", "{")) or _IPV6_ADDRESS.fullmatch(text):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError(f"environment variable {variable}: starts like JSON but is invalid") from None


def read_overrides(overrides: Mapping[str, object]) -> Layer:
    """Return flags as the last layer; None is a flag that was not given."""
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
    """Merge the layers; later ones override earlier ones: mappings by key, lists by index.

    A list that is given as a whole replaces the one below it.

    Raises:
        ConfigError: an index is out of range.
    """
    merged: dict[str, object] = {}
    for layer in layers:
        for key, value in layer.values.items():
            merged[str(key)] = _lay(merged.get(str(key)), value, str(key), indexed=layer.indexed)
    return merged


def _lay(base: object, over: object, path: str, *, indexed: bool) -> object:
    if not isinstance(over, Mapping):
        return over
    if indexed and (items := items_of(over)):
        return _lay_items(base, items, path)
    result = dict(base) if isinstance(base, Mapping) else {}
    for key, value in over.items():
        result[str(key)] = _lay(result.get(str(key)), value, f"{path}.{key}", indexed=indexed)
    return result


def items_of(values: Mapping[str, object]) -> dict[int, object]:
    """Return the items represented by a mapping keyed by digits, in order; nothing for another mapping."""
    if not all(str(key).isdecimal() for key in values):
        return {}
    return dict(sorted((int(key), value) for key, value in values.items()))


def _lay_items(base: object, over: Mapping[int, object], path: str) -> list[object]:
    items = list(base) if isinstance(base, list | tuple) else []
    for index, value in over.items():
        if index > len(items):
            raise ConfigError(f"{path}[{index}]: the next free index is {len(items)}")
        base_item = items[index] if index < len(items) else None
        items[index : index + 1] = [_lay(base_item, value, f"{path}[{index}]", indexed=True)]
    return items


def origin(layers: Sequence[Layer], location: Location) -> str:
    """Return the source of the value at `location`, empty for a default."""
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

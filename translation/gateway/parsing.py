"""Models of Gateway API objects, parsed once per version of an object: thousands of routes read one Gateway."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

from apisix_ingress.model.objects import CustomObject
from crds import SpecError, parse_spec
from crds.v2.common import SpecPart

M = TypeVar("M", bound=SpecPart)

_KEPT = 512

_parsed: OrderedDict[int, tuple[CustomObject, SpecPart | SpecError]] = OrderedDict()
"""By identity of the object, which is kept alive so that the id is not reused."""


def spec_of(obj: CustomObject, model: type[M]) -> M:
    """Return the spec of an object.

    Raises:
        SpecError: The spec is invalid.
    """
    held = _parsed.get(id(obj))
    if held is None or held[0] is not obj:
        held = (obj, _parse(obj, model))
        _parsed[id(obj)] = held
        if len(_parsed) > _KEPT:
            _parsed.popitem(last=False)
    found = held[1]
    if isinstance(found, SpecError):
        raise found
    assert isinstance(found, model), "one kind has one model"
    return found


def _parse(obj: CustomObject, model: type[M]) -> M | SpecError:
    try:
        return parse_spec(model, obj.spec)
    except SpecError as error:
        return error

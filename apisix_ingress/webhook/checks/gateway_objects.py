"""Warnings about objects of the Gateway API. They are never denied: their status reports mistakes, as specified."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.webhook.overlay import OverlayView
from translation.core.options import Options
from translation.policies import fold
from translation.serving import JUDGED, translate_served, why_left_out

CHECKED = JUDGED
"""Kinds that are checked."""

_OWN = frozenset({"InvalidSpec", "UnsupportedValue", "IncompatibleFilters", "InvalidKind", "InvalidParameters"})
"""Codes of problems that do not involve another object."""


def gateway_warnings(
    item: CustomObject, view: OverlayView, options: Options, *, shows_others: bool = True
) -> Iterator[str]:
    """Yield the problems that the status of an object would show; nothing for an object of another controller.

    Args:
        item: The object.
        view: The objects to read, with this one among them.
        options: The settings.
        shows_others: Whether the client may learn about problems in other objects.
    """
    if why_left_out(item, view, options):
        return
    outcome = fold(translate_served(item, view, options), view.inputs(options))
    for problem in outcome.problems:
        if shows_others or problem.code in _OWN:
            yield str(problem)

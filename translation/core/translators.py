"""Translates an object with the translator of its kind, for its provider and the webhook."""

from __future__ import annotations

from datetime import datetime

from apisix_ingress.model.kinds.resource import imported
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from translation.core.options import Options
from translation.core.outcome import Outcome


def translate(obj: CustomObject, view: View, options: Options, now: datetime) -> Outcome:
    """Translate an object with the translator of its kind.

    The translator is imported with the first object of its kind: most clusters use few kinds.
    """
    row = RESOURCES[obj.meta.kind]
    timed = {"now": now} if row.expires else {}
    found: Outcome = imported(row.translator)(obj, view, options, **timed)
    return found

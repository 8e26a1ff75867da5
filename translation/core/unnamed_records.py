"""Names of records whose bodies do not contain one: certificates and stream routes.

They are derived from raw specs, since an object that lost its hosts, or cannot be translated, has no records.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.keys import RecordKind
from apisix_ingress.model.kinds.resource import imported
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject


def nameless_records(obj: CustomObject) -> Iterator[tuple[RecordKind, str]]:
    """Yield kind and name of each record that an object may have and whose body contains no name."""
    if reader := RESOURCES[obj.meta.kind].unnamed:
        yield from imported(reader)(obj)

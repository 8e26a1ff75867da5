"""Objects that name hosts and paths without being published: because of errors, or because they are not served.

`explain` and the searches of the status page list them, since an unpublished host has no record.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.explain.answer import Claimant
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.indexes import MATCHER_INDEX
from apisix_ingress.model.kinds.table import kinds_with
from apisix_ingress.model.network.route_keys import MOST_MATCHERS, count_matchers, rules_of
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.problem_codes.table import CODES
from apisix_ingress.state.world import World
from translation.core.options import Options
from translation.serving import why_left_out

KINDS = kinds_with(MATCHER_INDEX)


def claimants(world: World, options: Options) -> Iterator[Claimant]:
    """Yield every route object that has a problem other than a warning, or that is not served."""
    return (found for key in candidates(world) if (found := claimant(world, options, key)) is not None)


def candidates(world: World) -> Iterator[ObjectKey]:
    """Yield the route objects of the stores."""
    for kind in KINDS:
        for item in world.stores[kind].values():
            yield item.meta.key


def claimant(world: World, options: Options, key: ObjectKey) -> Claimant | None:
    """Return an object as a claimant of hosts; None if it is gone, or nothing is wrong with it."""
    item = world.stores[key.kind].get(key)
    if not isinstance(item, CustomObject):
        return None
    if count_matchers(found := tuple(rules_of(item))) > MOST_MATCHERS:
        return None
    report = world.reports.get(key)
    if report is not None:
        reasons = [f"{CODES[each.code].number} {each}" for each in report.problems if each.severity != "warning"]
    else:
        why = why_left_out(item, world.view(), options)
        reasons = [why] if why else []
    rules = [{"hosts": [host.lower() for host in rule.hosts], "uris": rule.paths} for rule in found]
    return Claimant(str(key), rules, reasons) if reasons else None

"""Problems that providers add to those of translations: conflicts, shared hosts, unreadable specs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import structlog

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, KubeObject, why_first
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.hosts.shared_hosts import shared_hosts
from apisix_ingress.state.world import World
from translation.core.options import Options

log = structlog.get_logger()

SHARED_HOST = "HostShared"
"""Problem code: a host is used in several namespaces. The condition mentions it and stays True."""

_OWNERSHIP = "ask the operator to set kubernetes.host_ownership: namespace"

CRASHED = "InternalError"
"""Problem code: the translation crashed. The traceback is logged separately."""

TOO_DEEP = "NestedTooDeeply"

_MOST_LOGGED = 20
"""Limit of logged problems per object."""


def unread(item: KubeObject | None) -> Problem | None:
    """Return the problem of an object whose current spec cannot be read; the last readable spec stays published."""
    if not isinstance(item, CustomObject) or item.unread is None:
        return None
    reason, before = item.unread.reason, item.unread.generation
    stays = f"generation {before} stays in effect" if before else "its records in the gateways stay as they are"
    message = f"generation {item.meta.generation} cannot be read ({reason}): {stays}; flatten the object"
    return Problem(TOO_DEEP, message, "", "degraded" if before else "error")


def conflicts(world: World, owner: ObjectKey) -> Iterator[Problem]:
    """Yield a problem for each record of an object that belongs to another one."""
    for key, winner in sorted(world.desired.lost(owner).items()):
        yield Problem("Conflicted", f"the record {key} belongs to {_winner(world, winner, owner)}", "", "degraded")


def shared(world: World, options: Options, owner: ObjectKey) -> Iterator[Problem]:
    """Yield a problem for each host that other namespaces use too, if hosts may be shared."""
    if options.host_ownership == "shared":
        records = world.desired.of_owner(owner).values()
        for note in world.neighbours.notes(owner, shared_hosts(records)):
            yield Problem(SHARED_HOST, f"{note}; use different hosts, or {_OWNERSHIP}", "", "warning")


def _winner(world: World, winner: ObjectKey, owner: ObjectKey) -> str:
    """Name the winner of a conflict and why it wins; either object may be gone by now."""
    items = [world.stores[key.kind].get(key) for key in (winner, owner)]
    ages = [item.meta.age for item in items if item is not None]
    return f"{_stranger(winner, owner)}, which {why_first(*ages)}" if len(ages) == 2 else _stranger(winner, owner)


def _stranger(winner: ObjectKey, owner: ObjectKey) -> str:
    """Name the winner of a conflict; if it is in another namespace, disclose only its kind and namespace."""
    if not winner.namespace or winner.namespace == owner.namespace:
        return str(winner)
    return f"an {winner.kind} in namespace {winner.namespace}"


def log_problems(owner: ObjectKey, problems: Iterable[Problem]) -> None:
    """Log the problems of an object.

    Shared hosts appear only in the condition: where many namespaces share a host on purpose, a line for each of
    thousands of objects at every start would bury the other lines.
    """
    logged = [problem for problem in problems if problem.code not in (CRASHED, SHARED_HOST)]
    if len(logged) > _MOST_LOGGED:
        log.warning("object.problems_left_out", object=str(owner), count=len(logged) - _MOST_LOGGED)
    for problem in logged[:_MOST_LOGGED]:
        log.warning("object.problem", object=str(owner), code=problem.code, path=problem.path, message=problem.message)

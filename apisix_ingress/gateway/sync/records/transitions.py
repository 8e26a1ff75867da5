"""The state machine of a record in one gateway cluster: phase and event → next phase and effects. Pure.

`driver` performs the effects. A pair that is not in the table is a bug and raises `InvalidTransition`. A flight is one
request to the gateway; writes and deletes that are ordered during a flight are handled after it.

    idle, rejected ── wanted, unwanted ──► ready ── started ──► in flight ── succeeded ──► idle
                                            │ ▲                    │ ▲
                                    blocked │ │ unblocked   wanted │ │
                                            ▼ │           unwanted ▼ │
                                          blocked                 changed  (ends as in flight, but in ready)

    in flight ── failed, unknown ──► ready ── retry later ──► retrying ── its time ──► started, blocked, ...
    in flight ── rejected, closed ──► ready ── still rejected ──► rejected

After a rejection, the closing record of a route may have to be written before the record comes to rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Phase(StrEnum):
    """The phase of a record."""

    IDLE = "idle"
    """Nothing is outstanding."""
    READY = "ready"
    """A write or delete is outstanding: it is queued, or delayed by other writes or the rate limit."""
    BLOCKED = "blocked"
    """Another record has to be written or deleted first."""
    IN_FLIGHT = "in-flight"
    """A request is in flight."""
    CHANGED = "changed"
    """A request is in flight, and another write or delete was ordered since it started."""
    RETRYING = "retrying"
    """The last attempt failed; the next one waits for its backoff."""
    REJECTED = "rejected"
    """The gateway rejected it; it is retried when its body changes, or after a long time."""


class Event(StrEnum):
    """An event of a record."""

    WANTED = "wanted"
    """It is desired, and may differ."""
    UNWANTED = "unwanted"
    """It is not desired, and may exist."""
    STARTED = "started"
    """A request was sent."""
    SUCCEEDED = "succeeded"
    """The gateway carried the request out."""
    CLOSED = "closed"
    """The gateway has the closing record of a record that cannot be written."""
    WRITE_REJECTED = "write-rejected"
    """The gateway rejected this body."""
    FAILED = "failed"
    """The request was certainly not carried out."""
    UNKNOWN = "unknown"
    """The request may have been carried out."""
    RETRY_LATER = "retry-later"
    """It is to be retried after its backoff."""
    RETRY_NOW = "retry-now"
    """It is to be retried as soon as the cluster can be written to."""
    GAVE_UP = "gave-up"
    """It failed so often that deletes no longer wait for it."""
    BLOCK = "block"
    """Another record has to change first."""
    UNBLOCK = "unblock"
    """The record that it waited for changed."""
    HANDED_OVER = "handed-over"
    """The holder of one of its exclusive keys was written or deleted."""
    AS_WANTED = "as-wanted"
    """It is as desired."""
    LEFT = "left"
    """It differs and must stay unchanged: it is held, or another client created it."""
    STILL_REJECTED = "still-rejected"
    """The write was rejected before, and its retry is not due yet."""
    FOUND = "found"
    """The gateway was read and has it."""
    CONFIRMED = "confirmed"
    """The gateway was read and has it as expected."""
    MISSING = "missing"
    """The gateway was read and does not have it."""
    FOREIGN = "foreign"
    """The gateway was read and has a record of another client under its key."""
    REPORTED_MISSING = "reported-missing"
    """The gateway rejected another record because it does not find this one."""


class Effect(StrEnum):
    """An effect of an event. *Counted* writes are writes that deletes wait for."""

    ORDER = "order"  # the write or delete is outstanding, at once or at the end of the flight
    TAKE_NEXT = "take-next"  # what was ordered during the flight becomes outstanding
    TAKE_NEXT_IN_PLACE = "take-next-in-place"  # the same, in the batch of what it replaces
    DROP_ORDER = "drop-order"  # nothing is outstanding
    STOP_COUNTING = "stop-counting"  # deletes no longer wait for its write
    WAIT = "wait"  # it waits for another record; deletes that waited for it are queued, and no others wait meanwhile
    RESUME = "resume"  # its write is counted again, in its previous batch
    START = "start"  # from now on both bodies are taken into account
    KEEP_WRITTEN = "keep-written"  # the gateway has what was sent; records that get its keys are queued
    KEEP_UNWRITTEN = "keep-unwritten"  # the gateway has what it had before
    KEEP_REJECTED = "keep-rejected"  # the same, because the gateway rejected what was sent
    KEEP_UNKNOWN = "keep-unknown"  # the gateway has one or the other
    KEEP_FOUND = "keep-found"
    KEEP_MISSING = "keep-missing"
    KEEP_FOREIGN = "keep-foreign"
    KEEP_REPORTED_MISSING = "keep-reported-missing"
    CLEAR_CONFLICTS = "clear-conflicts"  # neither a rejection nor another record's exclusive key matters any more
    CLEAR_FAILURES = "clear-failures"  # the backoff starts again, since the cause of the failures has changed
    BACK_OFF = "back-off"  # count the failure, and queue it for after its backoff
    ENQUEUE = "enqueue"
    UNBLOCK_OTHERS = "unblock-others"  # queue the records that wait for it, and the deletes that waited for its write
    REPORT = "report"  # report its state to the observer
    SETTLE = "settle"  # forget its errors, unblock others, and report its state


class InvalidTransition(Exception):
    """The event is not possible in the phase, which is a bug in the engine."""


Outcome = tuple[Phase, tuple[Effect, ...]]

_P, _E, _F = Phase, Event, Effect
_SETTLED = (_F.DROP_ORDER, _F.SETTLE)

# The gateway was read. Readers skip records that were written meanwhile, since the response may be outdated for them.
_READ: dict[Event, tuple[Effect, ...]] = {
    _E.FOUND: (_F.KEEP_FOUND, _F.UNBLOCK_OTHERS),
    _E.CONFIRMED: (_F.KEEP_FOUND,),
    _E.MISSING: (_F.KEEP_MISSING, _F.UNBLOCK_OTHERS),
    _E.FOREIGN: (_F.KEEP_FOREIGN, _F.UNBLOCK_OTHERS),
    _E.REPORTED_MISSING: (_F.KEEP_REPORTED_MISSING,),
}


def _unsent(phase: Phase) -> dict[Event, Outcome]:
    """Return the transitions of a record that is not in flight."""
    return {
        _E.WANTED: (_P.READY, (_F.ORDER, _F.ENQUEUE)),
        _E.UNWANTED: (_P.READY, (_F.ORDER, _F.ENQUEUE)),
        _E.STARTED: (_P.IN_FLIGHT, (_F.START,)),
        _E.RETRY_LATER: (_P.RETRYING, (_F.BACK_OFF,)),
        _E.RETRY_NOW: (_P.READY, (_F.ENQUEUE,)),
        _E.BLOCK: (_P.BLOCKED, (_F.WAIT, _F.UNBLOCK_OTHERS, _F.REPORT)),
        _E.UNBLOCK: (phase, ()),
        _E.HANDED_OVER: (phase, (_F.CLEAR_FAILURES, _F.ENQUEUE)),
        _E.AS_WANTED: (_P.IDLE, (_F.CLEAR_CONFLICTS, *_SETTLED)),
        _E.LEFT: (_P.IDLE, _SETTLED),
        _E.STILL_REJECTED: (_P.REJECTED, _SETTLED),
        **{event: (phase, effects) for event, effects in _READ.items()},
    }


def _in_flight(phase: Phase) -> dict[Event, Outcome]:
    """Return the common transitions of a record that is in flight."""
    return {
        _E.WANTED: (_P.CHANGED, (_F.ORDER, _F.ENQUEUE)),
        _E.UNWANTED: (_P.CHANGED, (_F.ORDER, _F.ENQUEUE)),
        _E.UNBLOCK: (phase, ()),
        _E.HANDED_OVER: (phase, (_F.CLEAR_FAILURES, _F.ENQUEUE)),
        _E.REPORTED_MISSING: (phase, _READ[_E.REPORTED_MISSING]),
    }


TRANSITIONS: Mapping[Phase, Mapping[Event, Outcome]] = MappingProxyType(
    {
        _P.IDLE: _unsent(_P.IDLE),
        _P.REJECTED: _unsent(_P.REJECTED),
        _P.READY: _unsent(_P.READY),
        _P.RETRYING: {
            **_unsent(_P.RETRYING),
            _E.GAVE_UP: (_P.RETRYING, (_F.STOP_COUNTING, _F.UNBLOCK_OTHERS, _F.REPORT)),
            _E.HANDED_OVER: (_P.READY, (_F.CLEAR_FAILURES, _F.ENQUEUE)),
        },
        _P.BLOCKED: {
            **_unsent(_P.BLOCKED),
            _E.STARTED: (_P.IN_FLIGHT, (_F.RESUME, _F.START)),
            _E.RETRY_LATER: (_P.RETRYING, (_F.RESUME, _F.BACK_OFF)),
            _E.RETRY_NOW: (_P.READY, (_F.RESUME, _F.ENQUEUE)),
            _E.UNBLOCK: (_P.READY, (_F.RESUME, _F.ENQUEUE)),
        },
        _P.IN_FLIGHT: {
            **_in_flight(_P.IN_FLIGHT),
            _E.SUCCEEDED: (_P.IDLE, (_F.KEEP_WRITTEN, *_SETTLED)),
            _E.CLOSED: (_P.READY, (_F.KEEP_WRITTEN, _F.ENQUEUE)),
            _E.WRITE_REJECTED: (_P.READY, (_F.KEEP_REJECTED, _F.REPORT, _F.ENQUEUE)),
            _E.FAILED: (_P.READY, (_F.KEEP_UNWRITTEN,)),
            _E.UNKNOWN: (_P.READY, (_F.KEEP_UNKNOWN,)),
        },
        _P.CHANGED: {
            **_in_flight(_P.CHANGED),
            _E.SUCCEEDED: (_P.READY, (_F.KEEP_WRITTEN, _F.TAKE_NEXT, _F.SETTLE)),
            _E.CLOSED: (_P.READY, (_F.KEEP_WRITTEN, _F.TAKE_NEXT, _F.SETTLE)),
            _E.WRITE_REJECTED: (_P.READY, (_F.KEEP_REJECTED, _F.TAKE_NEXT, _F.SETTLE)),
            _E.FAILED: (_P.READY, (_F.KEEP_UNWRITTEN, _F.TAKE_NEXT_IN_PLACE)),
            _E.UNKNOWN: (_P.READY, (_F.KEEP_UNKNOWN, _F.TAKE_NEXT_IN_PLACE)),
        },
    }
)

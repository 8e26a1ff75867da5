"""Safe records: what is published instead of a record with a fault.

A record is not left out: requests of a missing route would be served by a route with a shorter path, and a gateway
keeps a plugin config as long as a route refers to it. It is closed: it matches the same requests and responds with 503.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKind
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from translation.closing import ABORT, closings
from translation.core.options import Options
from translation.hosts.matching import is_network
from translation.safety.code import OF_USER
from translation.safety.expressions import MOST_PATTERNS, SKIPPED, TOO_MANY_PATTERNS, patterns_of, regex_faults
from translation.safety.faults import UNSAFE, Fault, dotted
from translation.safety.nodes import MOST_MATCHERS, crowding_fault, limited, matchers, name_faults, retry_faults
from translation.safety.plugins import Setting, plugin_faults, redirects_all, weight_faults
from translation.safety.references import reference_faults
from translation.safety.variables import variable_faults

_MOST_REPORTED = 10
"""Maximum number of problems for one object."""

_CLOSED_BY_PLUGIN: frozenset[RecordKind] = frozenset({"plugin_configs", "consumers", "consumer_groups"})
"""Kinds whose plugins become those of routes."""

_DISCOVERY = ("service_name", "discovery_type", "discovery_args")
"""The fields of an upstream that replace its nodes."""

_EFFECTS: Mapping[RecordKind, tuple[str, str]] = {
    "routes": ("route", "its requests get 503"),
    "plugin_configs": ("plugin config", "requests for its routes get 503"),
    "consumers": ("consumer", "its requests get 503"),
    "consumer_groups": ("consumer group", "requests of its consumers get 503"),
    "upstreams": ("upstream", "it has no nodes"),
    "global_rules": ("global rule", "the plugin is left out"),
    "ssls": ("certificate", "it is left out"),
    "stream_routes": ("stream route", "the plugin is left out"),
}
"""Kind → its name, and the effect of a fault."""


def safe_records(records: Sequence[Record], options: Options) -> tuple[tuple[Record, ...], tuple[Problem, ...]]:
    """Return records without faults, and the problems of the closed ones."""
    found = [faults_of(record.key.kind, record.body, options) for record in records]
    problems: list[Problem] = []
    if options.plugins == "reviewed":
        _crowd(records, found)
        records, problems = _limited(records)
    if not any(found):
        return tuple(records), tuple(problems)
    pairs = list(zip(records, found, strict=True))
    problems += [_problem(record, fault) for record, faults in pairs for fault in faults]
    safe = (_closed(record, faults) if faults else record for record, faults in pairs)
    return tuple(record for record in safe if record), tuple(problems[:_MOST_REPORTED])


def _crowd(records: Sequence[Record], found: Sequence[list[Fault]]) -> None:
    """Add a fault to each route that makes the matchers or patterns of an object, or of a host, too many."""
    left = MOST_MATCHERS
    known: set[str] = set()
    for record, faults in zip(records, found, strict=True):
        known.update(patterns_of(record.body) if record.key.kind == "routes" else ())
        if len(known) > MOST_PATTERNS and "vars" in record.body:
            faults.append(Fault(("vars",), TOO_MANY_PATTERNS))
            continue
        fields = matchers(record.body) if record.key.kind == "routes" else {}
        left -= sum(fields.values())
        if left < 0 and fields:
            faults.append(crowding_fault(fields))


def _limited(records: Sequence[Record]) -> tuple[list[Record], list[Problem]]:
    """Return records with bounded work for many nodes, and the problems of records that lack a part for this reason."""
    pairs = [limited(record) for record in records]
    problems = [
        Problem(UNSAFE, f"upstream {record.name}: checks {what}", severity="degraded") for record, what in pairs if what
    ]
    return [record for record, _ in pairs], problems


def faults_of(kind: RecordKind, body: FrozenJson, options: Options) -> list[Fault]:
    """Return the faults of a record."""
    plugins = body.get("plugins")
    judges = options.plugins == "reviewed" and kind != "global_rules"
    found: list[Fault] = [*regex_faults(body), *variable_faults(body)] if judges else []
    if plugins:
        # A route may replace the redirect of its plugin config.
        redirects = kind == "routes" and redirects_all(plugins)
        setting = Setting(options, judges, bool(body.get("hosts")), not redirects)
        found += plugin_faults(plugins, setting)
    if options.code_plugins == "refuse" and "filter_func" in body:
        found.append(Fault(("filter_func",), OF_USER))
    if options.secret_references == "refuse":
        found += reference_faults(plugins, ("plugins",)) if kind != "ssls" else reference_faults(body)
    if kind == "upstreams":
        found += [*weight_faults(body), *retry_faults(body), *(name_faults(body) if judges else ())]
    if "remote_addrs" in body:
        found += _network_faults(body["remote_addrs"])
    return found


def _network_faults(addresses: Sequence[str]) -> Iterator[Fault]:
    """Yield the first wrong address: the gateway accepts some that break the routes of all objects."""
    if not all(map(is_network, addresses)):
        yield Fault(("remote_addrs",), "has a value that is neither an IP address nor a CIDR range such as 10.0.0.0/8")


def record_in(problem: Problem) -> str:
    """Return the name of the record that a problem of this module is about; empty for any other problem."""
    what, colon, _ = problem.message.partition(": ")
    noun, space, name = what.rpartition(" ")
    return name if colon and space and noun in _NOUNS else ""


_NOUNS = frozenset(noun for noun, _ in _EFFECTS.values())


def _problem(record: Record, fault: Fault) -> Problem:
    noun, effect = _EFFECTS[record.key.kind]
    if fault.steps[: len(SKIPPED)] == SKIPPED:
        effect = "every path requires a client certificate"
    message = f"{noun} {record.name}: {dotted(fault.steps)} {fault.what}. Until then, {effect}"
    return Problem(fault.code, message, severity="degraded")


def _closed(record: Record, faults: Sequence[Fault]) -> Record | None:
    """Return the record that is published instead; None for a certificate, without which handshakes fail."""
    body, kind = record.body, record.key.kind
    faulty = {fault.steps[0] for fault in faults}
    if kind == "routes":
        return next(closings(replace(record, body={name: body[name] for name in body if name not in faulty})))
    if kind == "upstreams":
        return replace(record, body={**{name: body[name] for name in body if name not in _DISCOVERY}, "nodes": []})
    if kind == "ssls" and all(fault.steps[: len(SKIPPED)] == SKIPPED for fault in faults):
        client = {name: its for name, its in body["client"].items() if name != SKIPPED[-1]}
        return replace(record, body={**body, "client": client})
    if kind == "ssls":
        return None
    unsafe = {fault.steps[1] for fault in faults}
    plugins = {name: its for name, its in body["plugins"].items() if name not in unsafe}
    return replace(record, body={**body, "plugins": {**plugins, **(ABORT if kind in _CLOSED_BY_PLUGIN else {})}})

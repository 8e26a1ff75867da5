"""The notation of a review: a verdict, the reason, and a rule for each field.

Paths are written as in `translation.plugins.notation`. Paths without a rule are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from translation.plugins.notation import ANY, ITEM, expanded, steps_of

FRAMES = "copies every header of its server into responses, even Content-Length, which would end them early"
"""Why some plugins that call a server are rejected: see `translation.safety.framing`."""

READS = "reads what its server sends without a pause or limit: one that sends tiny chunks occupies a gateway"
"""Why plugins may not call a server of a user. Functions call theirs with `new_client`, which pauses and limits."""


class Kind(Enum):
    """What a field contains, and how it is treated. The reference shows the text."""

    PLAIN = "Strings, numbers and flags that do not refer to anything outside the plugin. Some numbers have a maximum."
    FREE = "Any content, which the gateway treats as data."
    HOST = "A host, with or without a port. It must pass `kubernetes.external_addresses`."
    HOSTS = "A mapping whose keys are hosts. Each must pass `kubernetes.external_addresses`."
    URL = "A plain http or https URL. Its host must pass `kubernetes.external_addresses`."
    PATH = "A path that is appended to an address. It must begin with `/`."
    REWRITES = "Pairs of a pattern and its replacement, which must begin with `/` or with a group that always does."
    WORD = "A part of an address: letters, digits, `-` and `_` only."
    SELECTOR = "A name, or a JSONPath without filters, lists and slices and with at most one `..`."
    SHARED = "A name that all routes of a gateway share. The controller adds the namespace as a prefix."
    CACHE_KEY = "The key of a cache that all routes of a gateway share. The controller adds the namespace as a prefix."
    UNCOMPRESSED = (
        "Conditions of a part that decompresses a response in memory. The controller adds the condition that the"
        " response is not compressed."
    )
    CONSUMER = "The username of a consumer of the object's namespace."
    CODE = "Code, subject to `kubernetes.code_plugins`."
    PLUGINS = "Plugins inside this plugin. Each is reviewed."
    REFUSED = "Rejected; see the reason."


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule for one field.

    Attributes:
        path: The field.
        kind: What it contains.
        reason: Why it is rejected, if it is.
    """

    path: str
    kind: Kind
    reason: str = ""


@dataclass(slots=True)
class Node:
    """A field in the tree of a plugin: its rule, its fields by name, by any name, and those of its items."""

    rule: Rule | None = None
    fields: dict[str, Node] = field(default_factory=dict)
    any: Node | None = None
    items: Node | None = None

    @property
    def kind(self) -> Kind | None:
        """What the field contains; None if only its fields are known."""
        return self.rule.kind if self.rule else None


@dataclass(frozen=True, slots=True)
class Plugin:
    """The review of one plugin.

    Attributes:
        reason: Why it is allowed or rejected, as the rest of a sentence.
        rules: The rules of its fields.
        allowed: Whether objects may use it.
        for_consumers: Whether an ApisixConsumer may use it; otherwise only routes.
        older: Fields that earlier versions of the plugin had and this one lacks.
    """

    reason: str
    rules: tuple[Rule, ...] = ()
    allowed: bool = False
    for_consumers: bool = False
    older: frozenset[str] = frozenset()


def allow(reason: str, refused: Mapping[str, str] | None = None, *, older: str = "", **rules: str) -> Plugin:
    """Return the review of a plugin that routes may use.

    Args:
        reason: Why.
        refused: Fields → why they are rejected.
        older: Harmless fields of earlier versions.
        rules: Kind in lower case → fields, separated by spaces.
    """
    found = [Rule(path, Kind[kind.upper()]) for kind, paths in rules.items() for path in expanded(paths)]
    found += [Rule(path, Kind.PLAIN) for path in expanded(older)]
    found += [Rule(path, Kind.REFUSED, why) for paths, why in (refused or {}).items() for path in expanded(paths)]
    return Plugin(reason, tuple(found), allowed=True, older=frozenset(expanded(older)))


def credentials(reason: str, *, older: str = "", **rules: str) -> Plugin:
    """Return the review of a plugin that consumers may use as well."""
    return replace(allow(reason, None, older=older, **rules), for_consumers=True)


def refuse(reason: str) -> Plugin:
    """Return the review of a plugin that is rejected."""
    return Plugin(reason)


def tree(rules: tuple[Rule, ...]) -> Node:
    """Return rules as a tree, which is walked together with a configuration."""
    root = Node()
    for rule in rules:
        node = root
        for step in steps_of(rule.path):
            node = _below(node, step)
        node.rule = rule
    return root


def _below(node: Node, step: str) -> Node:
    if step == ITEM:
        node.items = node.items or Node()
        return node.items
    if step == ANY:
        node.any = node.any or Node()
        return node.any
    return node.fields.setdefault(step, Node())

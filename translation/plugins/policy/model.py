"""How the review of a plugin is written down: a verdict, the reason, and a rule for each field.

A path is written as in a message: `rules[].match` is a field of each item of a list, `headers.*` any key of a mapping,
`checks.{host,port}` two fields. A list of texts or numbers needs no brackets. A path that no rule names is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum


class Kind(Enum):
    """What a field holds, and so what is done about it. The text describes it in the reference."""

    PLAIN = "Texts, numbers and flags that name nothing outside the plugin."
    FREE = "Any content, which the gateway treats as data."
    HOST = "A host, with or without a port. `kubernetes.external_addresses` decides about it."
    HOSTS = "A mapping whose keys are hosts. `kubernetes.external_addresses` decides about each."
    URL = "A plain URL of http or https. `kubernetes.external_addresses` decides about its host."
    PATH = "A path that is appended to an address. It must begin with `/`."
    REWRITES = "Pairs of a pattern and what replaces it, which must begin with `/` or with a group that always does."
    WORD = "A part of an address: letters, digits, `-` and `_` only."
    PORT = "A port that is probed. Those that `kubernetes.internal_addresses` lists with a host are refused."
    SHARED = "A name that all routes of a gateway share. The controller adds the namespace as a prefix."
    CACHE_KEY = "The key of a cache that all routes of a gateway share. The controller adds the namespace as a prefix."
    CONSUMER = "The username of a consumer, which must be one of the object's namespace."
    CODE = "Code. `kubernetes.code_plugins` decides about it."
    PLUGINS = "Plugins inside this plugin. Each is reviewed."
    REFUSED = "Refused; see the reason."


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for one field.

    Attributes:
        path: The field.
        kind: What it holds.
        reason: Why it is refused, where it is.
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
        """What the field holds; None where only its fields are known."""
        return self.rule.kind if self.rule else None


@dataclass(frozen=True, slots=True)
class Plugin:
    """The review of one plugin.

    Attributes:
        reason: Why it is allowed or refused, as the rest of a sentence.
        rules: What its fields hold.
        allowed: Whether objects may have it.
        for_consumers: Whether an ApisixConsumer may have it; otherwise only routes.
        older: Fields that earlier versions of the plugin had and this one lacks.
    """

    reason: str
    rules: tuple[Rule, ...] = ()
    allowed: bool = False
    for_consumers: bool = False
    older: frozenset[str] = frozenset()


def allow(reason: str, refused: Mapping[str, str] | None = None, *, older: str = "", **rules: str) -> Plugin:
    """Return the review of a plugin that routes may have.

    Args:
        reason: Why.
        refused: Fields → why these are refused.
        older: Harmless fields of earlier versions.
        rules: Kind in lower case → fields, with blanks between them.
    """
    found = [Rule(path, Kind[kind.upper()]) for kind, paths in rules.items() for path in _paths(paths)]
    found += [Rule(path, Kind.PLAIN) for path in _paths(older)]
    found += [Rule(path, Kind.REFUSED, why) for paths, why in (refused or {}).items() for path in _paths(paths)]
    return Plugin(reason, tuple(found), allowed=True, older=frozenset(_paths(older)))


def credentials(reason: str, *, older: str = "", **rules: str) -> Plugin:
    """Return the review of a plugin that consumers may have as well."""
    return replace(allow(reason, None, older=older, **rules), for_consumers=True)


def refuse(reason: str) -> Plugin:
    """Return the review of a plugin that nobody may have."""
    return Plugin(reason)


def tree(rules: tuple[Rule, ...]) -> Node:
    """Return rules as a tree, to be walked together with a configuration."""
    root = Node()
    for rule in rules:
        node = root
        for step in re.findall(r"\[\]|[^.\[\]]+", rule.path):
            node = _below(node, step)
        node.rule = rule
    return root


def _below(node: Node, step: str) -> Node:
    if step == "[]":
        node.items = node.items or Node()
        return node.items
    if step == "*":
        node.any = node.any or Node()
        return node.any
    return node.fields.setdefault(step, Node())


def _paths(text: str) -> Iterator[str]:
    """Yield the paths of a list, with braces written out: `a.{b,c}` is `a.b` and `a.c`."""
    for path in text.split():
        head, brace, rest = path.partition("{")
        inner, _, tail = rest.partition("}")
        for choice in inner.split(",") if brace else ("",):
            yield from _paths(f"{head}{choice}{tail}") if brace else (path,)

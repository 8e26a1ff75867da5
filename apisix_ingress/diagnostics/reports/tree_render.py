"""The document of `tree` as text with branches, Graphviz, or Mermaid. All three show the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.secrets.redaction import escape


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A line of the tree and its children. `key` is equal for equal things in two places."""

    key: str
    label: str
    shape: str
    twigs: Sequence[TreeNode] = field(default_factory=tuple)


def twigs_of(document: JsonObject) -> list[TreeNode]:
    """Return the document as a tree of lines."""
    hosts = [
        TreeNode(f"host {host['host']}", host["host"], "host", [_path(host["host"], path) for path in host["paths"]])
        for host in document["hosts"]
    ]
    return hosts + [_stream(each) for each in document["streams"]]


def text_lines(document: JsonObject) -> Iterator[str]:
    """Yield the tree with its branches drawn."""
    for twig in twigs_of(document):
        yield escape(twig.label)
        yield from _branches(_merged(twig.twigs), "")


def _merged(twigs: Sequence[TreeNode]) -> list[TreeNode]:
    """Return paths with those of the same routes in one line, such as `/` and `/*` of a path of type Prefix."""
    found: dict[tuple[str, ...], list[TreeNode]] = {}
    for each in twigs:
        routes = tuple(route.key for route in each.twigs) if each.shape == "path" else (each.key,)
        found.setdefault(routes, []).append(each)
    return [replace(each[0], label=", ".join(path.label for path in each)) for each in found.values()]


def dot_lines(document: JsonObject) -> Iterator[str]:
    """Yield the tree as a Graphviz graph."""
    shapes = {"host": "house", "path": "plain", "route": "box", "upstream": "cds", "node": "ellipse"}
    numbers, nodes, edges = _graph(document)
    yield "digraph routes {"
    yield "  rankdir=LR;"
    for twig in nodes:
        yield f"  n{numbers[twig.key]} [label={_quoted(twig.label)}, shape={shapes[twig.shape]}];"
    for begin, end in edges:
        yield f"  n{numbers[begin]} -> n{numbers[end]};"
    yield "}"


def mermaid_lines(document: JsonObject) -> Iterator[str]:
    """Yield the tree as a Mermaid flow chart, which code hosts draw."""
    brackets = {
        "host": ("([", "])"),
        "path": ("[", "]"),
        "route": ("[", "]"),
        "upstream": ("[[", "]]"),
        "node": ("(", ")"),
    }
    numbers, nodes, edges = _graph(document)
    yield "flowchart LR"
    for twig in nodes:
        begin, end = brackets[twig.shape]
        yield f'  n{numbers[twig.key]}{begin}"{_entities(twig.label)}"{end}'
    for begin, end in edges:
        yield f"  n{numbers[begin]} --> n{numbers[end]}"


def _path(host: str, path: JsonObject) -> TreeNode:
    return TreeNode(f"path {host} {path['path']}", path["path"], "path", [_route(route) for route in path["routes"]])


def _stream(stream: JsonObject) -> TreeNode:
    where = " ".join(filter(None, (f"port {stream['port']}" if stream["port"] else "", stream["sni"])))
    return TreeNode(f"stream {stream['record']}", where or "every connection", "host", [_route(stream)])


def _route(route: JsonObject) -> TreeNode:
    extra = [route["listener"]] if route["listener"] else []
    extra += [", ".join(route["methods"])] if route["methods"] else []
    extra += [f"priority {route['priority']}"] if route["priority"] else []
    extra += [f"{route['conditions']} condition{'s' if route['conditions'] > 1 else ''}"] if route["conditions"] else []
    extra += [route["responds"]] if route["responds"] else []
    more = f" ({'; '.join(extra)})" if extra else ""
    label = f"{route['record']} {route['name']}{more}{_of(route['owner'])}"
    return TreeNode(route["record"], label, "route", [_upstream(each) for each in route["upstreams"]])


def _upstream(upstream: JsonObject) -> TreeNode:
    key = upstream["record"]
    label = f"{key} {upstream['name']}{_of(upstream['owner'])}"
    if upstream["missing"]:
        return TreeNode(key, f"{key}: missing", "upstream")
    if upstream["discovery"]:
        return TreeNode(key, f"{label}, found by {upstream['discovery']}", "upstream")
    if not upstream["nodes"]:
        return TreeNode(key, f"{label}: no nodes", "upstream")
    return TreeNode(key, label, "upstream", [_node(key, each) for each in upstream["nodes"]])


def _node(upstream: str, node: JsonObject) -> TreeNode:
    weight = "" if node["weight"] == 100 else f" weight {node['weight']}"
    return TreeNode(f"{upstream} {node['address']}", f"{node['address']}{weight}{_of(node['pod'])}", "node")


def _of(owner: str) -> str:
    return f" by {owner}" if owner else ""


def _branches(twigs: Sequence[TreeNode], indent: str) -> Iterator[str]:
    for number, twig in enumerate(twigs, 1):
        last = number == len(twigs)
        yield f"{indent}{'└─ ' if last else '├─ '}{escape(twig.label)}"
        yield from _branches(twig.twigs, indent + ("   " if last else "│  "))


def _graph(document: JsonObject) -> tuple[dict[str, int], list[TreeNode], list[tuple[str, str]]]:
    """Return numbers of nodes, the nodes and the edges; a thing in two places is one node."""
    nodes: dict[str, TreeNode] = {}
    edges: dict[tuple[str, str], None] = {}

    def walk(twig: TreeNode) -> None:
        nodes.setdefault(twig.key, twig)
        for each in twig.twigs:
            edges[twig.key, each.key] = None
            walk(each)

    for twig in twigs_of(document):
        walk(twig)
    return {key: number for number, key in enumerate(nodes)}, list(nodes.values()), list(edges)


def _quoted(text: str) -> str:
    return json.dumps(escape(text), ensure_ascii=False)


def _entities(text: str) -> str:
    """Escape what would end a Mermaid label, or begin markup in it, as entities."""
    return "".join(f"#{ord(char)};" if char in '"#<>&`\\' else char for char in escape(text))

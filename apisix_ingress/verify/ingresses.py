"""Requests derived from Ingress objects: hosts, paths and their edge cases, samples of regular expressions, canaries.

The annotations are those of ingress-nginx, whose users compare gateways.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

from rstr import Rstr

from apisix_ingress.model.formats.patterns import TextPattern, has_python_syntax
from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.verify.model import Probe

PREFIX = "nginx.ingress.kubernetes.io/"
WORD = "verify"
"""An unlikely path segment or label."""

ANY_HOST = "any-host.example"
"""Host of requests to a rule without a host."""

REGEX_SAMPLES = 3
_LONGEST_SAMPLE = 200
_SAFE = "/%:@!$&'()*+,;=~-._"


@dataclass(frozen=True, slots=True)
class _Rule:
    host: str
    paths: tuple[tuple[str, str], ...]
    """Path and its type."""


def probes_of(items: Iterable[CustomObject], *, samples: int) -> Iterator[Probe]:
    """Yield requests for Ingresses, for each host with the schemes that it is served by.

    Args:
        items: The Ingresses, in any order.
        samples: The number of repetitions of a request whose traffic is split by weight.
    """
    every = list(items)
    weighted = {
        host for item in every if _flag(item, "canary") and _note(item, "canary-weight") for host in _hosts(item)
    }
    for item in every:
        secured = {host for block in list_in(item.spec.get("tls")) for host in _texts(mapping_in(block).get("hosts"))}
        for rule in _rules(item):
            schemes = ("http", "https") if rule.host in secured else ("http",)
            if twin := _www(item, rule.host):
                for target in ("/", f"/{WORD}?a=1"):
                    probe = Probe(twin, target, origin=f"Ingress {item.meta.namespace}/{item.meta.name}")
                    yield from (replace(probe, scheme=scheme) for scheme in schemes)
            for host in _concrete(rule.host):
                split = samples if rule.host in weighted else 1
                for probe in _of_rule(item, rule, host, split):
                    yield from (replace(probe, scheme=scheme) for scheme in schemes)


def _of_rule(item: CustomObject, rule: _Rule, host: str, samples: int) -> Iterator[Probe]:
    origin = f"Ingress {item.meta.namespace}/{item.meta.name}"
    base = Probe(host, "/", origin=origin)
    yield base
    for number, (path, kind) in enumerate(rule.paths):
        targets = list(dict.fromkeys(_targets(item, path, kind)))
        for target in targets:
            yield replace(base, target=target)
        if not targets:
            continue
        first = replace(base, target=targets[0])
        yield replace(first, target=f"{targets[0]}?a=1&b=x%20y")
        if samples > 1:
            yield replace(first, samples=samples)
        if number == 0:
            yield replace(first, method="HEAD")
            yield from _preflights(item, first)
        yield from _canaries(item, first)


def _targets(item: CustomObject, path: str, kind: str) -> Iterator[str]:
    """Yield request targets at and around a path."""
    if kind != "Exact" and (_flag(item, "use-regex") or "$" in _note(item, "rewrite-target")):
        yield from _samples(path)
        return
    plain = quote(path or "/", safe=_SAFE)
    stem = plain.rstrip("/")
    yield plain
    yield f"{stem}/"
    yield stem or "/"
    yield f"{stem}/{WORD}/x"
    yield f"{stem}{WORD}" if stem else f"/{WORD}"
    if stem:
        yield f"/{stem}"  # two slashes in front
        yield stem.upper() if stem != stem.upper() else stem.lower()


_COUNTED = TextPattern(r"\{(\d+)")
_NESTED = TextPattern(r"(?s)\)[*+{].*\)[*+{]")
_SPECIAL = TextPattern(r"[\\^$.|?*+()\[\]{}]")
_MOST_COUNTED = 50
"""Maximum number of repetitions in a sampled pattern: a sample of nested ones would fill the memory."""


def _samples(pattern: str) -> Iterator[str]:
    """Yield strings that match a regular expression, always the same ones, and one that continues after a match."""
    source = Rstr(random.Random(pattern))
    cleaned = pattern.removeprefix("^").removesuffix("$")
    counts = [int(found[1]) for found in _COUNTED.finditer(cleaned)]
    try:
        if len(counts) > 2 or any(count > _MOST_COUNTED for count in counts) or _NESTED.found(cleaned):
            raise ValueError("too many repetitions")
        if not has_python_syntax(cleaned):
            raise ValueError("not a regular expression")
        found = [source.xeger(cleaned)[:_LONGEST_SAMPLE] for _ in range(REGEX_SAMPLES)]
    except (ValueError, KeyError, OverflowError):
        found = [_SPECIAL.split(cleaned)[0] or "/"]
    for text in found:
        target = quote("".join(char for char in text if char.isprintable()), safe=_SAFE)
        yield target if target.startswith("/") else f"/{target}"
    yield f"/{quote(found[0].lstrip('/'), safe=_SAFE)}/{WORD}"


def _preflights(item: CustomObject, first: Probe) -> Iterator[Probe]:
    if not _flag(item, "enable-cors"):
        return
    allowed = _note(item, "cors-allow-origin").split(",")[0].strip().replace("*.", f"{WORD}.")
    for origin in dict.fromkeys(
        (allowed if "://" in allowed else "https://origin.example", "https://stranger.example")
    ):
        asked = (("Origin", origin), ("Access-Control-Request-Method", "PUT"))
        yield replace(first, method="OPTIONS", headers=asked)
        yield replace(first, headers=asked[:1])


def _canaries(item: CustomObject, first: Probe) -> Iterator[Probe]:
    if not _flag(item, "canary"):
        return
    if header := _note(item, "canary-by-header"):
        own = _note(item, "canary-by-header-value") or "always"
        for value in dict.fromkeys((own, "always", "never", WORD)):
            yield replace(first, headers=((header, value),))
    if cookie := _note(item, "canary-by-cookie"):
        for value in ("always", "never", WORD):
            yield replace(first, headers=(("Cookie", f"{cookie}={value}"),))


def _rules(item: CustomObject) -> Iterator[_Rule]:
    aliases = _note(item, "server-alias").split(",")
    for raw in list_in(item.spec.get("rules")):
        rule = mapping_in(raw)
        host = rule.get("host")
        paths = tuple(
            (str(mapping_in(path).get("path") or "/"), str(mapping_in(path).get("pathType") or ""))
            for path in list_in(mapping_in(rule.get("http")).get("paths"))
        )
        for name in (host if isinstance(host, str) else "", *filter(None, (alias.strip() for alias in aliases))):
            yield _Rule(name, paths)
    if item.spec.get("defaultBackend"):
        yield _Rule("", (("/", "Prefix"),))


def _concrete(host: str) -> tuple[str, ...]:
    """Return hosts that a rule matches; for a wildcard, one that matches and one with an additional label."""
    if not host:
        return (ANY_HOST,)
    if host.startswith("*."):
        return f"{WORD}{host[1:]}", f"{WORD}.{WORD}{host[1:]}"
    return (host,)


def _www(item: CustomObject, host: str) -> str:
    """Return the host that from-to-www-redirect redirects; empty without the annotation."""
    if not host or host.startswith("*") or not _flag(item, "from-to-www-redirect"):
        return ""
    return host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"


def _hosts(item: CustomObject) -> Iterator[str]:
    return (rule.host for rule in _rules(item))


def _note(item: CustomObject, name: str) -> str:
    return item.meta.annotations.get(f"{PREFIX}{name}", "").strip()


def _flag(item: CustomObject, name: str) -> bool:
    return _note(item, name).lower() in ("true", "1", "t")


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in list_in(value) if isinstance(text, str))

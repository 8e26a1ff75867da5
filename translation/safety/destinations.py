"""Destinations of plugins, with the settings that reject some: each URL and host in a plugin, by its notation.

The review of plugins checks the same fields where users write them, and what a host is in the Kubernetes cluster. Here
they are checked where a gateway reads them, whatever wrote them: an annotation, a filter, a generated function.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from translation.addresses.host_policy import refusal
from translation.core.options import Options
from translation.plugins.notation import expanded, steps_of
from translation.safety.faults import Fault, Steps, every_text, texts_at
from translation.safety.fields import FIELDS, Use
from translation.safety.urls import address_of, authority_of

_WEB = ("http://", "https://")


def destination_faults(name: str, config: Any, options: Options) -> Iterator[Fault]:
    """Yield the destinations of a plugin that the settings reject. In an unknown plugin, every URL may be one."""
    if name not in FIELDS:
        for place, text in every_text(config):
            if text.lower().startswith(_WEB):
                yield from _judged(place, text, options, is_url=True)
        return
    for steps, is_url in _fields_of(name):
        for place, text in texts_at(config, steps):
            yield from _judged(place, text, options, is_url=is_url)


@cache
def _fields_of(name: str) -> tuple[tuple[tuple[str, ...], bool], ...]:
    """Return the fields of a plugin with destinations, and whether these are URLs."""
    uses = FIELDS[name]
    urls, hosts = (expanded(uses.get(use, "")) for use in (Use.URL, Use.HOST))
    return (*((steps_of(path), True) for path in urls), *((steps_of(path), False) for path in hosts))


def _judged(place: Steps, text: str, options: Options, *, is_url: bool) -> Iterator[Fault]:
    found = authority_of(text) if is_url else address_of(text)
    if found is None:
        yield Fault(place, "is not a plain address without variables, user names and escapes; write one")
    elif text != options.loopback and (rejected := refusal(options, found.host, found.port)):
        yield Fault(place, f"is {rejected.what}, which the setting {rejected.setting} rejects; use another host")

"""Why nothing is published although nothing is wrong, and the next command: for `status` and the status page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from apisix_ingress.diagnostics.claimants import KINDS
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.gateway_api import GATEWAY_KINDS
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject, IngressClass
from apisix_ingress.state.world import World
from translation.core.options import ANY_CLASS, Options
from translation.core.scope import INGRESS_CLASS_OF_ANY, in_scope, written_class
from translation.nginx.classes import why_not_as_nginx
from translation.serving import why_left_out

MOST_EXAMINED = 200
"""Objects that are examined for the reasons why they are not served: a cluster may have thousands of other classes."""

MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Hint:
    """What is missing.

    Attributes:
        text: One or two sentences.
        command: The next command; empty if there is no general one.
    """

    text: str = ""
    command: str = ""

    def document(self) -> JsonObject | None:
        """Return it as documents contain it."""
        return {"text": self.text, "command": self.command} if self.text else None


NO_HINT = Hint()


def empty_state(world: World, options: Options) -> Hint:
    """Return what is missing; an empty hint if objects that define routes are served."""
    if any(key.kind in KINDS for key in world.reports):
        return NO_HINT
    number = sum(len(world.stores[kind]) for kind in KINDS if kind in world.stores)
    name = class_name(world, options)
    if not number:
        missing = f"There is no {', '.join(_readable())} yet."
        return Hint(missing, _creation(name)) if name else Hint(f"{missing} {_no_class(options)}")
    return _of_others(world, options, number, name)


def class_name(world: World, options: Options) -> str:
    """Return the name of a class that this controller serves; empty if there is none."""
    store = world.stores.get("IngressClass")
    found = (item for item in (store.values() if store is not None else ()) if isinstance(item, IngressClass))
    ours = sorted(item.meta.name for item in found if item.controller == options.ingress_class_controller)
    configured = INGRESS_CLASS_OF_ANY if options.ingress_class == ANY_CLASS else options.ingress_class
    return configured if configured in ours or not ours else ours[0]


def _of_others(world: World, options: Options, number: int, name: str) -> Hint:
    reasons: dict[str, CustomObject] = {}
    view = world.view()
    for item in islice(_route_objects(world), MOST_EXAMINED):
        reasons.setdefault(why_left_out(item, view, options), item)
    described = "; ".join(f"{item.meta.key}: {why}" for why, item in islice(reasons.items(), MOST_REASONS))
    found = (
        "1 object defines routes, but it is not" if number == 1 else f"{number:,} objects define routes, but none is"
    )
    text = f"{found} served by this controller: {described}."
    if not name:
        return Hint(f"{text} {_no_class(options)}")
    return Hint(text, min(_command(item, world, options, name) for item in reasons.values())[1])


def _command(item: CustomObject, world: World, options: Options, name: str) -> tuple[int, str]:
    """Return how specific the next command for an object is, 0 for the best, and the command."""
    view, kind = world.view(), RESOURCES[item.meta.kind].plural
    if not in_scope(item.meta.namespace, view, options):
        return 3, "kubectl get namespaces --show-labels"
    if why_not_as_nginx(item, view, options):
        return 1, "apisix-ingress migrate"
    if item.meta.kind in GATEWAY_KINDS:
        return 4, f"kubectl -n {item.meta.namespace} describe {kind} {item.meta.name}"
    if written_class(item):
        return 2, _creation(name)
    patch = f'{{"spec":{{"ingressClassName":"{name}"}}}}'
    return 0, f"kubectl -n {item.meta.namespace} patch {kind} {item.meta.name} --type=merge -p '{patch}'"


def _route_objects(world: World) -> Iterator[CustomObject]:
    for kind in KINDS:
        store = world.stores.get(kind)
        yield from (item for item in (store.values() if store is not None else ()) if isinstance(item, CustomObject))


def _readable() -> Iterator[str]:
    *first, last = KINDS
    yield from first[:-1]
    yield f"{first[-1]} or {last}"


def _no_class(options: Options) -> str:
    return f"Create an IngressClass with spec.controller {options.ingress_class_controller}."


def _creation(name: str) -> str:
    return f"kubectl create ingress web --class={shlex.quote(name)} --rule='shop.example.org/*=web:80'"

"""Certificates that objects name and that no gateway has: the Secret is missing or invalid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from apisix_ingress.model.json import FrozenJson, list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.world import World


@dataclass(frozen=True, slots=True)
class WantedCertificate:
    """A certificate that should be in the gateways, and is not.

    Attributes:
        owner: The object that names it.
        hosts: Its hosts, in lower case.
        secret: The Secret that should contain it; None if the object names none.
        cause: Why it is missing.
    """

    owner: ObjectKey
    hosts: tuple[str, ...]
    secret: ObjectKey | None
    cause: str

    def matches(self, words: Iterable[str]) -> bool:
        """Return whether its names contain each of the words, in lower case."""
        text = "\n".join((str(self.owner), *self.hosts, str(self.secret or ""), "missing")).lower()
        return all(word in text for word in words)


def wanted_certificates(world: World, problems: Mapping[ObjectKey, tuple[Problem, ...]]) -> list[WantedCertificate]:
    """Return the certificates that are missing because of problems of objects, sorted by object."""
    return [each for owner in sorted(problems) for each in _of_object(world, owner, problems[owner])]


def missing_texts(wanted: Iterable[WantedCertificate]) -> dict[str, str]:
    """Return host → which object names a certificate for it that is missing, and why."""
    return {host: f"{each.owner} names one: {each.cause}" for host, each in by_host(wanted).items()}


def by_host(wanted: Iterable[WantedCertificate]) -> dict[str, WantedCertificate]:
    """Return host → the first missing certificate for it."""
    found: dict[str, WantedCertificate] = {}
    for each in wanted:
        for host in each.hosts:
            found.setdefault(host, each)
    return found


def _of_object(world: World, owner: ObjectKey, problems: Iterable[Problem]) -> Iterator[WantedCertificate]:
    store = world.stores.get(owner.kind)
    item = store.get(owner) if store is not None else None
    urgent = [each for each in problems if each.severity != "warning"]
    if not isinstance(item, CustomObject) or not urgent:
        return
    for path, hosts, secret in _places(item):
        cause = next((each.message for each in urgent if each.path.startswith(path)), "")
        has_earlier = any(key.kind == "ssls" for key in world.desired.of_owner(owner))
        if cause and hosts and not has_earlier:
            yield WantedCertificate(owner, tuple(str(host).lower() for host in hosts), secret, cause)


def _places(item: CustomObject) -> Iterator[tuple[str, list[str], ObjectKey | None]]:
    """Yield the fields of an object that name certificates, each with its hosts and its Secret."""
    namespace, spec = item.meta.namespace, item.spec
    if item.meta.kind == "ApisixTls":
        yield "spec", list_in(spec.get("hosts")), _secret(mapping_in(spec.get("secret")), namespace)
    elif item.meta.kind == "Ingress":
        for index, entry in enumerate(map(mapping_in, list_in(spec.get("tls")))):
            yield f"spec.tls[{index}]", list_in(entry.get("hosts")), _named(entry.get("secretName"), namespace)
    elif item.meta.kind == "Gateway":
        for index, listener in enumerate(map(mapping_in, list_in(spec.get("listeners")))):
            references = list_in(mapping_in(listener.get("tls")).get("certificateRefs"))
            secret = _secret(mapping_in(references[0]), namespace) if references else None
            yield f"spec.listeners[{index}].tls", [str(listener.get("hostname") or "*")], secret


def _secret(reference: FrozenJson, namespace: str) -> ObjectKey | None:
    return _named(reference.get("name"), str(reference.get("namespace") or namespace))


def _named(name: object, namespace: str) -> ObjectKey | None:
    return ObjectKey("Secret", namespace, str(name)) if name else None

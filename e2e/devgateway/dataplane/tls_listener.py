"""Certificates of the TLS listener, chosen by server name; without a certificate for the name, the handshake fails."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from e2e.devgateway.adminapi.record_kinds import plain_key
from e2e.devgateway.dataplane.client_hello import Incomplete, NotTls, server_name
from e2e.devgateway.store import Record, Records

PROTOCOLS = {
    "TLSv1.1": ssl.OP_NO_TLSv1_1,
    "TLSv1.2": ssl.OP_NO_TLSv1_2,
    "TLSv1.3": ssl.OP_NO_TLSv1_3,
}


class Alerting(ssl.SSLObject):
    """Sends the alert of a failed handshake.

    asyncio drops the connection at the first error, with the alert still in its buffer. If more input is requested
    instead, it sends the alert; the error follows with the client's next data.
    """

    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            self._failure = error
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "the alert is to be sent") from error


class Chosen:
    """Replaces the SSLObject until the server name is known.

    Changing the context inside OpenSSL's callback would change the certificate but not whether a client certificate
    is requested, so the object is created when the name is known.
    """

    def __init__(
        self, choose: Callable[[str | None], ssl.SSLContext], incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ):
        self._choose = choose
        self._incoming = incoming
        self._outgoing = outgoing
        self._chosen: ssl.SSLObject | None = None
        self.server_name: str | None = None

    def do_handshake(self) -> None:
        if self._chosen is None:
            data = self._incoming.read()
            self._incoming.write(data)
            try:
                name = server_name(data)
            except Incomplete as error:
                raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "the hello is incomplete") from error
            except NotTls:
                name = None
            self.server_name = name
            self._chosen = self._choose(name).wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._chosen.do_handshake()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chosen, name)


class ByName(ssl.SSLContext):
    """The listener's context: passes each connection to the context of its server name."""

    choose: Callable[[str | None], ssl.SSLContext]

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *_: Any, **__: Any) -> Any:
        return Chosen(self.choose, incoming, outgoing)


_EVERY = ""
"""Represents `*` in `sni`, which matches every name; in `snis` it matches one label."""


class Certificates:
    """Watches the ssl records; the first record for a name wins."""

    def __init__(self, store: Records) -> None:
        self._records: dict[str, Record] = {}
        self._names: dict[str, dict[str, None]] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._refusing = _server_context()
        self._refusing.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        store.subscribe(self._changed)

    def context(self) -> ssl.SSLContext:
        """Return the listener's context; each handshake selects its certificate by name."""
        context = ByName(ssl.PROTOCOL_TLS_SERVER)
        context.choose = self._choose
        return context

    def find(self, wanted: str) -> Record | None:
        """Return the record for a name: exact, else the longest wildcard, else `*`.

        A wildcard matches one label. A name with more labels has no certificate, even if there is one for `*`:
        APISIX, `radixtree_sni.lua`, looks at the best match only.
        """
        name = wanted.lower().rstrip(".")
        if exact := self._names.get(name):
            return self._records[next(iter(exact))]
        suffixes = (name[dot:] for dot, letter in enumerate(name) if letter == ".")
        for candidate in (*(f"*{suffix}" for suffix in suffixes), "*"):
            for record in self._names.get(candidate, ()):
                return self._records[record] if _covers(self._records[record], name) else None
        return next((self._records[record] for record in self._names.get(_EVERY, ())), None)

    def _choose(self, wanted: str | None) -> ssl.SSLContext:
        record = self.find(wanted) if wanted else None
        if record is None:
            return self._refusing
        context = self._contexts.get(record.name)
        if context is None:
            try:
                context = self._contexts[record.name] = build_context(record)
            except (ssl.SSLError, OSError, ValueError):
                return self._refusing
        return context

    def _changed(self, kind: str, name: str, record: Record | None) -> None:
        if kind != "ssls":
            return
        self._contexts.pop(name, None)
        old = self._records.pop(name, None)
        old_names, new_names = _names(old), _names(record)
        for gone in old_names - new_names:
            self._names[gone].pop(name, None)
        if record is not None:
            self._records[name] = record
            for wanted in new_names:
                self._names.setdefault(wanted, {})[name] = None


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = Alerting
    return context


def _names(record: Record | None) -> set[str]:
    if record is None or record.value.get("status", 1) == 0 or record.value.get("type") == "client":
        return set()
    value = record.value
    if value.get("sni") == "*":
        return {_EVERY}
    return {name.lower() for name in ([value["sni"]] if "sni" in value else value.get("snis", []))}


def _covers(record: Record, name: str) -> bool:
    """Return whether a record serves a name that one of its wildcards matches, as `match_and_set` decides it."""
    snis = [record.value["sni"]] if "sni" in record.value else record.value.get("snis", [])
    return any("." not in name[::-1][max(len(sni) - 1, 0) :] for sni in snis)


def build_context(record: Record) -> ssl.SSLContext:
    """Build the context of one record; raises SSLError if certificate and key do not belong together."""
    value = record.value
    context = _server_context()
    for cert, key in zip(
        [value["cert"], *value.get("certs", [])], [value["key"], *value.get("keys", [])], strict=False
    ):
        load_pair(context, cert, plain_key(key) or "")
    if allowed := value.get("ssl_protocols"):
        for protocol, option in PROTOCOLS.items():
            if protocol not in allowed:
                context.options |= option
    client = value.get("client")
    if client is not None:
        context.load_verify_locations(cadata=client["ca"])
        context.verify_mode = ssl.CERT_OPTIONAL if "skip_mtls_uri_regex" in client else ssl.CERT_REQUIRED
    return context


def load_pair(context: ssl.SSLContext, cert: str, key: str) -> None:
    """Load a pair given as text: the ssl module reads files only."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(cert.rstrip() + "\n" + key)
        file.flush()
        context.load_cert_chain(Path(file.name))

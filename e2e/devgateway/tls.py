"""Certificates of the TLS listener, chosen by server name; a name without certificate fails the handshake."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from e2e.devgateway.resources import plain_key
from e2e.devgateway.store import Record, Store

PROTOCOLS = {
    "TLSv1.1": ssl.OP_NO_TLSv1_1,
    "TLSv1.2": ssl.OP_NO_TLSv1_2,
    "TLSv1.3": ssl.OP_NO_TLSv1_3,
}


class Certificates:
    """Follows the ssl records; the first record made for a name wins it."""

    def __init__(self, store: Store) -> None:
        self._records: dict[str, Record] = {}
        self._names: dict[str, dict[str, None]] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}
        store.subscribe(self._changed)

    def context(self) -> ssl.SSLContext:
        """Return the listener's context; every handshake picks its certificate by name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = self._choose
        return context

    def find(self, server_name: str) -> Record | None:
        """Return the record for a name: exact, then wildcard of one label, then `*`."""
        name = server_name.lower().rstrip(".")
        _, dot, parent = name.partition(".")
        for candidate in (name, f"*.{parent}" if dot else "*", "*"):
            for record in self._names.get(candidate, ()):
                return self._records[record]
        return None

    def _choose(self, sslobj: ssl.SSLObject, server_name: str | None, _: ssl.SSLContext) -> int | None:
        record = self.find(server_name) if server_name else None
        if record is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        try:
            sslobj.context = self._context(record)
        except (ssl.SSLError, OSError, ValueError):
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        return None

    def _context(self, record: Record) -> ssl.SSLContext:
        context = self._contexts.get(record.name)
        if context is None:
            context = self._contexts[record.name] = build_context(record)
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
            for server_name in new_names:
                self._names.setdefault(server_name, {})[name] = None


def _names(record: Record | None) -> set[str]:
    if record is None or record.value.get("status", 1) == 0 or record.value.get("type") == "client":
        return set()
    value = record.value
    return {name.lower() for name in ([value["sni"]] if "sni" in value else value.get("snis", []))}


def build_context(record: Record) -> ssl.SSLContext:
    """Build the context of one record; raises SSLError if certificate and key do not belong together."""
    value = record.value
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
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
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def load_pair(context: ssl.SSLContext, cert: str, key: str) -> None:
    """Load a pair given as text: the ssl module reads files only."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(cert.rstrip() + "\n" + key)
        file.flush()
        context.load_cert_chain(Path(file.name))

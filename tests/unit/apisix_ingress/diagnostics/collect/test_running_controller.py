"""Responses of servers other than a controller, at the address that a user specifies."""

from __future__ import annotations

from io import BytesIO

import pytest

from apisix_ingress.diagnostics.collect import running_controller
from apisix_ingress.diagnostics.reports.status import Filter
from apisix_ingress.errors import IngressError


class Opener:
    """Responds to every request with one body."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def open(self, request: object, timeout: float) -> BytesIO:
        return BytesIO(self._content)


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b"{}", b"[" * 100_000, b'{"a":' * 100_000, b"\xff"])
async def test_what_is_not_a_status_is_reported(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_controller, "build_opener", lambda *handlers: Opener(content))

    with pytest.raises(IngressError, match="is not of its status page"):
        await running_controller.read_status("http://localhost:8080", Filter())


async def test_all_pages_of_a_list_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile server may announce any number of pages, each as large as one response may be."""
    page = b'{"items": [1], "pages": 1000}'
    monkeypatch.setattr(running_controller, "build_opener", lambda *handlers: Opener(page))
    monkeypatch.setattr(running_controller, "LARGEST_LIST", 2 * len(page))

    with pytest.raises(IngressError, match="the list hosts is larger than"):
        await running_controller.read_list("http://localhost:8080", "hosts", {})

"""Fixtures of the stories about the status page: a browser, and its users."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Dialog, expect

from e2e.browser import launched
from e2e.controller import Controller
from e2e.stories.operation.page_reader import PATIENCE, WATCH, Look, Reader


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all stories of a module."""
    expect.set_options(timeout=PATIENCE)
    with launched() as found:
        yield found


@pytest.fixture
def look(browser: Browser) -> Iterator[Look]:
    """A function that returns a new reader of a controller's page; arguments as for a browser context."""
    with ExitStack() as stack:

        def begin(controller: Controller, **options: Any) -> Reader:
            context = browser.new_context(**options)
            stack.callback(context.close)
            context.add_init_script(WATCH)
            context.set_default_timeout(PATIENCE)
            reader = Reader(context, context.new_page(), controller.url)
            context.on("dialog", lambda dialog: _note_dialog(reader, dialog))
            reader.page.on("pageerror", lambda error: reader.wrong.append(f"error {error}"))
            reader.page.on("request", lambda request: _note_foreign(reader, request.url))
            return reader

        yield begin


def _note_dialog(reader: Reader, dialog: Dialog) -> None:
    reader.wrong.append(f"dialog {dialog.message}")
    dialog.dismiss()


def _note_foreign(reader: Reader, url: str) -> None:
    if urlsplit(url).scheme != "data" and not url.startswith(f"{reader.url}/status"):
        reader.wrong.append(f"request {url}")

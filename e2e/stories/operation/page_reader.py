"""A user of the status page in a real browser."""

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from playwright.sync_api import BrowserContext, Page

PATIENCE = 20_000
"""Milliseconds within which a page must show the expected content."""

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""


@dataclass
class Reader:
    """A user with a browser, and the errors that occurred."""

    context: BrowserContext
    page: Page
    url: str
    wrong: list[str] = field(default_factory=list)

    def open(self, where: str = "", **query: str) -> Page:
        """Open a page of the status page and return it."""
        address = f"{self.url}/status{where}" + (f"?{urlencode(query)}" if query else "")
        reply = self.page.goto(address, wait_until="load")
        assert reply is not None
        assert reply.status in (200, 400, 404), f"{address}: {reply.status}"
        return self.page

    def assert_well(self) -> None:
        """Assert that no page opened a dialog, left the host, broke the policy or logged an error."""
        assert self.wrong == []
        assert self.page.evaluate("window.violations") == []


Look = Callable[..., Reader]

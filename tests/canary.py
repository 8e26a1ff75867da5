"""Canary secrets for tests without a cluster: secrets with a mark, and the search for the mark in all output.

The keys of the fakes contain the mark. A test fails if its captured output or log contains it.
"""

import base64
from collections.abc import Generator, Iterable

import pytest

MARK = "c4n4ry5ecret"
"""Its length is a multiple of three, so that it has few base64 forms."""


def marked(text: str) -> str:
    """Return a secret that is recognized in any output."""
    return f"{MARK}-{text}"


def _forms() -> tuple[str, ...]:
    """Return the mark and its base64 forms at every offset."""
    shifted = (base64.b64encode(b"." * shift + MARK.encode()).decode() for shift in range(3))
    return (MARK, *(text[4 if shift else 0 : -4] for shift, text in enumerate(shifted)))


FORMS = _forms()


def shown_in(sections: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of the captured sections with a canary."""
    return [name for name, text in sections if any(form in text for form in FORMS)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that leaks a canary."""
    report = yield
    # A report repeats what the phases before it captured.
    own = [section for section in report.sections if section[0].endswith(str(report.when))]
    if report.passed and (places := shown_in(own)):
        report.outcome = "failed"
        report.longrepr = f"a secret is shown: {', '.join(places)}"
    return report

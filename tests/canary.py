"""Canaries of the tests without a cluster: secrets with a mark, and the search for the mark in whatever is printed.

The fakes' keys carry the mark. A test whose captured output or log shows it fails, whatever it tested.
"""

import base64
from collections.abc import Generator, Iterable

import pytest

MARK = "c4n4ry5ecret"
"""Its length is a multiple of three, so that base64 has few ways to write it."""


def marked(text: str) -> str:
    """Return a secret that can be told wherever it turns up."""
    return f"{MARK}-{text}"


def _forms() -> tuple[str, ...]:
    """Return the mark, and what of it base64 shows wherever it begins in the encoded text."""
    shifted = (base64.b64encode(b"." * shift + MARK.encode()).decode() for shift in range(3))
    return (MARK, *(text[4 if shift else 0 : -4] for shift, text in enumerate(shifted)))


FORMS = _forms()


def shown_in(sections: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of the captured sections that show a canary."""
    return [name for name, text in sections if any(form in text for form in FORMS)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that shows a canary."""
    report = yield
    # A report repeats what the phases before it captured.
    own = [section for section in report.sections if section[0].endswith(str(report.when))]
    if report.passed and (places := shown_in(own)):
        report.outcome = "failed"
        report.longrepr = f"a secret is shown: {', '.join(places)}"
    return report

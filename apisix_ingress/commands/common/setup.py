"""Shared by commands that read manifests, an API server or gateways: settings, progress, output."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import structlog

from apisix_ingress.commands.common.output import Report, colours, painted, print_report_json, settings_of
from apisix_ingress.errors import IngressError
from apisix_ingress.model.secrets.redaction import escape
from apisix_ingress.observability.log import setup_logging
from apisix_ingress.settings import Settings

T = TypeVar("T")
Step = Callable[[str], None]

_CLEAR_LINE = "\r\x1b[2K"
"""Moves the cursor of a terminal to the beginning of the line, and clears the line."""


def quiet_settings(config: Path | None, overrides: dict[str, Any]) -> Settings:
    """Return the settings, overridden by the command line, and turn logging off.

    Failures are in the report, or end the command with their message.
    """
    settings: Settings = settings_of(config, overrides)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return settings


def offline_settings(config: Path | None) -> Settings:
    """Return the settings of an offline command; only bugs of the program are logged."""
    settings: Settings = settings_of(config)
    setup_logging("error", settings.log.format)
    return settings


def run_with_progress(work: Callable[[Step], Coroutine[Any, Any, T]], *, deadline: float | None = None) -> T:
    """Run a slow operation; a terminal shows the current step.

    Args:
        work: The operation; it describes its current step.
        deadline: Seconds for all of it; None: no limit.

    Raises:
        IngressError: The time is over.
    """
    with _progress() as show:
        return asyncio.run(_limited(work, show, deadline))


async def _limited(work: Callable[[Step], Coroutine[Any, Any, T]], show: Step, deadline: float | None) -> T:
    current = "connecting"

    def step(what: str) -> None:
        nonlocal current
        current = what
        show(what)

    try:
        async with asyncio.timeout(deadline) as limit:
            return await work(step)
    except TimeoutError:
        if not limit.expired():
            raise
    raise IngressError(
        f"{current}: not finished within {deadline:g} s: a server is too slow, or its response does not end; check the"
        " address, or increase --timeout"
    )


def _as_it_is(lines: Iterable[str]) -> Iterable[str]:
    return lines


def print_report(
    document: dict[str, Any],
    lines: Iterable[str],
    output: str,
    *,
    paint: Callable[[Iterable[str]], Iterable[str]] = _as_it_is,
) -> None:
    """Print a document, or its text form; `paint` adds colours to the latter."""
    if output == Report.json:
        print_report_json(document)
    else:
        sys.stdout.writelines(f"{line}\n" for line in paint(map(escape, lines)))


def print_painted(lines: Iterable[tuple[str, str]]) -> None:
    """Print lines, each in its colour on a terminal; an empty colour is the default one."""
    is_on = colours()
    for line, colour in lines:
        print(painted(escape(line), colour, is_on=is_on and bool(colour)))


@contextmanager
def _progress() -> Iterator[Step]:
    """Provide a function that shows the current step on stderr; it does nothing unless stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda what: None
        return

    def show(what: str) -> None:
        sys.stderr.write(f"{_CLEAR_LINE}{escape(what)[: shutil.get_terminal_size().columns - 1]}")
        sys.stderr.flush()

    show("starting")
    try:
        yield show
    finally:
        sys.stderr.write(_CLEAR_LINE)
        sys.stderr.flush()

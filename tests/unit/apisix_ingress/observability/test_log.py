"""The format of log lines, without secrets and forged lines."""

import io
import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import orjson
import pytest
import structlog

from apisix_ingress.model.secrets import redaction
from apisix_ingress.observability.log import register_secret, setup_logging


@pytest.fixture(autouse=True)
def untouched_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the configuration of structlog and of the standard library."""
    monkeypatch.setattr(redaction, "_registered", set())
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


class Output(io.BytesIO):
    """The output stream; optionally a terminal."""

    def __init__(self, *, terminal: bool = False) -> None:
        super().__init__()
        self.text = io.TextIOWrapper(self, encoding="utf-8", write_through=True)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def lines(self) -> list[str]:
        return self.getvalue().decode().splitlines()

    def events(self) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in self.lines()]


def start(
    format: Literal["auto", "console", "json"] = "json",
    level: Literal["debug", "info", "warning", "error"] = "info",
    *,
    terminal: bool = False,
) -> tuple[Output, Any]:
    output = Output(terminal=terminal)
    setup_logging(level, format, stream=output.text)
    return output, structlog.get_logger()


def raise_canary() -> None:
    raise ValueError("refused c4n4ry-value\n2026-01-01T00:00:00Z [error    ] forged password=c4n4ry")


def test_line_is_json_with_event_level_time_and_keys() -> None:
    output, log = start()
    log.info("record.put", cluster="default", duration_s=0.01)
    (got,) = output.events()
    assert got.pop("timestamp").endswith("Z")
    fields = {"cluster": "default", "duration_s": 0.01}
    assert got == {"event": "record.put", "level": "info", "message": "a record was created or updated", **fields}


def test_bound_and_context_values_are_part_of_the_line() -> None:
    output, log = start()
    with structlog.contextvars.bound_contextvars(object="ApisixRoute default/web"):
        log.bind(cluster="a").warning("record.rejected")
    (got,) = output.events()
    assert (got["object"], got["cluster"], got["level"]) == ("ApisixRoute default/web", "a", "warning")


def test_events_below_the_level_are_not_logged() -> None:
    output, log = start(level="warning")
    log.info("record.put")
    log.warning("record.rejected")
    assert [event["event"] for event in output.events()] == ["record.rejected"]


@pytest.mark.parametrize(
    ("format", "terminal", "want"),
    [("auto", True, False), ("auto", False, True), ("json", True, True), ("console", False, False)],
)
def test_auto_is_console_on_a_terminal_only(
    format: Literal["auto", "console", "json"], terminal: bool, want: bool
) -> None:
    output, log = start(format, terminal=terminal)
    log.info("record.put")
    (line,) = output.lines()
    assert line.startswith("{") is want
    assert ("\x1b" in line) is (terminal and not want)


@pytest.mark.parametrize("format", ["json", "console"])
def test_no_canary_gets_into_a_line(format: Literal["json", "console"]) -> None:
    output, log = start(format)
    register_secret("c4n4ry-value")
    log = log.bind(admin_key="c4n4ry")
    log.info("config.read c4n4ry-value", nested={"tls": [{"private_key": "c4n4ry"}]}, text="is c4n4ry-value")
    log.info("request.sent", headers={"X-API-KEY": "c4n4ry", "Host": "gw"}, url="http://u:c4n4ry@gw/")
    log.info("secret.read", body=b"-----BEGIN PRIVATE KEY-----\nc4n4ry\n-----END PRIVATE KEY-----")
    log.info("stack.shown c4n4ry-value", stack_info=True)
    try:
        raise_canary()
    except ValueError as error:
        log.exception("sync.failed", error=error)
        logging.getLogger("aiohttp.server").exception("failed with %s", "c4n4ry-value")
        logging.getLogger("kubernetes").warning("header Authorization: Bearer c4n4ry.c4n4ry")
    text = "\n".join(output.lines())
    assert "c4n4ry" not in text
    assert text.count("[redacted]") >= 9


@pytest.mark.parametrize("value", ["a\n{}", "a\r\n{}", "a\u2028{}", "a\x85{}", "a\x0b{}"])
def test_a_value_cannot_start_a_new_line(value: str) -> None:
    forged = "2026-01-01T00:00:00Z [info     ] lease.lost"
    for format in ("json", "console"):
        output, log = start(format)
        text = value.format(forged)
        log.info("record.put", record=text, nested={text: [text]})
        log.info(text)
        assert len(output.lines()) == 2
        assert not any(line.startswith(forged) for line in output.lines())


def test_an_error_text_cannot_start_a_new_line() -> None:
    output, log = start("console")
    try:
        raise_canary()
    except ValueError:
        log.exception("sync.failed")
    first, *rest = output.lines()
    assert "sync.failed" in first
    assert all(line.startswith("  | ") for line in rest)
    assert any("forged" in line for line in rest)


def test_no_value_is_too_odd_to_be_logged() -> None:
    output, log = start()
    log.info("odd", surrogate="\ud800", large=2**200, nan=float("nan"), object=object, key_of={1: {2: ()}})
    (got,) = output.events()
    assert (got["surrogate"], got["large"], got["nan"]) == ("\\ud800", str(2**200), None)


def test_libraries_are_heard_from_warnings_up_in_the_same_format() -> None:
    output, _ = start(level="debug")
    logging.getLogger("aiohttp.access").info("GET /")
    logging.getLogger("kubernetes.client.rest").debug("response body")
    logging.getLogger("asyncio").warning("took %s seconds", 3)
    (got,) = output.events()
    del got["timestamp"]
    text = "took 3 seconds"
    assert got == {"event": text, "level": "warning", "message": text, "logger": "asyncio"}


def test_full_disk_or_closed_pipe_does_not_stop_the_program() -> None:
    class Full(Output):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    output = Full()
    setup_logging("info", "json", stream=output.text)
    structlog.get_logger().info("record.put")
    assert output.lines() == []


@pytest.mark.parametrize("format", ["json", "console"])
def test_dropped_lines_are_counted_once_there_is_room(format: Literal["json", "console"]) -> None:
    class Full(Output):
        full = True

        def write(self, data: Any) -> int:
            if self.full:
                raise OSError(28, "No space left on device")
            return super().write(data)

    output = Full()
    setup_logging("info", format, stream=output.text)
    for _ in range(3):
        structlog.get_logger().info("record.put")
    output.full = False
    logging.getLogger("asyncio").warning("took 3 seconds")
    reported, line = output.lines()
    assert ("log.incomplete" in reported, "3" in reported, "took 3 seconds" in line) == (True, True, True)


def test_the_program_ends_with_an_unread_log_pipe() -> None:
    script = "from apisix_ingress.observability.log import setup_logging; import logging, structlog\nsetup_logging()\n"
    script += "for number in range(2000): structlog.get_logger().info('lost', text='x' * 100)\n"
    script += "logging.getLogger('asyncio').warning('lost as well')"
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) as program:
        assert program.wait() == 0


def test_program_starts_with_its_standard_streams_closed() -> None:
    script = "from apisix_ingress.observability.log import setup_logging; import os, structlog\nsetup_logging()\n"
    script += "structlog.get_logger().info('lost')\nraise SystemExit(7 if os.open('/', os.O_RDONLY) > 2 else 1)"
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", script], check=False)
    assert done.returncode == 7


def test_set_up_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output, log = start("console", terminal=True)
        try:
            raise_canary()
        except ValueError:
            log.exception("sync.failed")
    assert "sync.failed" in output.lines()[0]


def test_level_and_time_of_a_line_cannot_be_passed_in() -> None:
    output, log = start()
    log.info("record.put", timestamp="2020-01-01T00:00:00Z")
    (got,) = output.events()
    assert not got["timestamp"].startswith("2020")

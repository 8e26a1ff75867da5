"""Configures structlog once at the start: JSON lines, or a console format on a terminal.

Every line, including lines of libraries, is redacted before it is rendered. Modules get their loggers from
`structlog.get_logger`, not from here.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor

from apisix_ingress.model.secrets.redaction import escape, redact_text, register_secret, sanitize_mapping
from apisix_ingress.observability.log_messages import describe, ordered
from apisix_ingress.observability.log_stream import LogStream
from apisix_ingress.startup.std_streams import open_streams

__all__ = ["register_secret", "setup_logging"]

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# Keys with tracebacks, which contain line breaks.
_MULTILINE = ("exception", "stack")
_STAMP = structlog.processors.TimeStamper(fmt="iso", utc=True)
_CHATTY_LIBRARIES = ("aiohttp", "asyncio", "httpx", "httpcore", "kubernetes", "urllib3")


class _Lines(logging.Handler):
    """Writes the lines of the standard library's loggers to the program's log."""

    def __init__(self, outlet: LogStream) -> None:
        super().__init__()
        self._outlet = outlet

    def emit(self, record: logging.LogRecord) -> None:
        self._outlet.write(_encode(None, "", self.format(record)) + b"\n")


def setup_logging(
    level: Literal["debug", "info", "warning", "error"] = "info",
    format: Literal["auto", "console", "json"] = "auto",
    *,
    stream: TextIO | None = None,
) -> None:
    """Write the program's log and the warnings of its libraries to `stream` (default: stderr).

    ``auto`` selects the console format on a terminal and JSON otherwise. Call it once, before the first line is
    logged: loggers keep the configuration of their first use.
    """
    if stream is None:
        open_streams()
        stream = sys.stderr
    console = format == "console" or (format == "auto" and stream.isatty())
    shared = _shared_processors(console)
    render = _console_renderer(stream) if console else _render_json
    outlet = LogStream(
        stream.buffer, render_dropped=lambda count: _encode(None, "", render(None, "", _dropped(count))) + b"\n"
    )
    structlog.configure(
        processors=[*shared, render, _encode],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.BytesLoggerFactory(outlet),  # type: ignore[arg-type]  # write and flush are all it needs
        cache_logger_on_first_use=True,
    )
    _route_libraries(outlet, shared, render)


def _dropped(count: int) -> EventDict:
    """Return the event that reports dropped lines."""
    remedy = "make sure that the log consumer keeps up and that its disk has free space"
    line = {"event": "log.incomplete", "level": "warning", "lines": count, "remedy": remedy}
    return _STAMP(None, "", dict(describe(None, "", line)))


def _shared_processors(console: bool) -> list[Processor]:
    """Return the processors that run before rendering."""
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        describe,
        redact,
        # After the redaction, so that values of an event cannot override these keys.
        structlog.processors.add_log_level,
        _STAMP,
    ]
    return [*processors, _indent_tracebacks] if console else [*processors, ordered]


def redact(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Mask secrets and escape control characters in every value of `event` (a structlog processor)."""
    texts = {name: event.pop(name) for name in _MULTILINE if name in event}
    sanitized: dict[str, Any] = sanitize_mapping(event)
    for name, text in texts.items():
        sanitized[name] = escape(redact_text(str(text)), keep="\n\t")
    return sanitized


def _indent_tracebacks(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Prefix each line of a traceback with a bar, so that no line of an error's text looks like a log line."""
    for name in _MULTILINE:
        if name in event:
            event[name] = "\n".join(f"  | {line}" for line in event[name].splitlines())
    return event


def _console_renderer(stream: TextIO) -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback, sort_keys=False
    )


def _render_json(_logger: object, _method: str, event: EventDict) -> str:
    return orjson.dumps(event).decode()


def _encode(_logger: object, _method: str, line: Any) -> bytes:
    return str(line).encode("utf-8", "backslashreplace")


def _route_libraries(outlet: LogStream, shared: list[Processor], render: Processor) -> None:
    """Route the standard library's loggers, from level warning on, into the program's log."""

    def take_record(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        record: logging.LogRecord = event.pop("_record")
        event.pop("_from_structlog", None)
        return {"logger": record.name, **event}

    formatter = structlog.stdlib.ProcessorFormatter(processors=[take_record, *shared, render])
    handler = _Lines(outlet)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for library in _CHATTY_LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)

"""The logger of the program's HTTP servers: a client must not be able to fill the log."""

import logging

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

log = structlog.get_logger()

# Invalid HTTP, an invalid body, or a connection that closed during the body: handlers open no other connections.
_CLIENT_ERRORS = (HttpProcessingError, web.RequestPayloadError, ConnectionError)


def _is_server_error(record: logging.LogRecord) -> bool:
    """Return whether to log a record; log errors of clients at debug level, without a traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, _CLIENT_ERRORS):
        return True
    client = record.args[0] if isinstance(record.args, tuple) and record.args else ""
    log.debug("http.malformed", client=str(client), error=type(error).__name__)
    return False


def server_logger() -> logging.Logger:
    """Return the logger for `web.AppRunner`; aiohttp's other loggers are unchanged."""
    logger = logging.getLogger("aiohttp.server.apisix_ingress")
    # Adding the same filter again has no effect.
    logger.addFilter(_is_server_error)
    return logger

"""What the HTTP servers of the program log of themselves: not what anybody who reaches the port can have them log."""

import logging

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

log = structlog.get_logger()

# No HTTP, a body that is none, a connection that went while the body was read: the handlers open no other connections.
_FAULTS_OF_CLIENTS = (HttpProcessingError, web.RequestPayloadError, ConnectionError)


def _is_own_fault(record: logging.LogRecord) -> bool:
    """Let everything pass but the faults of clients, which are said at debug, without a traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, _FAULTS_OF_CLIENTS):
        return True
    client = record.args[0] if isinstance(record.args, tuple) and record.args else ""
    log.debug("http.malformed", client=str(client), error=type(error).__name__)
    return False


def server_logger() -> logging.Logger:
    """Return the logger to give to `web.AppRunner`; others of aiohttp are as they were."""
    logger = logging.getLogger("aiohttp.server.apisix_ingress")
    # The same filter twice is one.
    logger.addFilter(_is_own_fault)
    return logger

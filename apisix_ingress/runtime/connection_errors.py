"""Why a server could not be reached: one text for the API server and for gateways, instead of that of aiohttp."""

from __future__ import annotations

import os
import ssl

import aiohttp


def unreachable(error: Exception, check: str) -> str:
    """Return why no connection was made, or an empty text if the error is a different one.

    Args:
        error: From aiohttp.
        check: What to check if the certificate of the server is not trusted.
    """
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"cannot resolve the host name {error.host}"
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as why):
            return f"the certificate of {error.host}:{error.port} is not valid ({why.verify_message}): check {check}"
        case aiohttp.ClientConnectorError() if not isinstance(error, aiohttp.ClientSSLError):
            # asyncio writes a text of its own when it tries several addresses; the system's text is clearer.
            number = error.os_error.errno
            reason = os.strerror(number) if number else error.os_error.strerror or str(error.os_error) or "refused"
            return f"cannot connect to {error.host}:{error.port}: {reason}"
    return ""

"""Texts and times in the API server's formats: bounded messages, RFC 3339. No I/O."""

from __future__ import annotations

import hashlib
from datetime import datetime

from apisix_ingress.model.secrets.redaction import redact_text

MESSAGE_LIMIT = 1024
"""Maximum characters of an Event's message; a condition's may be longer, but longer ones are not read."""


def bounded_message(text: str) -> str:
    """Return a message without secrets and of at most 1,024 characters.

    A long message ends with a hash of the whole, so that messages that differ only near the end stay different.
    """
    text = redact_text(text)
    if len(text) <= MESSAGE_LIMIT:
        return text
    tail = f"... ({hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]})"
    return text[: MESSAGE_LIMIT - len(tail)] + tail


def timestamp(moment: datetime) -> str:
    """Return RFC 3339 in UTC, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

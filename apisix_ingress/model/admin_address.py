"""The Admin API of a cluster as data: its address, key and version, and their validation. No requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from apisix_ingress.model.formats.patterns import TextPattern, ValuePattern
from apisix_ingress.model.network.ip_address import is_ip

PUBLISHED_KEYS = frozenset({"edd1c9f034335f136f87ad84b625c8f1", "4054f7cf07e344346cd3f287985e76a2"})
"""The admin and viewer keys of APISIX's default configuration, which are public."""

PUBLISHED_KEY = (
    "is a key from APISIX's default configuration, which is public: set a secret one in the gateway "
    "(deployment.admin.admin_key of its config.yaml) and here"
)

HEADER_VALUE = ValuePattern(r"[\x21-\x7e]*")
"""Characters that are allowed in an HTTP header value."""

_VERSION = TextPattern(r"APISIX/([0-9]{1,6})\.([0-9]{1,6})")
_URL_REMEDY = "use the form http://127.0.0.1:9180/apisix/admin"


@dataclass(frozen=True, slots=True)
class AdminAddress:
    """The address of a cluster's Admin API.

    Attributes:
        url: As `check_admin_url` returns it.
        key: The admin key; empty: requests are sent without a key.
    """

    url: str
    key: str = field(default="", repr=False)


def check_admin_url(text: str) -> str:
    """Return the URL of an Admin API without a trailing slash. An error does not repeat it: it may contain a password.

    Raises:
        ValueError: It is invalid.
    """
    try:
        parts = urlsplit(text)
        port_is_valid = parts.port != 0
    except ValueError as error:
        raise ValueError(f"is not a URL ({error}); {_URL_REMEDY}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_valid:
        raise ValueError(f"must be an http or https URL; {_URL_REMEDY}")
    if "@" in parts.netloc:
        raise ValueError("must not contain credentials; the admin key has its own field")
    if parts.query or parts.fragment or not HEADER_VALUE.fits(text):
        raise ValueError(f"must be plain, without query, fragment or spaces; {_URL_REMEDY}")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def version_of(server: str) -> tuple[int, int] | None:
    """Return the (major, minor) version from the Server header of a gateway; None if there is no version."""
    match = _VERSION.search(server)
    return (int(match[1]), int(match[2])) if match else None


def is_exposed(url: str) -> bool:
    """Return whether requests to a URL, and the admin key in them, can be read on the network."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_loopback = host == "localhost" or (is_ip(host) and (host == "::1" or host.startswith("127.")))
    return parts.scheme == "http" and not is_loopback

"""Affinity cookies: a hash of the cookie selects the backend; a client without a cookie gets one.

The first request of a client is balanced by the value that its cookie will have, so that the client does not move.
"""

from __future__ import annotations

import re

from apisix_ingress.model.keys import ObjectKey
from translation.nginx.effects.balancing.backends import cookie_name, service_values
from translation.nginx.effects.branches import Site
from translation.nginx.tables.values import integer

_DOMAIN = re.compile(r"\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


def affinity_cookie(site: Site, scheme: str) -> tuple[str, str] | None:
    """Return the name and value of the cookie for clients without one, or None."""
    backend = site.location.backend
    if site.values.text("affinity") != "cookie" or backend is None:
        return None
    # Cookies belong to the Service: the first Ingress that names it configures them.
    values = service_values(site, ObjectKey("Service", site.namespace, backend.name))
    name = cookie_name(values)
    parts = [f"{name}=$request_id"]
    age, expires = integer(values.text("session-cookie-max-age")), integer(values.text("session-cookie-expires"))
    if age is not None and age >= 0:
        parts.append(f"Max-Age={age}")
    elif expires is not None and expires >= 0:
        parts.append(f"Max-Age={expires}")
    if _DOMAIN.fullmatch(values.text("session-cookie-domain")):
        parts.append(f"Domain={values.text('session-cookie-domain')}")
    path = values.text("session-cookie-path")
    parts.append(f"Path={path if path.startswith('/') and ';' not in path else site.location.given or '/'}")
    same_site = values.text("session-cookie-samesite")
    if scheme == "https" or values.flag("session-cookie-secure"):
        parts.append("Secure")
    parts.append("HttpOnly")
    if same_site in ("None", "Lax", "Strict"):
        parts.append(f"SameSite={same_site}")
    return name, "; ".join(parts)

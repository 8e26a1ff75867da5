"""The syntax of names in Kubernetes, which is that of DNS."""

from __future__ import annotations

from apisix_ingress.model.formats.patterns import ValuePattern

LABEL = ValuePattern(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", longest=63)
"""The name of a namespace."""
SUBDOMAIN = ValuePattern(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", longest=253)
"""The name of most other objects."""

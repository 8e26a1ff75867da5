"""Namespace: its labels select the objects that are handled, its annotation assigns hosts.

A change queues every object of the namespace, of which there may be thousands, and who asked for its hosts.
"""

from __future__ import annotations

from providers.core.dependency import DependencyProvider


class NamespaceProvider(DependencyProvider):
    """Queues the owners whose translations read a Namespace."""

    kind = "Namespace"

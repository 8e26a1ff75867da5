"""Namespace: its labels select which objects are handled, and its annotation assigns hosts.

A change queues every object of the namespace, possibly thousands, and the objects that looked up its hosts.
"""

from __future__ import annotations

from providers.core.dependency import DependencyProvider


class NamespaceProvider(DependencyProvider):
    """Queues the owners whose translations read a Namespace."""

    kind = "Namespace"

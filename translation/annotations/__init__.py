"""Annotations of an Ingress under `k8s.apisix.apache.org/`: what they add to its routes and upstreams.

A registry: one small function for each plugin that annotations make. A bad value is a problem that names the
annotation. Where it guards access (authentication, address lists, methods) it fails the Ingress; anything else is
left out with a warning.
"""

from translation.annotations.registry import RouteAnnotations, read_annotations

__all__ = ["RouteAnnotations", "read_annotations"]

"""Annotations of an Ingress under `k8s.apisix.apache.org/`: the plugins and upstream settings they define.

A registry with one small function per plugin. An invalid value is a problem that names the annotation. If it protects
access (authentication, address lists, methods), the Ingress fails; otherwise the value is ignored with a warning.
"""

from translation.annotations.registry import RouteAnnotations, read_annotations

__all__ = ["RouteAnnotations", "read_annotations"]

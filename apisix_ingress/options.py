"""From settings to the options of translations."""

from __future__ import annotations

from apisix_ingress.settings import KubernetesSettings
from translation.context import Options


def translation_options(kubernetes: KubernetesSettings) -> Options:
    """Return the options that the settings ask for."""
    return Options(
        ingress_class=kubernetes.ingress_class,
        ingress_class_controller=kubernetes.ingress_class_controller,
        controller_name=kubernetes.controller_name,
        endpoint_source=kubernetes.endpoint_source,
        cross_namespace=kubernetes.cross_namespace,
        namespace_selector=kubernetes.selector,
    )

"""The registry of annotations: the functions that generate plugins from them, and their other effects on routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from apisix_ingress.model.json import JsonObject
from apisix_ingress.state.claims import UpstreamOverrides
from translation.annotations import access, rewriting
from translation.annotations.reader import PREFIX, Annotations
from translation.annotations.upstream import overrides
from translation.core.context import Context
from translation.plugins.configs import Plugins, review

PLUGINS: tuple[Callable[[Annotations], Plugins], ...] = (
    access.cors,
    access.address_lists,
    rewriting.proxy_rewrite,
    rewriting.redirect,
    access.forward_auth,
    access.authentication,
    access.csrf,
    rewriting.response,
)
"""Each generates its own plugins, or none; add a function here for a new annotation."""

_SOURCES = {"forward-auth": "auth-uri"}
"""Plugin → the annotation that contains its address."""


@dataclass(frozen=True, slots=True)
class RouteAnnotations:
    """The effect of the annotations of an Ingress.

    Attributes:
        plugins: Plugins of each of its routes.
        overrides: Settings for each of its upstreams.
        websocket: Whether WebSocket is enabled.
        use_regex: Whether ImplementationSpecific paths are regular expressions.
        plugin_config: Name of an ApisixPluginConfig in its namespace, or empty.
        service_namespace: Namespace of its Services, or empty for its own.
    """

    plugins: Mapping[str, JsonObject]
    overrides: UpstreamOverrides
    websocket: bool
    use_regex: bool
    plugin_config: str
    service_namespace: str

    @property
    def plugin_config_field(self) -> str:
        """The field that names the plugin config."""
        return Annotations.field("plugin-config-name")


def read_annotations(scope: Context, values: Mapping[str, str]) -> RouteAnnotations:
    """Return the effect of annotations; problems are reported in `scope`."""
    if not any(name.startswith(PREFIX) for name in values):
        return _WITHOUT
    annotations = Annotations(scope, values)
    plugins: Plugins = {}
    for make in PLUGINS:
        plugins |= {name: review(scope, name, config, _field(name)) for name, config in make(annotations).items()}
    return RouteAnnotations(
        plugins=plugins,
        overrides=overrides(annotations),
        websocket=annotations.flag("enable-websocket"),
        use_regex=annotations.flag("use-regex"),
        plugin_config=annotations.text("plugin-config-name"),
        service_namespace=annotations.text("svc-namespace"),
    )


_WITHOUT = RouteAnnotations({}, UpstreamOverrides(), False, False, "", "")
"""The effect of no annotations."""


def _field(plugin: str) -> str:
    """Return the annotation that a plugin comes from."""
    return Annotations.field(_SOURCES[plugin]) if plugin in _SOURCES else "metadata.annotations"

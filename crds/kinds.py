"""The table of the kinds: their names, their scope, and the models of their specs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import Literal

from crds.v2.common import Spec

GROUP = "apisix.apache.org"
VERSION = "v2"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object.

    Attributes:
        name: e.g. `ApisixRoute`.
        plural: as in the URL, e.g. `apisixroutes`.
        short: the short name for kubectl, e.g. `ar`.
        namespaced: whether objects belong to a namespace.
        model: returns the model of `spec`.
        description: one sentence for `kubectl explain`.
    """

    name: str
    plural: str
    short: str
    model: Callable[[], type[Spec]]
    description: str
    namespaced: bool = True

    @property
    def spec(self) -> type[Spec]:
        """The model of `spec`."""
        return self.model()

    @property
    def scope(self) -> Literal["Namespaced", "Cluster"]:
        """The scope as a CRD spells it."""
        return "Namespaced" if self.namespaced else "Cluster"


@cache
def _model(module: str, name: str) -> type[Spec]:
    # A start waits for the models of the kinds that there are objects of, and for no others.
    model: type[Spec] = getattr(import_module(f"crds.v2.{module}"), name)
    return model


_ALL = (
    Kind(
        "ApisixRoute",
        "apisixroutes",
        "ar",
        partial(_model, "route", "ApisixRouteSpec"),
        "Routes requests and connections to Services, through plugins.",
    ),
    Kind(
        "ApisixUpstream",
        "apisixupstreams",
        "au",
        partial(_model, "upstream", "ApisixUpstreamSpec"),
        "Settings for the Service of the same name, or a set of external nodes.",
    ),
    Kind(
        "ApisixTls",
        "apisixtlses",
        "atls",
        partial(_model, "tls", "ApisixTlsSpec"),
        "A certificate for some host names.",
    ),
    Kind(
        "ApisixConsumer",
        "apisixconsumers",
        "ac",
        partial(_model, "consumer", "ApisixConsumerSpec"),
        "A consumer: credentials of a client, and plugins for its requests.",
    ),
    Kind(
        "ApisixClusterConfig",
        "apisixclusterconfigs",
        "acc",
        partial(_model, "cluster_config", "ApisixClusterConfigSpec"),
        "Settings of the gateway cluster of the same name.",
        namespaced=False,
    ),
    Kind(
        "ApisixPluginConfig",
        "apisixpluginconfigs",
        "apc",
        partial(_model, "plugin_config", "ApisixPluginConfigSpec"),
        "A set of plugins that routes refer to by name.",
    ),
    Kind(
        "ApisixGlobalRule",
        "apisixglobalrules",
        "agr",
        partial(_model, "global_rule", "ApisixGlobalRuleSpec"),
        "Plugins that run for every request.",
    ),
)

KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""Kind → its row."""

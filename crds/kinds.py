"""The table of the kinds: what each is called, where it lives, and the model of its spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from crds.v2.cluster_config import ApisixClusterConfigSpec
from crds.v2.common import Spec
from crds.v2.consumer import ApisixConsumerSpec
from crds.v2.global_rule import ApisixGlobalRuleSpec
from crds.v2.plugin_config import ApisixPluginConfigSpec
from crds.v2.route import ApisixRouteSpec
from crds.v2.tls import ApisixTlsSpec
from crds.v2.upstream import ApisixUpstreamSpec

GROUP = "apisix.apache.org"
VERSION = "v2"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object.

    Attributes:
        name: e.g. `ApisixRoute`.
        plural: as in the URL, e.g. `apisixroutes`.
        short: the short name that kubectl takes, e.g. `ar`.
        namespaced: whether objects live in a namespace.
        spec: the model of `spec`.
        description: one sentence for `kubectl explain`.
    """

    name: str
    plural: str
    short: str
    spec: type[Spec]
    description: str
    namespaced: bool = True

    @property
    def scope(self) -> Literal["Namespaced", "Cluster"]:
        """The scope as a CRD spells it."""
        return "Namespaced" if self.namespaced else "Cluster"


_ALL = (
    Kind(
        "ApisixRoute",
        "apisixroutes",
        "ar",
        ApisixRouteSpec,
        "Routes requests and connections to Services, through plugins.",
    ),
    Kind(
        "ApisixUpstream",
        "apisixupstreams",
        "au",
        ApisixUpstreamSpec,
        "Settings for the Service of the same name, or a set of external nodes.",
    ),
    Kind("ApisixTls", "apisixtlses", "atls", ApisixTlsSpec, "A certificate for some host names."),
    Kind(
        "ApisixConsumer",
        "apisixconsumers",
        "ac",
        ApisixConsumerSpec,
        "A consumer: credentials of a client, and plugins for its requests.",
    ),
    Kind(
        "ApisixClusterConfig",
        "apisixclusterconfigs",
        "acc",
        ApisixClusterConfigSpec,
        "Settings of the gateway cluster of the same name.",
        namespaced=False,
    ),
    Kind(
        "ApisixPluginConfig",
        "apisixpluginconfigs",
        "apc",
        ApisixPluginConfigSpec,
        "A set of plugins that routes refer to by name.",
    ),
    Kind("ApisixGlobalRule", "apisixglobalrules", "agr", ApisixGlobalRuleSpec, "Plugins that run for every request."),
)

KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""Kind → its row."""

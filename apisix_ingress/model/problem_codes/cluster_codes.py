"""Codes 07: gateway clusters."""

from __future__ import annotations

from apisix_ingress.model.problem_codes.code import KEPT, WARNED, Code

CLUSTER_CODES = (
    Code(
        "AIX0701",
        "ClusterNotFound",
        "Plugin metadata is configured for an unknown gateway cluster",
        f"{WARNED} The metadata of that cluster is ignored.",
        "Use a name from `clusters` in the settings.",
    ),
    Code(
        "AIX0702",
        "AdminUrlInvalid",
        "spec.admin.baseURL of an ApisixClusterConfig is not the URL of an Admin API",
        f"{KEPT} The controller keeps using the previous address.",
        "Write it as `http://gateway:9180/apisix/admin`.",
    ),
    Code(
        "AIX0703",
        "AdminKeyInvalid",
        "spec.admin.adminKey of an ApisixClusterConfig cannot be sent",
        f"{KEPT} The controller keeps using the previous address.",
        "Write only the key, without spaces and line breaks.",
    ),
    Code(
        "AIX0704",
        "AdminKeyPublished",
        "The admin key is one that APISIX publishes in its documentation",
        f"{WARNED} With `preset: multi-tenant` it is rejected.",
        "Set your own key in the gateway and in the object.",
    ),
)

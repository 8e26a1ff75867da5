"""Codes 00 and 01: files, and references between objects."""

from __future__ import annotations

from apisix_ingress.model.problem_codes.code import FALSE, KEPT, WARNED, Code

_UNREAD = "The document is skipped; the other documents of the file are used."

REFERENCE_CODES = (
    Code(
        "AIX0001",
        "ManifestInvalid",
        "A file, or a document in it, cannot be read",
        _UNREAD,
        "Correct the line that the message names: invalid YAML, a duplicate key, a missing `kind` or"
        " `metadata.name`, an object that is defined in two files, a file without read permission.",
    ),
    Code(
        "AIX0002",
        "KindNotRead",
        "An object for this controller has an unsupported kind or apiVersion",
        _UNREAD,
        "Use the `apiVersion` that the message names, or correct the kind.",
    ),
    Code(
        "AIX0101",
        "ServiceNotFound",
        "A referenced Service does not exist",
        f"{KEPT} An ApisixUpstream without its Service has no effect yet, and its condition is False.",
        "Create the Service, or correct its name and namespace. Offline, also pass the manifest of the Service.",
    ),
    Code(
        "AIX0102",
        "PortNotFound",
        "The Service has no port with this number or name",
        KEPT,
        "Use one of the ports that the message lists. Do not put a number in quotes.",
    ),
    Code(
        "AIX0103",
        "UpstreamNotFound",
        "A referenced ApisixUpstream does not exist or has another class",
        KEPT,
        "Create it in the namespace of the route, or correct the name.",
    ),
    Code(
        "AIX0104",
        "PluginConfigNotFound",
        "A referenced ApisixPluginConfig does not exist or has another class",
        KEPT,
        "Create it, or correct the name and namespace.",
    ),
    Code(
        "AIX0105",
        "SecretNotFound",
        "A referenced Secret does not exist",
        f"{KEPT} An Ingress is published: only its certificate is missing, or stays as it was.",
        "Create it, or correct the name and namespace. A Secret in another namespace may need a ReferenceGrant there.",
    ),
    Code(
        "AIX0106",
        "SubsetNotFound",
        "A route uses a subset that the ApisixUpstream of the Service does not define",
        f"{FALSE} The upstream has no nodes: requests get 503.",
        "Define the subset in `spec.subsets` of the ApisixUpstream, or correct its name.",
    ),
    Code(
        "AIX0107",
        "NotExternal",
        "A route lists an ApisixUpstream without nodes in `upstreams`",
        KEPT,
        "Give it `externalNodes` or `discovery`, or use its Service in `backends` instead.",
    ),
    Code(
        "AIX0108",
        "NotExternalName",
        "An external node of type Service refers to a Service that is not of type ExternalName",
        KEPT,
        "Use type Domain with a host name, or use the Service in `backends` of the route.",
    ),
    Code(
        "AIX0109",
        "NoClusterAddress",
        "resolveGranularity: service is set for a headless Service",
        KEPT,
        "Remove `resolveGranularity`, so that the endpoints of the Service are used.",
    ),
    Code(
        "AIX0110",
        "BackendUnsupported",
        "A backend of an Ingress is not a Service",
        KEPT,
        "Use `backend.service`.",
    ),
    Code(
        "AIX0111",
        "SubsetUnused",
        "A backend has a subset and resolveGranularity: service",
        f"{WARNED} Every Pod gets requests, because the node is the address of the Service.",
        "Remove `resolveGranularity`, so that the Pods of the subset are the nodes, or remove the subset.",
    ),
    Code(
        "AIX0112",
        "ConsumerGroupNotFound",
        "A referenced ApisixConsumerGroup does not exist or has another class",
        KEPT,
        "Create it in the namespace of the consumer, or correct the name.",
    ),
)

"""Codes 04 and 06: plugins, and what the settings reject."""

from __future__ import annotations

from apisix_ingress.model.problem_codes.code import FALSE, GATEWAY, KEPT, WARNED, WITHDRAWN, Code

POLICY_CODES = (
    Code(
        "AIX0401",
        "PluginTwice",
        "A plugin is configured twice in one place",
        f"{WARNED} The message names the configuration that is used.",
        "Remove the other one.",
    ),
    Code(
        "AIX0402",
        "PluginReplaced",
        "A route has a traffic-split plugin and several backends",
        f"{WARNED} The split between the backends replaces the plugin.",
        "Use one backend, or remove the plugin.",
    ),
    Code(
        "AIX0403",
        "MetadataDiffers",
        "Plugin metadata differs between gateway clusters",
        KEPT,
        "Configure the same metadata for the plugin in every cluster.",
    ),
    Code(
        "AIX0404",
        "PluginUnknown",
        "APISIX has no plugin of this name",
        f"{GATEWAY} Only `lint` reports it in advance, for the version of APISIX given by `--apisix`.",
        "Correct the name. Add plugins of your own to `kubernetes.trusted_plugins` of the configuration.",
    ),
    Code(
        "AIX0408",
        "PluginDisabled",
        "A plugin ships with APISIX but is off by default",
        f"{GATEWAY} Unless you enabled the plugin. Only `lint` reports it.",
        "Add the plugin to `plugins` in `config.yaml` of the gateway; the list there replaces the default one. If you"
        " did that, add the plugin to `kubernetes.trusted_plugins` of the configuration, or suppress this code.",
    ),
    Code(
        "AIX0405",
        "PluginInvalid",
        "A plugin configuration does not match the schema of the plugin",
        f"{GATEWAY} Only `lint` reports it in advance, for the version of APISIX given by `--apisix`.",
        "Correct the field. For another version of APISIX, choose it with `--apisix`.",
    ),
    Code(
        "AIX0406",
        "PluginOptionUnknown",
        "A plugin has no option of this name",
        "The gateway accepts the record and ignores the option. Only `lint` reports it.",
        "Correct the name, or remove the option.",
    ),
    Code(
        "AIX0407",
        "UnsafeRecord",
        "A record would let clients choose what the gateway connects to, or occupy the gateway",
        f"{FALSE} But the record is closed: requests for a route get 503, an upstream has no nodes.",
        "Change the field as the message says.",
    ),
    Code(
        "AIX0601",
        "CodeRefused",
        "An object contains code for the gateway, which the settings reject",
        WITHDRAWN,
        "Remove it, or ask the operator about `kubernetes.code_plugins`.",
    ),
    Code(
        "AIX0602",
        "SecretReferenceRefused",
        "A value refers to a secret or environment variable of the gateway, which the settings reject",
        WITHDRAWN,
        "Write the value, or read it from a Secret; or ask the operator about `kubernetes.secret_references`.",
    ),
    Code(
        "AIX0603",
        "AddressRefused",
        "A host is internal: the gateway itself, a link-local address, an Admin API or one the operator listed",
        WITHDRAWN,
        "Use another host, or ask the operator about `kubernetes.external_addresses` and"
        " `kubernetes.internal_addresses`.",
    ),
    Code(
        "AIX0604",
        "PluginRefused",
        "A plugin or one of its fields has not been reviewed for shared gateways",
        WITHDRAWN,
        "Remove it, or follow the message. The reference page `plugins-multi-tenant` lists plugins and fields"
        " with the reasons. Or ask the operator about `kubernetes.plugins`.",
    ),
    Code(
        "AIX0605",
        "ForeignAddress",
        "A host is an address or name of another namespace or of the API server",
        WITHDRAWN,
        "Use another host, or ask the owner of that namespace to create a ReferenceGrant for the Service. Or ask the"
        " operator about `kubernetes.external_addresses`.",
    ),
)

"""Codes 10: the Gateway API, in the terms of its specification."""

from __future__ import annotations

from apisix_ingress.model.problem_codes.code import KEPT, Code

_DETACHED = "The route is not attached: its condition Accepted for this parent is False."
_SHARE = "The condition ResolvedRefs is False, and requests for the backend get a 500 response."

GATEWAY_API_CODES = (
    Code(
        "AIX1001",
        "UnsupportedValue",
        "A route of the Gateway API needs a feature that gateways do not support",
        KEPT,
        "Remove the field that the message names.",
    ),
    Code(
        "AIX1002",
        "IncompatibleFilters",
        "A rule has filters that cannot be combined",
        KEPT,
        "Remove one of them.",
    ),
    Code(
        "AIX1003",
        "InvalidParameters",
        "The parameters of a class or Gateway cannot be used",
        "The condition Accepted of a GatewayClass or Gateway is False. Objects of an IngressClass keep their last"
        " version.",
        "Correct the field of the GatewayProxy that the message names, or remove the reference to it.",
    ),
    Code(
        "AIX1004",
        "NoMatchingParent",
        "A parentRef does not match a listener of its Gateway",
        _DETACHED,
        "Correct sectionName and port, or add the listener.",
    ),
    Code(
        "AIX1005",
        "NotAllowedByListeners",
        "No listener allows routes of this kind, or a Gateway no ListenerSets, from this namespace",
        f"{_DETACHED} A ListenerSet has no effect.",
        "Ask the owner of the Gateway to change `allowedRoutes` of a listener, or `allowedListeners` of the Gateway. Or"
        " use another Gateway.",
    ),
    Code(
        "AIX1006",
        "NoMatchingListenerHostname",
        "A route has no hostname in common with the listeners",
        _DETACHED,
        "Use a hostname that a listener serves.",
    ),
    Code(
        "AIX1007",
        "InvalidKind",
        "A reference names a kind that is not supported",
        _SHARE,
        "Refer to one of the kinds in the message.",
    ),
    Code(
        "AIX1008",
        "BackendNotFound",
        "A backend of a route does not exist, or has no such port",
        _SHARE,
        "Create the Service, or correct its name or port.",
    ),
    Code(
        "AIX1009",
        "RefNotPermitted",
        "A reference to another namespace lacks its ReferenceGrant",
        _SHARE,
        "Ask the owner of the other namespace to create a ReferenceGrant there.",
    ),
    Code(
        "AIX1010",
        "Pending",
        "No address of the pool is left for a Gateway",
        _DETACHED,
        "Ask the operator to add addresses to `gateway_api.address_pool`.",
    ),
    Code(
        "AIX1011",
        "ListenerNotReady",
        "A listener of a Gateway conflicts with another one or cannot be served",
        "The listener is not served, and its conditions give the reason. Other listeners are not affected.",
        "Follow the message: use another port or hostname, or correct the reference.",
    ),
    Code(
        "AIX1012",
        "UnsupportedProtocol",
        "A backend of a route needs a protocol that gateways do not support",
        _SHARE,
        "Use APISIX 3.19 or later for BackendTLSPolicy, or remove the policy.",
    ),
    Code(
        "AIX1013",
        "UnsupportedPolicy",
        "A BackendTLSPolicy needs a feature that gateways do not support, or conflicts with an older policy",
        "Requests to the Service get a 500 response, because the connection cannot be verified.",
        "Follow the message: correct the reference, or remove the policy.",
    ),
    Code(
        "AIX1014",
        "TargetNotFound",
        "A policy names a rule or port that its target does not have",
        "The policy does not apply to that object; its condition Accepted is False.",
        "Correct `sectionName`.",
    ),
)

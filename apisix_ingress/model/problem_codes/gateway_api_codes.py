"""Codes 10: the Gateway API; the words are those of its specification."""

from __future__ import annotations

from apisix_ingress.model.problem_codes.code import KEPT, Code

_DETACHED = "The route is not attached there: the condition Accepted of that parent is False."
_SHARE = "The condition ResolvedRefs is False; requests for that backend are answered with 500."

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
        "A rule has filters that exclude each other",
        KEPT,
        "Remove one of them.",
    ),
    Code(
        "AIX1003",
        "InvalidParameters",
        "A GatewayClass or Gateway has parameters that are not supported",
        "Its condition Accepted is False.",
        "Remove the parametersRef, or the field of the GatewayProxy that the message names.",
    ),
    Code(
        "AIX1004",
        "NoMatchingParent",
        "A parentRef names no listener of its Gateway",
        _DETACHED,
        "Correct sectionName and port, or add the listener.",
    ),
    Code(
        "AIX1005",
        "NotAllowedByListeners",
        "No listener allows routes of this kind from this namespace",
        _DETACHED,
        "Have allowedRoutes of the listener changed, or use another Gateway.",
    ),
    Code(
        "AIX1006",
        "NoMatchingListenerHostname",
        "A route has no hostname in common with the listeners",
        _DETACHED,
        "Use a hostname that a listener has.",
    ),
    Code(
        "AIX1007",
        "InvalidKind",
        "A reference names a kind that is not supported",
        _SHARE,
        "Refer to a kind that the message names.",
    ),
    Code(
        "AIX1008",
        "BackendNotFound",
        "A backend of a route does not exist, or has no such port",
        _SHARE,
        "Create the Service, or correct name and port.",
    ),
    Code(
        "AIX1009",
        "RefNotPermitted",
        "A reference to another namespace lacks its ReferenceGrant",
        _SHARE,
        "Have a ReferenceGrant made in that namespace.",
    ),
    Code(
        "AIX1010",
        "Pending",
        "A Gateway has no address, since the pool is used up",
        _DETACHED,
        "Have `gateway_api.address_pool` enlarged.",
    ),
    Code(
        "AIX1011",
        "ListenerNotReady",
        "A listener of a Gateway conflicts with another one or cannot be served",
        "The listener is not served; its conditions have the reason of the specification. Other listeners are served.",
        "Do as the message says: use another port or hostname, or correct the reference.",
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
        "A BackendTLSPolicy asks for what gateways cannot do, or conflicts with an older one",
        "Requests to the Service are answered with 500, so that no request is sent without the verification.",
        "Do as the message says: correct the reference, or remove the policy.",
    ),
    Code(
        "AIX1014",
        "TargetNotFound",
        "A policy names a rule or port that its target does not have",
        "The policy does not apply to that object; its condition Accepted is False.",
        "Correct `sectionName`.",
    ),
)

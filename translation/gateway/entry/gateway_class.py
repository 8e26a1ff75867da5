"""GatewayClass → its status: whether its parameters are supported, and the supported features."""

from __future__ import annotations

from apisix_ingress.model.assessment import Assessment, Verdict
from apisix_ingress.model.kinds.indexes import proxy_named
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome

FEATURES = (
    "GRPCRoute",
    "GRPCRouteNamedRouteRule",
    "Gateway",
    "GatewayAddressEmpty",
    "GatewayFrontendClientCertificateValidation",
    "GatewayFrontendClientCertificateValidationInsecureFallback",
    "GatewayHTTPListenerIsolation",
    "GatewayHTTPSListenerDetectMisdirectedRequests",
    "GatewayPort8080",
    "GatewayStaticAddresses",
    "HTTPRoute",
    "HTTPRoute303RedirectStatusCode",
    "HTTPRoute307RedirectStatusCode",
    "HTTPRoute308RedirectStatusCode",
    "HTTPRouteBackendProtocolH2C",
    "HTTPRouteBackendProtocolWebSocket",
    "HTTPRouteBackendRequestHeaderModification",
    "HTTPRouteBackendTimeout",
    "HTTPRouteCORS",
    "HTTPRouteDestinationPortMatching",
    "HTTPRouteHostRewrite",
    "HTTPRouteMethodMatching",
    "HTTPRouteNamedRouteRule",
    "HTTPRouteParentRefPort",
    "HTTPRoutePathRedirect",
    "HTTPRoutePathRewrite",
    "HTTPRoutePortRedirect",
    "HTTPRouteQueryParamMatching",
    "HTTPRouteRequestMirror",
    "HTTPRouteRequestMultipleMirrors",
    "HTTPRouteRequestPercentageMirror",
    "HTTPRouteRequestTimeout",
    "HTTPRouteResponseHeaderModification",
    "HTTPRouteSchemeRedirect",
    "ListenerSet",
    "ReferenceGrant",
    "TCPRoute",
    "UDPRoute",
)
"""Features whose tests in the conformance suite (v1.6.3) pass with APISIX 3.18."""


def translate_gateway_class(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the assessment of a GatewayClass of this controller."""
    draft = Builder(obj.meta, view, options)
    accepted = Verdict("Accepted", True, "Accepted")
    if obj.spec.get("parametersRef") and proxy_named(obj) is None:
        message = "spec.parametersRef: parameters of a class are not supported; remove it"
        accepted = Verdict("Accepted", False, "InvalidParameters", message)
        draft.degrade("InvalidParameters", "spec.parametersRef", "is not supported; remove it")
    return draft.finish()._replace(assessment=Assessment((accepted,), features=FEATURES))

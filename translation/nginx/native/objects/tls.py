"""Certificates of a host as ApisixTls."""

from __future__ import annotations

from apisix_ingress.model.json import JsonObject
from translation.nginx.native.model import Certificate, HostPlan, Note, Written
from translation.nginx.native.objects.names import manifest, object_name

SELF_SIGNED = (
    "https: no Ingress of the host names a certificate, or its Secret is missing or invalid, and ingress-nginx serves a"
    " self-signed one; add the Secret to the files, write an ApisixTls, or set ingress_nginx.default_ssl_certificate"
)


def apisix_tls(plan: HostPlan, ingress_class: str) -> Written:
    """Return the ApisixTls of a host."""
    objects, notes = [], []
    for certificate in plan.certificates:
        if certificate.secret is None:
            notes.append(Note(plan.host, "", "differs", SELF_SIGNED))
        else:
            objects.append(_object(plan, certificate, ingress_class))
    return Written(tuple(objects), tuple(notes))


def _object(plan: HostPlan, certificate: Certificate, ingress_class: str) -> JsonObject:
    secret = certificate.secret
    assert secret is not None
    spec: JsonObject = {
        "ingressClassName": ingress_class,
        "hosts": list(certificate.names),
        "secret": {"name": secret.name, "namespace": secret.namespace},
    }
    if certificate.client and certificate.authority:
        spec["client"] = {
            "caSecret": {"name": certificate.authority.name, "namespace": certificate.authority.namespace},
            "depth": certificate.client["depth"],
            "skip_mtls_uri_regex": certificate.client["skip_mtls_uri_regex"],
        }
    return manifest("ApisixTls", secret.namespace, object_name(plan.host), spec)

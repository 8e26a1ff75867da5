"""Certificates and validations of Gateways."""

from __future__ import annotations

from dataclasses import replace

from apisix_ingress.model.json import JsonObject
from apisix_ingress.state.world import World
from tests.unit.translation.objects import OPTIONS, pem, secret
from tests.unit.translation.settling import bodies

ACCEPTED = {"Accepted": "Accepted", "Programmed": "Programmed"}


GOOD = {**ACCEPTED, "Conflicted": "!NoConflicts", "ResolvedRefs": "ResolvedRefs"}


def pair(name: str = "cert", *, serial: int = 1, namespace: str = "default") -> JsonObject:
    made = pem(serial)
    return secret(name, namespace=namespace, tls__crt=made.certificate, tls__key=made.key)


def ssls(found: World) -> list[JsonObject]:
    return [dict(body) for path, body in bodies(found).items() if path.startswith("ssls")]


def frontend(*references: JsonObject, mode: str = "AllowValidOnly") -> JsonObject:
    return {"frontend": {"default": {"validation": {"caCertificateRefs": list(references), "mode": mode}}}}


POOL = replace(OPTIONS, gateway_addresses=("192.0.2.1", "192.0.2.2"))

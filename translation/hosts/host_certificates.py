"""Faces: a value per host that is equal for equal certificates and client-auth settings, for other objects.

A gateway has one of both per host. Mistakes of another object are not reported here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509

from apisix_ingress.model.formats.certificates import extension_of, read_chain
from apisix_ingress.model.formats.hashed_cache import kept_by_digest
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.network.host_names import canonical_host
from apisix_ingress.model.network.tls_hosts import TlsEntry, tls_entries
from apisix_ingress.model.objects import CustomObject, Secret
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v2.tls import ApisixTlsSpec
from translation.core.context import Context
from translation.core.options import Options
from translation.hosts.certificates import fingerprint_of, key_pair, names_of

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from crds.v2.tls import ClientAuthentication

_FACES_KEPT = 4096

_CA_KEYS = ("cert", "tls.crt", "ca.crt")
"""Keys of a Secret that may contain a CA, in this order (v1-behaviour.md §2.9)."""

_NO_CA = "has no CA under {}, so no client certificate is accepted; put the CA under ca.crt"


class Face(NamedTuple):
    """What clients see of an ssl record.

    Attributes:
        certificate: The fingerprint of the server's own certificate, whatever the rest of its chain and its Secret.
        client: A digest of the client-auth settings; empty without them.
    """

    certificate: str
    client: str


def face_of(body: FrozenJson) -> Face:
    """Return the face of an ssl record; its certificate has been parsed before."""
    client = body.get("client")
    digest = hashlib.sha256(json.dumps(client, sort_keys=True).encode()).hexdigest() if client else ""
    return Face(_fingerprint(body["cert"]), digest)


def faces(obj: CustomObject, view: View, options: Options) -> Iterator[tuple[str, Face | None]]:
    """Yield each host of an ApisixTls or Ingress with its face, in the order of the fields; None if it is unknown."""
    scope = Context(obj.meta.kind, obj.meta.namespace, view, options)
    for entry in tls_entries(obj):
        body = _tls_body(scope, obj) if obj.meta.kind == "ApisixTls" else _entry_body(scope, entry)
        face = face_of(body) if body else None
        named = map(canonical_host, names_of(body["cert"])) if body and not entry.hosts else entry.hosts
        yield from ((host, face) for host in named)


def client_body(scope: Context, client: ClientAuthentication | None) -> JsonObject:
    """Return the part of an ssl record with the client-auth settings; incomplete after an error."""
    if client is None:
        return {}
    location = client.ca_secret
    secret = scope.secret(location.name, "spec.client.caSecret.name", namespace=location.namespace)
    body: JsonObject = {"ca": _authority(scope, secret) if secret else ""}
    if client.depth:
        body["depth"] = client.depth
    if client.skip_mtls_uri_regex:
        body["skip_mtls_uri_regex"] = list(dict.fromkeys(client.skip_mtls_uri_regex))
    return {"client": body}


def _tls_body(scope: Context, obj: CustomObject) -> JsonObject | None:
    try:
        spec = parse_spec(ApisixTlsSpec, obj.spec)
    except SpecError:
        return None
    body = _server(scope, spec.secret.name, spec.secret.namespace) | client_body(scope, spec.client)
    return None if any(each.severity == "error" for each in scope.problems) else body


def _entry_body(scope: Context, entry: TlsEntry) -> JsonObject | None:
    return _server(scope, entry.secret, scope.namespace) or None


def _server(scope: Context, name: str, namespace: str) -> JsonObject:
    secret = scope.secret(name, "", namespace=namespace)
    pair = key_pair(scope, secret, "") if secret else None
    return {"cert": pair.certificate} if pair else {}


def _authority(scope: Context, secret: Secret) -> str:
    """Return the CA in a Secret as PEM text, or report what is wrong with it."""
    key = _authority_key(secret)
    if key is None:
        wrong = "has no CA: put it under ca.crt"
    elif scope.is_too_large(secret, [key], "spec.client.caSecret"):
        return ""
    else:
        try:
            if not any(map(_may_issue, read_chain(secret.data[key]))):
                scope.degrade("NotAnAuthority", "spec.client.caSecret", f"{secret.meta.key} {_NO_CA.format(key)}")
            return secret.data[key].decode()
        except ValueError:
            wrong = f"has a CA under {key} that cannot be read: it must be PEM"
    scope.error("InvalidCertificate", "spec.client.caSecret", f"{secret.meta.key} {wrong}")
    return ""


def _authority_key(secret: Secret) -> str | None:
    """Return the key with the CA: `ca.crt` also takes precedence if the one before it has not issued any other."""
    named = [key for key in _CA_KEYS if key in secret.data]
    if len(named) > 1 and named[-1] == "ca.crt":
        try:
            if not any(map(_may_issue, read_chain(secret.data[named[0]]))):
                return named[-1]
        except ValueError:
            pass
    return named[0] if named else None


def _may_issue(certificate: Certificate) -> bool:
    """Return whether clients can have certificates of a CA, or the certificate itself if it is self-signed.

    Raises:
        ValueError: A part of it cannot be read.
    """
    if certificate.issuer == certificate.subject:
        return True
    constraints = extension_of(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


@kept_by_digest(_FACES_KEPT)
def _fingerprint(certificate: str) -> str:
    """Return a fingerprint of the leaf of a chain."""
    return fingerprint_of(certificate)

"""Certificates of listeners: the pairs that they refer to, and the CAs for client certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apisix_ingress.model.formats.certificates import read_chain
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.gateway_api import CA_BUNDLE, CA_KEY
from apisix_ingress.model.objects import ConfigMap, Secret
from crds.gateway.common import ObjectReference
from crds.gateway.gateways import GatewaySpec, Validation
from translation.core.builder import Builder
from translation.core.context import Context
from translation.gateway.entry.listeners import Listener
from translation.hosts.certificates import KeyPair, key_pair


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Why a reference cannot be resolved."""

    reason: str
    message: str


def listener_pairs(draft: Builder, listener: Listener) -> tuple[list[KeyPair], Unresolved | None]:
    """Return the pairs of certificate and key of a listener, and the first reference that cannot be resolved."""
    references = listener.tls.certificate_refs if listener.tls else ()
    if not references:
        return [], Unresolved("InvalidCertificateRef", "tls.certificateRefs is missing: name a Secret of type TLS")
    found = [pair_of(draft, listener.owner, each, "InvalidCertificateRef") for each in references]
    wrong = next((each for each in found if isinstance(each, Unresolved)), None)
    return [each for each in found if isinstance(each, KeyPair)], wrong


def pair_of(draft: Builder, owner: ObjectKey, reference: ObjectReference, reason: str) -> KeyPair | Unresolved:
    """Return the pair in the Secret that an object refers to.

    Args:
        draft: The translation.
        owner: The referring object: the Gateway or a ListenerSet.
        reference: The reference.
        reason: The reason in the condition if it cannot be resolved.
    """
    if (reference.group, reference.kind) != ("", "Secret"):
        what = f"{reference.group}/{reference.kind}" if reference.group else reference.kind
        return Unresolved(reason, f"{what} is not supported; refer to a Secret")
    key = ObjectKey("Secret", reference.namespace or owner.namespace, reference.name)
    if not draft.is_granted(owner.kind, owner.namespace, key):
        return Unresolved(
            "RefNotPermitted", f"references to {key} are not permitted; create a ReferenceGrant in its namespace"
        )
    secret = draft.view.get(Secret, key)
    if secret is None:
        return Unresolved(reason, f"{key} does not exist; create it or correct the name")
    judge = Context(owner.kind, owner.namespace, draft.view, draft.options)
    pair = key_pair(judge, secret, "")
    return pair or Unresolved(reason, "; ".join(each.message for each in judge.problems))


def validation_of(spec: GatewaySpec, listener: Listener) -> Validation | None:
    """Return how client certificates are verified on a port, or None if they are not."""
    frontend = spec.tls.frontend
    if listener.tls is not None and listener.tls.frontend_validation is not None:
        return listener.tls.frontend_validation
    of_port = next((each.tls for each in frontend.per_port if each.port == listener.port), frontend.default)
    return of_port.validation


def client_cas(draft: Builder, gateway: ObjectKey, validation: Validation) -> tuple[str, list[Unresolved]]:
    """Return the CA certificates for clients in one PEM text, and the references that cannot be resolved."""
    found = [
        ca_of(draft, gateway, each, ("InvalidCACertificateKind", "InvalidCACertificateRef"))
        for each in validation.ca_certificate_refs
    ]
    texts = [each.strip() for each in found if isinstance(each, str)]
    return "\n".join(texts), [each for each in found if isinstance(each, Unresolved)]


def ca_of(draft: Builder, owner: ObjectKey, reference: ObjectReference, reasons: tuple[str, str]) -> str | Unresolved:
    """Return the CA certificates in a ConfigMap or Secret.

    Args:
        draft: The translation.
        owner: The referring object.
        reference: The reference.
        reasons: Reasons in the condition, for an unsupported kind and for an unusable object.
    """
    if reference.group or reference.kind not in ("ConfigMap", "Secret"):
        named = f"{reference.group}/{reference.kind}" if reference.group else reference.kind
        return Unresolved(reasons[0], f"{named} is not supported; refer to a ConfigMap or Secret without a group")
    key = ObjectKey(reference.kind, reference.namespace or owner.namespace, reference.name)
    if not draft.is_granted(owner.kind, owner.namespace, key):
        return Unresolved(
            "RefNotPermitted", f"references to {key} are not permitted; create a ReferenceGrant in its namespace"
        )
    text = _ca_text(draft, key)
    if text is None:
        return Unresolved(reasons[1], f"{key} does not exist, or has no {CA_KEY}")
    try:
        read_chain(text.encode())
    except ValueError:
        return Unresolved(reasons[1], f"{CA_KEY} in {key} is not a certificate in PEM format")
    return text


def _ca_text(draft: Builder, key: ObjectKey) -> str | None:
    if key.kind == "ConfigMap":
        config_map = draft.view.get(ConfigMap, ObjectKey(CA_BUNDLE, key.namespace, key.name))
        return config_map.data.get(CA_KEY) if config_map else None
    secret = draft.view.get(Secret, key)
    found = secret.data.get(CA_KEY) if secret else None
    return found.decode(errors="replace") if found is not None else None


def merged_pairs(pairs: Sequence[KeyPair]) -> dict[str, object]:
    """Return the fields of an ssl record for one or more pairs; the gateway selects one by the client's algorithms."""
    first, *others = pairs
    body: dict[str, object] = {"cert": first.certificate, "key": first.key}
    if others:
        body |= {"certs": [each.certificate for each in others], "keys": [each.key for each in others]}
    return body

"""Consumer → consumer: its credentials, inline or from Secrets, and its plugins. No message contains a value."""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.assessment import Assessment, Verdict
from apisix_ingress.model.json import JsonObject, mapping_in
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import CustomObject, Secret
from apisix_ingress.model.records import Record
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.gateway.common import GATEWAY_GROUP
from crds.v1alpha1.extensions import ConsumerCredential, ConsumerSpec, CredentialSecret
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.text_checks import check_object
from translation.gateway.entry.owned import our_gateway
from translation.plugins.configs import Plugins, review, secret_text, translate_plugins


def gateway_of(obj: CustomObject) -> ObjectKey | None:
    """Return the Gateway that a Consumer names, or None."""
    reference = mapping_in(obj.spec.get("gatewayRef"))
    group, kind = reference.get("group", GATEWAY_GROUP), reference.get("kind", "Gateway")
    if (group, kind) != (GATEWAY_GROUP, "Gateway") or not isinstance(reference.get("name"), str):
        return None
    return ObjectKey("Gateway", str(reference.get("namespace") or obj.meta.namespace), reference["name"])


def is_consumer_of_ours(obj: CustomObject, view: View, options: Options) -> bool:
    """Return whether a Consumer names a Gateway of ours."""
    gateway = gateway_of(obj)
    return gateway is not None and our_gateway(gateway, view, options) is not None


def translate_gateway_consumer(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the consumer of a Consumer."""
    draft = Builder(obj.meta, view, options)
    username = names.consumer_name(draft.namespace, obj.meta.name, options.consumer_names)
    draft.protect("consumers", ids=frozenset({username}))
    check_object(draft, obj)
    try:
        spec = parse_spec(ConsumerSpec, obj.spec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return _assessed(draft)
    body: JsonObject = {
        "username": username,
        "desc": names.DESC,
        "labels": names.owner_labels(options.controller_name, obj.meta.labels),
        "plugins": translate_plugins(draft, spec.plugins, "spec.plugins") | _credentials(draft, spec),
    }
    draft.add(Record(RecordKey("consumers", username), username, body))
    return _assessed(draft)


def _assessed(draft: Builder) -> Outcome:
    outcome = draft.finish()
    wrong = next((str(each) for each in outcome.problems if each.severity == "error"), "")
    accepted = Verdict("Accepted", not wrong, "Invalid" if wrong else "Accepted", wrong)
    programmed = Verdict("Programmed", not wrong, "Invalid" if wrong else "Programmed", wrong)
    return outcome._replace(assessment=Assessment((accepted, programmed)))


def _credentials(draft: Builder, spec: ConsumerSpec) -> Plugins:
    found: Plugins = {}
    for index, credential in enumerate(spec.credentials):
        path = f"spec.credentials[{index}]"
        if credential.type in found:
            message = f"a consumer has one credential of type {credential.type}; create another Consumer for this one"
            draft.error("UnsupportedValue", path, message)
            continue
        found[credential.type] = review(draft, credential.type, _config(draft, credential, path), path)
    return found


def _config(draft: Builder, credential: ConsumerCredential, path: str) -> JsonObject:
    config = credential.config or {}
    if credential.secret_ref is None:
        return config
    secret = _secret(draft, credential.secret_ref, f"{path}.secretRef")
    if secret is None or draft.is_too_large(secret, secret.data, f"{path}.secretRef"):
        return config
    return config | {key: secret_text(draft, secret, key, f"{path}.secretRef") for key in sorted(secret.data)}


def _secret(draft: Builder, reference: CredentialSecret, path: str) -> Secret | None:
    """Return a Secret; one of another namespace needs a ReferenceGrant regardless of the settings, as in 2.2."""
    key = ObjectKey("Secret", reference.namespace or draft.namespace, reference.name)
    found = draft.view.get(Secret, key) if draft.is_granted(draft.kind, draft.namespace, key) else None
    if found is None:
        report = draft.error if key.namespace == draft.namespace else draft.revoke
        report(
            "SecretNotFound", path, f"{key} does not exist, or its namespace has no ReferenceGrant for it; create it"
        )
        return None
    draft.enlarge(sum(map(len, found.data.values())))
    return None if draft.is_full else found

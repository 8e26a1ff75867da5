"""ApisixSecretManager → secret: where gateways read `$secret://` references. The id is the type and the name."""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import CustomObject, Secret
from apisix_ingress.model.records import Record
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v2.common import SecretLocation
from crds.v2.secret_manager import ApisixSecretManagerSpec
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.plugins.configs import merged
from translation.safety.faults import SECRET_REFUSED

_TYPES = ("vault", "aws", "gcp")
_REFUSED = "has no use: the setting kubernetes.secret_references: refuse forbids references to it; delete the object"


def translate_secret_manager(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the record of an ApisixSecretManager, unless the settings refuse references to it."""
    draft = Builder(obj.meta, view, options)
    draft.protect("secrets", ids=frozenset(f"{type_}/{obj.meta.name}" for type_ in _TYPES))
    if options.secret_references == "refuse":
        draft.revoke(SECRET_REFUSED, "spec", _REFUSED)
        return draft.finish()
    try:
        spec = parse_spec(ApisixSecretManagerSpec, obj.spec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    config = _with_secret(draft, spec.config, spec.secret_ref) if spec.secret_ref else spec.config
    body = {**config, "labels": names.owner_labels(options.controller_name, obj.meta.labels)}
    key = RecordKey("secrets", f"{spec.type}/{obj.meta.name}")
    draft.add(Record(key, key.id, body))
    return draft.finish()


def _with_secret(draft: Builder, config: JsonObject, source: SecretLocation) -> JsonObject:
    """Return the configuration with the values of a Secret; the object is the operator's, so it needs no grant."""
    key, path = ObjectKey("Secret", source.namespace, source.name), "spec.secretRef"
    secret = draft.view.get(Secret, key)
    if secret is None:
        draft.missing("SecretNotFound", path, key)
    elif not draft.is_too_large(secret, secret.data, path):
        return merged(draft, config, secret, path)
    return config

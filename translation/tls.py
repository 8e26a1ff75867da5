"""ApisixTls → ssl record: the pair of its Secret, checked before it is sent, and the CA of its clients.

Mistakes that a gateway accepts but clients do not (a host that the certificate does not cover, an expired certificate)
are warnings. The caller provides the wall clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from apisix_ingress.model import names
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKind
from apisix_ingress.model.network.host_names import without_dot
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v2.tls import ApisixTlsSpec
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.text_checks import check_object
from translation.hosts.certificate_conflicts import Hosts
from translation.hosts.certificates import check_expiry, check_names, foreign_labels, key_pair
from translation.hosts.certificates import expiry_of as expiry_of
from translation.hosts.host_certificates import client_body
from translation.hosts.matching import check_host_names
from translation.ingress_tls import ssl_body


def translate_tls(obj: CustomObject, view: View, options: Options, *, now: datetime | None = None) -> Outcome:
    """Return the ssl record of an ApisixTls.

    Args:
        obj: The ApisixTls.
        view: The objects to read.
        options: The settings.
        now: The wall clock, aware; without it, expiry is not reported.
    """
    draft = Builder(obj.meta, view, options)
    name = names.object_name(draft.namespace, obj.meta.name)
    record_id = view.record_id("ssls", name)
    draft.protect("ssls", names=frozenset({name}))
    check_object(draft, obj)
    try:
        spec = parse_spec(ApisixTlsSpec, obj.spec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    check_host_names(draft, spec.hosts, "spec.hosts")
    if draft.claims_too_much(obj):
        return draft.finish()
    hosts = Hosts(draft, obj)
    body = _server(draft, spec, now) | client_body(draft, spec.client)
    if "cert" in body:
        if spec.client:
            ca = spec.client.ca_secret
            body["labels"] |= foreign_labels(draft, ca.namespace, ca.name)
        body["snis"] = hosts.allowed(body["snis"], body, "spec.hosts")
    if body.get("snis"):
        draft.record("ssls", name, {"id": record_id} | body)
    return draft.finish()


def _server(draft: Builder, spec: ApisixTlsSpec, now: datetime | None) -> JsonObject:
    """Return the part for the gateway's own certificate; incomplete after an error."""
    location = spec.secret
    secret = draft.secret(location.name, "spec.secret.name", namespace=location.namespace)
    pair = key_pair(draft, secret, "spec.secret") if secret else None
    if secret is None or pair is None:
        return {}
    check_names(draft, spec.hosts, pair, secret, "spec.hosts")
    check_expiry(draft, pair, secret, "spec.secret", now)
    return ssl_body(draft, pair, list(dict.fromkeys(map(without_dot, spec.hosts))), (location.namespace, location.name))


def unnamed_records(obj: CustomObject) -> Iterator[tuple[RecordKind, str]]:
    """Yield the ssl record that an object may have: its body contains no name."""
    yield "ssls", names.object_name(obj.meta.namespace, obj.meta.name)

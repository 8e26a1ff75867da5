"""`spec.tls` of an Ingress → ssl records, under the ids of 1.8.

1.8 first converts an entry to an ApisixTls with a name hashed from its content. The hash is cut to 6 characters and
padded with NUL to its old length, and the padding is part of the id (v1-behaviour.md §2.9).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from apisix_ingress.model import names
from apisix_ingress.model.json import JsonObject, list_in, mapping_in
from apisix_ingress.model.keys import RecordKind
from apisix_ingress.model.network.host_names import without_dot
from apisix_ingress.model.objects import CustomObject
from translation.core.builder import Builder
from translation.hosts.certificate_conflicts import Hosts
from translation.hosts.certificates import KeyPair, check_expiry, check_names, key_pair, names_of
from translation.hosts.matching import check_host_names
from translation.ingress_spec import IngressSpec, Tls

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_DIGEST_LENGTH = 28
_SUFFIX_LENGTH = 6


def translate_tls(draft: Builder, spec: IngressSpec, hosts: Hosts, now: datetime | None) -> None:
    """Add the ssl record of each tls entry; `hosts` lists the hosts of each.

    A missing Secret does not affect the routes, unlike in 1.8: while an issuer obtains the first certificate, requests
    over HTTP are served.
    """
    rule_hosts = list(dict.fromkeys(rule.host for rule in spec.rules if rule.host))
    for index, entry in enumerate(spec.tls):
        if entry.secret_name:
            _ssl(draft, entry, index, rule_hosts=rule_hosts, hosts=hosts, now=now)
        else:
            path = f"spec.tls[{index}].secretName"
            draft.warn("SecretNotNamed", path, "is missing: without a certificate the entry has no effect")


def protect_tls(draft: Builder, tls: Iterable[Tls]) -> None:
    """Protect the ssl records in a gateway that belong to the object."""
    draft.protect("ssls", names=frozenset(_record_name(draft, entry) for entry in tls if entry.secret_name))


def ssl_body(draft: Builder, pair: KeyPair, snis: Sequence[str], secret: tuple[str, str]) -> JsonObject:
    """Return an ssl record without its id; `secret` is the namespace and name of its source."""
    labels = names.owner_labels(
        draft.options.controller_name, {"meta_secret_namespace": secret[0], "meta_secret_name": secret[1]}
    )
    return {"snis": list(snis), "cert": pair.certificate, "key": pair.key, "status": 1, "labels": labels}


def _ssl(
    draft: Builder, entry: Tls, index: int, *, rule_hosts: Sequence[str], hosts: Hosts, now: datetime | None
) -> None:
    path = f"spec.tls[{index}].secretName"
    check_host_names(draft, entry.hosts, f"spec.tls[{index}].hosts")
    name = _record_name(draft, entry)
    secret = draft.secret(entry.secret_name, path, severity="degraded")
    if secret is None:
        draft.retain("ssls", name)
        return
    pair = key_pair(draft, secret, path)
    if pair is None:
        return
    check_names(draft, entry.hosts, pair, secret, f"spec.tls[{index}].hosts")
    check_expiry(draft, pair, secret, path, now)
    snis = list(dict.fromkeys(map(without_dot, entry.hosts))) or rule_hosts or names_of(pair.certificate)
    if not snis:
        draft.error("NoHosts", path, "no hosts found in tls.hosts, in the rules or in the certificate; add tls.hosts")
        return
    body = ssl_body(draft, pair, snis, (draft.namespace, entry.secret_name))
    body["snis"] = hosts.allowed(snis, body, f"spec.tls[{index}]")
    if body["snis"]:
        draft.record("ssls", name, {"id": draft.view.record_id("ssls", name), **body})


def _record_name(draft: Builder, entry: Tls) -> str:
    return names.object_name(draft.namespace, pseudo_name(draft.namespace, draft.meta.name, entry))


def pseudo_name(namespace: str, ingress: str, entry: Tls) -> str:
    """Return the name of the ApisixTls that represents a tls entry, NUL characters included."""
    document = {
        "kind": "ApisixTls",
        "apiVersion": "apisix.apache.org/v1",
        "metadata": {"namespace": namespace, "creationTimestamp": None},
        "spec": {
            "hosts": list(entry.hosts) or None,
            "secret": {"name": entry.secret_name, "namespace": namespace},
        },
        "status": {},
    }
    text = json.dumps(document, separators=(",", ":")).encode()
    digest = base64.urlsafe_b64encode(hashlib.sha1(text, usedforsecurity=False).digest())
    suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_SUFFIX_LENGTH])
    return f"{ingress}-tls-{suffix.ljust(_DIGEST_LENGTH, chr(0))}"


def unnamed_records(obj: CustomObject) -> Iterator[tuple[RecordKind, str]]:
    """Yield the ssl records that an Ingress may have: their bodies contain no name."""
    space, ingress = obj.meta.namespace, obj.meta.name
    for item in list_in(obj.spec.get("tls")):
        entry = mapping_in(item)
        hosts = tuple(host for host in list_in(entry.get("hosts")) if isinstance(host, str))
        secret = entry.get("secretName")
        if isinstance(secret, str) and secret:
            pseudo = pseudo_name(space, ingress, Tls(hosts=hosts, secret_name=secret))
            yield "ssls", names.object_name(space, pseudo)

"""Grants against a simple model: in any order of events, nothing is published without the grant that it needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from tests.unit.translation.objects import OPTIONS, fill, make, pem, secret
from tests.unit.translation.settling import prepare
from translation.core.options import Options

GRANT: Options = replace(OPTIONS, cross_namespace="grant")
NAMESPACES = ("a", "b")
SECRETS = ("one", "two")

namespaces, secrets = st.sampled_from(NAMESPACES), st.sampled_from(SECRETS)


@dataclass
class Model:
    """The state: ApisixTls by namespace → the Secret it names, or None if it is broken; Secrets; grants."""

    certificates: dict[str, tuple[str, str] | None] = field(default_factory=dict)
    secrets: set[tuple[str, str]] = field(default_factory=set)
    grants: dict[tuple[str, str], str] = field(default_factory=dict)
    """Namespaces of the target and of the referrer → name of the Secret, or empty for all."""

    def allows(self, namespace: str, target: tuple[str, str]) -> bool:
        return namespace == target[0] or self.grants.get((target[0], namespace)) in ("", target[1])


Step = tuple[Any, ...]

PUBLISHED: tuple[Step, ...] = (
    ("secret", "b", "one"),
    ("grant", "b", "a", ""),
    ("certificate", "a", ("b", "one")),
)
"""The start of every history: a granted reference."""

steps = st.one_of(
    st.tuples(st.just("certificate"), namespaces, st.tuples(namespaces, secrets) | st.none()),
    st.tuples(st.just("no certificate"), namespaces),
    st.tuples(st.just("secret"), namespaces, secrets),
    st.tuples(st.just("no secret"), namespaces, secrets),
    st.tuples(st.just("grant"), namespaces, namespaces, secrets | st.just("")),
    st.tuples(st.just("no grant"), namespaces, namespaces),
)


def take(model: Model, step: Step) -> JsonObject | ObjectKey:
    """Take one step in the model; return the object that is put, or the key of one that is deleted."""
    match step:
        case ("certificate", namespace, target):
            model.certificates[namespace] = target
            location = {"namespace": target[0], "name": target[1]} if target else None
            return make(
                "ApisixTls",
                "tls",
                namespace=namespace,
                spec={"hosts": [f"{namespace}.example.com"], "secret": location},
            )
        case ("no certificate", namespace):
            model.certificates.pop(namespace, None)
            return ObjectKey("ApisixTls", namespace, "tls")
        case ("secret", namespace, name):
            model.secrets.add((namespace, name))
            return secret(name, namespace=namespace, tls__crt=pem().certificate, tls__key=pem().key)
        case ("no secret", namespace, name):
            model.secrets.discard((namespace, name))
            return ObjectKey("Secret", namespace, name)
        case ("grant", target, source, name):
            model.grants[target, source] = name
            who = {"group": "apisix.apache.org", "kind": "ApisixTls", "namespace": source}
            what = {"group": "", "kind": "Secret", "name": name}
            return make("ReferenceGrant", source, namespace=target, spec={"from": [who], "to": [what]})
        case _:
            model.grants.pop((step[1], step[2]), None)
            return ObjectKey("ReferenceGrant", step[1], step[2])


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=25))
def test_exactly_the_granted_references_are_published(history: list[Step]) -> None:
    found, loop = prepare(options=GRANT)
    model = Model()
    for step in (*PUBLISHED, *history):
        change = take(model, step)
        if isinstance(change, ObjectKey):
            found.stores[change.kind].delete(change)
        else:
            fill(found, [change])
        loop.settle()
        for namespace in NAMESPACES:
            records = found.desired.of_owner(ObjectKey("ApisixTls", namespace, "tls")).values()
            sources = [
                (record.body["labels"]["meta_secret_namespace"], record.body["labels"]["meta_secret_name"])
                for record in records
            ]
            assert all(model.allows(namespace, source) for source in sources)
            target = model.certificates.get(namespace)
            if namespace not in model.certificates or (target and not model.allows(namespace, target)):
                assert sources == []
            elif target in model.secrets:
                assert sources == [target]

"""ApisixSecretManager → the secret manager of gateways."""

from dataclasses import replace

from apisix_ingress.model.json import JsonObject
from apisix_ingress.state.holds import Hold
from tests.unit.translation.objects import OPTIONS, get, make, protected_by, reported, world
from translation.core.options import Options
from translation.core.outcome import Outcome, Withdrawn, records_of
from translation.secret_manager import translate_secret_manager

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vault", "namespace": "apisix"}}


def translate(spec: JsonObject, *others: JsonObject, options: Options = OPTIONS) -> Outcome:
    found = world(make("ApisixSecretManager", "main", namespace="", spec=spec), *others)
    return translate_secret_manager(get(found, "ApisixSecretManager", "main", ""), found.view(), options)


def vault(**fields: object) -> JsonObject:
    return {"type": "vault", "config": {"uri": "https://vault", "prefix": "kv"}, **fields}


def test_the_id_is_the_type_and_the_name_and_a_secret_has_the_token() -> None:
    secret = {**SECRET, "stringData": {"token": "t"}}
    got = translate(vault(secretRef={"name": "vault", "namespace": "apisix"}), secret)
    (record,) = records_of(got)
    assert str(record.key) == "secrets/vault/main"
    labels = {"managed-by": "apisix-ingress-controller"}
    assert record.body == {"uri": "https://vault", "prefix": "kv", "token": "t", "labels": labels}


def test_without_its_secret_it_is_not_published_and_what_gateways_have_stays() -> None:
    got = translate(vault(secretRef={"name": "vault", "namespace": "apisix"}))
    assert records_of(got) == ()
    assert reported(got) == ["error SecretNotFound spec.secretRef"]
    (hold,) = protected_by(got)
    assert hold == Hold("secrets", ids=frozenset({"vault/main", "aws/main", "gcp/main"}))


def test_an_unknown_type_is_reported() -> None:
    assert reported(translate({"type": "file"})) == ["error InvalidSpec spec.type"]


def test_it_is_withdrawn_where_references_are_refused() -> None:
    got = translate(vault(), options=replace(OPTIONS, secret_references="refuse"))
    assert isinstance(got, Withdrawn)
    assert reported(got) == ["error SecretReferenceRefused spec"]

"""Masking: secrets are hidden everywhere, and details that explain a bug stay."""

import base64
import json
from typing import Any

import pytest

from apisix_ingress.diagnostics.object_masking import Mask, masked_secret
from apisix_ingress.model.secrets.value_mask import REDACTED
from tests.canary import FORMS, marked
from tests.factories import make_secret

WORD = marked("word-of-a-secret")


def shows(document: Any) -> bool:
    """Return whether a document contains a canary."""
    return any(form in json.dumps(document) for form in FORMS)


@pytest.mark.parametrize(
    "field",
    [
        *(
            "key",
            "password",
            "secret",
            "client_secret",
            "apikey",
            "api-key",
            "auth_header",
            "Authorization",
            "X-Api-Key",
        ),
        *(
            "customer_token",
            "service_account_json",
            "functions",
            "script",
            "filter_func",
            "k8s.apisix.apache.org/csrf-key",
        ),
        *("private_key", "keys", "sasl_config", "Set-Cookie", "adminKey", "refresh_token", "salt"),
    ],
)
@pytest.mark.parametrize("value", [WORD, [WORD], {"x": WORD}, {"deep": [{"x": WORD}]}])
def test_values_under_the_name_of_a_secret_are_hidden(field: str, value: Any) -> None:
    assert Mask().document({"a": [{field: value}]}) == {"a": [{field: REDACTED}]}


def test_what_explains_a_bug_stays() -> None:
    spec = {
        "secretName": "cert",
        "secret": {"name": "cert", "namespace": "shop"},
        "authParameter": {"keyAuth": {"secretRef": {"name": "words"}}},
        "hosts": ["a.example.org"],
        "hide_credentials": True,
        "plugins": [{"name": "authz-casbin", "config": {"username": "user", "model": "m"}}],
        "labels": {"meta_secret_name": "cert"},
        "key": "",
    }
    assert Mask().document(spec) == spec


def test_a_value_of_a_secret_is_hidden_wherever_it_is_and_however_it_is_written() -> None:
    mask = Mask([make_secret("words", data={"word": WORD.encode()})])
    encoded = base64.b64encode(WORD.encode()).decode()
    document = {"message": f"no {WORD} here", "uri": f"/x?w={WORD}", WORD: encoded, "json": json.dumps({"a": [WORD]})}
    got = mask.document(document)
    assert not shows(got)
    assert got["message"] == f"no {REDACTED} here"


def test_a_short_value_of_a_secret_is_hidden_as_a_whole_text_only() -> None:
    mask = Mask([make_secret("words", data={"pin": b"abcde", "tiny": b"abc"})])
    assert mask.document(["abcde", "abcdef", "abc"]) == [REDACTED, "abcdef", "abc"]


def test_certificates_stay_and_private_keys_go_line_by_line() -> None:
    line = "QUJD" * 16
    pem = f"-----BEGIN PRIVATE KEY-----\n{line}\n-----END PRIVATE KEY-----\n"
    mask = Mask([make_secret("cert", data={"tls.crt": b"a public certificate", "tls.key": pem.encode()})])
    assert mask.document({"cert": "a public certificate"}) == {"cert": "a public certificate"}
    assert line not in mask.document(f"it says {line}")
    assert Mask().document(f"x {pem} y") == f"x {REDACTED}\n y"


def test_json_inside_a_string_is_searched() -> None:
    text = json.dumps({"log_format": {"host": "$host"}, "token": WORD})
    assert json.loads(Mask().document({"http-logger": text})["http-logger"]) == {
        "log_format": {"host": "$host"},
        "token": REDACTED,
    }
    assert Mask().document("{no json") == "{no json"


def test_other_values_such_as_admin_keys_are_hidden() -> None:
    assert Mask(others=[WORD]).document({"trouble": f"refused {WORD}"}) == {"trouble": f"refused {REDACTED}"}


def test_a_secret_keeps_its_keys_and_loses_everything_else() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": WORD}
    meta = {"name": "words", "namespace": "shop", "annotations": annotations, "labels": {"a": WORD}}
    data = {"word": base64.b64encode(WORD.encode()).decode()}
    got = masked_secret({"metadata": meta, "type": "Opaque", "data": data, "stringData": {"other": WORD}})
    assert not shows(got)
    assert (got["metadata"], sorted(got["data"])) == ({"name": "words", "namespace": "shop"}, ["other", "word"])
    assert {base64.b64decode(value).decode() for value in got["data"].values()} == {REDACTED}

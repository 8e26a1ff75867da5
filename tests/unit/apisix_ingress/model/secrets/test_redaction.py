"""Canary secrets in every place a value can stand, and characters that would forge a line."""

import base64
import json

import pytest
from pydantic import SecretStr

from apisix_ingress.model.secrets import redaction
from apisix_ingress.model.secrets.fields import is_secret_name
from apisix_ingress.model.secrets.redaction import escape, redact_text, register_secret, sanitize, sanitize_mapping

PEM = "-----BEGIN RSA PRIVATE KEY-----\ncanary\ncanary=\n-----END RSA PRIVATE KEY-----"


@pytest.fixture(autouse=True)
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_registered", set())


@pytest.mark.parametrize(
    "name",
    [
        *("admin_key", "adminKey", "key", "Key", "token", "password", "private_key", "authorization"),
        *("client_key", "secret", "tls.key", "X-API-KEY", "Set-Cookie", "bearer_token", "db_password", "client_secret"),
        *("apikey", "apiKey", "master_apikey", "auth_header", "secretkey", "secret_fallbacks", "service_account_json"),
    ],
)
def test_value_under_a_name_like_a_secret_is_masked(name: str) -> None:
    assert is_secret_name(name)
    assert sanitize_mapping({name: "canary", "b": 1}) == {name: "[redacted]", "b": 1}
    assert sanitize({"a": [{name: {"deep": "canary"}}]}) == {"a": [{name: "[redacted]"}]}


@pytest.mark.parametrize("name", ["record", "keys", "object", "secret_name", "token_count", "monkey", "path"])
def test_other_names_are_not_changed(name: str) -> None:
    assert sanitize_mapping({name: "value"}) == {name: "value"}


@pytest.mark.parametrize("value", [None, "", b""])
def test_missing_secret_is_shown_as_missing(value: object) -> None:
    assert sanitize_mapping({"token": value})["token"] in (None, "")


def test_a_registered_secret_is_masked_everywhere() -> None:
    secret = 'canary "with" quotes/+'
    register_secret(secret)
    register_secret(secret)
    encoded = base64.b64encode(secret.encode()).decode()
    for text in (secret, f"a{secret}b", json.dumps({"a": secret}), encoded, "?k=canary%20%22with%22%20quotes%2F%2B"):
        got = redact_text(text)
        assert "canary" not in got
        assert encoded not in got
        assert "[redacted]" in got


def test_secret_that_contains_another_is_masked_as_a_whole() -> None:
    register_secret("canary")
    register_secret("canary-and-more")
    assert redact_text("canary-and-more canary") == "[redacted] [redacted]"


def test_secret_of_a_few_letters_does_not_blot_out_the_log() -> None:
    register_secret("")
    register_secret("abc")
    assert redact_text("abcdef") == "abcdef"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (f"before {PEM} after", "before [redacted] after"),
        (json.dumps({"key": PEM}), '{"key": "[redacted]"}'),
        (PEM[:50], "[redacted]"),
        (PEM.replace("RSA ", "ENCRYPTED "), "[redacted]"),
        ("Authorization: Bearer canary.canary", "Authorization: Bearer [redacted]"),
        ("authorization=Basic Y2FuYXJ5Y2FuYXJ5", "authorization=Basic [redacted]"),
        ("X-API-KEY: canary, Host: a", "X-API-KEY: [redacted], Host: a"),
        ('{"admin_key": "canary canary", "a": 1}', '{"admin_key": [redacted], "a": 1}'),
        ("password=canary&b=1", "password=[redacted]&b=1"),
        ("private_key='canary canary' b", "private_key=[redacted] b"),
        ("http://admin:canary@gw:9180/a", "http://[redacted]@gw:9180/a"),
        ("-----BEGIN CERTIFICATE-----\nMII", "-----BEGIN CERTIFICATE-----\nMII"),
        ("unknown key: foo", "unknown key: foo"),
        ("mail to a@example.com", "mail to a@example.com"),
    ],
)
def test_text_is_masked_by_pattern(text: str, want: str) -> None:
    assert redact_text(text) == want


def test_every_kind_of_value_becomes_plain_data() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd canary-value\n"

    register_secret("canary-value")
    value = {
        "none": None,
        "flag": True,
        "number": 1.5,
        "large": 2**70,
        "tuple": ("a", b"canary-value", bytearray(b"\xff")),
        "set": {"b", "a"},
        "odd": Odd(),
        "error": ValueError("canary-value"),
        "hidden": SecretStr("canary"),
        "canary-value": 1,
        ("a", 1): 2,
    }
    assert sanitize(value) == {
        "none": None,
        "flag": True,
        "number": 1.5,
        "large": str(2**70),
        "tuple": ["a", "[redacted]", "\\xff"],
        "set": ["a", "b"],
        "odd": "odd [redacted]\\n",
        "error": "[redacted]",
        "hidden": "**********",
        "[redacted]": 1,
        "('a', 1)": 2,
    }


def test_a_self_referencing_value_terminates() -> None:
    value: dict[str, object] = {}
    value["again"] = [value]
    assert json.dumps(sanitize(value)).count("again") < 10


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a\nb\r\t", "a\\nb\\r\\t"),
        ("\x1b[31mred\x00", "\\x1b[31mred\\x00"),
        ("\x7f\x85\u2028\u202e\u2066\ud800", "\\x7f\\x85\\u2028\\u202e\\u2066\\ud800"),
        ("grüße, 世界 🙂", "grüße, 世界 🙂"),
    ],
)
def test_characters_that_could_forge_or_repaint_a_line_are_escaped(text: str, want: str) -> None:
    assert escape(text) == want


def test_line_breaks_are_kept_where_they_belong() -> None:
    assert escape("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"

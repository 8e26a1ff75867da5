"""The quoted part of a gateway's reply: no secrets, at a cost linear in reply and record.

A violated bound makes a test exceed pytest's timeout.
"""

import json

import pytest

from apisix_ingress.gateway.adminapi.error_text import LIMIT, message_of, scrub
from apisix_ingress.model.formats.patterns import GuardedPattern
from apisix_ingress.model.json import JsonObject

SECRET = "".join(f"{number:02x}" for number in range(0x20, 0x60))
"""A secret of 128 characters without repeated parts."""
PART = 23
"""Characters of a part of a secret that is never quoted."""


def parts(text: str, size: int) -> set[str]:
    return {text[at : at + size] for at in range(len(text) - size + 1)}


def with_secret(secret: str = SECRET) -> JsonObject:
    return {"plugins": {"key-auth": {"key": secret}}}


def test_a_body_of_400000_strings_is_walked_once() -> None:
    body = {"plugins": {"cors": {"x": [f"property {number}" for number in range(400_000)]}}}
    message = "property " * 150_000 + '"property 17"'
    assert len(scrub(message, body, "sesame-key")) <= LIMIT


@pytest.mark.parametrize(
    "piece", ["<title>", '[string "', "near '", 'with "', '"', "'", "-----BEGIN ", "-----BEGIN A-----", "got \"'"]
)
def test_a_long_reply_takes_linear_time(piece: str) -> None:
    text = piece * 150_000
    assert len(scrub(message_of(text.encode(), 500), with_secret())) <= LIMIT
    assert len(scrub(message_of(json.dumps({"error_msg": text}).encode(), 400), with_secret())) <= LIMIT


def test_names_and_levels_of_a_body_take_linear_time() -> None:
    name = "n" * 700_000
    wide = {f"a{number}": f"text {number}" for number in range(100_000)}
    deep: JsonObject = {"text": "here"}
    for _ in range(2000):
        deep = {"down": deep, **{f"x{number}": "other" for number in range(20)}}
    for body in (
        {"plugins": {"csrf": {name: wide}}},
        {"plugins": {"csrf": {"x": [f"http_{name}", *("token" for _ in range(100_000))]}}},
        {"plugins": {"csrf": deep}},
    ):
        assert scrub('bad "here"', body) in ('bad "***"', 'bad "here"')


@pytest.mark.parametrize("shift", range(0, 140, 3))
def test_a_truncated_secret_is_masked_too(shift: int) -> None:
    # Enough is hidden for the end of the examined message to be quoted.
    message = "y" * shift + f" {SECRET}" * 100
    got = scrub(message, with_secret())
    assert not any(part in got for part in parts(SECRET, 12))


@pytest.mark.parametrize("shift", range(0, 140, 7))
def test_a_quoted_value_that_is_cut_off_is_hidden(shift: int) -> None:
    message = "y" * shift + f' "{SECRET}"' * 100
    got = scrub(message, {"plugins": {"cors": {"any": SECRET}}})
    assert not any(part in got for part in parts(SECRET, 12))


def test_any_longer_part_of_a_secret_is_hidden() -> None:
    for at in range(len(SECRET) - PART):
        got = scrub(f"refused {SECRET[at : at + PART]} there", with_secret())
        assert got == "refused *** there"
    for size in range(12, len(SECRET)):
        assert scrub(f"at {SECRET[:size]} or {SECRET[-size:]}", with_secret()) == "at *** or ***"


def test_a_part_of_the_admin_key_is_hidden() -> None:
    assert scrub(f"wrong key {SECRET[:12]}", None, SECRET) == "wrong key ***"


@pytest.mark.parametrize(
    "secret", ["hush", "hush!", "open sesame", "exactly12abc", "a secret with 'quotes' \"inside\""]
)
def test_a_secret_of_any_length_is_masked_anywhere(secret: str) -> None:
    for message in (f"no {secret} here", f"{secret}", f"x:{secret}", f'"{secret}"', f"a '{secret}'", f"<{secret}>"):
        assert secret not in scrub(message, with_secret(secret))


def test_values_that_cannot_come_from_a_secret_are_shown() -> None:
    words = "you can not set '*' for other option when 'allow_credential' is true"
    assert scrub(words, {"plugins": {"cors": {"allow_credential": True, "allow_methods": "*"}}}) == words
    words = 'pcre2_compile() failed: missing closing parenthesis in "^/(.*"'
    assert scrub(words, {"plugins": {"proxy-rewrite": {"regex_uri": ["^/(.*", "/$1"]}}}) == words
    # A Secret may be merged into any mapping.
    assert scrub('failed with "sesame"', {"plugins": {"cors": {"any": "sesame"}}}) == 'failed with "***"'


def test_names_that_matter_stay() -> None:
    words = 'failed to check the configuration of plugin "csrf" err: property "key" is required'
    body = {"plugins": {"csrf": {"host": "csrf", "any": "key", "key": "a.example.com"}}}
    assert scrub(words, body) == words


def test_the_message_of_a_truncated_response_is_reported() -> None:
    content = json.dumps({"error_msg": 'property "x" failed\nwith "' + "v" * 100_000 + '"'}).encode()[:65536]
    assert scrub(message_of(content, 400), {}).startswith('property "x" failed with "***"')


def test_a_message_that_takes_too_long_is_masked_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(self: GuardedPattern, text: str, position: int = 0) -> None:
        raise TimeoutError

    monkeypatch.setattr(GuardedPattern, "search", too_long)
    assert scrub(f"failed: {SECRET}", with_secret()) == "***"

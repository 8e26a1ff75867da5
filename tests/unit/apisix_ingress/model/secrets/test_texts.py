"""Credentials in texts, and how much of the text stays."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apisix_ingress.model.formats.patterns import GuardedPattern
from apisix_ingress.model.secrets import texts
from apisix_ingress.model.secrets.texts import without_arguments, without_credentials, without_header

MARK = "[x]"
PIECES = [
    "https://",
    "user:",
    "pass@",
    "a.example",
    "/x",
    "?",
    "&",
    "token=",
    "b=",
    "%3A%2F%2F",
    "%40",
    "%3D",
    "c",
    " ",
]
LINES = ["Authorization: ", "Bearer abcdefgh", "\n", "cookie:", "X-Api-Key: ", "'", '"', ";", "#", "key"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("https://user:pass@a.example/x", "https://[x]@a.example/x"),
        ("https://user:a/b@a.example/x", "https://[x]@a.example/x"),
        (f"https://oauth2:{'a' * 3000}@a.example/x", "https://[x]@a.example/x"),
        ("https://a.example:8443/npm/x@1.2", "https://a.example:8443/npm/x@1.2"),
        ("http://[fd00::1]:80/a@b", "http://[fd00::1]:80/a@b"),
        ("'user:pass@a.example' is no host name", "'user:[x]@a.example' is no host name"),
        ("root:pass@tcp(db:3306)/x", "root:[x]@tcp(db:3306)/x"),
        ("nginx:1.25@sha256:0123 mailto:a@b.example 10:20@x", "nginx:1.25@sha256:0123 mailto:a@b.example 10:20@x"),
        ("/x?a=b&token=c&d=e#f", "/x?a=b&token=[x]&d=e#f"),
        ("/x?next=%2Fy%3Ftoken%3Dc%26d%3De&f=g", "/x?next=%2Fy%3Ftoken%3D[x]%26d%3De&f=g"),
        ("/x?next=https%3A%2F%2Fa%3Ab%40c", "/x?next=https%3A%2F%2F[x]%40c"),
        ("see 'https://a/?code=b', then", "see 'https://a/?code=[x]', then"),
        ("a=b; session=c; Path=/", "a=b; session=[x]; Path=/"),
        ("refused; code=404 and /x?code=404", "refused; code=404 and /x?code=[x]"),
        ("plugins[0].config.cookie: is no string; set one", "plugins[0].config.cookie: is no string; set one"),
        ("sent Cookie: a=b; c", "sent Cookie: [x]"),
        ("Authorization: AWS4 a=b, c=d\nHost: a", "Authorization: [x]\nHost: a"),
        ("the field key= is empty", "the field key= is empty"),
        ("?a[token]=b&c.key=d", "?a[token]=[x]&c.key=[x]"),
        ("?token=&key", "?token=&key"),
        ("https://hooks.slack.com/services/T0/B0/xyz?a=b", "https://hooks.slack.com/services/[x]?a=b"),
        ("hooks.slack.com/services/T0/B0/xyz", "hooks.slack.com/services/[x]"),
        ("https://x.webhook.office.com/webhookb2/a@b/c", "https://x.webhook.office.com/webhookb2/[x]"),
        ("post to https://Discord.com/api/webhooks/1/a now", "post to https://Discord.com/api/webhooks/[x] now"),
        ("https://api.telegram.org/bot1:a/send", "https://api.telegram.org/bot[x]"),
        ("https://open.feishu.cn/open-apis/bot/v2/hook/a-b", "https://open.feishu.cn/open-apis/bot/v2/hook/[x]"),
        ("https://hooks.example.org/services/a", "https://hooks.example.org/services/a"),
    ],
)
def test_credential_is_removed_and_the_rest_stays(text: str, want: str) -> None:
    assert without_credentials(text, MARK) == want


def test_line_that_is_a_header_loses_its_value() -> None:
    text = "Host: a.example\nX-Api-Token: b c\r\nspec.x: c\nno header token: d"
    assert without_header(text, MARK) == "Host: a.example\nX-Api-Token: [x]\nspec.x: c\nno header token: d"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("proxy_set_header X-Api-Key a;", "proxy_set_header X-Api-Key [x];"),
        ('auth_basic \'Realm\'; set $token "a b\\"c";', "auth_basic 'Realm'; set $token \"[x]\";"),
        ("more_set_headers 'X-Token: a' 'X-Other: b';", "more_set_headers 'X-Token: [x]' 'X-Other: b';"),
        ('{"headers": {"set": {"X-Token": "a", "X": "b"}}}', '{"headers": {"set": {"X-Token": "[x]", "X": "b"}}}'),
        ("proxy_set_header X-Token $http_x_token;", "proxy_set_header X-Token $http_x_token;"),
        ("proxy_hide_header X-Token;\nreturn 200;", "proxy_hide_header X-Token;\nreturn 200;"),
        ("proxy_set_header X-Token", "proxy_set_header X-Token"),
    ],
)
def test_word_after_the_name_of_a_secret_is_removed(text: str, want: str) -> None:
    assert without_arguments(text, MARK) == want


@given(st.lists(st.sampled_from([*PIECES, *LINES]), max_size=8).map("".join), st.sampled_from(["?", "&", "#"]))
def test_parameter_is_found_behind_any_text(before: str, sign: str) -> None:
    assert "s3cr3t" not in without_credentials(f"{before}{sign}access_token=s3cr3t", MARK)


def test_a_text_that_takes_too_long_is_masked_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(self: GuardedPattern, by: object, text: str) -> str:
        raise TimeoutError

    monkeypatch.setattr(GuardedPattern, "sub", too_long)
    assert without_credentials("a very long password: text" * 20, MARK) == MARK


@given(st.lists(st.sampled_from([*PIECES, *LINES, "pa\u017f\u017fword: ", "coo\u212aie: "]), max_size=8).map("".join))
def test_skipping_patterns_that_cannot_match_changes_no_result(text: str) -> None:
    masked = without_credentials(text, MARK)
    with patch.object(texts, "_may_contain", return_value=True):
        assert texts._masked(text, MARK) == masked

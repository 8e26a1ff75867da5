"""The functions that run in a gateway: a request of a client costs work in proportion to its size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apisix_ingress.model.formats.patterns import TextPattern
from translation.nginx.functions.copies import MIRROR, MOST, MOST_BYTES
from translation.nginx.functions.guards import GUARD, MOST_CACHED
from translation.nginx.functions.own_requests import CLIENT, MOST_OF_BODY
from translation.nginx.functions.texts import TEXTS

SEARCHES = TextPattern(r""":(?:g?match|gsub|find)\("((?:[^"\\]|\\.)*)"(, 1, true)?""")
"""A search with a literal pattern; with `, 1, true` it is plain text."""

ONE_CHARACTER = TextPattern(r"^(?:%.|\[(?:[^\]%]|%.)+\]|[^%\[])$")

REVIEWED = {
    r"[^\r\n]+": "Each character is in one line.",
    r"(;%s*)(%a+)=([^;]*)": "It reads a cookie of a backend.",
}
"""Other patterns without an anchor → why their matches do not overlap."""


def searches() -> Iterator[str]:
    for text in sorted(TEXTS):
        yield from (found[1] for found in SEARCHES.finditer(text) if not found[2])


@pytest.mark.parametrize("pattern", sorted(set(searches())))
def test_a_search_in_text_of_a_client_begins_once(pattern: str) -> None:
    """Lua tries a pattern without an anchor at each character: one that reads on from there takes quadratic time."""
    assert pattern.startswith("^") or ONE_CHARACTER.found(pattern) or pattern in REVIEWED


def test_reviewed_patterns_are_in_use() -> None:
    assert REVIEWED.keys() <= set(searches())


def test_functions_read_all_headers() -> None:
    """Without a number, a gateway returns the first hundred, but sends all of them to the backend."""
    assert [text for text in TEXTS if "request.headers(" in text or "get_headers()" in text] == []


def test_a_response_is_read_until_its_client_has_gone() -> None:
    """A function that ignored the result would read an endless response, and keep all of it, without a client."""
    sends = [line for text in TEXTS for line in text.splitlines() if "ngx.print(" in line or "ngx.flush(" in line]

    assert sends
    assert [line for line in sends if " = " not in line] == []


def test_interim_responses_are_not_taken_for_the_response() -> None:
    """The next request of the connection would get the response."""
    created = [text for text in TEXTS if "http.new()" in text]

    assert created
    assert [text for text in created if "repeat answer, err = http.read_response" not in text] == []


def test_a_server_cannot_keep_a_gateway_reading() -> None:
    """A gateway switches to other requests only if there is nothing to read: a server could always send more."""
    created = [text for text in TEXTS if "http.new()" in text]

    assert [text for text in created if CLIENT not in text or text.count("http.new()") > 1] == []
    assert "if calls % 16 == 0 then ngx.sleep(0) end" in CLIENT
    bounded = {"new_client(MOST_OF_BODY)", f"new_client({MOST_OF_BODY})"}
    whole = [line for text in TEXTS for line in text.splitlines() if "request_uri(" in line and "client:" in line]
    assert len(whole) == len([text for text in TEXTS if bounded & {*text.split()}])


def test_requests_that_functions_send_are_limited() -> None:
    """A function does not notice that its client has gone."""
    sending = [text for text in TEXTS if " new_client(" in text.replace("function new_client(", "") and text != MIRROR]

    assert len(sending) == 3
    calls = [text.replace("function reserved(", "").count(" reserved(ctx, want.namespace)") for text in sending]
    assert calls == [1, 1, 1]
    assert sum(text.count(" reserved(ctx") for text in sending) == 2 * 3


def test_work_that_continues_after_its_request_is_limited() -> None:
    """A client waits for its request, but not for a timer."""
    assert [text for text in TEXTS if "ngx.timer." in text] == [MIRROR]
    assert f"copies.count >= {MOST} or copies.bytes + bytes > {MOST_BYTES}" in MIRROR


def test_responses_that_a_worker_keeps_are_small() -> None:
    """Clients choose the keys, and a server of a tenant the headers: 4,096 responses would take a gigabyte."""
    assert [text for text in TEXTS if ":set(key, {" in text] == [GUARD]
    assert "size_of(headers) <= MOST_CACHED" in GUARD
    assert f"local MOST_CACHED = {MOST_CACHED}\n" in GUARD

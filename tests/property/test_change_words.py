"""Any two bodies are compared without an error, in bounded words, and without a value of a plugin."""

import string
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from apisix_ingress.model.records import comparable
from apisix_ingress.statuspage.views.change_words import MOST_WORDS, change_words

SECRET = "the-secret-of-a-plugin"
texts = st.text(string.ascii_lowercase + "/*.{}\x00é", max_size=300)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
names = st.sampled_from(["nodes", "plugins", "uri", "uris", "hosts", "host", "methods", "vars", "status", "x"])
bodies = st.dictionaries(names, values, max_size=6)


@given(bodies, bodies)
def test_any_difference_has_a_bounded_description(before: dict[str, Any], after: dict[str, Any]) -> None:
    got = change_words(comparable("routes", before), comparable("routes", after))
    assert len(got) <= MOST_WORDS + 1
    assert all(len(word) < 1500 for word in got)
    assert change_words(orjson.dumps(after), orjson.dumps(after)) == []


@given(texts, bodies)
def test_no_value_of_a_plugin_is_described(name: str, body: dict[str, Any]) -> None:
    after = {**body, "plugins": {name: {"key": SECRET}}}
    assert SECRET not in "\n".join(change_words(comparable("routes", body), comparable("routes", after)))

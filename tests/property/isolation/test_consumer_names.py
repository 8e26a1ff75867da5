"""Usernames of consumers: with `consumer_names: unambiguous` no two ApisixConsumers have the same one."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from apisix_ingress.model.names import consumer_name

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
"""Valid names of namespaces, from few letters so that they collide."""
NAME = st.from_regex(r"[ab]([ab-]{0,4}[ab])?", fullmatch=True)
CONSUMER = st.tuples(NAME | LABEL, NAME | LABEL)


@given(one=CONSUMER, other=CONSUMER)
@example(one=("team", "a-admin"), other=("team-a", "admin"))
@example(one=("a", "b-c"), other=("a-b", "c"))
@settings(max_examples=1000, deadline=None)
def test_two_consumers_never_have_one_username(one: tuple[str, str], other: tuple[str, str]) -> None:
    got = [consumer_name(*each, "unambiguous") for each in (one, other)]
    assert (got[0] == got[1]) == (one == other)


@given(consumer=CONSUMER)
@settings(max_examples=500, deadline=None)
def test_the_username_identifies_the_consumer(consumer: tuple[str, str]) -> None:
    assert tuple(consumer_name(*consumer, "unambiguous").split("_")) == consumer


@given(consumer=CONSUMER, other=CONSUMER)
@settings(max_examples=500, deadline=None)
def test_usernames_of_1_8_collide_only_without_a_dash(consumer: tuple[str, str], other: tuple[str, str]) -> None:
    if consumer_name(*consumer, "unambiguous") == consumer_name(*other):
        assert consumer == other

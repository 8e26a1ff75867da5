"""Holders of hosts: once the table is settled, a host stays with its holder, whatever is claimed later."""

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.state.hosts.host_holders import HostHolders, below_read, holder_read

A1, A2, B1 = ObjectKey("ApisixRoute", "a", "1"), ObjectKey("ApisixRoute", "a", "2"), ObjectKey("ApisixRoute", "b", "1")


def settled() -> tuple[HostHolders, list[IndexKey]]:
    heard: list[IndexKey] = []
    holders = HostHolders(heard.append)
    holders.settle()
    return holders, heard


def test_no_namespace_holds_a_host_before_the_table_is_settled() -> None:
    holders = HostHolders(lambda read: None)
    holders.claim(A1, ["x.test"])
    assert (holders.holder("x.test"), holders.is_settled) == ("", False)
    holders.settle()
    assert (holders.holder("x.test"), holders.is_settled) == ("a", True)


def test_a_host_stays_until_the_last_object_of_its_namespace_is_deleted() -> None:
    holders, heard = settled()
    holders.claim(A1, ["x.test"])
    holders.claim(A2, ["x.test"])
    holders.claim(B1, ["x.test"])
    holders.claim(A1, [])
    assert (holders.holder("x.test"), heard) == ("a", [])
    holders.claim(A2, ["y.test"])
    assert (holders.holder("x.test"), holders.holder("y.test")) == ("", "a")
    assert heard == [holder_read("x.test")]


def test_holders_below_a_wildcard_are_known_and_their_end_is_heard_of() -> None:
    holders, heard = settled()
    holders.claim(A1, ["x.shop.test", "y.shop.test"])
    holders.claim(B1, ["z.shop.test"])
    assert ({*holders.below("*.shop.test")}, {*holders.below("*.test")}) == ({"a", "b"}, {"a", "b"})
    holders.claim(A1, ["x.shop.test"])
    assert {*holders.below("*.shop.test")} == {"a", "b"}
    heard.clear()
    holders.claim(A1, [])
    assert {*holders.below("*.shop.test")} == {"b"}
    assert heard == [holder_read("x.shop.test"), below_read("*.shop.test"), below_read("*.test")]


def test_a_host_belongs_to_its_owner_in_a_gateway() -> None:
    holders, heard = settled()
    holders.claim(A1, ["x.test"])
    holders.give("x.test", "b")
    assert (holders.holder("x.test"), {*holders.below("*.test")}) == ("b", {"b"})
    assert holder_read("x.test") in heard
    heard.clear()
    holders.give("x.test", "b")
    assert heard == []

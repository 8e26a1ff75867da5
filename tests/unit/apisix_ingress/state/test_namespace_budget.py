"""The budget of a namespace, and which objects fit when some of it is freed."""

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.namespace_budget import NamespaceBudget
from tests.factories import make_key

ONE, TWO, THREE = (make_key(name) for name in ("one", "two", "three"))


def budget_of(most: int, **sizes: int) -> NamespaceBudget:
    budget = NamespaceBudget(most)
    for name, size in sizes.items():
        budget.spend(make_key(name), size)
    return budget


def test_what_does_not_fit_waits_until_something_is_freed() -> None:
    budget = budget_of(100, one=50, two=50)
    assert not budget.fits(THREE, 50)
    budget.wait(THREE, 50)
    assert budget.admitted("default") == ()
    budget.spend(ONE, 0)
    assert budget.fits(THREE, 50)
    assert budget.admitted("default") == (THREE,)
    budget.spend(THREE, 50)
    assert budget.admitted("default") == ()


def test_owner_may_always_take_what_it_has() -> None:
    budget = budget_of(100, one=60, two=40)
    budget.most = 10
    assert [budget.fits(ONE, size) for size in (61, 60, 1)] == [False, True, True]


def test_namespaces_do_not_share() -> None:
    assert budget_of(100, one=100).fits(ObjectKey("ApisixRoute", "other", "one"), 100)


def test_owners_that_wait_are_admitted_in_order_and_only_as_many_as_fit() -> None:
    budget = budget_of(100, one=100)
    budget.wait(TWO, 60)
    budget.wait(THREE, 60)
    budget.spend(ONE, 0)
    assert budget.admitted("default") == (TWO,)


def test_a_deleted_or_failing_owner_stops_waiting() -> None:
    budget = budget_of(100, one=100)
    budget.wait(TWO, 10)
    budget.wait(THREE, 10)
    budget.spend(TWO, 0)
    budget.keep(THREE)
    budget.spend(ONE, 0)
    assert budget.admitted("default") == ()


def test_an_owner_without_a_namespace_uses_the_budget_of_the_one_that_is_assigned() -> None:
    host, budget = ObjectKey("NginxHost", "", "a.test"), NamespaceBudget(100)
    budget.spend(host, 1000)
    assert budget.fits(host, 2000)

    budget.assign(host, "one")
    budget.spend(host, 60)
    assert [budget.fits(ObjectKey("Ingress", name, "web"), 50) for name in ("one", "two")] == [False, True]

    budget.assign(host, "two")
    assert [budget.fits(ObjectKey("Ingress", name, "web"), 50) for name in ("one", "two")] == [True, False]

    budget.assign(host, "")
    assert budget.fits(ObjectKey("Ingress", "two", "web"), 100)
    assert (budget._used, budget._sizes, budget._namespaces) == ({}, {}, {})

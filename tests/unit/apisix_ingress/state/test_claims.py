"""Claims by owner and by target."""

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.claims import Claims, UpstreamClaim, UpstreamOverrides
from tests.factories import make_claim, make_claimant, make_key

WEB, API = make_key("web", kind="Service"), make_key("api", kind="Service")
OLD, NEW = make_claimant("z", created="2026-01-01T00:00:00Z"), make_claimant("a", created="2026-02-01T00:00:00Z")


def test_target_without_claims_has_none() -> None:
    assert Claims().of(WEB) == ()


def test_owner_without_claims_has_none() -> None:
    assert Claims().claims_of(OLD.owner) == frozenset()


def test_new_and_dropped_claims_change_their_targets_only() -> None:
    claims = Claims()
    assert claims.replace(OLD, [make_claim("web"), make_claim("api")]) == {WEB, API}
    assert claims.replace(OLD, [make_claim("web")]) == {API}
    assert claims.of(API) == ()
    assert claims.of(WEB) == ((OLD, make_claim("web")),)


def test_repeating_the_same_claims_changes_nothing() -> None:
    claims = Claims()
    claims.replace(OLD, [make_claim("web")])
    assert claims.replace(OLD, [make_claim("web"), make_claim("web")]) == frozenset()


def test_oldest_claimant_comes_first_in_any_order_of_arrival() -> None:
    got = []
    for order in ((OLD, NEW), (NEW, OLD)):
        claims = Claims()
        for claimant in order:
            claims.replace(claimant, [make_claim(port=81), make_claim(port=80)])
        got.append(claims.of(WEB))
    want = (
        (OLD, make_claim(port=80)),
        (OLD, make_claim(port=81)),
        (NEW, make_claim(port=80)),
        (NEW, make_claim(port=81)),
    )
    assert got == [want, want]


def test_claims_of_one_claimant_are_in_one_order_regardless_of_overrides() -> None:
    variants = [
        make_claim(subset="v1"),
        make_claim(),
        make_claim(granularity="service"),
        make_claim(weak=True),
        make_claim(overrides=UpstreamOverrides(scheme="https")),
        make_claim(overrides=UpstreamOverrides(retries=2)),
    ]
    got = []
    for order in (variants, variants[::-1]):
        claims = Claims()
        claims.replace(OLD, order)
        got.append([claim for _, claim in claims.of(WEB)])
    assert got[0] == got[1]
    assert set(got[0]) == set(variants)


def test_younger_claimant_of_a_claimed_upstream_does_not_change_the_target() -> None:
    """The target's records follow the oldest claimant of each claim: 10,000 routes on a Service translate it once."""
    claims = Claims()
    claims.replace(OLD, [make_claim()])
    assert claims.replace(NEW, [make_claim()]) == frozenset()
    assert claims.replace(NEW, []) == frozenset()


def test_older_claimant_of_a_claimed_upstream_changes_the_target() -> None:
    claims = Claims()
    claims.replace(NEW, [make_claim()])
    assert claims.replace(OLD, [make_claim()]) == {WEB}
    assert claims.replace(OLD, []) == {WEB}


def test_claimant_with_a_new_age_changes_its_targets() -> None:
    claims = Claims()
    claims.replace(OLD, [make_claim()])
    recreated = make_claimant("z", created="2026-03-01T00:00:00Z")
    assert claims.replace(recreated, [make_claim()]) == {WEB}
    assert claims.of(WEB) == ((recreated, make_claim()),)


def test_wish_of_a_target_lists_each_claim_once_with_its_oldest_claimant() -> None:
    claims = Claims()
    claims.replace(NEW, [make_claim(port=80), make_claim(port=81)])
    claims.replace(OLD, [make_claim(port=80)])
    assert claims.distinct(WEB) == ((OLD, make_claim(port=80)), (NEW, make_claim(port=81)))
    assert claims.distinct(API) == ()


def test_owners_without_claims_are_forgotten() -> None:
    claims = Claims()
    claims.replace(OLD, [make_claim("web"), make_claim("api")])
    claims.replace(OLD, [])
    assert (claims.of(WEB), claims.of(API), claims.claims_of(OLD.owner)) == ((), (), frozenset())
    assert all(not kept for kept in vars(claims).values())


def test_external_upstream_is_claimed_without_a_port() -> None:
    target = ObjectKey("ApisixUpstream", "default", "ext")
    claims = Claims()
    assert claims.replace(OLD, [UpstreamClaim(target)]) == {target}
    assert claims.claims_of(OLD.owner) == {UpstreamClaim(target)}

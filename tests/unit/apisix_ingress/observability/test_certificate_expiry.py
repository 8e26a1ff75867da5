"""When certificates expire: which of them are shown."""

from datetime import UTC, datetime

from trustme import CA

from apisix_ingress.model.records import Record
from apisix_ingress.observability.certificate_expiry import SHOWN, expiries
from apisix_ingress.state.world import World
from tests.factories import make_claimant, make_record

AUTHORITY = CA()


def certificate(year: int) -> str:
    leaf = AUTHORITY.issue_cert("web.example.org", not_after=datetime(year, 1, 1, tzinfo=UTC))
    return leaf.cert_chain_pems[0].bytes().decode()


def ssl(name: str, pem: str, secret: str) -> Record:
    labels = {"meta_secret_namespace": "default", "meta_secret_name": secret}
    return make_record(name, kind="ssls", body={"cert": pem, "labels": labels})


def end(year: int) -> float:
    return datetime(year, 1, 1, tzinfo=UTC).timestamp()


def test_each_secret_in_use_is_shown_with_its_earliest_expiry() -> None:
    desired = World([]).desired
    desired.replace(make_claimant("a"), [ssl("a", certificate(2040), "one"), make_record("route")])
    desired.replace(make_claimant("b"), [ssl("b", certificate(2035), "one"), ssl("c", certificate(2030), "two")])
    assert expiries(desired) == {("default", "one"): end(2035), ("default", "two"): end(2030)}
    desired.replace(make_claimant("b"), [])
    assert expiries(desired) == {("default", "one"): end(2040)}


def test_only_the_certificates_that_expire_first_are_shown() -> None:
    desired = World([]).desired
    late, soon = certificate(2040), certificate(2030)
    records = [ssl(f"late-{number}", late, f"late-{number}") for number in range(SHOWN + 50)]
    desired.replace(make_claimant("a"), [*records, ssl("soon", soon, "soon")])
    got = expiries(desired)
    assert (len(got), got["default", "soon"]) == (SHOWN, end(2030))

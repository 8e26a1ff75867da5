"""ApisixTls → ssl records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.names import DESC
from apisix_ingress.model.problem import Problem
from tests.fakes.clock import FakeClock
from tests.unit.translation.objects import OPTIONS, get, make, pem, protected_by, secret, world
from tests.unit.translation.settling import bodies, prepare, problems, settle
from translation.core.options import Options
from translation.core.outcome import Outcome, records_of
from translation.tls import translate_tls

LOCATION = {"name": "cert", "namespace": "default"}
CA_LOCATION = {"name": "ca", "namespace": "default"}

PAIR = pem(names=("a.example.com",))

EXPIRY = datetime(2020, 1, 2, tzinfo=UTC)
"""Of every certificate that `pem` makes."""


def apisix_tls(hosts: tuple[str, ...] = ("a.example.com",), **spec: Any) -> JsonObject:
    return make("ApisixTls", "tls", spec={"hosts": list(hosts), "secret": LOCATION, **spec})


def pair(name: str = "cert", *, namespace: str = "default", names: tuple[str, ...] = ("a.example.com",)) -> JsonObject:
    found = pem(names=names)
    return secret(name, namespace=namespace, tls__crt=found.certificate, tls__key=found.key)


def translate(*objects: JsonObject, options: Options = OPTIONS, now: datetime | None = None) -> Outcome:
    found = world(*objects)
    return translate_tls(get(found, "ApisixTls", "tls"), found.view(), options, now=now)


def client(translation: Outcome) -> Any:
    (record,) = records_of(translation)
    return record.body["client"]


def test_the_record_has_the_pair_and_its_source() -> None:
    got = translate(apisix_tls(), pair())
    (record,) = records_of(got)
    labels = {"managed-by": "apisix-ingress-controller", "meta_secret_name": "cert", "meta_secret_namespace": "default"}
    want = {
        "id": record.key.id,
        "snis": ["a.example.com"],
        "cert": PAIR.certificate,
        "key": PAIR.key,
        "status": 1,
        "labels": labels,
    }
    assert (record.body, record.name, got.problems) == (want, "default_tls", ())
    assert DESC not in record.body.values()


def test_a_duplicate_host_is_sent_once() -> None:
    (record,) = records_of(translate(apisix_tls(("a.example.com", "a.example.com")), pair()))
    assert record.body["snis"] == ["a.example.com"]


def test_the_hold_names_the_record_even_if_the_spec_is_broken() -> None:
    whole, broken = translate(apisix_tls(), pair()), translate(apisix_tls(()), pair())
    (record,) = records_of(whole)
    assert protected_by(broken) == protected_by(whole)
    assert [hold.names for hold in protected_by(broken)] == [frozenset({record.name})]
    assert [(problem.code, problem.path) for problem in broken.problems] == [("InvalidSpec", "spec.hosts")]


def test_a_pair_that_does_not_match_is_not_published() -> None:
    mixed = secret("cert", tls__crt=pem().certificate, tls__key=pem(2).key)
    got = translate(apisix_tls(), mixed)
    message = "Secret default/cert has a private key that belongs to another certificate: replace one of them"
    assert (records_of(got), got.problems) == ((), (Problem("InvalidCertificate", message, "spec.secret"),))


def test_a_secret_in_another_namespace_needs_a_grant_if_the_settings_require_it() -> None:
    spec = apisix_tls(secret={"name": "cert", "namespace": "certs"})
    foreign = pair(namespace="certs")
    assert len(records_of(translate(spec, foreign))) == 1
    refused, missing = (translate(spec, *found, options=Options(cross_namespace="grant")) for found in ([foreign], []))
    assert records_of(refused) == ()
    assert refused.problems == missing.problems
    assert [problem.code for problem in refused.problems] == ["SecretNotFound"]


@pytest.mark.parametrize("key", ["cert", "tls.crt", "ca.crt"])
def test_a_ca_is_found_under_each_key(key: str) -> None:
    authority = make("Secret", "ca", stringData={key: pem(3).certificate})
    got = client(translate(apisix_tls(client={"caSecret": CA_LOCATION}), pair(), authority))
    assert got == {"ca": pem(3).certificate}


def issued() -> str:
    """Return a certificate that a CA issued and that cannot issue others."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("web", "ca"))
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), 7, EXPIRY - timedelta(days=1), EXPIRY)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def test_the_ca_of_a_secret_with_a_server_certificate_is_under_ca_crt() -> None:
    authority = secret("ca", tls__crt=issued(), ca__crt=pem().certificate)
    got = translate(apisix_tls(client={"caSecret": CA_LOCATION}), pair(), authority)
    assert (client(got), got.problems) == ({"ca": pem().certificate}, ())


def test_a_server_certificate_in_place_of_a_ca_lets_no_client_in_and_is_reported() -> None:
    leaf = issued()
    got = translate(apisix_tls(client={"caSecret": CA_LOCATION}), pair(), secret("ca", tls__crt=leaf))
    message = "Secret default/ca has no CA under tls.crt, so no client certificate is accepted; put the CA under ca.crt"
    assert client(got) == {"ca": leaf}
    assert got.problems == (Problem("NotAnAuthority", message, "spec.client.caSecret", "degraded"),)


def test_depth_and_exempt_paths_go_with_the_ca() -> None:
    spec = apisix_tls(client={"caSecret": CA_LOCATION, "depth": 2, "skip_mtls_uri_regex": ["/a", "/b", "/a"]})
    got = client(translate(spec, pair(), secret("ca", ca__crt=pem().certificate)))
    assert got == {"ca": pem().certificate, "depth": 2, "skip_mtls_uri_regex": ["/a", "/b"]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"other": "x"}, "Secret default/ca has no CA: put it under ca.crt"),
        ({"ca.crt": "not PEM"}, "Secret default/ca has a CA under ca.crt that cannot be read: it must be PEM"),
    ],
)
def test_a_ca_that_cannot_be_used_keeps_the_object_from_being_published(data: dict[str, str], message: str) -> None:
    authority = make("Secret", "ca", stringData=data)
    got = translate(apisix_tls(client={"caSecret": CA_LOCATION}), pair(), authority)
    assert records_of(got) == ()
    assert got.problems == (Problem("InvalidCertificate", message, "spec.client.caSecret"),)


def test_every_missing_secret_is_reported_at_once() -> None:
    got = translate(apisix_tls(client={"caSecret": CA_LOCATION}))
    assert [(problem.code, problem.path) for problem in got.problems] == [
        ("SecretNotFound", "spec.secret.name"),
        ("SecretNotFound", "spec.client.caSecret.name"),
    ]


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("a.example.com", ("a.example.com",)),
        ("A.Example.com", ("a.example.COM",)),
        ("a.example.com", ("*.example.com",)),
        ("*.example.com", ("*.example.com",)),
    ],
)
def test_a_host_that_the_certificate_names_gives_no_warning(host: str, names: tuple[str, ...]) -> None:
    assert translate(apisix_tls((host,)), pair(names=names)).problems == ()


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("b.example.com", ("a.example.com",)),
        ("a.b.example.com", ("*.example.com",)),
        ("example.com", ("*.example.com",)),
        ("*.a.example.com", ("*.example.com",)),
        ("a.example.com", ()),
    ],
)
def test_a_host_that_the_certificate_does_not_name_is_published_with_a_warning(
    host: str, names: tuple[str, ...]
) -> None:
    got = translate(apisix_tls((host,)), pair(names=names))
    message = f"{host} is not covered by the certificate in Secret default/cert: clients reject it; add the name"
    assert got.problems == (Problem("HostNotCovered", message, "spec.hosts[0]", "warning"),)
    assert len(records_of(got)) == 1


def test_an_expired_certificate_is_published_with_a_warning() -> None:
    got = translate(apisix_tls(), pair(), now=datetime(2020, 1, 3, tzinfo=UTC))
    message = "the certificate in Secret default/cert expired on 2020-01-02 00:00 UTC: clients reject it; renew it"
    assert got.problems == (Problem("CertificateExpired", message, "spec.secret", "warning"),)
    assert len(records_of(got)) == 1


def test_a_certificate_that_is_valid_still_gives_no_warning() -> None:
    assert translate(apisix_tls(), pair(), now=EXPIRY - timedelta(seconds=1)).problems == ()
    assert len(translate(apisix_tls(), pair(), now=EXPIRY).problems) == 1


def test_no_message_holds_a_byte_of_a_secret() -> None:
    canary = "canary-4711"
    objects = [secret("cert", cert=canary, key=canary), secret("ca", ca__crt=canary)]
    got = translate(apisix_tls(client={"caSecret": CA_LOCATION}), *objects)
    assert len(got.problems) == 2
    assert canary not in repr(got)


def test_a_certificate_that_is_expired_already_is_reported_by_the_provider() -> None:
    got = settle(apisix_tls(), pair())
    assert problems(got) == {"ApisixTls default/tls": ["CertificateExpired"]}
    assert [body["snis"] for body in bodies(got).values()] == [["a.example.com"]]


async def test_the_provider_reports_when_a_certificate_expires() -> None:
    clock = FakeClock(wall=EXPIRY - timedelta(hours=1))
    found, loop = prepare(apisix_tls(), pair(), clock=clock)
    loop.settle()
    assert problems(found) == {"ApisixTls default/tls": []}
    await clock.advance(3599)
    loop.settle()
    assert problems(found) == {"ApisixTls default/tls": []}
    await clock.advance(1)
    loop.settle()
    assert problems(found) == {"ApisixTls default/tls": ["CertificateExpired"]}

"""The certificate of hosts without one."""

from __future__ import annotations

from apisix_ingress.model.keys import RecordKey
from tests.unit.translation.nginx.objects import ingress, translated
from translation.hosts.certificates import check_pair
from translation.nginx.fake_certificate import fake_pair


def test_it_is_the_same_after_a_restart_and_differs_by_seed() -> None:
    first = fake_pair(b"one")
    fake_pair.cache_clear()

    assert fake_pair(b"one") == first
    assert fake_pair(b"two").certificate != first.certificate
    assert check_pair(first.certificate.encode(), first.key.encode()) == ""


def test_every_name_without_a_certificate_has_it() -> None:
    outcome = translated(ingress("web", ("/", "Prefix")))

    assert [body.get("sni") for key, body in outcome.bodies().items() if key.kind == "ssls"] == ["*"]


def test_handshakes_are_rejected_as_the_configmap_says() -> None:
    config = {
        "kind": "ConfigMap",
        "metadata": {"name": "config", "namespace": "ingress-nginx"},
        "data": {"ssl-reject-handshake": "true"},
    }

    keys: list[RecordKey] = list(translated(ingress("web", ("/", "Prefix")), config).bodies())

    assert [key for key in keys if key.kind == "ssls"] == []

"""ApisixUpstream: health checks, retries and both spellings."""

from typing import Any

import pytest

from crds import parse_spec
from crds.v2.upstream import ActiveCheck, ApisixUpstreamSpec
from tests.unit.crds.specs import SECRET, active_check


def active(**changes: Any) -> ActiveCheck:
    spec = parse_spec(ApisixUpstreamSpec, active_check(**changes))
    assert spec.health_check is not None
    return spec.health_check.active


@pytest.mark.parametrize(
    ("given", "want"),
    [(5, 5.0), (0.5, 0.5), ("5s", 5.0), ("1500ms", 1.5), (5_000_000_000, 5.0), (999_999, 999_999.0), (0, 0.0)],
)
def test_a_probe_timeout_is_in_seconds_in_every_dialect(given: object, want: float) -> None:
    assert active(timeout=given).timeout == want


@pytest.mark.parametrize(
    ("given", "want"),
    [({}, 0), ({"timeouts": 7}, 7), ({"timeout": 6}, 6), ({"timeouts": 0, "timeout": 6}, 0), ({"timeout": 0}, 0)],
)
def test_both_spellings_of_the_number_of_timeouts_are_read(given: dict[str, int], want: int) -> None:
    got = active(unhealthy={"interval": "1s", **given}).unhealthy
    assert got is not None
    assert got.timeout_count == want


def test_both_spellings_are_read_in_passive_checks_and_at_ports() -> None:
    passive = {"passive": {"unhealthy": {"timeout": 3}}, **active_check()["healthCheck"]}
    spec = parse_spec(ApisixUpstreamSpec, {"portLevelSettings": [{"port": 80, "healthCheck": passive}]})
    check = spec.port_level_settings[0].health_check
    assert check is not None
    assert check.passive is not None
    assert check.passive.unhealthy is not None
    assert check.passive.unhealthy.timeout_count == 3


def test_certificates_of_probed_nodes_are_verified_unless_disabled() -> None:
    assert active().strict_tls is True
    assert active(strictTLS=False).strict_tls is False


def test_hash_of_chash_is_a_variable_unless_it_says_otherwise() -> None:
    got = parse_spec(ApisixUpstreamSpec, {"loadbalancer": {"type": "chash", "key": "remote_addr"}}).loadbalancer
    assert got is not None
    assert (got.type, got.hash_on, got.key) == ("chash", "vars", "remote_addr")


def test_retries_of_zero_differ_from_none() -> None:
    assert parse_spec(ApisixUpstreamSpec, {"retries": 0}).retries == 0
    assert parse_spec(ApisixUpstreamSpec, {}).retries is None


def test_external_nodes_and_secret_are_read() -> None:
    nodes = [{"name": "a.example.com", "type": "Domain"}, {"name": "ext", "type": "Service", "weight": 0, "port": 8080}]
    got = parse_spec(ApisixUpstreamSpec, {"externalNodes": nodes, "tlsSecret": SECRET})
    assert [node.model_dump() for node in got.external_nodes] == [
        {"name": "a.example.com", "type": "Domain", "weight": 100, "port": None},
        {"name": "ext", "type": "Service", "weight": 0, "port": 8080},
    ]
    assert got.tls_secret is not None
    assert got.tls_secret.model_dump() == SECRET

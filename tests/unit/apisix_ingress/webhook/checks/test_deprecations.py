"""Fields with two spellings: what is reported about them, and that there is no report without a reason."""

from typing import Any

import pytest

from apisix_ingress.webhook.checks.deprecations import consumer_notes, upstream_notes
from tests.factories import make_custom
from tests.unit.apisix_ingress.webhook.worlds import ask, make_checks, manifest
from translation.core.options import Options

NOTES = {"ApisixConsumer": consumer_notes, "ApisixUpstream": upstream_notes}
HMAC = "spec.authParameter.hmacAuth.value.access_key"


def consumer(**value: Any) -> dict[str, Any]:
    return {"authParameter": {"hmacAuth": {"value": {"secret_key": "s", **value}}}}


def upstream(mode: str = "active", **unhealthy: Any) -> dict[str, Any]:
    return {"healthCheck": {mode: {"unhealthy": unhealthy}}}


@pytest.mark.parametrize(
    ("kind", "spec", "want"),
    [
        ("ApisixConsumer", consumer(access_key="a"), f"{HMAC}: is deprecated, gateways call it key_id"),
        ("ApisixConsumer", consumer(access_key="a", key_id="b"), f"{HMAC}: is ignored, because key_id"),
        ("ApisixUpstream", upstream(timeout=1, timeouts=2), "spec.healthCheck.active.unhealthy.timeout: is ignored"),
        ("ApisixUpstream", upstream("passive", timeout=0, timeouts=2), "spec.healthCheck.passive.unhealthy.timeout:"),
        (
            "ApisixUpstream",
            {"portLevelSettings": [{"port": 1}, {"port": 2, **upstream(timeout=1, timeouts=2)}]},
            "spec.portLevelSettings[1].healthCheck.active.unhealthy.timeout: is ignored",
        ),
    ],
)
def test_deprecated_and_duplicate_field_names_are_reported(kind: str, spec: dict[str, Any], want: str) -> None:
    (got,) = NOTES[kind](make_custom(kind=kind, spec=spec), Options())
    assert got.startswith(want)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ApisixConsumer", consumer(key_id="a")),
        ("ApisixConsumer", consumer(key_id="a", access_key="a")),
        ("ApisixConsumer", {"authParameter": {"hmacAuth": {"secretRef": {"name": "a"}}}}),
        ("ApisixConsumer", {"authParameter": {"hmacAuth": 5}}),
        ("ApisixConsumer", {"plugins": [{"name": "hmac-auth", "config": {"access_key": "a"}}]}),
        ("ApisixUpstream", upstream(timeouts=2)),
        ("ApisixUpstream", upstream(timeout=2)),
        ("ApisixUpstream", upstream(timeout=2, timeouts=2)),
        ("ApisixUpstream", {"healthCheck": None, "portLevelSettings": 5}),
        ("ApisixUpstream", {"portLevelSettings": [5]}),
    ],
)
def test_current_field_names_are_not_reported(kind: str, spec: dict[str, Any]) -> None:
    assert list(NOTES[kind](make_custom(kind=kind, spec=spec), Options())) == []


def test_users_are_warned_and_not_denied() -> None:
    got = ask(make_checks(books={}), manifest(consumer(access_key="a-key"), kind="ApisixConsumer"))
    assert got.denials == ()
    (warning,) = (text for text in got.warnings if text.startswith(HMAC))
    assert "a-key" not in warning

"""How much a route lets through."""

import pytest

from apisix_ingress.model.exposure import Exposure
from apisix_ingress.model.json import FrozenJson
from translation.nginx.functions.attached import Function, attached
from translation.nginx.functions.guards import GUARD
from translation.plugins.exposure import GUARDS, OPENS, exposure
from translation.plugins.policy.access import ACCESS
from translation.plugins.policy.observing import OBSERVING

CASES: list[tuple[FrozenJson, Exposure]] = [
    ({"upstream_id": "u"}, Exposure.OPEN),
    ({"plugins": {}}, Exposure.REFUSES),
    ({"plugins": {"fault-injection": {"abort": {"http_status": 403}}}, "vars": [["a", "==", "1"]]}, Exposure.REFUSES),
    ({"plugins": {"redirect": {"http_to_https": True}}}, Exposure.REFUSES),
    ({"upstream_id": "u", "plugins": {"redirect": {"http_to_https": True}}}, Exposure.OPEN),
    ({"upstream_id": "u", "plugins": {"client-control": {"ingress_nginx": {"https": {}}}}}, Exposure.GUARDED),
    ({"upstream_id": "u", "plugins": {"key-auth": {}}}, Exposure.GUARDED),
    ({"upstream_id": "u", "plugins": {"cors": {}, "limit-count": {}}}, Exposure.GUARDED),
    ({"upstream_id": "u", "plugins": {"cors": {}, "prometheus": {}}}, Exposure.OPEN),
    ({"upstream_id": "u", "plugins": {"my-auth": {}}}, Exposure.UNKNOWN),
    ({"upstream_id": "u", "plugins": {"serverless-pre-function": {"functions": ["…"]}}}, Exposure.UNKNOWN),
    ({"upstream_id": "u", "plugins": attached([Function(GUARD, {"basic": {}})])}, Exposure.GUARDED),
    ({"upstream_id": "u", "plugins": attached([Function("…", {"forwarded": {}})])}, Exposure.OPEN),
    ({"upstream_id": "u", "plugin_config_id": "p"}, Exposure.UNKNOWN),
    ({"plugins": {"aws-lambda": {}}}, Exposure.UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("body", "want"), CASES)
def test_exposure_follows_from_the_plugins(body: FrozenJson, want: Exposure) -> None:
    assert exposure(body) == want


def test_plugins_of_a_plugin_config_count() -> None:
    body = {"upstream_id": "u", "plugin_config_id": "p", "plugins": {"cors": {}}}
    configs: tuple[FrozenJson, ...] = ({"plugins": {"key-auth": {}}}, {"plugins": {"gzip": {}}})
    assert [exposure(body, config) for config in configs] == [Exposure.GUARDED, Exposure.OPEN]


def test_no_plugin_is_in_both_lists() -> None:
    assert frozenset() == GUARDS & OPENS


def test_every_reviewed_plugin_that_restricts_or_observes_is_listed() -> None:
    assert ACCESS.keys() - GUARDS == {"cors", "attach-consumer-label"}
    assert OBSERVING.keys() - OPENS == frozenset({"log-rotate"})

"""Providers of a small world."""

import pytest

from apisix_ingress.model.keys import RecordKey
from tests.factories import make_record
from tests.unit.providers.harness import ProviderHarness

UPSTREAM = "default_web_80"


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> ProviderHarness:
    return ProviderHarness(monkeypatch)


def record_key(name: str) -> RecordKey:
    return make_record(name).key

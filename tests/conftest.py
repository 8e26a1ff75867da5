"""Rules for every test here: no leaked secrets, no timing assertions, logging is reset after each test."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from apisix_ingress.model.secrets import redaction
from tests.canary import pytest_runtest_makereport as pytest_runtest_makereport

# Hypothesis fails an example that took a fifth of a second once and less the next time, which depends on the machine.
settings.register_profile("untimed", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# A shell that starts the tests in the background ignores SIGINT. Programs that tests start and interrupt inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _no_logger_is_kept() -> Iterator[None]:
    """Do not cache the configuration of loggers, unlike the program: a later test would use it."""
    configure = structlog.configure

    def uncached(**settings: Any) -> None:
        configure(**{**settings, "cache_logger_on_first_use": False})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", uncached)
        yield


@pytest.fixture(autouse=True)
def _logging_is_put_back(_no_logger_is_kept: None) -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture(autouse=True)
def _registered_secrets_end_with_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the secrets that a test registers: they would be masked in the output of later tests."""
    monkeypatch.setattr(redaction, "_registered", set(redaction._registered))

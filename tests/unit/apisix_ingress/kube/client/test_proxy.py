"""The proxy for the API server from the environment."""

import pytest

from apisix_ingress.kube.client.rest_config import environment_proxy

URL = "https://kube.example.org:6443"


@pytest.fixture(autouse=True)
def no_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def test_without_a_variable_no_kubeconfig_is_used() -> None:
    assert environment_proxy(URL) is None


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_the_variable_of_the_scheme_is_used(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://proxy:3128")
    assert environment_proxy(URL) == "http://proxy:3128"
    assert environment_proxy("http://kube.example.org") is None


@pytest.mark.parametrize("exempt", ["kube.example.org", ".example.org", "kube.example.org:6443", "*"])
def test_an_exempt_host_is_reached_directly(monkeypatch: pytest.MonkeyPatch, exempt: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", exempt)
    assert environment_proxy(URL) is None

"""The `kubernetes` package without what is never used: half of the time that a start takes."""

import subprocess
import sys

LOADED = """
import sys
from apisix_ingress.kube.client.slim_import import light
with light():
    from kubernetes.aio.client.rest import RESTClientObject
    from kubernetes.aio.config.exec_provider import ExecProvider
    from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger
"""


def run(script: str) -> list[str]:
    """Return what a script printed after everything was loaded, in a process that imported nothing else before."""
    done = subprocess.run([sys.executable, "-c", LOADED + script], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_requests_oauth_and_time_zones_are_not_imported() -> None:
    got = run("print(*sorted({name.partition('.')[0] for name in sys.modules}))")
    assert "aiohttp_retry" in got
    assert {"requests", "oauthlib", "requests_oauthlib", "urllib3", "websocket", "dateutil"} & set(got) == set()


def test_the_same_classes_are_found_again() -> None:
    script = """
with light():
    from kubernetes.aio.client.rest import RESTClientObject as again
print(again is RESTClientObject, "kubernetes" in sys.modules)
"""
    assert run(script) == ["True", "False"]


def test_the_whole_package_can_still_be_imported() -> None:
    script = """
import kubernetes.aio.client.models
from kubernetes import aio, client
print(client.V1Pod.__name__, aio.client.models.V1Pod.__name__, aio.client.api_client.ApiClient.__name__)
"""
    assert run(script) == ["V1Pod", "V1Pod", "ApiClient"]


def test_a_package_imported_before_is_used_as_it_is() -> None:
    script = """
import kubernetes.aio.client.api_client
with light():
    from kubernetes.aio.client.api_client import ApiClient as again
print(again is kubernetes.aio.client.api_client.ApiClient)
"""
    assert run(script) == ["True"]


def test_a_name_that_a_submodule_asks_for_in_vain_is_named() -> None:
    script = """
with light():
    try:
        from kubernetes.aio.client import V1Pod
    except ImportError as error:
        print(error.name)
"""
    assert run(script) == ["kubernetes.aio.client"]

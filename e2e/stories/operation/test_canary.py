"""The search for secrets finds leaks: each place leaks one secret and is reported."""

import base64
import sys
from pathlib import Path

import pytest
from trustme import CA

from e2e.canary import Canaries, Search
from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.cluster.process import Process
from e2e.controller import Controller
from e2e.gateways import RemoteGateway

SECRET = "a-canary-of-this-story"
PLACES = ("Event", "ConfigMap", "ApisixRoute")


def shown_in(kind: str, namespace: str) -> Manifest:
    """Return an object that leaks the secret."""
    meta = {"name": "leaky", "namespace": namespace}
    if kind == "Event":
        about = {"kind": "Pod", "name": "web", "namespace": namespace}
        return {"apiVersion": "v1", "kind": kind, "metadata": meta, "involvedObject": about, "message": f"no {SECRET}"}
    if kind == "ConfigMap":
        data = {"ledger": base64.b64encode(SECRET.encode()).decode()}
        return {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": data}
    return {"apiVersion": "apisix.apache.org/v2", "kind": kind, "metadata": meta, "spec": {}}


@pytest.mark.parametrize("kind", PLACES)
def test_a_secret_in_an_object_is_found(cluster_api: KubeClient, kind: str) -> None:
    search = Search()
    search.canaries.plant_from({"kind": "Secret", "metadata": {"name": "words"}, "stringData": {"word": SECRET}})
    with cluster_api.namespace(labels={"e2e-controller": "own"}) as namespace:
        cluster_api.create(shown_in(kind, namespace))
        if kind == "ApisixRoute":
            condition = {"type": "Ready", "status": "False", "reason": "No", "message": f"refused: {SECRET}"}
            status = {"status": {"conditions": [condition]}}
            cluster_api.patch(kind, "leaky", status, namespace=namespace, subresource="status")
        (found,) = [leak for leak in search.leaks(cluster_api) if namespace in leak]
    assert found.startswith("word of Secret words in ")
    assert found.endswith(f"{kind} {namespace}/leaky")


class Leaky(Controller):
    """A program that leaks its admin key everywhere; only this module searches it."""

    def __init__(self, root: Path, key: str) -> None:
        self.name = "leaky"
        self.key = key
        command = [sys.executable, "-c", "import sys, time; print(sys.argv[1], flush=True); time.sleep(60)", key]
        self.process = Process("leaky", command, log=root / "leaky.log")

    def probe(self, path: str) -> tuple[int, str]:
        return 200, self.key if path == "/readyz" else "ok"


def test_a_secret_in_a_log_a_page_or_an_argument_is_found(tmp_path: Path) -> None:
    search, key = Search(), "canary-of-the-admin-key"
    leaky = Leaky(tmp_path, key)
    search.follow(leaky, {"default": RemoteGateway("http://127.0.0.1:1/apisix/admin", key, "")})
    assert search.leaks() == []
    leaky.process.start()
    try:
        wait_until(lambda: leaky.process.tail(), bool, "the first line of the log")
        want = [
            f"admin key of cluster default in {place} of leaky" for place in ("/readyz", "the arguments", "the log")
        ]
        assert search.leaks() == want
        assert search.leaks() == want[:2]
    finally:
        leaky.process.stop()


def test_private_keys_and_credentials_are_canaries_and_certificates_are_not() -> None:
    leaf = CA().issue_cert("web.example.org")
    key, certificate = leaf.private_key_pem.bytes().decode(), leaf.cert_chain_pems[0].bytes().decode()
    canaries = Canaries()
    data = {"tls.crt": certificate, "tls.key": key}
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
    canaries.plant_from({"kind": "Secret", "metadata": {"name": "pair"}, "data": encoded})
    basic = {"value": {"username": "jack-of-all-trades", "password": "pass word"}}
    spec = {"authParameter": {"basicAuth": basic}}
    canaries.plant_from({"kind": "ApisixConsumer", "metadata": {"name": "jack"}, "spec": spec})
    assert canaries.leaks(key) == canaries.leaks(repr(key)) == {"tls.key of Secret pair"}
    assert canaries.leaks("/?p=pass%20word") == {"password of ApisixConsumer jack"}
    assert canaries.leaks(certificate + "jack-of-all-trades") == set()

"""What `translate` hides: private keys at any place, and nothing else."""

from typing import Any

from apisix_ingress.diagnostics.collect.offline import HIDDEN, Outcome, document
from apisix_ingress.kube.manifests.loader import LoadResult
from apisix_ingress.model.records import Record
from apisix_ingress.state.world import World
from tests.factories import make_record

PEM = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"


def shown(body: dict[str, Any], *, show_secrets: bool = False) -> Any:
    record = make_record(body=body)
    return document(outcome(record), LoadResult((), (), {}), show_secrets=show_secrets)["records"]["routes"][0]


def outcome(record: Record) -> Outcome:
    return Outcome((record,), (), {}, {}, World(()))


def test_private_keys_inside_of_plugins_are_hidden() -> None:
    upstream = {"tls": {"client_cert": "c", "client_key": "k"}}
    body = {
        "plugins": {
            "traffic-split": {"rules": [{"weighted_upstreams": [{"upstream": upstream}]}]},
            "openid-connect": {"client_rsa_private_key": "k", "client_secret": "s"},
            "odd": {"texts": ["plain", PEM]},
        }
    }
    got = shown(body)["plugins"]
    (rule,) = got["traffic-split"]["rules"]
    assert rule["weighted_upstreams"] == [{"upstream": {"tls": {"client_cert": "c", "client_key": HIDDEN}}}]
    assert got["openid-connect"] == {"client_rsa_private_key": HIDDEN, "client_secret": "s"}
    assert got["odd"]["texts"] == ["plain", HIDDEN]
    assert shown(body, show_secrets=True)["plugins"] == body["plugins"]


def test_other_credentials_are_printed() -> None:
    body = {"plugins": {"key-auth": {"key": "word"}, "loki-logger": {"headers": {"X-Any": "word"}}}}
    assert shown(body)["plugins"] == body["plugins"]

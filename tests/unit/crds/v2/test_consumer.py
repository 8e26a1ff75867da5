"""ApisixConsumer: its models show no credentials."""

from crds import parse_spec
from crds.v2.cluster_config import ApisixClusterConfigSpec
from crds.v2.consumer import ApisixConsumerSpec


def test_secret_values_are_not_shown() -> None:
    secret = "canary-51b9"
    values = {
        "keyAuth": {"value": {"key": secret}},
        "basicAuth": {"value": {"username": "jack", "password": secret}},
        "jwtAuth": {"value": {"key": "j", "secret": secret, "private_key": secret}},
        "hmacAuth": {"value": {"key_id": "k", "secret_key": secret}},
    }
    got = parse_spec(ApisixConsumerSpec, {"authParameter": values, "plugins": [{"name": "x", "config": {"a": secret}}]})
    assert "jack" in repr(got)
    assert secret not in repr(got)
    cluster = parse_spec(ApisixClusterConfigSpec, {"admin": {"baseURL": "http://a:9180", "adminKey": secret}})
    assert secret not in repr(cluster)


def test_wolf_rbac_and_references_to_secrets_are_read() -> None:
    got = parse_spec(
        ApisixConsumerSpec, {"authParameter": {"wolfRBAC": {"secretRef": {"name": "cred"}}}}
    ).auth_parameter
    assert got is not None
    assert got.wolf_rbac is not None
    assert (got.wolf_rbac.secret_name, got.wolf_rbac.value) == ("cred", None)


def test_an_option_that_is_false_differs_from_an_absent_one() -> None:
    value = {"access_key": "a", "secret_key": "s", "encode_uri_params": False}
    got = parse_spec(ApisixConsumerSpec, {"authParameter": {"hmacAuth": {"value": value}}}).auth_parameter
    assert got is not None
    assert got.hmac_auth is not None
    assert got.hmac_auth.value is not None
    assert (got.hmac_auth.value.encode_uri_params, got.hmac_auth.value.keep_headers) == (False, None)

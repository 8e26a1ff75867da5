"""Sources of settings and their values: defaults, the file, the environment, flags."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from apisix_ingress.errors import ConfigError
from apisix_ingress.settings import load_settings, split_address
from apisix_ingress.settings.layers import Layer, origin
from tests.unit.apisix_ingress.settings.files import load

# The configuration file as the documentation shows it, every default written out.
DOCUMENTED = """
preset: ""
log: {level: info, format: auto}
http: {listen: "0.0.0.0:8080", status_page: local}
webhook: {enabled: false, listen: "0.0.0.0:8443", cert_file: "", key_file: "", client_ca_file: ""}
kubernetes:
  kubeconfig: ""
  context: ""
  namespace_selector: ""
  secret_selector: ""
  secrets: all
  watch_namespaces: []
  ingress_class: apisix-and-all
  ingress_class_controller: apisix.apache.org/apisix-ingress-controller
  controller_name: apisix-ingress
  endpoint_source: endpointslices
  cross_namespace: allow
  code_plugins: allow
  plugins: all
  trusted_plugins: []
  secret_references: allow
  external_addresses: allow
  internal_addresses: []
  cluster_domain: cluster.local
  host_ownership: shared
  consumer_names: compatible
  record_ids: compatible
  plugin_metadata: ""
  election: {enabled: true, name: apisix-ingress-leader, namespace: "", lease_duration: 15s, renew_deadline: 10s,
    retry_period: 2s}
  status: {enabled: true, publish_service: auto, addresses: []}
gateway_api:
  {enabled: auto, address_pool: [], listener_ports: {}, loopback: "http://127.0.0.1:9080", experimental: false}
ingress_nginx:
  enabled: false
  config_map: ""
  default_backend_service: ""
  default_ssl_certificate: ""
  watch_ingress_without_class: false
  disable_catch_all: false
  tcp_services_configmap: ""
  udp_services_configmap: ""
  strict: true
  fidelity: exact
  update_status: false
  ingress_class: nginx
  controller_class: k8s.io/ingress-nginx
  annotations_prefix: nginx.ingress.kubernetes.io
clusters:
  - name: default
    mode: apisix
    admin_url: http://127.0.0.1:9180/apisix/admin
    more_admin_urls: []
    admin_key: ""
    admin_key_file: ""
    tls: {ca_file: "", cert_file: "", key_file: "", verify: true}
    sync: {concurrency: 16, timeout: 5s, audit_interval: 60s, check_interval: 4s, largest_list: 256MiB}
"""


def keys_of(value: Any) -> Any:
    """Return the shape of `value`: keys only."""
    if isinstance(value, dict):
        return {key: keys_of(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [keys_of(item) for item in value]
    return None


def test_documented_file_holds_exactly_the_defaults(config: Path) -> None:
    assert load(config, DOCUMENTED) == load_settings()
    assert keys_of(load_settings().model_dump()) == keys_of(yaml.safe_load(DOCUMENTED))


def test_empty_file_is_all_defaults(config: Path) -> None:
    assert load(config, "# nothing yet\n") == load_settings()


def test_process_environment_is_not_read_behind_the_callers_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APISIX_INGRESS_LOG__LEVEL", "debug")
    monkeypatch.setenv("LOG", '{"level": "debug"}')
    assert load_settings().log.level == "info"


def test_flags_override_the_environment_the_file_and_defaults_in_this_order(config: Path) -> None:
    text = "log: {level: debug, format: json}\nhttp: {listen: ':1'}\nclusters: [{admin_url: 'http://file'}]"
    environ = {"APISIX_INGRESS_LOG__FORMAT": "console", "APISIX_INGRESS_HTTP__LISTEN": ":2"}
    got = load(config, text, environ, http={"listen": ":3"}, log={"level": None})
    assert (got.log.level, got.log.format, got.http.listen) == ("debug", "console", ":3")
    assert got.clusters[0].admin_url == "http://file"


def test_numbers_are_keys_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("gateway_api: {listener_ports: {80: 9080, 443: 9443}}")
    assert load_settings(file, {}, {}).gateway_api.listener_ports == {80: 9080, 443: 9443}


def test_environment_reaches_one_field_of_one_cluster(config: Path) -> None:
    text = "clusters:\n- {name: a, admin_url: 'http://a'}\n- {name: b, admin_url: 'http://b'}"
    environ = {
        "APISIX_INGRESS_CLUSTERS__1__ADMIN_KEY": "canary",
        "APISIX_INGRESS_CLUSTERS__1__TLS__VERIFY": "false",
        "APISIX_INGRESS_CLUSTERS__2__NAME": "c",
    }
    got = load(config, text, environ).clusters
    assert [(c.name, c.admin_url, c.admin_key.get_secret_value(), c.tls.verify) for c in got] == [
        ("a", "http://a", "", True),
        ("b", "http://b", "canary", False),
        ("c", "http://127.0.0.1:9180/apisix/admin", "", True),
    ]


def test_environment_alone_configures_the_default_cluster() -> None:
    got = load_settings(environ={"APISIX_INGRESS_CLUSTERS__0__ADMIN_URL": "http://gw:9180/apisix/admin"})
    assert [(c.name, c.admin_url) for c in got.clusters] == [("default", "http://gw:9180/apisix/admin")]


def test_flags_reach_a_cluster_by_index_and_a_list_replaces_all(config: Path) -> None:
    text = "clusters: [{name: a}, {name: b}]"
    got = load(config, text, clusters={0: {"admin_url": "http://flag", "admin_key": None}})
    assert [(c.name, c.admin_url == "http://flag") for c in got.clusters] == [("a", True), ("b", False)]
    got = load(config, text, clusters=[{"name": "only"}])
    assert [c.name for c in got.clusters] == ["only"]


def test_flags_that_were_not_given_change_nothing(config: Path) -> None:
    got = load(config, DOCUMENTED, clusters={0: {"admin_url": None, "admin_key": None}})
    assert got == load_settings()


@pytest.mark.parametrize("address", ["[::]:8080", "[::1]:0", "[fe80::1%eth0]:80"])
def test_the_environment_accepts_an_ipv6_address(address: str) -> None:
    assert load_settings(environ={"APISIX_INGRESS_HTTP__LISTEN": address}).http.listen == address


def test_the_environment_accepts_json_and_comma_separated_lists() -> None:
    environ = {
        "APISIX_INGRESS_CLUSTERS": json.dumps([{"name": "a"}, {"name": "b"}]),
        "APISIX_INGRESS_KUBERNETES__STATUS__ADDRESSES": "192.0.2.1, gw.example.com,",
    }
    got = load_settings(environ=environ)
    assert [c.name for c in got.clusters] == ["a", "b"]
    assert got.kubernetes.status.addresses == ("192.0.2.1", "gw.example.com")


def test_variables_that_kubernetes_sets_for_a_service_of_the_same_name_are_ignored() -> None:
    environ = {
        "APISIX_INGRESS_SERVICE_HOST": "10.0.0.1",
        "APISIX_INGRESS_PORT": "tcp://10.0.0.1:80",
        "APISIX_INGRESS_HTTP_PORT_80_TCP": "tcp://10.0.0.1:80",
        "PATH": "/bin",
    }
    assert load_settings(environ=environ) == load_settings()


def test_durations_and_numbers_of_seconds_are_seconds(config: Path) -> None:
    text = (
        "kubernetes: {election: {lease_duration: 1m30s, renew_deadline: 60, retry_period: 500ms}}\n"
        "clusters: [{sync: {audit_interval: 1h}}]"
    )
    got = load(config, text)
    election = got.kubernetes.election
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == (90, 60, 0.5)
    assert got.clusters[0].sync.audit_interval == 3600


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("http://GW:9180/apisix/admin/", "http://gw:9180/apisix/admin"),
        ("HTTPS://gw", "https://gw"),
        ("http://[::1]:9180/apisix/admin//", "http://[::1]:9180/apisix/admin"),
        ("http://gw/Path", "http://gw/Path"),
    ],
)
def test_admin_url_is_normalised_and_nothing_is_appended(url: str, want: str, config: Path) -> None:
    assert load(config, f"clusters: [{{admin_url: '{url}'}}]").clusters[0].admin_url == want


def test_selector_of_namespaces_is_parsed(config: Path) -> None:
    got = load(config, "kubernetes: {namespace_selector: 'team in (a,b),!frozen'}").kubernetes.selector
    assert got.matches({"team": "a"})
    assert not got.matches({"team": "a", "frozen": ""})


@pytest.mark.parametrize(
    ("text", "want"),
    [("0.0.0.0:8080", ("0.0.0.0", 8080)), ("[::1]:80", ("::1", 80)), (":80", ("", 80)), ("gw:0", ("gw", 0))],
)
def test_address_splits_into_host_and_port(text: str, want: tuple[str, int]) -> None:
    assert split_address(text) == want


@pytest.mark.parametrize("text", ["8080", "gw", "gw:", "gw:x", "gw:65536", "::1:80", "gw:²"])
def test_invalid_addresses_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        split_address(text)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().log.level = "debug"  # type: ignore[misc]  # the point of the test


def test_admin_key_is_not_shown() -> None:
    got = load_settings(environ={"APISIX_INGRESS_CLUSTERS__0__ADMIN_KEY": "canary"})
    assert got.clusters[0].read_admin_key().get_secret_value() == "canary"
    assert "canary" not in repr(got) + str(got) + got.model_dump_json()


def test_admin_key_file_is_read_again_each_time(tmp_path: Path) -> None:
    file = tmp_path / "key"
    cluster = load_settings(overrides={"clusters": [{"admin_key_file": str(file)}]}).clusters[0]
    for want in ("first", "second"):
        file.write_text(f"{want}\n")
        assert cluster.read_admin_key().get_secret_value() == want


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff\xfe", "cannot be read: not UTF-8"),
        (b" \n", "must contain only the admin key"),
        (b"canary\ncanary", "must contain only the admin key"),
    ],
)
def test_unusable_admin_key_file_is_one_line_without_its_content(
    content: bytes | None, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    cluster = load_settings(overrides={"clusters": [{"admin_key_file": str(file)}]}).clusters[0]
    with pytest.raises(ConfigError) as caught:
        cluster.read_admin_key()
    assert str(caught.value).startswith(f"cluster default: admin_key_file {file}: {words}")
    assert "canary" not in str(caught.value)


def test_default_has_no_source_and_the_last_layer_wins() -> None:
    layers = [
        Layer("file", {"clusters": [{"name": "a"}], "log": "oops"}),
        Layer("environment", {"clusters": {"0": {"name": "b"}}}),
    ]
    assert origin(layers, ("http", "listen")) == ""
    assert origin(layers, ("log", "level")) == ""
    assert origin(layers, ("clusters", 1)) == ""
    assert origin(layers, ("clusters", 0, "name")) == "environment, APISIX_INGRESS_CLUSTERS__0__NAME"
    assert origin(layers[:1], ("clusters", 0, "name")) == "file"

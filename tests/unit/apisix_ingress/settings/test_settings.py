"""The configuration: defaults, layers, and one clear line for everything that can be wrong with it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from apisix_ingress.errors import ConfigError
from apisix_ingress.settings import Settings, load_settings, split_address
from apisix_ingress.settings.layers import LARGEST_FILE, Layer, origin
from apisix_ingress.settings.warnings import cautions

# The configuration file as the documentation shows it, every default written out.
DOCUMENTED = """
preset: ""
log: {level: info, format: auto}
http: {listen: "0.0.0.0:8080", status_page: local}
webhook: {enabled: false, listen: "0.0.0.0:8443", cert_file: "", key_file: "", client_ca_file: ""}
kubernetes:
  kubeconfig: ""
  namespace_selector: ""
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
  status: {enabled: true, publish_service: "", addresses: []}
clusters:
  - name: default
    admin_url: http://127.0.0.1:9180/apisix/admin
    admin_key: ""
    admin_key_file: ""
    tls: {ca_file: "", cert_file: "", key_file: "", verify: true}
    sync: {concurrency: 16, timeout: 5s, audit_interval: 60s, check_interval: 4s, largest_list: 256MiB}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def load(path: Path, text: str, environ: Mapping[str, str] | None = None, **overrides: object) -> Settings:
    path.write_text(text, encoding="utf-8")
    return load_settings(path, overrides, environ)


def complaint(path: Path, text: str, environ: Mapping[str, str] | None = None, **overrides: object) -> str:
    """Return what is said about `text`, the name of the file cut out."""
    with pytest.raises(ConfigError) as caught:
        load(path, text, environ, **overrides)
    return str(caught.value).replace(str(path), "FILE")


def keys_of(value: Any) -> Any:
    """Return the shape of `value`: keys only."""
    if isinstance(value, dict):
        return {key: keys_of(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [keys_of(item) for item in value]
    return None


# Defaults and layers.


def test_documented_file_holds_exactly_the_defaults(config: Path) -> None:
    assert load(config, DOCUMENTED) == load_settings()
    assert keys_of(load_settings().model_dump()) == keys_of(yaml.safe_load(DOCUMENTED))


def test_empty_file_is_all_defaults(config: Path) -> None:
    assert load(config, "# nothing yet\n") == load_settings()


def test_process_environment_is_not_read_behind_the_callers_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APISIX_INGRESS_LOG__LEVEL", "debug")
    monkeypatch.setenv("LOG", '{"level": "debug"}')
    assert load_settings().log.level == "info"


def test_flag_goes_over_environment_over_file_over_default(config: Path) -> None:
    text = "log: {level: debug, format: json}\nhttp: {listen: ':1'}\nclusters: [{admin_url: 'http://file'}]"
    environ = {"APISIX_INGRESS_LOG__FORMAT": "console", "APISIX_INGRESS_HTTP__LISTEN": ":2"}
    got = load(config, text, environ, http={"listen": ":3"}, log={"level": None})
    assert (got.log.level, got.log.format, got.http.listen) == ("debug", "console", ":3")
    assert got.clusters[0].admin_url == "http://file"


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
def test_environment_takes_an_address_of_ipv6(address: str) -> None:
    assert load_settings(environ={"APISIX_INGRESS_HTTP__LISTEN": address}).http.listen == address


def test_environment_takes_json_and_comma_separated_lists() -> None:
    environ = {
        "APISIX_INGRESS_CLUSTERS": json.dumps([{"name": "a"}, {"name": "b"}]),
        "APISIX_INGRESS_KUBERNETES__STATUS__ADDRESSES": "192.0.2.1, gw.example.com,",
    }
    got = load_settings(environ=environ)
    assert [c.name for c in got.clusters] == ["a", "b"]
    assert got.kubernetes.status.addresses == ("192.0.2.1", "gw.example.com")


def test_variables_that_kubernetes_sets_for_a_service_of_our_name_are_ignored() -> None:
    environ = {
        "APISIX_INGRESS_SERVICE_HOST": "10.0.0.1",
        "APISIX_INGRESS_PORT": "tcp://10.0.0.1:80",
        "APISIX_INGRESS_HTTP_PORT_80_TCP": "tcp://10.0.0.1:80",
        "PATH": "/bin",
    }
    assert load_settings(environ=environ) == load_settings()


# Values.


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
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        split_address(text)


def test_settings_can_not_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().log.level = "debug"  # type: ignore[misc]  # the point of the test


# The admin key.


def test_admin_key_is_not_shown() -> None:
    got = load_settings(environ={"APISIX_INGRESS_CLUSTERS__0__ADMIN_KEY": "canary"})
    assert got.clusters[0].read_admin_key().get_secret_value() == "canary"
    assert "canary" not in repr(got) + str(got) + got.model_dump_json()


def test_admin_key_file_is_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "key"
    cluster = load_settings(overrides={"clusters": [{"admin_key_file": str(file)}]}).clusters[0]
    for want in ("first", "second"):
        file.write_text(f"{want}\n")
        assert cluster.read_admin_key().get_secret_value() == want


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "can't be read: No such file or directory"),
        (b"\xff\xfe", "can't be read: not UTF-8"),
        (b" \n", "must hold the admin key alone"),
        (b"canary\ncanary", "must hold the admin key alone"),
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


# Mistakes.


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("lgo: {}", "lgo: unknown key, did you mean log? (from FILE)"),
        ("clusters: [{}, {name: b, admin_urll: x}]", "clusters[1].admin_urll: unknown key, did you mean admin_url?"),
        ("kubernetes: {election: {nmae: x}}", "kubernetes.election.nmae: unknown key, did you mean name?"),
        (
            "kubernetes: {audit_interval: 5s}",
            "kubernetes.audit_interval: unknown key, did you mean clusters.sync.audit",
        ),
        ("http: {colour: red}", "http.colour: unknown key, known here: listen, status_page (from FILE)"),
        ("1: {}", "1: unknown key, known here: preset, log, http, webhook, kubernetes, clusters (from FILE)"),
        ("log: {level: loud}", "log.level: must be one of debug, info, warning, error (from FILE)"),
        ("log:", "log: must be a mapping of keys to values (from FILE)"),
        ("http: {listen: 8080}", "http.listen: must be text: write ':8080' in quotes (from FILE)"),
        ("clusters: [{admin_key: 4711}]", "clusters[0].admin_key: must be text: put it in quotes (from FILE)"),
        ("clusters: [{name: 4711}]", "clusters[0].name: must be text: put it in quotes (from FILE)"),
        ("clusters: [{sync: {concurrency: x}}]", "clusters[0].sync.concurrency: must be a whole number (from FILE)"),
        ("clusters: [{sync: {concurrency: 1.5}}]", "clusters[0].sync.concurrency: must be a whole number (from FILE)"),
        ("clusters: [{sync: {concurrency: []}}]", "clusters[0].sync.concurrency: must be a whole number (from FILE)"),
        ("clusters: [{tls: {verify: 7}}]", "clusters[0].tls.verify: must be true or false (from FILE)"),
        ("clusters: [{tls: {verify: []}}]", "clusters[0].tls.verify: must be true or false (from FILE)"),
        ("preset: tenants", "preset: must be multi-tenant or empty (from FILE)"),
        ("clusters: 7", "clusters: must be a list (lines that start with -) (from FILE)"),
        ("http: {listen: '8080'}", "http.listen: '8080' is no address; write host:port"),
        (
            "webhook: {enabled: true, cert_file: a}",
            "webhook: the webhook needs both cert_file and key_file: API servers speak TLS only (from FILE)",
        ),
        (
            "kubernetes: {namespace_selector: 'a=b=c'}",
            "kubernetes.namespace_selector: 'a=b=c': 'a=b=c' is no label key",
        ),
        ("kubernetes: {controller_name: A_b}", "kubernetes.controller_name: 'A_b' is no name"),
        ("kubernetes: {ingress_class: ''}", "kubernetes.ingress_class: '' is no object name"),
        ("kubernetes: {cross_namespace: deny}", "kubernetes.cross_namespace: must be one of allow, grant (from FILE)"),
        ("kubernetes: {watch_namespaces: [Team]}", "kubernetes.watch_namespaces[0]: 'Team' is no name"),
        (
            "kubernetes: {watch_namespaces: [a], status: {publish_service: b/gw}}",
            "kubernetes: status.publish_service is in namespace b, which is not read: add it to watch_namespaces",
        ),
        ("kubernetes: {status: {publish_service: gw}}", "kubernetes.status.publish_service: 'gw' names no Service"),
        ("kubernetes: {plugin_metadata: meta}", "kubernetes.plugin_metadata: 'meta' names no ConfigMap"),
        (
            "kubernetes: {status: {addresses: [192.0.2.1, 'fe80::1%eth0']}}",
            "kubernetes.status.addresses[1]: 'fe80::1%eth0' is neither an IP address nor a host name",
        ),
        ("kubernetes: {code_plugins: deny}", "kubernetes.code_plugins: must be one of allow, refuse (from FILE)"),
        (
            "kubernetes: {election: {lease_duration: 10s}}",
            "kubernetes.election: lease_duration (10s) must be longer than",
        ),
        (
            "kubernetes: {election: {retry_period: 9s}}",
            "kubernetes.election: renew_deadline (10s) must be longer than 1.2",
        ),
        (
            "kubernetes: {election: {retry_period: 0s}}",
            "kubernetes.election.retry_period: must be more than 0",
        ),
        ("clusters: []", "clusters: name at least one gateway cluster"),
        ("clusters: [{name: 'A b'}]", "clusters[0].name: 'A b' is no name"),
        ("clusters: [{}, {}]", "clusters[1].name: 'default' is the name of clusters[0] already"),
        ("clusters: [{sync: {largest_list: 256MB}}]", "clusters[0].sync.largest_list: '256MB' is no size; write for"),
        ("clusters: [{sync: {largest_list: 0}}]", "clusters[0].sync.largest_list: "),
        ("clusters: [{sync: {timeout: soon}}]", "clusters[0].sync.timeout: 'soon' is no duration; write for instance"),
        ("clusters: [{sync: {timeout: 6s}}]", "clusters[0].sync.timeout: 6s is longer than kubernetes.election's"),
        ("clusters: [{sync: {concurrency: 0}}]", "clusters[0].sync.concurrency: must be more than 0"),
        ("clusters: [{tls: {cert_file: a}}]", "clusters[0].tls: cert_file and key_file belong together"),
        ("clusters: [{admin_key: a, admin_key_file: b}]", "clusters[0]: admin_key and admin_key_file exclude"),
        ("clusters: [{admin_url: gw}]", "clusters[0].admin_url: must be an http or https URL; write it like"),
        ("clusters: [{admin_url: 'http://gw:0'}]", "clusters[0].admin_url: must be an http or https URL"),
        ("clusters: [{admin_url: 'http://gw:x'}]", "clusters[0].admin_url: is no URL"),
        ("clusters: [{admin_url: 'http://gw/?a=b'}]", "clusters[0].admin_url: must be plain, without query"),
        ("clusters: [{admin_url: 'http://gw/a b'}]", "clusters[0].admin_url: must be plain, without query"),
    ],
)
def test_mistake_is_one_line_with_path_remedy_and_source(text: str, want: str, config: Path) -> None:
    got = complaint(config, text)
    assert got.startswith(want)
    assert "\n" not in got


def test_all_mistakes_are_told_at_once(config: Path) -> None:
    got = complaint(config, "log: {level: loud}\nclusters: [{nmae: a}, {sync: {timeout: x}}]").splitlines()
    assert [line.split(":")[0] for line in got] == ["log.level", "clusters[0].nmae", "clusters[1].sync.timeout"]


LIST, MAPPING = "must be a list (lines that start with -)", "must be a mapping of keys to values"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("clusters: 5", f"clusters: {LIST}"),
        ("clusters: here", f"clusters: {LIST}"),
        ("clusters: {}", f"clusters: {LIST}"),
        ("clusters: {name: a}", f"clusters: {LIST}"),
        ("clusters: [5]", f"clusters[0]: {MAPPING}"),
        ("clusters: {0: here}", f"clusters[0]: {MAPPING}"),
        ("clusters: [{name: a, tls: [b]}]", f"clusters[0].tls: {MAPPING}"),
        ("kubernetes: 5", f"kubernetes: {MAPPING}"),
        ("kubernetes: {status: yes}", f"kubernetes.status: {MAPPING}"),
    ],
)
def test_section_that_is_none_is_told_whatever_is_laid_over_it(text: str, want: str, config: Path) -> None:
    flags: dict[str, Any] = {
        "clusters": {0: {"admin_url": "http://gw", "tls": {"ca_file": "ca.pem"}}},
        "kubernetes": {"kubeconfig": "k", "status": {"addresses": ["10.0.0.1"]}},
    }
    environ = {"APISIX_INGRESS_CLUSTERS": '[{"name": "b"}]', "APISIX_INGRESS_KUBERNETES": '{"ingress_class": "c"}'}
    want = f"{want} (from FILE)"
    assert complaint(config, text) == complaint(config, text, **flags) == complaint(config, text, environ) == want


def test_section_that_is_none_is_told_beside_other_mistakes(config: Path) -> None:
    got = complaint(config, "clusters: 5", {"APISIX_INGRESS_CLUSTERS__1__NAME": "b"}, log={"level": "loud"})
    assert got.splitlines() == [f"clusters: {LIST} (from FILE)", "clusters[1]: the next free index is 0"]
    got = complaint(config, "clusters: 5", log={"level": "loud"}, clusters={0: {"admin_url": "gw"}})
    assert [line.partition(":")[0] for line in got.splitlines()] == ["clusters", "log.level", "clusters[0].admin_url"]


def test_section_that_is_empty_counts_as_not_given(config: Path) -> None:
    got = load(config, "kubernetes:\nclusters: [null]", kubernetes={"kubeconfig": "k"}, clusters={0: {"name": "a"}})
    assert (got.kubernetes.kubeconfig, [cluster.name for cluster in got.clusters]) == ("k", ["a"])


def test_slow_writes_are_fine_without_election(config: Path) -> None:
    text = "kubernetes: {election: {enabled: false}}\nclusters: [{sync: {timeout: 60s}}]"
    assert load(config, text).clusters[0].sync.timeout == 60


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        ("clusters: [{admin_key: [canary]}]", {}),
        ("clusters: [{admin_key: 'canary canary'}]", {}),
        ("clusters: [{admin_url: 'http://admin:canary@gw'}]", {}),
        ("clusters: [{admin_key: {canary: canary}}]", {}),
        ("clusters: [{admin_key: 'canary]", {}),
        ("clusters: [{admin_keyy: canary}]", {}),
        ("", {"APISIX_INGRESS_CLUSTERS": '[{"admin_key": "canary"'}),
        ("", {"APISIX_INGRESS_CLUSTERS__0__ADMIN_KEY": "canary\n"}),
    ],
)
def test_no_complaint_repeats_a_secret(text: str, environ: dict[str, str], config: Path) -> None:
    got = complaint(config, text, environ)
    assert "canary" not in got
    assert got


def test_complaint_names_the_variable_or_the_command_line(config: Path) -> None:
    environ = {"APISIX_INGRESS_CLUSTERS__0__SYNC__TIMEOUT": "soon"}
    got = complaint(config, "clusters: [{}]", environ, http={"listen": "x"}).splitlines()
    assert got[0].endswith("(from command line)")
    assert got[1].endswith("(from environment, APISIX_INGRESS_CLUSTERS__0__SYNC__TIMEOUT)")


@pytest.mark.parametrize(
    ("environ", "want"),
    [
        ({"APISIX_INGRESS_CLUSTER__0__NAME": "a"}, "cluster: unknown key, did you mean clusters?"),
        ({"APISIX_INGRESS_CLUSTERS__2__NAME": "a"}, "clusters[2]: the next free index is 0"),
        (
            {"APISIX_INGRESS_CLUSTERS": "[" * 100_000},
            "environment variable APISIX_INGRESS_CLUSTERS: starts like JSON but is none",
        ),
        ({"APISIX_INGRESS_LOG": "{]"}, "environment variable APISIX_INGRESS_LOG: starts like JSON but is none"),
        (
            {"APISIX_INGRESS_CLUSTERS": "[]", "APISIX_INGRESS_CLUSTERS__0__NAME": "a"},
            "environment variable APISIX_INGRESS_CLUSTERS__0__NAME: a shorter one sets clusters as a whole",
        ),
    ],
)
def test_mistake_in_the_environment_names_what_to_change(environ: dict[str, str], want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(environ=environ)
    assert str(caught.value).startswith(want)


# Files.

# Each level holds the one below it nine times.
BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))])


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("log: {level: info\nhttp: {}", "FILE: line 2, column 5: "),
        ("log:\n\tlevel: info", "FILE: line 2, column 1: found character that cannot start any token"),
        ("log: {}\nhttp: {}\nlog: {}", "FILE: line 3, column 1: key 'log' is given twice"),
        ("? [a]\n: b", "FILE: line 1, column 3: a key must be a plain text"),
        ("log: {level: 2001-99-99}", "FILE: line 1, column 14: log.level: no such date or time; put it in quotes"),
        ("log: !!set {level}", "FILE: line 1, column 6: log: the tag !!set is not plain data"),
        ("log: " + "{a: " * 60 + "}" * 60, "FILE: line 1, column 202: nested deeper than 50 levels"),
        ("[" * 5000, "FILE: line 1, column 51: nested deeper than 50 levels"),
        (BOMB, "FILE: line 7, column 5: too large once its aliases are resolved"),
        ("log: {}\n---\nhttp: {}", "FILE: holds 2 documents; write one"),
        ("#" * (LARGEST_FILE + 1), "FILE: can't be read: larger than 1 MB"),
        ("- log", "FILE: the top level must be a mapping"),
        ("just text", "FILE: the top level must be a mapping"),
        ("log: \x07", "FILE: unacceptable character #x0007"),
        ("!!python/object/apply:os.getcwd []", "FILE: line 1, column 1: could not determine a constructor"),
    ],
)
def test_file_that_is_no_configuration_is_refused_with_its_position(text: str, want: str, config: Path) -> None:
    got = complaint(config, text)
    assert got.startswith(want)
    assert "\n" not in got


def test_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: can't be read: No such file or directory"):
        load_settings(tmp_path / "none.yaml")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"log: \xe9")
    with pytest.raises(ConfigError, match=r"latin\.yaml: not UTF-8 \(byte 5\)"):
        load_settings(latin)


# Where a value comes from.


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


# The preset, and what is better not left so.

PUBLISHED = "edd1c9f034335f136f87ad84b625c8f1"


def test_preset_changes_defaults_and_what_is_given_goes_over_it(config: Path) -> None:
    got = load(config, "preset: multi-tenant\nkubernetes: {code_plugins: allow, controller_name: mine}").kubernetes
    want = ("grant", "allow", "refuse", "mine")
    assert (got.cross_namespace, got.code_plugins, got.secret_references, got.controller_name) == want
    assert (got.external_addresses, got.consumer_names) == ("refuse-internal", "unambiguous")


def test_preset_may_come_from_the_environment(config: Path) -> None:
    got = load(config, "kubernetes: {}", {"APISIX_INGRESS_PRESET": "multi-tenant"})
    assert got.kubernetes.cross_namespace == "grant"
    assert [line for line in cautions(got) if "internal_addresses" not in line] == []


def test_each_protection_that_is_taken_off_is_told_with_its_remedy(config: Path) -> None:
    names = ("cross_namespace", "code_plugins", "secret_references", "external_addresses")
    others = ("host_ownership: shared", "consumer_names: compatible", "plugins: all", "record_ids: compatible")
    taken = ", ".join([*(f"{name}: allow" for name in names), *others])
    got = list(cautions(load(config, f"preset: multi-tenant\nkubernetes: {{{taken}}}")))
    assert [line.partition(":")[0] for line in got] == [
        "kubernetes.cross_namespace",
        "kubernetes.code_plugins",
        "kubernetes.plugins",
        "kubernetes.secret_references",
        "kubernetes.external_addresses",
        "kubernetes.host_ownership",
        "kubernetes.consumer_names",
        "kubernetes.record_ids",
    ]
    assert got[0].endswith("remove the setting, or write grant")


def test_trusted_plugins_that_were_refused_for_a_reason_are_told(config: Path) -> None:
    names = "[our-own, openid-connect, traffic-split]"
    listed = f"kubernetes: {{internal_addresses: [10.0.0.0/8], trusted_plugins: {names}}}"
    got = list(cautions(load(config, f"preset: multi-tenant\n{listed}")))
    assert [line.partition(" is not reviewed: ")[0] for line in got] == [
        "kubernetes.trusted_plugins: openid-connect",
        "kubernetes.trusted_plugins: traffic-split",
    ]
    assert "it fetches a document that names further addresses" in got[0]
    assert list(cautions(load(config, listed))) == []
    with pytest.raises(ConfigError, match=re.escape("kubernetes.trusted_plugins[1]: 'b c' is not a plugin name")):
        load(config, "kubernetes: {trusted_plugins: [a, 'b c']}")


def test_a_value_that_protects_more_than_the_preset_takes_nothing_off(config: Path) -> None:
    got = cautions(load(config, "preset: multi-tenant\nkubernetes: {host_ownership: assigned}"))
    assert not any("host_ownership" in line for line in got)


def test_without_the_preset_nothing_is_taken_off() -> None:
    assert list(cautions(Settings())) == []


@pytest.mark.parametrize(
    ("kubernetes", "want"),
    [
        ("{}", ["kubernetes.internal_addresses: is empty"]),
        ("{internal_addresses: [10.7.0.0/24]}", []),
        (
            "{internal_addresses: [etcd.apisix.svc], watch_namespaces: [a]}",
            ["kubernetes.internal_addresses: has no network"],
        ),
        ("{internal_addresses: [10.0.0.0/8], watch_namespaces: [a]}", []),
        ("{internal_addresses: [10.0.0.0/8], endpoint_source: endpoints}", ["kubernetes.endpoint_source: endpoints"]),
        (
            "{external_addresses: allow, cross_namespace: allow}",
            ["kubernetes.cross_namespace", "kubernetes.external_addr"],
        ),
    ],
)
def test_what_the_preset_cannot_know_is_asked_for(config: Path, kubernetes: str, want: list[str]) -> None:
    got = list(cautions(load(config, f"preset: multi-tenant\nkubernetes: {kubernetes}")))
    assert [line.startswith(start) for line, start in zip(got, want, strict=True)] == [True] * len(want)
    assert list(cautions(load(config, "kubernetes: {endpoint_source: endpoints}"))) == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("internal_addresses: [10.7.0.1/24]", "kubernetes.internal_addresses[0]: '10.7.0.1/24' is an address inside"),
        ("internal_addresses: [a, 'http://x']", "kubernetes.internal_addresses[1]: 'http://x' is not a network"),
        ("cluster_domain: 'a b'", "kubernetes.cluster_domain: 'a b' is not a domain name"),
    ],
)
def test_wrong_internal_address_is_told_with_its_place(config: Path, text: str, want: str) -> None:
    with pytest.raises(ConfigError, match="write") as caught:
        load(config, f"kubernetes: {{{text}}}")
    assert str(caught.value).startswith(want)


def test_internal_addresses_come_from_the_environment_with_commas(config: Path) -> None:
    environ = {"APISIX_INGRESS_KUBERNETES__INTERNAL_ADDRESSES": "10.7.0.0/24, *.apisix.svc"}
    got = load_settings(environ=environ).kubernetes
    assert got.internal_addresses == ("10.7.0.0/24", "*.apisix.svc")


def test_published_admin_key_is_told_for_each_cluster(config: Path) -> None:
    text = f"clusters: [{{admin_key: {PUBLISHED}}}, {{name: b, admin_key: mine}}, {{name: c, admin_key: {PUBLISHED}}}]"
    got = list(cautions(load(config, text)))
    assert [line.partition(" is a key")[0] for line in got] == [
        "clusters[0].admin_key (cluster default):",
        "clusters[2].admin_key (cluster c):",
    ]
    assert all(PUBLISHED not in line for line in got)


def test_published_admin_key_is_an_error_with_the_preset(config: Path) -> None:
    got = complaint(config, f"preset: multi-tenant\nclusters: [{{admin_key: {PUBLISHED}}}]")
    assert got.startswith("clusters[0].admin_key: is a key from APISIX's default configuration")
    assert PUBLISHED not in got


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("http://127.0.0.2:9180/apisix/admin", False),
        ("http://[::1]:9180/apisix/admin", False),
        ("http://localhost:9180/apisix/admin", False),
        ("https://gw:9180/apisix/admin", False),
        ("http://gw:9180/apisix/admin", True),
        ("http://127.gw:9180/apisix/admin", True),
    ],
)
def test_plain_http_to_another_machine_is_told(url: str, want: bool, config: Path) -> None:
    got = list(cautions(load(config, f"clusters: [{{admin_url: '{url}'}}]")))
    assert [line.partition(" (")[0] for line in got] == ["clusters[0].admin_url"] * want


def test_a_namespace_is_watched_once_however_often_it_is_named(config: Path) -> None:
    environ = {"APISIX_INGRESS_KUBERNETES__WATCH_NAMESPACES": "b,a,b"}
    assert load(config, "", environ).kubernetes.watch_namespaces == ("b", "a")

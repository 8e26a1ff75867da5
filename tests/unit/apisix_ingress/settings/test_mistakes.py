"""Mistakes in settings: all of them in one line each, with place, remedy and source, and without secrets."""

from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.errors import ConfigError
from apisix_ingress.settings import load_settings
from apisix_ingress.settings.layers import LARGEST_FILE
from tests.unit.apisix_ingress.settings.files import complaint, load


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
        (
            "1: {}",
            "1: unknown key, known here: preset, log, http, webhook, kubernetes, gateway_api, ingress_nginx, clusters",
        ),
        ("log: {level: loud}", "log.level: must be one of debug, info, warning, error (from FILE)"),
        ("log:", "log: must be a mapping of keys to values (from FILE)"),
        ("http: {listen: 8080}", "http.listen: must be a string: write ':8080' in quotes (from FILE)"),
        ("clusters: [{admin_key: 4711}]", "clusters[0].admin_key: must be a string: put it in quotes (from FILE)"),
        ("clusters: [{name: 4711}]", "clusters[0].name: must be a string: put it in quotes (from FILE)"),
        ("clusters: [{sync: {concurrency: x}}]", "clusters[0].sync.concurrency: must be an integer (from FILE)"),
        ("clusters: [{sync: {concurrency: 1.5}}]", "clusters[0].sync.concurrency: must be an integer (from FILE)"),
        ("clusters: [{sync: {concurrency: []}}]", "clusters[0].sync.concurrency: must be an integer (from FILE)"),
        ("clusters: [{tls: {verify: 7}}]", "clusters[0].tls.verify: must be true or false (from FILE)"),
        ("clusters: [{tls: {verify: []}}]", "clusters[0].tls.verify: must be true or false (from FILE)"),
        ("preset: tenants", "preset: must be multi-tenant or empty (from FILE)"),
        ("clusters: 7", "clusters: must be a list (lines that start with -) (from FILE)"),
        ("http: {listen: '8080'}", "http.listen: '8080' is not an address; write host:port"),
        (
            "webhook: {enabled: true, cert_file: a}",
            "webhook: the webhook requires both cert_file and key_file: API servers use TLS only (from FILE)",
        ),
        (
            "kubernetes: {namespace_selector: 'a=b=c'}",
            "kubernetes.namespace_selector: 'a=b=c': 'a=b=c' is not a label key",
        ),
        ("kubernetes: {controller_name: A_b}", "kubernetes.controller_name: 'A_b' is not a valid name"),
        ("kubernetes: {ingress_class: ''}", "kubernetes.ingress_class: '' is not an object name"),
        ("kubernetes: {cross_namespace: deny}", "kubernetes.cross_namespace: must be one of allow, grant (from FILE)"),
        ("kubernetes: {watch_namespaces: [Team]}", "kubernetes.watch_namespaces[0]: 'Team' is not a valid name"),
        (
            "kubernetes: {watch_namespaces: [a], status: {publish_service: b/gw}}",
            "kubernetes: status.publish_service is in namespace b, which is not watched: add it to watch_namespaces",
        ),
        ("kubernetes: {status: {publish_service: gw}}", "kubernetes.status.publish_service: 'gw' is not a Service"),
        ("kubernetes: {plugin_metadata: meta}", "kubernetes.plugin_metadata: 'meta' is not a ConfigMap"),
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
        ("clusters: []", "clusters: add at least one gateway cluster"),
        ("clusters: [{name: 'A b'}]", "clusters[0].name: 'A b' is not a valid name"),
        ("clusters: [{}, {}]", "clusters[1].name: 'default' is already the name of clusters[0]"),
        (
            "clusters: [{sync: {largest_list: 256MB}}]",
            "clusters[0].sync.largest_list: '256MB' is not a size; write for",
        ),
        ("clusters: [{sync: {largest_list: 0}}]", "clusters[0].sync.largest_list: "),
        (
            "clusters: [{sync: {timeout: soon}}]",
            "clusters[0].sync.timeout: 'soon' is not a duration; write for instance",
        ),
        ("clusters: [{sync: {timeout: 6s}}]", "clusters[0].sync.timeout: 6s is longer than kubernetes.election's"),
        ("clusters: [{sync: {concurrency: 0}}]", "clusters[0].sync.concurrency: must be more than 0"),
        ("clusters: [{tls: {cert_file: a}}]", "clusters[0].tls: cert_file and key_file belong together"),
        (
            "clusters: [{admin_key: a, admin_key_file: b}]",
            "clusters[0]: admin_key and admin_key_file are mutually exclusive",
        ),
        ("clusters: [{admin_url: gw}]", "clusters[0].admin_url: must be an http or https URL; use the form"),
        ("clusters: [{admin_url: 'http://gw:0'}]", "clusters[0].admin_url: must be an http or https URL"),
        ("clusters: [{admin_url: 'http://gw:x'}]", "clusters[0].admin_url: is not a URL"),
        ("clusters: [{admin_url: 'http://gw/?a=b'}]", "clusters[0].admin_url: must be plain, without query"),
        ("clusters: [{admin_url: 'http://gw/a b'}]", "clusters[0].admin_url: must be plain, without query"),
    ],
)
def test_mistake_is_one_line_with_path_remedy_and_source(text: str, want: str, config: Path) -> None:
    got = complaint(config, text)
    assert got.startswith(want)
    assert "\n" not in got


def test_all_mistakes_are_reported_at_once(config: Path) -> None:
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
        ("clusters: {0: here}", f"clusters: {LIST}"),
        ("clusters: [{name: a, tls: [b]}]", f"clusters[0].tls: {MAPPING}"),
        ("kubernetes: 5", f"kubernetes: {MAPPING}"),
        ("kubernetes: {status: yes}", f"kubernetes.status: {MAPPING}"),
    ],
)
def test_an_invalid_section_is_reported_despite_overrides(text: str, want: str, config: Path) -> None:
    flags: dict[str, Any] = {
        "clusters": {0: {"admin_url": "http://gw", "tls": {"ca_file": "ca.pem"}}},
        "kubernetes": {"kubeconfig": "k", "status": {"addresses": ["10.0.0.1"]}},
    }
    environ = {"APISIX_INGRESS_CLUSTERS": '[{"name": "b"}]', "APISIX_INGRESS_KUBERNETES": '{"ingress_class": "c"}'}
    want = f"{want} (from FILE)"
    assert complaint(config, text) == complaint(config, text, **flags) == complaint(config, text, environ) == want


def test_an_invalid_section_is_reported_with_other_mistakes(config: Path) -> None:
    got = complaint(config, "clusters: 5", {"APISIX_INGRESS_CLUSTERS__1__NAME": "b"}, log={"level": "loud"})
    assert got.splitlines() == [f"clusters: {LIST} (from FILE)", "clusters[1]: the next free index is 0"]
    got = complaint(config, "clusters: 5", log={"level": "loud"}, clusters={0: {"admin_url": "gw"}})
    assert [line.partition(":")[0] for line in got.splitlines()] == ["clusters", "log.level", "clusters[0].admin_url"]


def test_an_empty_section_is_treated_as_unset(config: Path) -> None:
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
            "environment variable APISIX_INGRESS_CLUSTERS: starts like JSON but is invalid",
        ),
        ({"APISIX_INGRESS_LOG": "{]"}, "environment variable APISIX_INGRESS_LOG: starts like JSON but is invalid"),
        (
            {"APISIX_INGRESS_CLUSTERS": "[]", "APISIX_INGRESS_CLUSTERS__0__NAME": "a"},
            "environment variable APISIX_INGRESS_CLUSTERS__0__NAME: another variable already sets clusters as a whole",
        ),
    ],
)
def test_mistake_in_the_environment_names_what_to_change(environ: dict[str, str], want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(environ=environ)
    assert str(caught.value).startswith(want)


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
        ("log: {}\n---\nhttp: {}", "FILE: contains 2 documents; write one"),
        ("#" * (LARGEST_FILE + 1), "FILE: cannot be read: larger than 1 MB"),
        ("- log", "FILE: the top level must be a mapping"),
        ("just text", "FILE: the top level must be a mapping"),
        ("log: \x07", "FILE: unacceptable character #x0007"),
        ("!!python/object/apply:os.getcwd []", "FILE: line 1, column 1: could not determine a constructor"),
    ],
)
def test_file_that_is_not_a_configuration_is_refused_with_its_position(text: str, want: str, config: Path) -> None:
    got = complaint(config, text)
    assert got.startswith(want)
    assert "\n" not in got


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file or directory"):
        load_settings(tmp_path / "none.yaml")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"log: \xe9")
    with pytest.raises(ConfigError, match=r"latin\.yaml: not UTF-8 \(byte 5\)"):
        load_settings(latin)

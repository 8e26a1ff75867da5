"""The preset for shared clusters, and settings that are safer when changed."""

import re
from pathlib import Path

import pytest

from apisix_ingress.errors import ConfigError
from apisix_ingress.settings import Settings, load_settings
from apisix_ingress.settings.warnings import cautions
from tests.unit.apisix_ingress.settings.files import complaint, load

PUBLISHED = "edd1c9f034335f136f87ad84b625c8f1"


def test_a_preset_changes_defaults_and_explicit_values_override_it(config: Path) -> None:
    got = load(config, "preset: multi-tenant\nkubernetes: {code_plugins: allow, controller_name: mine}").kubernetes
    want = ("grant", "allow", "refuse", "mine")
    assert (got.cross_namespace, got.code_plugins, got.secret_references, got.controller_name) == want
    assert (got.external_addresses, got.consumer_names) == ("refuse-internal", "unambiguous")


def test_the_preset_may_be_set_in_the_environment(config: Path) -> None:
    got = load(config, "kubernetes: {}", {"APISIX_INGRESS_PRESET": "multi-tenant"})
    assert got.kubernetes.cross_namespace == "grant"
    assert [line for line in cautions(got) if "internal_addresses" not in line] == []


def test_each_disabled_protection_is_reported_with_its_remedy(config: Path) -> None:
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
    assert got[0].endswith("remove the setting, or set grant")


def test_trusted_plugins_that_were_refused_for_a_reason_are_reported(config: Path) -> None:
    names = "[our-own, openid-connect, traffic-split]"
    listed = f"kubernetes: {{internal_addresses: [10.0.0.0/8], trusted_plugins: {names}}}"
    got = list(cautions(load(config, f"preset: multi-tenant\n{listed}")))
    assert [line.partition(" is not reviewed: ")[0] for line in got] == [
        "kubernetes.trusted_plugins: openid-connect",
        "kubernetes.trusted_plugins: traffic-split",
    ]
    assert "it fetches a document with more addresses" in got[0]
    assert list(cautions(load(config, listed))) == []
    with pytest.raises(ConfigError, match=re.escape("kubernetes.trusted_plugins[1]: 'b c' is not a plugin name")):
        load(config, "kubernetes: {trusted_plugins: [a, 'b c']}")


def test_a_stricter_value_than_the_presets_is_kept(config: Path) -> None:
    got = cautions(load(config, "preset: multi-tenant\nkubernetes: {host_ownership: assigned}"))
    assert not any("host_ownership" in line for line in got)


def test_without_the_preset_no_value_is_removed() -> None:
    assert list(cautions(Settings())) == []


@pytest.mark.parametrize(
    ("kubernetes", "want"),
    [
        ("{}", ["kubernetes.internal_addresses: is empty"]),
        ("{internal_addresses: [10.7.0.0/24]}", []),
        (
            "{internal_addresses: [etcd.apisix.svc], watch_namespaces: [a]}",
            ["kubernetes.internal_addresses: contains no network"],
        ),
        ("{internal_addresses: [10.0.0.0/8], watch_namespaces: [a]}", []),
        ("{internal_addresses: [10.0.0.0/8], endpoint_source: endpoints}", ["kubernetes.endpoint_source: endpoints"]),
        (
            "{external_addresses: allow, cross_namespace: allow}",
            ["kubernetes.cross_namespace", "kubernetes.external_addr"],
        ),
    ],
)
def test_the_preset_requires_settings_without_a_default(config: Path, kubernetes: str, want: list[str]) -> None:
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
def test_wrong_internal_address_is_reported_with_its_place(config: Path, text: str, want: str) -> None:
    with pytest.raises(ConfigError, match="write") as caught:
        load(config, f"kubernetes: {{{text}}}")
    assert str(caught.value).startswith(want)


def test_internal_addresses_in_the_environment_are_separated_by_commas(config: Path) -> None:
    environ = {"APISIX_INGRESS_KUBERNETES__INTERNAL_ADDRESSES": "10.7.0.0/24, *.apisix.svc"}
    got = load_settings(environ=environ).kubernetes
    assert got.internal_addresses == ("10.7.0.0/24", "*.apisix.svc")


def test_a_publicly_known_admin_key_is_reported_for_each_cluster(config: Path) -> None:
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
def test_plain_http_to_another_machine_is_reported(url: str, want: bool, config: Path) -> None:
    got = list(cautions(load(config, f"clusters: [{{admin_url: '{url}'}}]")))
    assert [line.partition(" (")[0] for line in got] == ["clusters[0].admin_url"] * want


def test_a_namespace_is_watched_once_however_often_it_is_named(config: Path) -> None:
    environ = {"APISIX_INGRESS_KUBERNETES__WATCH_NAMESPACES": "b,a,b"}
    assert load(config, "", environ).kubernetes.watch_namespaces == ("b", "a")

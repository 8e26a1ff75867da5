"""From settings to options."""

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.settings import load_settings
from apisix_ingress.wiring.options import translation_options
from translation.core.options import Options


def test_the_defaults_of_both_are_the_same() -> None:
    assert translation_options(load_settings()) == Options()


def test_clusters_and_the_config_map_with_metadata_are_taken_over() -> None:
    clusters = {0: {"name": "east"}, 1: {"name": "west", "admin_url": "http://west:9180/apisix/admin"}}
    settings = load_settings(overrides={"clusters": clusters, "kubernetes": {"plugin_metadata": "ours/metadata"}})
    options = translation_options(settings)
    assert options.clusters == frozenset({"east", "west"})
    assert options.plugin_metadata == ObjectKey("ConfigMap", "ours", "metadata")


def test_the_preset_refuses_published_keys() -> None:
    assert translation_options(load_settings(overrides={"preset": "multi-tenant"})).published_keys == "refuse"


def test_addresses_of_the_admin_api_are_known_if_they_are_refused() -> None:
    clusters = {0: {"name": "east"}, 1: {"name": "west", "admin_url": "https://west.example.org/apisix/admin"}}
    options = translation_options(load_settings(overrides={"clusters": clusters, "preset": "multi-tenant"}))
    assert options.external_addresses == "refuse-internal"
    assert options.admin_addresses == {("127.0.0.1", 9180), ("west", 443), ("west.example.org", 443)}


def test_gateways_are_near_the_services_of_their_admin_apis() -> None:
    urls = (
        "http://admin.east.svc.corp:9180/apisix/admin",
        "http://admin.west/apisix/admin",
        "http://[::1]/apisix/admin",
    )
    clusters = {number: {"name": f"c{number}", "admin_url": url} for number, url in enumerate(urls)}
    options = translation_options(
        load_settings(overrides={"clusters": clusters, "kubernetes": {"cluster_domain": "Corp."}})
    )
    assert options.gateway_namespaces == {"east", "west"}

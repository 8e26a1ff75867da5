"""Settings that are valid but unwise, as reported by `check-config` and at startup.

Invalid settings are errors in `settings`.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.admin_address import PUBLISHED_KEY, PUBLISHED_KEYS, is_exposed
from apisix_ingress.settings import PRESETS, Settings
from translation.plugins.policy import PLUGINS

_PROTECTIONS = {
    "cross_namespace": "objects may use Secrets, Services and plugin configs of any namespace",
    "code_plugins": "objects may run code in the gateways",
    "plugins": "objects may use any plugin with any address, file and record of the gateways",
    "external_addresses": "objects may send requests to the gateways themselves and to cloud metadata services",
    "host_ownership": "objects may capture requests for hosts of other namespaces and serve certificates for them",
    "consumer_names": "consumers of two namespaces may have the same username, and with it each other's access",
    "record_ids": "objects can be named so that the ids of their records collide with those of other namespaces",
    "secret_references": "objects may read environment variables and secret stores of the gateways",
}


def cautions(settings: Settings) -> Iterator[str]:
    """Yield a sentence for each: the setting, what is wrong with it, the remedy."""
    yield from _weakened(settings)
    yield from _unlisted(settings)
    yield from _trusted(settings)
    for index, cluster in enumerate(settings.clusters):
        if cluster.admin_key.get_secret_value() in PUBLISHED_KEYS:
            yield f"clusters[{index}].admin_key (cluster {cluster.name}): {PUBLISHED_KEY}"
        if is_exposed(cluster.admin_url):
            yield (
                f"clusters[{index}].admin_url (cluster {cluster.name}): plain http to another machine: anyone on"
                " the network path can read the admin key and every private key; use https"
            )


def _unlisted(settings: Settings) -> Iterator[str]:
    """What `refuse-internal` cannot detect without further settings."""
    kubernetes = settings.kubernetes
    if kubernetes.external_addresses == "allow":
        return
    if not kubernetes.internal_addresses:
        yield (
            "kubernetes.internal_addresses: is empty, so objects may use gateways and etcd outside the cluster;"
            " list their networks and names"
        )
    elif kubernetes.watch_namespaces and not any("/" in entry for entry in kubernetes.internal_addresses):
        yield (
            "kubernetes.internal_addresses: contains no network, and addresses outside watch_namespaces are"
            " unknown; add the Pod and Service networks of the cluster (Pods of an object's own namespace stay"
            " allowed)"
        )
    if kubernetes.endpoint_source == "endpoints":
        yield (
            "kubernetes.endpoint_source: endpoints ignores EndpointSlices that lead a Service to other"
            " namespaces; use endpointslices"
        )


def _trusted(settings: Settings) -> Iterator[str]:
    """Plugins that `reviewed` rejects for a reason but `trusted_plugins` permits."""
    kubernetes = settings.kubernetes
    if kubernetes.plugins == "all" or not kubernetes.trusted_plugins:
        return
    for name in kubernetes.trusted_plugins:
        if name in PLUGINS:
            found = PLUGINS[name]
            why = "some of its fields refer to other namespaces" if found.allowed else f"it {found.reason}"
            yield f"kubernetes.trusted_plugins: {name} is not reviewed: {why}; remove it unless you trust every object"


_STRICTER = {"host_ownership": "assigned"}
"""Setting → a value that protects more than that of the preset."""


def _weakened(settings: Settings) -> Iterator[str]:
    for name, strict in PRESETS[settings.preset].items():
        value = getattr(settings.kubernetes, name)
        if value not in (strict, _STRICTER.get(name)):
            yield (
                f"kubernetes.{name}: {value} disables a protection of preset {settings.preset}:"
                f" {_PROTECTIONS[name]}; remove the setting, or set {strict}"
            )

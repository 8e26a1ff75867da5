"""Derives the options of translations from the settings."""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.address_pool import expand_pool
from apisix_ingress.model.network.cluster_dns import cluster_name
from apisix_ingress.model.network.host_names import canonical_host
from apisix_ingress.model.network.internal_addresses import internal_addresses
from apisix_ingress.model.network.ip_address import parse_ip
from apisix_ingress.settings import MULTI_TENANT, Settings
from translation.addresses.host_policy import admin_addresses
from translation.core.options import Options
from translation.nginx.options import NginxOptions


def translation_options(settings: Settings) -> Options:
    """Return the options for these settings."""
    kubernetes = settings.kubernetes
    namespace, _, name = kubernetes.plugin_metadata.partition("/")
    strict = kubernetes.external_addresses != "allow"
    return Options(
        ingress_class=kubernetes.ingress_class,
        ingress_class_controller=kubernetes.ingress_class_controller,
        controller_name=kubernetes.controller_name,
        endpoint_source=kubernetes.endpoint_source,
        cross_namespace=kubernetes.cross_namespace,
        code_plugins=kubernetes.code_plugins,
        plugins=kubernetes.plugins,
        trusted_plugins=frozenset(kubernetes.trusted_plugins),
        secret_references=kubernetes.secret_references,
        external_addresses=kubernetes.external_addresses,
        host_ownership=kubernetes.host_ownership,
        consumer_names=kubernetes.consumer_names,
        record_ids=kubernetes.record_ids,
        admin_addresses=admin_addresses(cluster.admin_url for cluster in (settings.clusters if strict else ())),
        gateway_namespaces=_gateway_namespaces(settings),
        internal=internal_addresses(kubernetes.internal_addresses, kubernetes.cluster_domain),
        published_keys="refuse" if settings.preset == MULTI_TENANT else "allow",
        namespace_selector=kubernetes.selector,
        secret_selector=kubernetes.secret_selector,
        secrets=kubernetes.secrets,
        plugin_metadata=ObjectKey("ConfigMap", namespace, name) if name else None,
        clusters=frozenset(cluster.name for cluster in settings.clusters),
        cluster_urls={
            url.replace(".svc.cluster.local:", ".svc:"): cluster.name
            for cluster in settings.clusters
            for url in (cluster.admin_url, *cluster.more_admin_urls)
        },
        gateway_proxies=not strict,
        gateway_api=settings.gateway_api.enabled is not False,
        gateway_addresses=expand_pool(settings.gateway_api.address_pool),
        published_addresses=frozenset(kubernetes.status.addresses),
        gateway_experimental=settings.gateway_api.experimental,
        listener_ports=settings.gateway_api.listener_ports,
        loopback=settings.gateway_api.loopback,
        nginx=_nginx(settings),
    )


def _nginx(whole: Settings) -> NginxOptions | None:
    settings = whole.ingress_nginx
    if not settings.enabled:
        return None
    # Anyone who knows an admin key can read every private key anyway.
    secret = next((cluster.admin_key.get_secret_value() for cluster in whole.clusters), "")
    return NginxOptions(
        config_map=_key("ConfigMap", settings.config_map),
        default_backend=_key("Service", settings.default_backend_service),
        default_certificate=_key("Secret", settings.default_ssl_certificate),
        controller_class=settings.controller_class,
        ingress_class=settings.ingress_class,
        watch_without_class=settings.watch_ingress_without_class,
        disable_catch_all=settings.disable_catch_all,
        tcp_services=_key("ConfigMap", settings.tcp_services_configmap),
        udp_services=_key("ConfigMap", settings.udp_services_configmap),
        strict=settings.strict,
        lean=settings.fidelity == "lean",
        update_status=settings.update_status,
        prefix=settings.annotations_prefix,
        seed=hashlib.sha256(f"{whole.kubernetes.controller_name}/{secret}".encode()).digest(),
    )


def _key(kind: str, text: str) -> ObjectKey | None:
    namespace, _, name = text.partition("/")
    return ObjectKey(kind, namespace, name) if name else None


def _gateway_namespaces(settings: Settings) -> frozenset[str]:
    """Return the namespaces of the Services through which Admin APIs are reached: the gateways are nearby."""
    hosts = (canonical_host(urlsplit(cluster.admin_url).hostname or "") for cluster in settings.clusters)
    found = (cluster_name(host, settings.kubernetes.cluster_domain) for host in hosts if parse_ip(host) is None)
    return frozenset(each.namespace for each in found if each and each.namespace)

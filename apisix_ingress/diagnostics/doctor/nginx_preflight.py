"""The checks of `migrate --preflight`: whether the cluster is ready to move from ingress-nginx, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from apisix_ingress.diagnostics.collect.inventory import Inventory, listed
from apisix_ingress.diagnostics.doctor.check import Check, fail, ok, skip, warn
from apisix_ingress.errors import KubeError, KubeNotFound
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.model.json import FrozenJson, JsonObject, list_in, mapping_in
from apisix_ingress.settings import IngressNginxSettings, Settings
from translation.nginx.sources import read_config

_NAMESPACE = "ingress-nginx"
"""Where ingress-nginx runs unless the setting config_map says otherwise."""

_PROGRAM = "nginx-ingress-controller"
_IMAGE = "ingress-nginx/controller"
_KEEP = "helm.sh/resource-policy"
_HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_SHOWN = 8

_FLAGS = {
    "configmap": "config_map",
    "default-backend-service": "default_backend_service",
    "default-ssl-certificate": "default_ssl_certificate",
    "watch-ingress-without-class": "watch_ingress_without_class",
    "disable-catch-all": "disable_catch_all",
    "ingress-class": "ingress_class",
    "controller-class": "controller_class",
    "annotations-prefix": "annotations_prefix",
    "tcp-services-configmap": "tcp_services_configmap",
    "udp-services-configmap": "udp_services_configmap",
}
"""Flags of ingress-nginx → settings of the section ingress_nginx."""

_DIFFERENT = {
    ("enable-annotation-validation", "false"): (
        "this controller always validates annotations",
        "correct the values that the report of `migrate` lists as invalid",
    ),
    ("enable-ssl-passthrough", "true"): (
        "the annotation ssl-passthrough is not served by APISIX 3.18",
        "expose these backends with a Service of type LoadBalancer; other hosts are not affected",
    ),
}
"""Flags without a setting, with their values → what differs, and what to do."""


@dataclass(frozen=True, slots=True)
class Found:
    """What else runs in the cluster.

    Attributes:
        controllers: Deployments and DaemonSets of ingress-nginx.
        services: Services of type LoadBalancer in their namespace, and the one of the gateways, by namespace/name.
        classes: IngressClasses.
        hooks: Validating webhooks that belong to ingress-nginx.
        problem: Why something could not be read; empty if everything was.
        unpublished: Why the Service of the new gateways could not be read; empty if it was.
        missing: Whether the reason is that it does not exist.
    """

    controllers: tuple[JsonObject, ...] = ()
    services: Mapping[str, JsonObject] = field(default_factory=dict)
    classes: tuple[JsonObject, ...] = ()
    hooks: tuple[JsonObject, ...] = ()
    problem: str = ""
    unpublished: str = ""
    missing: bool = False

    @property
    def running(self) -> bool:
        """Whether ingress-nginx runs."""
        return any(_replicas(each) for each in self.controllers)


async def preflight(api: KubeApi, settings: Settings, inventory: Inventory) -> list[Check]:
    """Return the checks.

    Args:
        api: The API server; only read.
        settings: With the provider enabled.
        inventory: The objects and records with these settings.
    """
    found = await _look(api, settings)
    return [
        _status(settings.ingress_nginx, found),
        _class(settings.ingress_nginx, found),
        *_flags(settings.ingress_nginx, found),
        _owners(inventory),
        *_addresses(settings, found, inventory),
        *_webhooks(found),
    ]


async def _look(api: KubeApi, settings: Settings) -> Found:
    namespace = settings.ingress_nginx.config_map.partition("/")[0] or _NAMESPACE
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    problem = ""
    lists: dict[str, list[JsonObject]] = {}
    for name, path in (
        ("deployments", f"{apps}/deployments"),
        ("daemonsets", f"{apps}/daemonsets"),
        ("services", f"/api/v1/namespaces/{namespace}/services"),
        ("classes", "/apis/networking.k8s.io/v1/ingressclasses"),
        ("hooks", _HOOKS),
    ):
        try:
            lists[name] = [each async for each in listed(api, path)]
        except KubeError as error:
            lists[name] = []
            problem = problem or f"{name} cannot be listed: {error}"
    services = {
        _name(each): each for each in lists["services"] if mapping_in(each.get("spec")).get("type") == _BALANCER
    }
    publish, unpublished, missing = settings.kubernetes.status.publish_service, "", False
    if publish:
        own, _, name = publish.partition("/")
        try:
            services[publish] = await api.get(f"/api/v1/namespaces/{own}/services/{name}")
        except KubeError as error:
            unpublished, missing = f"Service {publish} cannot be read: {error}", isinstance(error, KubeNotFound)
    controllers = [each for each in (*lists["deployments"], *lists["daemonsets"]) if _is_controller(each)]
    hooks = [each for each in lists["hooks"] if _PROGRAM in str(each) or "ingress-nginx" in _name(each)]
    return Found(tuple(controllers), services, tuple(lists["classes"]), tuple(hooks), problem, unpublished, missing)


_BALANCER = "LoadBalancer"


def _status(nginx: IngressNginxSettings, found: Found) -> Check:
    if not nginx.update_status:
        return ok("status", "the status of the Ingresses is not written (ingress_nginx.update_status)")
    if found.running:
        fix = "set ingress_nginx.update_status to false until ingress-nginx is removed"
        return fail("status", "ingress-nginx runs, and both controllers write the status of the Ingresses", fix)
    return ok("status", "the status of the Ingresses is written; no ingress-nginx runs")


def _class(nginx: IngressNginxSettings, found: Found) -> Check:
    ours = [each for each in found.classes if mapping_in(each.get("spec")).get("controller") == nginx.controller_class]
    if not ours:
        fix = f"create it with spec.controller {nginx.controller_class}, or correct ingress_nginx.controller_class"
        return fail("ingress-class", f"no IngressClass has the controller {nginx.controller_class}", fix)
    for each in ours:
        meta = mapping_in(each.get("metadata"))
        labels, annotations = mapping_in(meta.get("labels")), mapping_in(meta.get("annotations"))
        by_helm = labels.get("app.kubernetes.io/managed-by") == "Helm" or "meta.helm.sh/release-name" in annotations
        if by_helm and annotations.get(_KEEP) != "keep":
            name = meta.get("name")
            words = f"IngressClass {name} belongs to a Helm release: uninstalling ingress-nginx deletes it"
            return warn("ingress-class", words, f"kubectl annotate ingressclass {name} {_KEEP}=keep")
    names = ", ".join(sorted(str(mapping_in(each.get("metadata")).get("name")) for each in ours))
    return ok("ingress-class", f"{names}; it stays when ingress-nginx is removed")


def _flags(nginx: IngressNginxSettings, found: Found) -> Iterator[Check]:
    """Check whether the settings match the flags of ingress-nginx."""
    if not found.controllers:
        what = found.problem or "no Deployment or DaemonSet of ingress-nginx found"
        yield skip("flags", f"{what}; --config-map names its namespace")
        return
    for each in found.controllers:
        flags = dict(_arguments(each))
        different = []
        for flag, name in _FLAGS.items():
            if flag in flags and flags[flag] != _text(getattr(nginx, name)):
                different.append(f"{name}: {flags[flag]}")
        if different:
            fix = f"set in ingress_nginx: {', '.join(different)}"
            yield warn("flags", f"{_name(each)} of ingress-nginx has flags that the settings do not have", fix)
        unlike = [key for key in _DIFFERENT if flags.get(key[0]) == key[1]]
        for flag, value in unlike:
            words, fix = _DIFFERENT[flag, value]
            yield warn("flags", f"{_name(each)} has --{flag}={value}: {words}", fix)
        if not different and not unlike:
            yield ok("flags", f"the settings are those of {_name(each)}")


def _owners(inventory: Inventory) -> Check:
    """Return whether a host has routes of the provider and of other objects."""
    hosts: dict[str, set[str]] = {}
    for key, (owner, record) in inventory.winners().items():
        if key.kind == "routes":
            names = [*list_in(record.body.get("hosts")), *([record.body["host"]] if record.body.get("host") else [])]
            for name in names:
                hosts.setdefault(str(name), set()).add("" if owner.kind == "NginxHost" else str(owner))
    both = sorted(
        (host, sorted(owners - {""})[0]) for host, owners in hosts.items() if "" in owners and len(owners) > 1
    )
    if not both:
        return ok("owners", "no host of ingress-nginx has routes of other objects")
    shown = ", ".join(f"{host} ({owner})" for host, owner in both[:_SHOWN])
    more = f" and {len(both) - _SHOWN} more" if both[_SHOWN:] else ""
    fix = "remove one of the two before you switch: a request may match the routes of either"
    return warn("owners", f"hosts that Ingresses of ingress-nginx and other objects serve: {shown}{more}", fix)


def _addresses(settings: Settings, found: Found, inventory: Inventory) -> Iterator[Check]:
    """Yield whether gateways see the addresses of clients as ingress-nginx does."""
    nginx = inventory.options.nginx
    config = read_config(inventory.world.view(), nginx) if nginx else None
    if config and config.text("use-proxy-protocol") == "true":
        fix = "enable it in the gateway's config.yaml (apisix.proxy_protocol), on the ports of the load balancer"
        yield warn("proxy-protocol", "ingress-nginx expects the PROXY protocol (use-proxy-protocol)", fix)
    if config and config.flag("use-forwarded-headers"):
        words = "headers of a front proxy in proxy-real-ip-cidr are trusted (use-forwarded-headers)"
        yield ok("forwarded-headers", f"{words}: {config.text('proxy-real-ip-cidr')}")
    publish = settings.kubernetes.status.publish_service
    ours = found.services.get(publish) if publish else None
    others = {name: each for name, each in found.services.items() if name != publish}
    if found.missing:
        fix = "create it, or correct kubernetes.status.publish_service"
        yield warn("load-balancer", f"Service {publish} of the new gateways does not exist", fix)
        return
    if ours is None or not others:
        missing = "kubernetes.status.publish_service is not set" if not publish else found.unpublished or found.problem
        yield skip("load-balancer", missing or "no Service of type LoadBalancer of ingress-nginx found")
        return
    for name, each in sorted(others.items()):
        yield _compared(publish, ours, name, each)


def _compared(own: str, ours: JsonObject, name: str, theirs: JsonObject) -> Check:
    policies = [str(mapping_in(each.get("spec")).get("externalTrafficPolicy") or "Cluster") for each in (ours, theirs)]
    if policies == ["Cluster", "Local"]:
        words = f"Service {name} preserves client addresses (externalTrafficPolicy: Local), Service {own} does not"
        fix = "set it in that Service, too: address lists and limits depend on client addresses"
        return warn("load-balancer", words, fix)
    missing = {port.get("port") for port in _ports(theirs)} - {port.get("port") for port in _ports(ours)}
    if missing:
        ports = ", ".join(map(str, sorted(missing, key=str)))
        return warn("load-balancer", f"Service {own} lacks ports of Service {name}: {ports}", "add them")
    return ok("load-balancer", f"Service {own} has the ports and the traffic policy of Service {name}")


def _webhooks(found: Found) -> Iterator[Check]:
    if found.hooks and not found.running and not found.problem:
        names = ", ".join(_name(each) for each in found.hooks)
        fix = f"kubectl delete validatingwebhookconfiguration {names}"
        yield fail("webhook", f"{names} is left over from ingress-nginx: changes of Ingresses are rejected", fix)


def _is_controller(workload: JsonObject) -> bool:
    words = [*(str(each.get("image") or "") for each in _containers(workload)), *_command_line(workload)]
    return any(_IMAGE in word or _PROGRAM in word for word in words)


def _containers(workload: JsonObject) -> Iterator[FrozenJson]:
    template = mapping_in(mapping_in(workload.get("spec")).get("template"))
    return (mapping_in(each) for each in list_in(mapping_in(template.get("spec")).get("containers")))


def _command_line(workload: JsonObject) -> Iterator[str]:
    for container in _containers(workload):
        for part in ("command", "args"):
            yield from map(str, list_in(container.get(part)))


def _arguments(workload: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the flags; the namespace of the Pod may be a variable."""
    own = str(mapping_in(workload.get("metadata")).get("namespace") or "")
    for word in _command_line(workload):
        if word.startswith("--"):
            name, is_set, value = word.lstrip("-").partition("=")
            yield name, value.replace("$(POD_NAMESPACE)", own) if is_set else "true"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _replicas(workload: JsonObject) -> int:
    spec = mapping_in(workload.get("spec"))
    return int(spec["replicas"]) if isinstance(spec.get("replicas"), int) else 1


def _ports(service: JsonObject) -> Iterator[FrozenJson]:
    return (mapping_in(each) for each in list_in(mapping_in(service.get("spec")).get("ports")))


def _name(item: JsonObject) -> str:
    meta = mapping_in(item.get("metadata"))
    return "/".join(str(meta[part]) for part in ("namespace", "name") if meta.get(part))

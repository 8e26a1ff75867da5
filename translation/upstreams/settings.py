"""Upstream settings: from the fields of an ApisixUpstream to those of an upstream record, except nodes.

Routes use it as well, to find out whether the settings of their upstreams are valid, because a route fails with its
upstream. Source of the mapping: v1-behaviour.md §2.7; the limits are those of the APISIX upstream schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v2.common import SecretLocation
from crds.v2.upstream import (
    ActiveCheck,
    ActiveHealthy,
    ActiveUnhealthy,
    ApisixUpstreamSpec,
    Discovery,
    HealthCheck,
    Healthy,
    PassiveCheck,
    Unhealthy,
    UpstreamSettings,
)
from translation.addresses.destinations import is_in_cluster
from translation.addresses.host_policy import BY_PRESET
from translation.addresses.policy import check_address
from translation.core.context import Context
from translation.core.durations import seconds, timeout_body, timeout_parts
from translation.core.options import Options
from translation.core.scope import class_is_ours
from translation.core.text_checks import check_spec
from translation.hosts.certificates import foreign_labels, key_pair
from translation.plugins.configs import present

_HEADER = ValuePattern(r"[a-zA-Z0-9_-]+"), "use letters, digits, - and _"

_KEYS: Mapping[str, tuple[ValuePattern, str]] = {
    "header": _HEADER,
    "cookie": _HEADER,
    "vars": (
        ValuePattern(
            "(?:uri|server_name|server_addr|request_uri|remote_port|remote_addr|query_string|host|hostname|mqtt_client_id)"
            "|arg_[0-9a-zA-Z_-]+"
        ),
        "use uri, host, remote_addr, arg_<parameter> or a similar variable, or set hashOn to header, cookie or"
        " vars_combinations",
    ),
}
"""Values that a gateway can hash, and the remedy for others (the schemas of chash keys in APISIX)."""

_UNSET: tuple[object, ...] = (None, "", ())

Paths = Mapping[str, str]
"""Settings → the part of the object that contains them, for those outside `spec` itself."""

_COMMON: Paths = {}


def decorator(
    namespace: str, service: str, view: View, options: Options
) -> tuple[ApisixUpstreamSpec | None, Context] | None:
    """Return the settings in the ApisixUpstream of a Service, None if they are invalid, and the context of the object.

    Its mistakes are reported in the context, with paths in the ApisixUpstream. Without such an object, which nearly all
    Services are, nothing is returned; one of another class is ignored.
    """
    key = ObjectKey("ApisixUpstream", namespace, service)
    found = view.get(CustomObject, key)
    if found is None or not class_is_ours(found, view, options):
        return None
    scope = Context(key.kind, key.namespace, view, options)
    check_spec(scope, found.spec)
    try:
        return parse_spec(ApisixUpstreamSpec, found.spec), scope
    except SpecError as error:
        scope.report_invalid_spec(error)
        return None, scope


def for_port(spec: ApisixUpstreamSpec, port: int) -> UpstreamSettings:
    """Return the settings for a port of a Service: the port's own settings override the common ones, by field."""
    level = next((level for level in spec.port_level_settings if level.port == port), None)
    return spec if level is None else _laid_over(spec, level)


def port_paths(spec: ApisixUpstreamSpec, port: int) -> Paths:
    """Return the paths of the settings that one port of a Service has of its own."""
    levels = enumerate(spec.port_level_settings)
    return next((_paths(level, index) for index, level in levels if level.port == port), {})


def for_ports(spec: ApisixUpstreamSpec) -> Iterator[tuple[UpstreamSettings, Paths]]:
    """Yield `for_port` and `port_paths` of each port that has settings, in linear time: there may be 10,000."""
    seen: set[int] = set()
    for index, level in enumerate(spec.port_level_settings):
        # If a port has settings twice, the first ones apply.
        if level.port not in seen:
            seen.add(level.port)
            yield _laid_over(spec, level), _paths(level, index)


def _laid_over(spec: ApisixUpstreamSpec, level: UpstreamSettings) -> UpstreamSettings:
    return spec.model_copy(update=_given(level))


def _given(level: UpstreamSettings) -> dict[str, object]:
    fields = level.model_fields_set & UpstreamSettings.model_fields.keys()
    return {name: value for name in fields if (value := getattr(level, name)) not in _UNSET}


def _paths(level: UpstreamSettings, index: int) -> Paths:
    return dict.fromkeys(_given(level), f"spec.portLevelSettings[{index}]")


def default_body() -> JsonObject:
    """Return the fields of an upstream record without settings."""
    return {"type": "roundrobin", "scheme": "http"}


def settings_body(scope: Context, settings: UpstreamSettings | None, paths: Paths = _COMMON) -> JsonObject:
    """Return the fields of an upstream record for the settings; with None, the defaults."""
    if settings is None:
        return default_body()
    body = _balancing(scope, settings, f"{paths.get('loadbalancer', 'spec')}.loadbalancer")
    body["scheme"] = settings.scheme or "http"
    if settings.retries is not None:
        body["retries"] = settings.retries
    if settings.timeout is not None:
        body["timeout"] = timeout_body(timeout_parts(settings.timeout))
    if settings.health_check is not None:
        body["checks"] = _checks(scope, settings.health_check, f"{paths.get('health_check', 'spec')}.healthCheck")
    if settings.tls_secret is not None:
        body |= _client_certificate(scope, settings.tls_secret, f"{paths.get('tls_secret', 'spec')}.tlsSecret")
    if settings.discovery is not None:
        _check_discovery(scope, settings.discovery, f"{paths.get('discovery', 'spec')}.discovery")
    if settings.pass_host == "rewrite" and not settings.upstream_host:
        path = f"{paths.get('pass_host', 'spec')}.upstreamHost"
        scope.error("InvalidSpec", path, "is missing: passHost rewrite requires the host to rewrite to")
    return body | present({"pass_host": settings.pass_host, "upstream_host": settings.upstream_host})


def discovery_body(settings: UpstreamSettings | None) -> JsonObject | None:
    """Return the fields that replace nodes if the gateway discovers them, or None."""
    if settings is None or settings.discovery is None:
        return None
    found = settings.discovery
    body: JsonObject = {"service_name": found.service_name, "discovery_type": found.type}
    return body | present({"discovery_args": found.args})


def _balancing(scope: Context, settings: UpstreamSettings, path: str) -> JsonObject:
    balancer = settings.loadbalancer
    if balancer is None:
        return {"type": "roundrobin"}
    if balancer.type != "chash":
        return {"type": balancer.type}
    shape, remedy = _KEYS.get(balancer.hash_on, (None, ""))
    if shape and not shape.fits(balancer.key):
        scope.error("InvalidSpec", f"{path}.key", f"is not a valid key for hashOn {balancer.hash_on}; {remedy}")
    return {"type": "chash", "hash_on": balancer.hash_on, **present({"key": balancer.key})}


def _check_discovery(scope: Context, discovery: Discovery, path: str) -> None:
    if discovery.type != "dns" and scope.options.external_addresses != "allow":
        what = (
            f"{discovery.type!r} discovers nodes that cannot be checked, which is rejected by the controller's setting"
        )
        scope.forbid("AddressRefused", f"{path}.type", f"{what} {BY_PRESET}; use dns, or backends")
    elif discovery.type == "dns":
        _check_dns(scope, discovery.service_name, f"{path}.serviceName")


def _check_dns(scope: Context, name: str, path: str) -> None:
    # `host:port`, or a host alone; an address in brackets is checked unchanged.
    host, _, port = name.rpartition(":")
    has_port = bool(host) and port.isascii() and port.isdecimal()
    named = host if has_port else name
    if is_in_cluster(scope, named):
        # Its endpoints may change while these settings are invalid and the last valid ones stay.
        scope.revoke(
            "AddressRefused", path, f"{named!r} is a name of the Kubernetes cluster; use its Service in backends"
        )
    else:
        check_address(scope, named, path, port=int(port[:6]) if has_port else None)


def _client_certificate(scope: Context, location: SecretLocation, path: str) -> JsonObject:
    secret = scope.secret(location.name, path, namespace=location.namespace)
    pair = key_pair(scope, secret, path) if secret else None
    if secret is None or pair is None:
        return {}
    labels = foreign_labels(scope, location.namespace, location.name)
    return {"tls": {"client_cert": pair.certificate, "client_key": pair.key}} | ({"labels": labels} if labels else {})


def _checks(scope: Context, checks: HealthCheck, path: str) -> JsonObject:
    body = {"active": _active(scope, checks.active, f"{path}.active")}
    return body | ({"passive": _passive(checks.passive)} if checks.passive else {})


def _active(scope: Context, check: ActiveCheck, path: str) -> JsonObject:
    if check.port is not None and check.port in scope.options.guarded_ports:
        # Nodes are checked for the port of requests; probes would use another one.
        message = f"{check.port} is a port of an internal address; use another one"
        scope.forbid("AddressRefused", f"{path}.port", message)
    return {
        "type": check.type,
        **present(
            {
                "timeout": seconds(check.timeout or 0),
                "concurrency": check.concurrency,
                "host": check.host,
                "port": check.port,
                "http_path": check.http_path,
                "req_headers": list(check.request_headers),
            }
        ),
        "https_verify_certificate": check.strict_tls,
        "healthy": _healthy(check.healthy) | _interval(scope, check.healthy, f"{path}.healthy.interval"),
        "unhealthy": _unhealthy(check.unhealthy) | _interval(scope, check.unhealthy, f"{path}.unhealthy.interval"),
    }


def _passive(check: PassiveCheck) -> JsonObject:
    return {"type": check.type, "healthy": _healthy(check.healthy), "unhealthy": _unhealthy(check.unhealthy)}


def _healthy(part: Healthy | None) -> JsonObject:
    if part is None:
        return {}
    return present({"http_statuses": _once(part.http_codes), "successes": part.successes})


def _unhealthy(part: Unhealthy | None) -> JsonObject:
    if part is None:
        return {}
    return present(
        {
            "http_statuses": _once(part.http_codes),
            "http_failures": part.http_failures,
            "tcp_failures": part.tcp_failures,
            "timeouts": part.timeout_count,
        }
    )


def _once(codes: Iterable[int]) -> list[int]:
    """Return a list without duplicates, which the gateway rejects."""
    return list(dict.fromkeys(codes))


def _interval(scope: Context, part: ActiveHealthy | ActiveUnhealthy | None, path: str) -> JsonObject:
    """Return the time between two probes in whole seconds, the only unit that the gateway accepts."""
    if part is None:
        return {}
    if part.interval is None or part.interval < 1:
        wrong = "is missing" if part.interval is None else "is too short"
        scope.error("InvalidSpec", path, f"{wrong}: set the time between two probes, 1s or more")
        return {}
    return {"interval": int(part.interval)}

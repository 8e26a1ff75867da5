"""Upstream settings: from the fields of an ApisixUpstream to those of an upstream record, nodes apart.

Routes use it as well, to learn whether the settings of their upstreams can be made: a route and its upstream stand or
fall together. Source of the mapping: v1-behaviour.md §2.7; the limits are those of the APISIX upstream schema.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kube import CustomObject
from crds import SpecError, parse_spec
from crds.v2.common import SecretLocation
from crds.v2.upstream import (
    ActiveCheck,
    ActiveHealthy,
    ActiveUnhealthy,
    ApisixUpstreamSpec,
    HealthCheck,
    Healthy,
    PassiveCheck,
    Unhealthy,
    UpstreamSettings,
)
from translation.addresses import check_address
from translation.certificates import key_pair
from translation.durations import seconds, timeout_body, timeout_parts
from translation.ownership import class_is_ours
from translation.plugins import present
from translation.scope import Scope
from translation.texts import check_spec

_UNSET: tuple[object, ...] = (None, "", ())


def decorator(scope: Scope, namespace: str, service: str) -> ApisixUpstreamSpec | None:
    """Return the settings for a Service: those of the ApisixUpstream of its name. None without one, or if it is wrong.

    One of a foreign class is none. Mistakes are noted in `scope`, with paths in the ApisixUpstream.
    """
    found = scope.view.get(CustomObject, ObjectKey("ApisixUpstream", namespace, service))
    if found is None or not class_is_ours(found, scope.view, scope.options):
        return None
    check_spec(scope, found.spec)
    try:
        return parse_spec("ApisixUpstream", found.spec)
    except SpecError as error:
        scope.misfit(error)
        return None


def for_port(spec: ApisixUpstreamSpec, port: int) -> UpstreamSettings:
    """Return the settings for one port of a Service: those of the port over the common ones, field by field."""
    level = next((level for level in spec.port_level_settings if level.port == port), None)
    return spec if level is None else _laid_over(spec, level)


def for_ports(spec: ApisixUpstreamSpec) -> Iterator[UpstreamSettings]:
    """Yield what `for_port` returns for each port that has settings, in linear time: there may be 10,000."""
    # Of two levels for one port the first one counts.
    levels = {level.port: level for level in reversed(spec.port_level_settings)}
    for level in reversed(levels.values()):
        yield _laid_over(spec, level)


def _laid_over(spec: ApisixUpstreamSpec, level: UpstreamSettings) -> UpstreamSettings:
    fields = level.model_fields_set & UpstreamSettings.model_fields.keys()
    given = {name: getattr(level, name) for name in fields}
    return spec.model_copy(update={name: value for name, value in given.items() if value not in _UNSET})


def settings_body(scope: Scope, settings: UpstreamSettings | None) -> JsonObject:
    """Return the fields of an upstream record that settings give; with None, the defaults."""
    if settings is None:
        return {"type": "roundrobin", "scheme": "http"}
    body = _balancing(settings)
    body["scheme"] = settings.scheme or "http"
    if settings.retries is not None:
        body["retries"] = settings.retries
    if settings.timeout is not None:
        body["timeout"] = timeout_body(timeout_parts(settings.timeout))
    if settings.health_check is not None:
        body["checks"] = _checks(scope, settings.health_check)
    if settings.tls_secret is not None:
        body |= _client_certificate(scope, settings.tls_secret)
    if settings.discovery is not None and settings.discovery.type == "dns":
        # `host:port`, or a host alone; an address in brackets is judged as it is.
        host, _, port = settings.discovery.service_name.rpartition(":")
        named = host if port.isdigit() and host else settings.discovery.service_name
        check_address(scope, named, "spec.discovery.serviceName")
    if settings.pass_host == "rewrite" and not settings.upstream_host:
        scope.error("InvalidSpec", "spec.upstreamHost", "is missing: passHost rewrite needs the host to rewrite to")
    return body | present({"pass_host": settings.pass_host, "upstream_host": settings.upstream_host})


def discovery_body(settings: UpstreamSettings | None) -> JsonObject | None:
    """Return what stands in place of nodes where the gateway finds them by itself, or None."""
    if settings is None or settings.discovery is None:
        return None
    found = settings.discovery
    body: JsonObject = {"service_name": found.service_name, "discovery_type": found.type}
    return body | present({"discovery_args": found.args})


def _balancing(settings: UpstreamSettings) -> JsonObject:
    balancer = settings.loadbalancer
    if balancer is None:
        return {"type": "roundrobin"}
    if balancer.type != "chash":
        return {"type": balancer.type}
    return {"type": "chash", "hash_on": balancer.hash_on, **present({"key": balancer.key})}


def _client_certificate(scope: Scope, location: SecretLocation) -> JsonObject:
    secret = scope.secret(location.name, "spec.tlsSecret", namespace=location.namespace)
    pair = key_pair(scope, secret, "spec.tlsSecret") if secret else None
    return {"tls": {"client_cert": pair.certificate, "client_key": pair.key}} if pair else {}


def _checks(scope: Scope, checks: HealthCheck) -> JsonObject:
    body = {"active": _active(scope, checks.active, "spec.healthCheck.active")}
    return body | ({"passive": _passive(checks.passive)} if checks.passive else {})


def _active(scope: Scope, check: ActiveCheck, path: str) -> JsonObject:
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
    return present({"http_statuses": list(part.http_codes), "successes": part.successes})


def _unhealthy(part: Unhealthy | None) -> JsonObject:
    if part is None:
        return {}
    return present(
        {
            "http_statuses": list(part.http_codes),
            "http_failures": part.http_failures,
            "tcp_failures": part.tcp_failures,
            "timeouts": part.timeout_count,
        }
    )


def _interval(scope: Scope, part: ActiveHealthy | ActiveUnhealthy | None, path: str) -> JsonObject:
    """Return the time between two probes in whole seconds, which is all that the gateway takes."""
    if part is None:
        return {}
    if part.interval is None or part.interval < 1:
        wrong = "is missing" if part.interval is None else "is too short"
        scope.error("InvalidSpec", path, f"{wrong}: set the time between two probes, 1s or more")
        return {}
    return {"interval": int(part.interval)}

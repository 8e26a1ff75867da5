"""Backends: the upstream of a location, with its Service, its balancer and its retries."""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.formats.patterns import TextPattern, ValuePattern
from apisix_ingress.model.json import JsonObject, canonical
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Secret, Service
from apisix_ingress.state.claims import UpstreamClaim, UpstreamVariant
from translation.core.builder import Builder
from translation.core.context import Context
from translation.hosts.certificates import key_pair
from translation.ingress_spec import Port
from translation.nginx.effects.branches import Site
from translation.nginx.sources import sources_of_service, sources_with_affinity
from translation.nginx.tables.config_map import Config
from translation.nginx.tables.gateway_fields import COOKIE_KEY, LONGEST_TIMEOUT
from translation.nginx.tables.values import Values

_SCHEMES = {"HTTP": "http", "HTTPS": "https", "GRPC": "grpc", "GRPCS": "grpcs", "AUTO_HTTP": ""}

_AT_ONCE = 0.001
"""Seconds that replace a timeout of 0: gateways do not support shorter ones. In nginx, every request times out then."""

_UNLIMITED = 255
"""Number of retries if nginx has no limit."""

_COOKIES = "session-cookie-"
_VARIABLE = TextPattern(r"\$\{?([a-z0-9_]+)\}?")
_ONE_VARIABLE = ValuePattern(_VARIABLE.pattern)
_HASHABLE = ValuePattern(
    r"uri|server_name|server_addr|request_uri|remote_port|remote_addr|query_string|host|hostname|arg_[0-9a-zA-Z_-]+"
)


FIRST = {"type": "chash", "hash_on": "vars_combinations", "key": "$request_id"}
"""The balancer for requests without an affinity cookie: it hashes the future value of the cookie."""


def claim(
    site: Site,
    key: ObjectKey,
    port: Port,
    scheme: str,
    *,
    first: bool = False,
    fallback: tuple[ObjectKey, int] | None = None,
    main: Values | None = None,
) -> str:
    """Claim an upstream with the settings of nginx and return its id; empty without the Service or its port.

    Args:
        site: The location.
        key: The Service.
        port: Its port.
        scheme: The protocol of its backends.
        first: Whether it is for clients without an affinity cookie.
        fallback: The Service and port that are used if it has no endpoints.
        main: For a canary: the annotations that determine how requests are balanced; without endpoints of the fallback,
            it gets no requests.
    """
    builder = site.builder
    service = builder.view.get(Service, key)
    number = port_number(service, port) if service else 0
    if service is None or not number:
        return ""
    values = service_values(site, key)
    settings = _settings(site.values, main or values, site.config, scheme) | (FIRST if first else {})
    certificate = client_certificate(site)
    if certificate:
        settings["tls"] = {"client_cert_id": certificate}
    if fallback:
        depends = main is not None and not main.flag("service-upstream", site.config.flag("service-upstream"))
        settings["canary_of" if depends else "fallback"] = [*fallback[0][1:], fallback[1]]
    upstream = values.flag("service-upstream", site.config.flag("service-upstream"))
    by_address = upstream and not service.headless and service.type != "ExternalName"
    return _claim(builder, key, number, settings, by_address=by_address)


def client_certificate(site: Site) -> str:
    """Add the record with the client certificate for backends, and return its id; empty without one."""
    name = site.values.text("proxy-ssl-secret")
    namespace, _, rest = name.partition("/")
    # With a certificate of another namespace, anyone could impersonate its owner.
    own = namespace == site.namespace or site.config.flag("allow-cross-namespace-resources")
    secret = site.builder.view.get(Secret, ObjectKey("Secret", namespace, rest)) if rest and own else None
    if secret is None:
        return ""
    pair = key_pair(Context("Secret", namespace, site.builder.view, site.builder.options), secret, "")
    if pair is None:
        return ""
    # Gateways reuse connections with the same certificate, so verified ones have a certificate of their own.
    record = names.nginx_client_certificate(namespace, rest, verified=verifies(site))
    body = {
        "id": site.builder.view.record_id("ssls", record),
        "type": "client",
        "cert": pair.certificate,
        "key": pair.key,
        "labels": names.owner_labels(site.builder.options.controller_name),
    }
    site.builder.record("ssls", record, body)
    return site.builder.refer("ssls", record)


def verifies(site: Site) -> bool:
    """Return whether the certificate of the backend has to be verified, if it uses TLS."""
    values = site.values
    asks = values.text("proxy-ssl-verify") == "on" and values.has("proxy-ssl-secret")
    return asks and scheme_of(site) in ("https", "grpcs", "")


def service_values(site: Site, key: ObjectKey) -> Values:
    """Return the annotations that apply to the whole Service: those of the first Ingress that names it.

    Any Ingress may request affinity. The first one with a mode determines the mode, the last one the cookie.
    """
    if key not in site.services.values:
        site.services.values[key] = _service_values(site, key)
    found = site.services.values[key]
    return site.values if found is None else found


def _service_values(site: Site, key: ObjectKey) -> Values | None:
    view, options = site.builder.view, site.builder.options
    sources = sources_of_service(view, options, site.nginx, key.namespace, key.name)
    first = next((source.values for source in sources if not source.canary), None)
    if first is None:
        return None
    sticky = sources_with_affinity(view, options, site.nginx, key.namespace, key.name)
    if not sticky:
        return first
    mode = next((each.values.text("affinity-mode") for each in sticky if each.values.has("affinity-mode")), "")
    own = {name: text for name, text in first.given.items() if not name.startswith(_COOKIES)}
    cookie = {name: text for name, text in sticky[-1].values.given.items() if name.startswith(_COOKIES)}
    return Values({**own, **cookie, "affinity": "cookie", "affinity-mode": mode})


def cookie_name(values: Values) -> str:
    """Return the name of the affinity cookie: the default one instead of a name that gateways cannot hash."""
    name = values.text("session-cookie-name")
    return name if COOKIE_KEY.fits(name) else "INGRESSCOOKIE"


def scheme_of(site: Site) -> str:
    """Return the scheme of the upstream; empty means the scheme of the request."""
    return _SCHEMES.get(site.values.text("backend-protocol").upper(), "http")


def port_number(service: Service, port: Port) -> int:
    """Return the number of a Service port, given its number, its name or the target port; 0 if it does not exist."""
    for each in service.ports:
        if port.number == each.port or (port.name and port.name == each.name) or port.number == each.target != 0:
            return each.port
    if service.type == "ExternalName" and not service.ports:
        return port.number or 0
    return 0


def timeouts(site: Site) -> JsonObject:
    """Return the timeouts of a route in seconds."""
    names_of = ("connect", "send", "read")
    found = {
        name: site.values.number(f"proxy-{name}-timeout", site.config.number(f"proxy-{name}-timeout"))
        for name in names_of
    }
    return {name: min(value, LONGEST_TIMEOUT) or _AT_ONCE for name, value in found.items()}


def never_reads(site: Site) -> bool:
    """Return whether every response is late, because proxy-read-timeout is 0."""
    return site.values.number("proxy-read-timeout", site.config.number("proxy-read-timeout")) == 0


def own_default(site: Site) -> tuple[ObjectKey, int] | None:
    """Return the Service in the annotation default-backend, which is used if the backend has no endpoints."""
    name = site.values.text("default-backend")
    if not name:
        return None
    key = ObjectKey("Service", site.namespace, name.rpartition("/")[2])
    service = site.builder.view.get(Service, key)
    return (key, service.ports[0].port) if service and service.ports else None


def default_claim(site: Site, scheme: str) -> str:
    """Claim the upstream of the annotation default-backend and return its id; empty without the Service."""
    found = own_default(site)
    return claim(site, found[0], Port(number=found[1]), scheme) if found else ""


def hash_keys(text: str) -> JsonObject:
    """Return the balancer that hashes variables."""
    used = [found[1] for found in _VARIABLE.finditer(text)]
    whole = _ONE_VARIABLE.fullmatch(text)
    if whole:
        variable = whole[1]
        if variable.startswith("http_"):
            return {"type": "chash", "hash_on": "header", "key": text.strip("${}")}
        if variable.startswith("cookie_"):
            return {"type": "chash", "hash_on": "cookie", "key": variable.removeprefix("cookie_")}
        if variable == "binary_remote_addr":
            variable = "remote_addr"
        if _HASHABLE.fits(variable):
            return {"type": "chash", "hash_on": "vars", "key": variable}
    if not used:
        return {"type": "chash", "hash_on": "vars", "key": "server_addr"}
    return {"type": "chash", "hash_on": "vars_combinations", "key": text.replace("{", "").replace("}", "")}


def _settings(own: Values, values: Values, config: Config, scheme: str) -> JsonObject:
    """Return the fields of an upstream record; the location determines retries and scheme, the Service the balancer."""
    body: JsonObject = {"scheme": scheme, "retries": _retries(own, config), **_balancing(values, config)}
    return body


def _retries(values: Values, config: Config) -> int:
    when = values.text("proxy-next-upstream") or config.text("proxy-next-upstream")
    tries = values.number("proxy-next-upstream-tries", config.number("proxy-next-upstream-tries"))
    hashes = values.has("upstream-hash-by") or bool(config.text("upstream-hash-by"))
    # With a hash, nginx selects the same endpoint for every try.
    return 0 if hashes or "off" in when.split() else min(tries - 1, _UNLIMITED) if tries else _UNLIMITED


def _balancing(values: Values, config: Config) -> JsonObject:
    if values.text("affinity") == "cookie":
        return {"type": "chash", "hash_on": "cookie", "key": cookie_name(values)}
    text = values.text("upstream-hash-by") or config.text("upstream-hash-by")
    if text:
        return hash_keys(text)
    kind = values.text("load-balance") or config.text("load-balance")
    return {"type": "ewma" if kind == "ewma" else "roundrobin"}


def _claim(builder: Builder, key: ObjectKey, port: int, settings: JsonObject, *, by_address: bool) -> str:
    variant = UpstreamVariant(fields=canonical(settings).decode())
    granularity: names.Granularity = "service" if by_address else "endpoint"
    builder.claim(UpstreamClaim(key, port, granularity=granularity, variant=variant))
    name = names.service_upstream_name(*key[1:], port, granularity=granularity, variant=variant.name)
    return builder.refer("upstreams", name)

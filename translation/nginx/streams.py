"""TCP and UDP services: the entries of two ConfigMaps of ingress-nginx as stream routes.

An entry is `port: namespace/service:port`, followed by `:PROXY` for the PROXY protocol. The gateway has to listen on
the port.
"""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import ConfigMap, Service
from apisix_ingress.state.claims import UpstreamClaim
from translation.core.builder import Builder
from translation.ingress_spec import Port
from translation.nginx.effects.balancing.backends import port_number
from translation.nginx.ingress import REFUSED
from translation.nginx.options import NginxOptions

_ENTRY = ValuePattern(r"(?i)([a-z0-9.-]+)/([a-z0-9.-]+):([a-z0-9-]+)((?::(?:PROXY)?){0,2})")
_LAST_PORT = 65535


def add_streams(builder: Builder, nginx: NginxOptions) -> None:
    """Add the stream routes of both ConfigMaps; an entry that is not valid does not affect the others."""
    ports: dict[int, str] = {}
    for protocol, key in (("tcp", nginx.tcp_services), ("udp", nginx.udp_services)):
        found = builder.view.get(ConfigMap, key) if key else None
        if key is None or found is None:
            continue
        for text, entry in sorted(found.data.items()):
            path = f"{key}: data[{text}]"
            port = int(text) if text.isdecimal() and len(text) < 6 else 0
            if not 0 < port <= _LAST_PORT:
                builder.degrade(REFUSED, path, f"{text!r} is not a port: the entry has no effect; correct or remove it")
            elif port in ports:
                message = f"the port is also in the {ports[port]} ConfigMap, and a gateway has one route for both"
                builder.degrade(REFUSED, path, f"{message}: the entry has no effect; use another port")
            else:
                ports[port] = protocol
                _add(builder, protocol, port, entry.strip(), path)


def _add(builder: Builder, protocol: str, port: int, entry: str, path: str) -> None:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        builder.degrade(REFUSED, path, f"{entry!r} has no effect; write namespace/service:port")
        return
    if "PROXY" in match[4].upper():
        message = "the PROXY protocol is a setting of the whole gateway (proxy_protocol): the entry has no effect"
        builder.degrade(REFUSED, path, f"{message}; remove :PROXY")
        return
    key = ObjectKey("Service", match[1], match[2])
    service = builder.view.get(Service, key)
    wanted = Port(number=int(match[3])) if match[3].isdecimal() else Port(name=match[3])
    number = port_number(service, wanted) if service else 0
    if not number:
        builder.degrade(REFUSED, path, f"{key} with port {match[3]} does not exist; create it or correct the entry")
        return
    builder.claim(UpstreamClaim(key, number))
    name = names.nginx_name(protocol, str(port))
    body = builder.new_body("stream_routes", name)
    del body["name"]  # stream routes have none
    upstream = builder.refer("upstreams", names.service_upstream_name(key.namespace, key.name, number))
    builder.protect("stream_routes", names=frozenset({name}))
    builder.record("stream_routes", name, body | {"server_port": port, "upstream_id": upstream})

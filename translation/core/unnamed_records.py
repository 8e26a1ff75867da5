"""Names of records whose bodies do not contain one: certificates and stream routes.

They are derived from raw specs, since an object that lost its hosts, or cannot be translated, has no records.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model import names
from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import RecordKind
from apisix_ingress.model.objects import CustomObject
from translation.ingress_spec import Tls
from translation.ingress_tls import pseudo_name


def nameless_records(obj: CustomObject) -> Iterator[tuple[RecordKind, str]]:
    """Yield kind and name of each record that an object may have and whose body contains no name."""
    space, name = obj.meta.namespace, obj.meta.name
    match obj.meta.kind:
        case "ApisixTls":
            yield "ssls", names.object_name(space, name)
        case "Ingress":
            for entry in list_in(obj.spec.get("tls")):
                hosts = tuple(host for host in list_in(mapping_in(entry).get("hosts")) if isinstance(host, str))
                secret = mapping_in(entry).get("secretName")
                if isinstance(secret, str) and secret:
                    pseudo = pseudo_name(space, name, Tls(hosts=hosts, secret_name=secret))
                    yield "ssls", names.object_name(space, pseudo)
        case "ApisixRoute":
            for rule in list_in(obj.spec.get("stream")):
                if isinstance(rule_name := mapping_in(rule).get("name"), str):
                    yield "stream_routes", names.stream_route_name(space, name, rule_name)

"""Data of Secrets and ConfigMaps that the functions of many routes read: one record for each use at a host."""

from __future__ import annotations

from collections.abc import Callable

from apisix_ingress.model import names
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from translation.nginx.effects.branches import Site
from translation.nginx.functions.shared_data import data_plugins


def shared(site: Site, source: ObjectKey, use: str, data: Callable[[], JsonObject]) -> JsonObject:
    """Return the reference to a record with data for functions, and add the record for the first location.

    Args:
        site: The location.
        source: The object that the data comes from.
        use: What the data is for; one word.
        data: Returns it.
    """
    builder, known = site.builder, site.services.shared
    name = names.nginx_data(site.server.host, source.namespace, source.name, use)
    if name not in known:
        body = builder.new_body("plugin_configs", name)
        body.pop("name", None)
        builder.record("plugin_configs", name, body | {"plugins": data_plugins(data())})
        known[name] = {"plugin_config_id": builder.refer("plugin_configs", name)}
    return known[name]

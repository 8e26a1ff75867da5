"""The plugin grpc-transcode, whose `proto_id` may be the name of an ApisixProto in the namespace of the object."""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from translation.core.context import Context
from translation.core.scope import class_is_ours

PLUGIN = "grpc-transcode"


def with_proto(scope: Context, config: JsonObject) -> JsonObject:
    """Return the configuration with the id of the record; an id that is not a name of an object stays."""
    name = config.get("proto_id")
    found = scope.custom(ObjectKey("ApisixProto", scope.namespace, name)) if isinstance(name, str) else None
    if found is None or not class_is_ours(found, scope.view, scope.options):
        return config
    return {**config, "proto_id": scope.view.record_id("protos", names.object_name(*found.meta.key[1:]))}

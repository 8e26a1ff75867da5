"""ApisixProto → Protobuf definition. Routes refer to it by name in the plugin grpc-transcode, see `plugins.protos`."""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v2.proto import ApisixProtoSpec
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.plugins.configs import review
from translation.plugins.protos import PLUGIN


def translate_proto(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the Protobuf definition of an ApisixProto, unless the settings refuse the plugin that reads it."""
    draft = Builder(obj.meta, view, options)
    name = names.object_name(draft.namespace, obj.meta.name)
    body = draft.new_body("protos", name, labelled=True)
    draft.protect("protos", names=frozenset({name}))
    # Gateways parse every definition, so definitions that no route may use are refused.
    review(draft, PLUGIN, {}, "spec")
    try:
        spec = parse_spec(ApisixProtoSpec, obj.spec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    draft.record("protos", name, body | {"content": spec.content})
    return draft.finish()

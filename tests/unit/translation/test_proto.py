"""ApisixProto → Protobuf definition, and the plugins that refer to it."""

from dataclasses import replace

import pytest

from apisix_ingress.model.json import JsonObject
from tests.unit.translation.objects import OPTIONS, get, make, reported, world
from translation.core.context import Context
from translation.core.options import Options
from translation.core.outcome import Outcome, records_of
from translation.plugins.protos import with_proto
from translation.proto import translate_proto


def proto(**spec: object) -> JsonObject:
    return make("ApisixProto", "greeter", spec={"content": "message Empty {}", **spec})


def translate(obj: JsonObject, options: Options = OPTIONS) -> Outcome:
    found = world(obj)
    return translate_proto(get(found, "ApisixProto", "greeter"), found.view(), options)


def test_a_definition_is_published_as_it_is() -> None:
    (record,) = records_of(translate(proto()))
    assert (record.key.kind, record.name, record.body["content"]) == ("protos", "default_greeter", "message Empty {}")


def test_an_empty_definition_is_not_published() -> None:
    assert reported(translate(proto(content=""))) == ["error InvalidSpec spec.content"]


def test_a_definition_is_refused_where_no_route_may_use_it() -> None:
    got = translate(proto(), replace(OPTIONS, plugins="reviewed"))
    assert records_of(got) == ()
    assert reported(got) == ["error PluginRefused spec"]


@pytest.mark.parametrize(
    ("namespace", "spec", "config", "want"),
    [
        ("default", {}, {"proto_id": "greeter"}, {"proto_id": "cf41e0e8"}),
        ("default", {}, {"proto_id": "1"}, {"proto_id": "1"}),
        ("default", {}, {"proto_id": 1}, {"proto_id": 1}),
        ("default", {}, {}, {}),
        ("default", {"ingressClassName": "other"}, {"proto_id": "greeter"}, {"proto_id": "greeter"}),
        ("other", {}, {"proto_id": "greeter"}, {"proto_id": "greeter"}),
    ],
)
def test_the_name_of_an_object_in_the_same_namespace_becomes_its_id(
    namespace: str, spec: JsonObject, config: JsonObject, want: JsonObject
) -> None:
    scope = Context("ApisixRoute", namespace, world(proto(**spec)).view(), replace(OPTIONS, ingress_class="apisix"))
    assert with_proto(scope, config) == want

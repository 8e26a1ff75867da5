"""ApisixConsumerGroup → consumer group, and the consumers that refer to it."""

from dataclasses import replace

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey
from tests.unit.translation.objects import OPTIONS, get, make, reported, world
from translation.consumer import translate_consumer
from translation.core.outcome import Outcome, records_of
from translation.plugin_config import translate_plugin_config

CLASSED = replace(OPTIONS, ingress_class="apisix")
GOLD = RecordKey("consumer_groups", "2582657")


def group(**spec: object) -> JsonObject:
    return make("ApisixConsumerGroup", "gold", spec={"plugins": [{"name": "limit-count"}], **spec})


def consumer(*others: JsonObject) -> Outcome:
    key = {"keyAuth": {"value": {"key": "x"}}}
    found = world(make("ApisixConsumer", "jack", spec={"group": "gold", "authParameter": key}), *others)
    return translate_consumer(get(found, "ApisixConsumer", "jack"), found.view(), CLASSED)


def test_a_group_has_its_plugins() -> None:
    found = world(group())
    (record,) = records_of(translate_plugin_config(get(found, "ApisixConsumerGroup", "gold"), found.view(), OPTIONS))
    assert (record.key, record.name, record.body["plugins"]) == (GOLD, "default_gold", {"limit-count": {}})


def test_a_consumer_is_written_after_its_group() -> None:
    (record,) = records_of(consumer(group()))
    assert record.body["group_id"] == GOLD.id
    assert record.refs == {GOLD}
    assert record.meant == {GOLD: "default_gold"}


def test_a_consumer_of_a_missing_group_is_not_published() -> None:
    assert records_of(got := consumer()) == ()
    assert reported(got) == ["error ConsumerGroupNotFound spec.group"]


def test_a_consumer_of_a_group_of_another_class_is_not_published() -> None:
    assert reported(consumer(group(ingressClassName="other"))) == ["error ConsumerGroupNotFound spec.group"]

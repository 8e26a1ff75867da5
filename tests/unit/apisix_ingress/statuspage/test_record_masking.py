"""Which parts of a record are shown."""

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import Meta, Secret
from apisix_ingress.model.secrets.value_mask import REDACTED
from apisix_ingress.statuspage.record_masking import clean, redacted, shown_body
from tests.factories import make_record
from tests.unit.apisix_ingress.statuspage.harness import PageHarness, make_harness, served
from tests.unit.translation.objects import fill, make, rule, secret, service
from tests.unit.translation.settling import prepare

SECRET = "s3cr3t-of-page"


def test_private_keys_are_masked_and_certificates_are_not() -> None:
    body = {"cert": "-----BEGIN CERTIFICATE-----\nMII\n", "key": "not even a pem", "tls": {"client_key": "x"}}
    got = shown_body(make_record(kind="ssls", body=body))
    assert (got["key"], got["tls"]["client_key"]) == (REDACTED, REDACTED)
    assert got["cert"] == body["cert"]


def test_consumer_shows_which_credentials_it_has_and_none_of_them() -> None:
    body = {"plugins": {"odd-auth": {"pin": 4711, "names": ["a"], "on": True, "empty": ""}}}
    got = shown_body(make_record(kind="consumers", body=body))
    assert got["plugins"] == {"odd-auth": {"pin": REDACTED, "names": REDACTED, "on": True, "empty": ""}}


def test_variable_that_a_limit_counts_by_is_not_a_credential() -> None:
    body = {"plugins": {"limit-count": {"key": "remote_addr"}, "key-auth": {"key": "abc"}}}
    got = shown_body(make_record(body=body))
    assert got["plugins"] == {"limit-count": {"key": "remote_addr"}, "key-auth": {"key": REDACTED}}


def test_values_of_secrets_are_masked_wherever_they_stand() -> None:
    body = {"plugins": {"p": {SECRET: f"x{SECRET}y", "n": 4711, "l": ["ab", "abc", True]}}}
    values = Secret(Meta("Secret", "default", "values"), data={"a": SECRET.encode(), "b": b"4711", "c": b"ab"})
    got = shown_body(make_record(body=body).generated_from((values,)))
    assert got["plugins"] == {"p": {REDACTED: f"x{REDACTED}y", "n": REDACTED, "l": [REDACTED, "abc", True]}}


def test_a_body_with_endless_nesting_is_cut_off() -> None:
    deep: dict[str, object] = {}
    for _ in range(500):
        deep = {"a": deep}
    assert "..." in str(shown_body(make_record(body={"deep": deep})))


def test_text_cannot_repaint_a_page() -> None:
    assert clean("a\u202eb\x1b[2J") == "a\\u202eb\\x1b[2J"


def test_document_keeps_its_shape() -> None:
    document = {"a": ["password=hunter22", 1, None], "b": {"c": "plain\ttext"}}
    assert redacted(document) == {"a": [f"password={REDACTED}", 1, None], "b": {"c": "plain\ttext"}}


def test_a_document_can_be_encoded_with_any_text() -> None:
    assert redacted({"path": "/a\udcff", "d800": ["\ud800"]}) == {"path": "/a\\udcff", "d800": ["\\ud800"]}


async def test_plugin_config_from_a_secret_is_masked_on_every_page() -> None:
    plugin = {"name": "echo", "enable": True, "config": {}, "secretRef": "values"}
    found = make("ApisixRoute", "route", spec={"http": [rule(plugins=[plugin])]})
    harness = make_harness(service(), found, secret("values", odd_name=SECRET))
    key = harness.record("routes", "default_route_rule")
    assert SECRET in str(harness.world.desired.records("default")[key].body)
    async with served(harness):
        for path in (f"record?kind=routes&id={key.id}", f"api/record?kind=routes&id={key.id}&format=yaml"):
            got = await harness.ask(f"/status/{path}")
            assert got.status == 200
            assert SECRET not in got.text
            assert "odd_name" in got.text


async def test_no_page_shows_a_credential_that_an_object_has_in_clear_text() -> None:
    expression = {"subject": {"scope": "Header", "name": "X-Api-Key"}, "op": "Equal", "value": SECRET}
    rewrite = {"name": "proxy-rewrite", "enable": True, "config": {"headers": {"set": {"Authorization": SECRET}}}}
    logger = {"name": "http-logger", "enable": True, "config": {"uri": f"https://u:{SECRET}@a/?token={SECRET}"}}
    http = rule(plugins=[rewrite, logger])
    http["match"]["exprs"] = [expression]
    node = {"type": "Domain", "name": f"user:{SECRET}@a.example"}
    harness = make_harness(
        service(),
        make("ApisixRoute", "route", spec={"http": [http]}),
        make("ApisixUpstream", "odd", spec={"externalNodes": [node]}),
    )
    key = harness.record("routes", "default_route_rule")
    assert str(harness.world.desired.records("default")[key].body).count(SECRET) == 4
    async with served(harness):
        for path in (
            f"record?kind=routes&id={key.id}",
            f"api/record?kind=routes&id={key.id}",
            "api/routes?body=yes",
            "problems",
            "api/problems",
            "hosts",
            "records",
            "changes",
            "certificates",
            "search?q=a",
            "api/search?q=route",
            "api/object?kind=ApisixUpstream&namespace=default&name=odd",
            "api/explain?url=http://a.example/",
        ):
            got = await harness.ask(f"/status/{path}")
            assert got.status == 200
            assert SECRET not in got.text


async def test_what_is_masked_cannot_be_searched_for() -> None:
    node = {"type": "Domain", "name": f"user:{SECRET}@a.example"}
    async with served(make_harness(make("ApisixUpstream", "odd", spec={"externalNodes": [node]}))) as harness:
        found = {
            word: (await harness.data("problems", q=word))["total"] for word in (SECRET, SECRET[:3], "user:", "odd")
        }
    assert found == {SECRET: 0, SECRET[:3]: 0, "user:": 1, "odd": 1}


async def test_last_good_record_shows_nothing_of_a_secret_that_has_gone() -> None:
    plugin = {"name": "echo", "enable": True, "config": {"body": "hello"}, "secretRef": "values"}
    found = make("ApisixRoute", "route", spec={"http": [rule(plugins=[plugin])]})
    world, loop = prepare(service(), found, secret("values", odd_name=SECRET))
    loop.settle()
    world.stores["Secret"].delete(ObjectKey("Secret", "default", "values"))
    loop.settle()
    harness = make_harness(world=world)
    key = harness.record("routes", "default_route_rule")
    assert SECRET in str(world.desired.records("default")[key].body)
    async with served(harness):
        got = await harness.ask(f"/status/api/record?kind=routes&id={key.id}")
        assert SECRET not in got.text
        assert "SecretNotFound" in got.text


def _with_secret_ref() -> JsonObject:
    plugin = {"name": "echo", "enable": True, "config": {"body": "hello"}, "secretRef": "values"}
    return make("ApisixRoute", "route", spec={"http": [rule(plugins=[plugin])]})


PAGES = ("api/records?body=yes&kind=routes", "record?kind=routes&id={}", "api/record?kind=routes&id={}&format=yaml")


async def _assert_masked(harness: PageHarness, key: RecordKey) -> None:
    for path in PAGES:
        got = await harness.ask(f"/status/{path.format(key.id)}")
        assert got.status == 200
        assert "odd_name" in got.text
        assert SECRET not in got.text


async def test_earlier_value_of_a_secret_is_masked_until_the_record_is_translated_again() -> None:
    world, loop = prepare(service(), _with_secret_ref(), secret("values", odd_name=SECRET))
    loop.settle()
    harness = make_harness(world=world)
    key = harness.record("routes", "default_route_rule")
    fill(world, [secret("values", odd_name="another-value")])
    assert SECRET in str(world.desired.records("default")[key].body)
    async with served(harness):
        await _assert_masked(harness, key)


@pytest.mark.parametrize(
    "change",
    [
        secret("values", odd_name="another-value"),
        make("ApisixRoute", "route", spec={"http": [rule()]}),
    ],
    ids=["the Secret changed", "the reference was removed"],
)
async def test_value_of_a_secret_is_masked_as_long_as_a_snapshot_shows_it(change: JsonObject) -> None:
    world, loop = prepare(service(), _with_secret_ref(), secret("values", odd_name=SECRET))
    loop.settle()
    harness = make_harness(world=world)
    key = harness.record("routes", "default_route_rule")
    async with served(harness):
        await _assert_masked(harness, key)
        fill(world, [change])
        loop.settle()
        assert SECRET not in str(world.desired.records("default")[key].body)
        # The history has recorded no change, so the page still has the former snapshot.
        await _assert_masked(harness, key)


async def test_value_of_a_last_good_record_is_masked_after_its_object_was_corrected() -> None:
    world, loop = prepare(service(), _with_secret_ref(), secret("values", odd_name=SECRET))
    loop.settle()
    world.stores["Secret"].delete(ObjectKey("Secret", "default", "values"))
    loop.settle()
    harness = make_harness(world=world)
    key = harness.record("routes", "default_route_rule")
    async with served(harness):
        await _assert_masked(harness, key)
        fill(world, [secret("values", odd_name="another-value")])
        loop.settle()
        await _assert_masked(harness, key)

"""Which parts of a record are shown."""

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.secrets.value_mask import REDACTED
from apisix_ingress.statuspage.record_masking import clean, redacted, secret_values, shown_body
from tests.factories import make_record
from tests.unit.apisix_ingress.statuspage.harness import make_harness, served
from tests.unit.translation.objects import make, rule, secret, service
from tests.unit.translation.settling import prepare

SECRET = "s3cr3t-of-page"


def test_private_keys_are_masked_and_certificates_are_not() -> None:
    body = {"cert": "-----BEGIN CERTIFICATE-----\nMII\n", "key": "not even a pem", "tls": {"client_key": "x"}}
    got = shown_body(make_record(kind="ssls", body=body), frozenset())
    assert (got["key"], got["tls"]["client_key"]) == (REDACTED, REDACTED)
    assert got["cert"] == body["cert"]


def test_consumer_shows_which_credentials_it_has_and_none_of_them() -> None:
    body = {"plugins": {"odd-auth": {"pin": 4711, "names": ["a"], "on": True, "empty": ""}}}
    got = shown_body(make_record(kind="consumers", body=body), frozenset())
    assert got["plugins"] == {"odd-auth": {"pin": REDACTED, "names": REDACTED, "on": True, "empty": ""}}


def test_variable_that_a_limit_counts_by_is_not_a_credential() -> None:
    body = {"plugins": {"limit-count": {"key": "remote_addr"}, "key-auth": {"key": "abc"}}}
    got = shown_body(make_record(body=body), frozenset())
    assert got["plugins"] == {"limit-count": {"key": "remote_addr"}, "key-auth": {"key": REDACTED}}


def test_values_of_secrets_are_masked_wherever_they_stand() -> None:
    body = {"plugins": {"p": {SECRET: f"x{SECRET}y", "n": 4711, "l": ["ab", "abc", True]}}}
    got = shown_body(make_record(body=body), frozenset({SECRET, "4711", "ab"}))
    assert got["plugins"] == {"p": {REDACTED: f"x{REDACTED}y", "n": REDACTED, "l": [REDACTED, "abc", True]}}


def test_a_body_with_endless_nesting_is_cut_off() -> None:
    deep: dict[str, object] = {}
    for _ in range(500):
        deep = {"a": deep}
    assert "..." in str(shown_body(make_record(body={"deep": deep}), frozenset()))


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
    assert SECRET in secret_values(harness.world, [ObjectKey("ApisixRoute", "default", "route")])
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

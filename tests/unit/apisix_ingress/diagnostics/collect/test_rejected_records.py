"""Ingresses whose records APISIX would reject are found without a gateway."""

from __future__ import annotations

from typing import Any

from apisix_ingress.diagnostics.collect.offline import stored
from apisix_ingress.diagnostics.collect.rejected_records import rejected_records
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.webhook.schemas.book import SchemaBook, compile_subsystem
from apisix_ingress.webhook.schemas.published import published_book
from tests.unit.translation.nginx.objects import CLASS, OPTIONS, SERVICE, ingress
from translation.nginx.migration import MigrationReport, migration_report
from translation.nginx.tables.gateway_fields import misfits

STRICT = SchemaBook(
    compile_subsystem(
        {"proxy-rewrite": {"schema": {"properties": {"host": {"type": "string", "pattern": "^allowed$"}}}}}
    )
)
"""A gateway that accepts fewer values than the provider knows."""


def report(book: SchemaBook, *manifests: dict[str, Any]) -> MigrationReport:
    world = stored((RESOURCES[item["kind"]].decode(item) for item in (CLASS, SERVICE, *manifests)), OPTIONS)
    items = [item for item in world.stores["Ingress"].values() if isinstance(item, CustomObject)]
    assert OPTIONS.nginx is not None
    rejected = rejected_records(items, world, OPTIONS, OPTIONS.nginx, book)
    return migration_report(items, world.view(), OPTIONS, OPTIONS.nginx, rejected=rejected)


GUARDED = ingress("guarded", ("/admin", "Prefix"), auth_url="http://auth.test/", upstream_vhost="other")
PLAIN = ingress("plain", ("/shop", "Prefix"), age=1)


def test_an_ingress_with_a_rejected_record_is_not_served_exactly() -> None:
    guarded, plain = report(STRICT, GUARDED, PLAIN).ingresses

    assert (guarded.level, guarded.risk) == ("refused", "high")
    assert [reason for _, reason in guarded.refused] == [
        "APISIX rejects proxy-rewrite.host: Does not match pattern '^allowed$'; its paths respond with 503 until you"
        " correct the value"
    ]
    assert (plain.level, plain.refused) == ("exact", ())


def test_an_ingress_whose_records_are_accepted_is_served_exactly() -> None:
    assert {each.level for each in report(published_book(), GUARDED, PLAIN).ingresses} == {"exact"}


def test_fields_of_records_that_do_not_fit_are_found() -> None:
    body = {"hosts": ["a.test", "b/c"], "timeout": {"connect": 0, "read": 1}}

    assert list(misfits("routes", body)) == [("hosts[]", "b/c"), ("timeout.connect", 0)]
    assert list(misfits("ssls", {"client": {"ca": "short", "depth": -1}})) == [
        ("client.ca", "short"),
        ("client.depth", -1),
    ]
    assert list(misfits("client-control", {"max_body_size": "1m"})) == [("max_body_size", "1m")]

"""The tables of the development gateway's router."""

from e2e.devgateway.dataplane.router import Table, _entry
from e2e.devgateway.store import Record


def test_uris_of_a_route_that_share_a_key_are_all_taken_out() -> None:
    table = Table()
    records = [Record(f"/apisix/routes/{name}", "routes", name, {}, 1, 1) for name in ("one", "two")]
    uris = ("/a/*", "/a/*/*", "/a/*", "/a")
    for number, record in enumerate(records):
        for uri in uris:
            table.add(uri, _entry(record, number, uri))
    for uri in uris:
        table.remove(uri, records[0])
    assert {entry.record.name for entry in table.candidates("/a/b")} == {"two"}
    for uri in uris:
        table.remove(uri, records[1])
    assert not table
    assert table.lengths == {}

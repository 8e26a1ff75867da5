"""The engine and two standalone gateways: development gateways that keep their records in memory, over real HTTP."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from pydantic import SecretStr

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.adminapi.client import AdminKey
from apisix_ingress.gateway.standalone.document import KINDS, parsed
from apisix_ingress.gateway.standalone.fleet import CHECK_SECONDS
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from e2e.devgateway.process import DevGateway
from tests.fakes.gateway import FakeWanted, make_record
from tests.flow.gateway.engine import until_applied
from tests.flow.gateway.standalone import (
    ROUTES,
    UPSTREAM,
    connected,
    document,
    ids,
    leading,
    put,
)
from tests.waiting import until


@pytest.fixture(scope="module")
def started() -> Iterator[tuple[DevGateway, DevGateway]]:
    with DevGateway(standalone=True) as one, DevGateway(standalone=True) as two:
        yield one, two


@pytest.fixture
def gateways(started: tuple[DevGateway, DevGateway]) -> Iterator[tuple[DevGateway, DevGateway]]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    for gateway in started:
        gateway.clear_faults()
        gateway.wipe()
    yield started
    structlog.reset_defaults()


async def test_gateways_that_are_found_later_get_every_record(gateways: tuple[DevGateway, DevGateway]) -> None:
    found: list[str] = []

    async def resolve() -> list[str]:
        if not found:
            raise GatewayUnavailable("no such host", sent=False)
        return found

    async with connected(*gateways, resolve=resolve) as backend, leading(backend, FakeWanted([UPSTREAM])) as sync:
        await until(lambda: sync.outage is not None, "the outage")
        await asyncio.sleep(2 * CHECK_SECONDS)  # the checks of gateways go on
        found.extend(gateway.admin_url for gateway in gateways)
        await until_applied(sync, [UPSTREAM])

        assert [ids(gateway, "upstreams") for gateway in gateways] == [{"u1"}] * 2


def test_a_document_that_is_nested_too_deeply_is_an_error() -> None:
    deep = b"[" * 500 + b"]" * 500
    content = b'{"consumer_groups_conf_version":1,"routes":[{"id":"a","x":%b}]}' % deep
    with pytest.raises(GatewayUnavailable, match="routes that cannot be read"):
        parsed(content)


async def test_the_first_document_of_empty_gateways_has_every_valid_record(
    gateways: tuple[DevGateway, DevGateway],
) -> None:
    bad = make_record(RecordKey("routes", "bad"), uri=1, upstream_id="u1")
    records = [UPSTREAM, *ROUTES, bad]
    async with connected(*gateways) as backend, leading(backend, FakeWanted(records)) as sync:
        await until_applied(sync, [UPSTREAM, *ROUTES])

        for gateway in gateways:
            assert ids(gateway, "routes") == {record.key.id for record in ROUTES}
            assert ids(gateway, "upstreams") == {"u1"}
            assert len([line for line in gateway.write_log() if line["path"] == "/apisix/admin/configs"]) == 1


async def test_a_gateway_that_restarts_gets_its_records_again(gateways: tuple[DevGateway, DevGateway]) -> None:
    records = [UPSTREAM, *ROUTES]
    async with connected(*gateways) as backend, leading(backend, FakeWanted(records)) as sync:
        await until_applied(sync, records)
        gateways[1].restart()

        await until(lambda: len(ids(gateways[1], "routes")) == len(ROUTES), "the routes of the restarted gateway")


async def test_an_edit_changes_the_version_of_its_kind_only(gateways: tuple[DevGateway, DevGateway]) -> None:
    wanted = FakeWanted([UPSTREAM, *ROUTES])
    async with connected(*gateways) as backend, leading(backend, wanted) as sync:
        await until_applied(sync, [UPSTREAM, *ROUTES])
        before = document(gateways[0])
        edited = make_record(UPSTREAM.key, type="roundrobin", nodes=[{"host": "10.0.0.2", "port": 80, "weight": 1}])
        sync.mark_dirty(wanted.replace([edited, *ROUTES]))
        await until_applied(sync, [edited])
        after = document(gateways[0])

    changed = {name for name in before if before[name] != after[name]}
    assert changed - {"X-Digest", "X-Last-Modified"} == {"upstreams", "upstreams_conf_version"}


async def test_one_bad_record_harms_only_itself(gateways: tuple[DevGateway, DevGateway]) -> None:
    bad = make_record(RecordKey("routes", "bad"), uri=1, upstream_id="u1")
    records = [UPSTREAM, *ROUTES, bad]
    async with connected(*gateways) as backend, leading(backend, FakeWanted(records)) as sync:
        await until_applied(sync, [UPSTREAM, *ROUTES])

        state = sync.record_state(bad.key)
        assert (state.kind, "wrong type: expected string" in state.message) == ("rejected", True)
        assert [ids(gateway, "routes") for gateway in gateways] == [{record.key.id for record in ROUTES}] * 2


async def test_a_gateway_that_hangs_does_not_delay_the_others_for_long(
    gateways: tuple[DevGateway, DevGateway],
) -> None:
    records = [UPSTREAM, *ROUTES]
    wanted = FakeWanted(records[:1])
    async with connected(*gateways) as backend, leading(backend, wanted) as sync:
        await until_applied(sync, records[:1])
        gateways[1].pause()
        try:
            sync.mark_dirty(wanted.replace(records))
            await until_applied(sync, records)
            assert len(ids(gateways[0], "routes")) == len(ROUTES)
        finally:
            gateways[1].resume()

        await until(lambda: len(ids(gateways[1], "routes")) == len(ROUTES), "the routes of the other gateway")


async def test_records_of_other_clients_stay(gateways: tuple[DevGateway, DevGateway]) -> None:
    theirs = {"id": "theirs", "uri": "/theirs", "upstream": {"type": "roundrobin", "nodes": {"10.0.0.9:80": 1}}}
    put(gateways[0], {"routes": [theirs]})
    async with connected(*gateways) as backend, leading(backend, FakeWanted([UPSTREAM])) as sync:
        await until_applied(sync, [UPSTREAM])

        await until(lambda: ids(gateways[1], "routes") == {"theirs"}, "the route of the other client")
        put(gateways[0], {"routes": [theirs, {**theirs, "id": "more"}]})
        for gateway in gateways:
            await until(lambda: ids(gateway, "routes") == {"theirs", "more"}, "the other route")  # noqa: B023
            await until(lambda: ids(gateway, "upstreams") == {"u1"}, "our upstream")  # noqa: B023


async def test_a_document_of_a_former_leader_is_refused(gateways: tuple[DevGateway, DevGateway]) -> None:
    async with connected(*gateways) as former, leading(former, FakeWanted([UPSTREAM])) as sync:
        await until_applied(sync, [UPSTREAM])
        stale = document(gateways[0])
    async with connected(*gateways) as backend, leading(backend, FakeWanted([UPSTREAM, *ROUTES])) as sync:
        await until_applied(sync, ROUTES)

        assert put(gateways[0], stale) == 400
        assert len(ids(gateways[0], "routes")) == len(ROUTES)


async def test_records_of_a_term_before_are_kept_or_deleted(gateways: tuple[DevGateway, DevGateway]) -> None:
    async with connected(*gateways) as backend, leading(backend, FakeWanted([UPSTREAM, *ROUTES])) as sync:
        await until_applied(sync, ROUTES)
    async with connected(*gateways) as backend, leading(backend, FakeWanted([UPSTREAM, *ROUTES[1:]])) as sync:
        await until_applied(sync, ROUTES[1:])

        for gateway in gateways:
            await until(lambda: len(ids(gateway, "routes")) == len(ROUTES) - 1, "the deletion")  # noqa: B023


async def test_what_an_earlier_term_deleted_does_not_return_with_a_gateway_that_was_cut_off(
    gateways: tuple[DevGateway, DevGateway],
) -> None:
    deleted = {**make_record(RecordKey("routes", "deleted"), uri="/deleted", upstream_id="u1").body}
    versions = {f"{kind}_conf_version": 10**9 for kind in KINDS}
    records = [UPSTREAM, *ROUTES]
    async with connected(*gateways) as backend, leading(backend, FakeWanted(records)) as sync:
        await until_applied(sync, records)
        assert put(gateways[1], {**versions, "routes": [deleted]}) == 202
        await until(lambda: ids(gateways[1], "upstreams") == {"u1"}, "the document of the leader")

        assert [ids(gateway, "routes") for gateway in gateways] == [{record.key.id for record in ROUTES}] * 2


async def test_records_that_do_not_fit_are_rejected_in_few_documents() -> None:
    long = [
        make_record(RecordKey("routes", f"long{number}"), uri="/x", desc="x" * 200, upstream_id="u1")
        for number in range(200)
    ]
    wanted = FakeWanted([UPSTREAM, *ROUTES])
    with DevGateway(standalone=True, memory=20_000) as small:
        async with connected(small) as backend, leading(backend, wanted) as sync:
            await until_applied(sync, ROUTES)
            before = len(small.write_log())
            sync.mark_dirty(wanted.replace([UPSTREAM, *ROUTES, *long]))

            def states() -> Counter[str]:
                return Counter(sync.record_state(record.key).kind for record in long)

            await until(lambda: not states()["pending"], "the rejections", state=states)
            assert states()["rejected"] > 0 < states()["applied"]
            assert "standalone-config" in sync.record_state(long[-1].key).message
            refused = [line for line in small.write_log()[before:] if line["status"] == 500]
            assert 0 < len(refused) < 20
            await until(lambda: ids(small, "routes") > {record.key.id for record in ROUTES}, "the document before")


async def test_a_rotated_key_is_used_once_its_file_changes(tmp_path: Path) -> None:
    records, file = [UPSTREAM, *ROUTES], tmp_path / "key"
    with DevGateway(standalone=True) as before:
        file.write_text(before.admin_key)
        key = AdminKey(lambda: SecretStr(file.read_text()), str(file))
        async with connected(before, key=key) as backend, leading(backend, FakeWanted(records)) as sync:
            await until_applied(sync, records)
            before.stop()
            port = int(before.admin_address.rpartition(":")[2])
            with DevGateway(standalone=True, admin_port=port, admin_key="key-after-the-rotation") as after:
                await until(lambda: sync.outage and "admin_key" in sync.outage.cause, "the outage")
                assert ids(after, "routes") == set()
                file.write_text(after.admin_key)

                await until(lambda: len(ids(after, "routes")) == len(ROUTES), "the routes")
                await until(lambda: sync.reachable, "the end of the outage")


def keyed(name: str, key: str) -> Record:
    labels = {"managed-by": "apisix-ingress-controller"}
    body = {"username": name, "labels": labels, "plugins": {"key-auth": {"key": key}}}
    return Record(RecordKey("consumers", name), name, body)


def keys_of(gateway: DevGateway) -> dict[str, str]:
    return {name: body["plugins"]["key-auth"]["key"] for name, body in gateway.records("consumers").items()}


async def test_the_first_document_has_each_key_once(gateways: tuple[DevGateway, DevGateway]) -> None:
    records = [keyed("one", "k"), keyed("two", "k"), keyed("three", "other")]
    async with connected(*gateways) as backend, leading(backend, FakeWanted(records)) as sync:
        await until(lambda: len(keys_of(gateways[0])) == 2, "the consumers")
        await until(lambda: sync.record_state(records[1].key).message != "", "the error")

        assert keys_of(gateways[0]) == {"one": "k", "three": "other"}
        assert "duplicate key of plugin key-auth found with consumer: one" in sync.record_state(records[1].key).message


async def test_a_key_of_another_consumer_harms_only_its_record(gateways: tuple[DevGateway, DevGateway]) -> None:
    wanted = FakeWanted([UPSTREAM, keyed("one", "k")])
    async with connected(*gateways) as backend, leading(backend, wanted) as sync:
        await until_applied(sync, [UPSTREAM, keyed("one", "k")])
        second = keyed("two", "k")
        sync.mark_dirty(wanted.replace([UPSTREAM, keyed("one", "k"), *ROUTES, second]))
        await until(lambda: all(sync.record_state(each.key).kind == "applied" for each in ROUTES), "the routes")
        await until(lambda: "duplicate" in sync.record_state(second.key).message, "the error")

        assert keys_of(gateways[0]) == {"one": "k"}


async def test_a_gateway_that_was_cut_off_while_keys_moved_catches_up(gateways: tuple[DevGateway, DevGateway]) -> None:
    before = [UPSTREAM, keyed("one", "a"), keyed("two", "b")]
    moved = [UPSTREAM, keyed("one", "c"), keyed("two", "a")]
    wanted = FakeWanted(before)
    async with connected(*gateways) as backend, leading(backend, wanted) as sync:
        await until_applied(sync, before)
        gateways[1].pause()
        try:
            sync.mark_dirty(wanted.replace(moved))
            await until(lambda: keys_of(gateways[0]) == {"one": "c", "two": "a"}, "the moved key")
        finally:
            gateways[1].resume()

        await until(lambda: keys_of(gateways[1]) == {"one": "c", "two": "a"}, "the moved key at the other gateway")
        assert ids(gateways[1], "upstreams") == {"u1"}

"""Lists of the Admin API, parsed in pieces: the result is the same as in one go, without blocking the loop."""

import json
from itertools import groupby

import orjson
import pytest

from apisix_ingress.gateway.adminapi.list_parser import LARGEST_RECORD, TURN_RECORDS, NoList, begins_list, items_of
from apisix_ingress.model.json import JsonObject

TEXTS = ["", "]", "}{][", '"', '\\"', "\\", "ü", "\u2028", '[{"list":[{}]}]']


def records(count: int) -> list[JsonObject]:
    """Return records with texts that look like the ends of records."""
    return [
        {"key": f"/apisix/routes/{number}", "value": {"id": str(number), "deep": [[{"a": TEXTS}], {}, []], "n": -1.5e3}}
        for number in range(count)
    ]


def objects(content: bytes) -> list[JsonObject]:
    return [found[0] for found in items_of(content) if found is not None]


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("version", [2, 3])
def test_a_list_in_pieces_has_the_same_objects(count: int, indent: int | None, version: int) -> None:
    want = records(count)
    if version == 3:
        document: JsonObject = {"total": count, "list": want, "odd": "}]"}
    else:
        document = {"count": "1", "node": {"key": "/apisix/routes", "nodes": want, "dir": True}, "action": "get"}
    assert objects(json.dumps(document, indent=indent).encode()) == want


def test_sizes_are_those_of_the_objects() -> None:
    want = records(1000)
    content = orjson.dumps({"list": want})
    assert [found[1] for found in items_of(content) if found] == [len(orjson.dumps(each)) for each in want]


@pytest.mark.parametrize("levels", [1, 8, 9, 10, 200])
def test_records_of_any_depth_are_found(levels: int) -> None:
    deep = orjson.loads(b'{"a":' * levels + b'"}{"' + b"}" * levels)
    want = [{"value": deep, "number": number} for number in range(3000)]
    assert objects(orjson.dumps({"list": want})) == want


LONG = orjson.dumps({"list": records(1000)})


@pytest.mark.parametrize(
    "content",
    [
        LONG[:-1],
        LONG[:-2],
        LONG[:-50],
        LONG[:70_000],
        LONG + b"x",
        LONG + b" " * 2000,
        LONG.replace(b'},{"key"', b'} {"key"', 1),
        LONG.replace(b'},{"key"', b'},,{"key"', 1),
        LONG.replace(b'[{"key"', b'[,{"key"', 1),
        LONG.replace(b'},{"key"', b'},7,{"key"', 1),
        LONG.replace(b"-1500.0", b"nonsense", 1),
        LONG.replace(b"-1500.0", b"-1500.0}", 1),
        b"[" * 100_000,
        b'{"list":' * 10_000,
        b'{"list":[' + b'{"a":' * 100_000,
        b'{"list":[{"a":"' + b"x" * (LARGEST_RECORD + 1) + b'"}]}',
        b'{"list":[' + b" " * 100_000 + b"{}]}",
        b'{"other":"' + b"x" * (LARGEST_RECORD + 1) + b'","list":[]}',
    ],
)
def test_an_incomplete_list_is_rejected(content: bytes) -> None:
    with pytest.raises(NoList):
        list(items_of(content))


def test_an_endless_number_of_tiny_or_useless_objects_gives_turns() -> None:
    for content in (b'{"list":[' + b"{}," * 100_000 + b"{}]}", orjson.dumps({"list": [[]] * 1000 + ["x"] * 1000})):
        rows = [
            sum(1 for _ in row) for is_turn, row in groupby(items_of(content), lambda each: each is None) if not is_turn
        ]
        assert max(rows, default=0) <= TURN_RECORDS


def test_a_large_record_gives_turns() -> None:
    content = b'{"list":[{"a":[' + b"[]," * 300_000 + b"[]]}]}"
    assert list(items_of(content)).count(None) > 100


def test_a_list_is_known_by_its_beginning() -> None:
    assert begins_list(LONG[:100])
    assert not begins_list(b'{"error_msg":"no"}')
    assert not begins_list(b"<html>")

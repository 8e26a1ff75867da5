"""The depth of JSON: levels that are too deep are found, and cut out of the bytes without other changes."""

from pathlib import Path

import orjson
import pytest

from apisix_ingress.kube.client.json_depth import DEEPEST, cut, is_deep
from apisix_ingress.kube.manifests.loader import load


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    ("content", "want"),
    [
        (b'{"a":[1]}', b'{"a":[1]}'),
        (b'{"a":[[1],2,{"b":[3]}],"c":{}}', b'{"a":[null,2,null],"c":{}}'),
        (rb'{"a":["[[{","\"[[{\\",[1]]}', rb'{"a":["[[{","\"[[{\\",null]}'),
        (rb'[[["]\"]\\"]],[4]]', b"[[null],[4]]"),
    ],
)
def test_levels_that_are_too_deep_become_null(content: bytes, want: bytes) -> None:
    assert cut(content, 2) == want


@pytest.mark.parametrize("content", [b'[[["', b"[[[[", b"]]][[[", b'"\\' * 5, b'[["' + b'\\"' * 1000])
def test_what_is_not_json_stays_unchanged(content: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(cut(content, 1))


def test_endless_levels_are_cut() -> None:
    got = orjson.loads(cut(b'{"a":' + nested(100_000) + b',"b":1}', 200))
    assert (got["b"], is_deep(got, 200), is_deep(got, 199)) == (1, False, True)


@pytest.mark.parametrize(
    ("value", "levels"), [({}, 1), ([], 1), ([[], [[]]], 3), ([1, {"a": "x"}], 2), ({"a": [], "b": 1}, 2)]
)
def test_levels_are_counted(value: object, levels: int) -> None:
    assert not is_deep("[[", 0)
    assert (is_deep(value, levels), is_deep(value, levels - 1)) == (False, True)


def test_files_may_nest_as_deep_as_objects(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_bytes(b'{"a":' + nested(DEEPEST - 1) + b"}")
    assert ["kind is missing" in str(error) for error in load([path]).errors] == [True]
    path.write_bytes(b'{"a":' + nested(DEEPEST) + b"}")
    assert ["nested deeper than 200 levels" in str(error) for error in load([path]).errors] == [True]

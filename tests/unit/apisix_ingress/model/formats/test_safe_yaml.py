"""YAML that is not JSON: every value that cannot be sent is reported by line, column and field."""

import pytest

from apisix_ingress.model.formats.safe_yaml import DocumentError, read_each, read_yaml


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a:\n  b: .nan\n", "line 2, column 6: a.b: not a number that JSON has"),
        (
            "a: [1, 18446744073709551616]\n",
            "line 1, column 8: a[1]: an integer too large for JSON; put it in quotes if it is a text",
        ),
        ("a: !!binary aGk=\n", "line 1, column 4: a: the tag !!binary is not plain data"),
        ("a: 2026-13-45\n", "line 1, column 4: a: no such date or time; put it in quotes if it is a text"),
    ],
)
def test_a_value_that_json_has_not_is_named_by_its_place(text: str, want: str) -> None:
    (got,) = read_each(text.encode(), deepest=20)
    assert isinstance(got, DocumentError)
    assert str(got) == want


def test_half_a_character_is_not_text() -> None:
    with pytest.raises(DocumentError, match=r"^line 1, column 7: found invalid Unicode character escape code$"):
        list(read_yaml(b'a: "\\ud800"\n', deepest=20))


def test_bytes_that_are_not_text_are_named_by_their_place() -> None:
    with pytest.raises(DocumentError, match=r"^not UTF-8 \(byte 3\)$"):
        list(read_yaml(b"a: \xff\n", deepest=20))


def test_keys_are_written_as_json_would_write_them() -> None:
    text = "{on: 1, ~: 2, 80: 3, 1.5: 4, no: 2026-01-02, when: 2026-01-02T03:04:05+01:00}"
    want = {"true": 1, "null": 2, "80": 3, "1.5": 4, "false": "2026-01-02", "when": "2026-01-02T02:04:05Z"}
    assert list(read_yaml(text.encode(), deepest=20)) == [want]


def test_an_empty_document_is_skipped() -> None:
    assert list(read_yaml(b"---\n---\na: 1\n", deepest=20)) == [None, {"a": 1}]

"""Printed YAML: its format, and that it parses to the original value."""

import io

import yaml

from apisix_ingress.model.formats.yaml_output import print_yaml


def printed(document: object) -> str:
    stream = io.StringIO()
    print_yaml(document, stream)
    return stream.getvalue()


def test_value_that_occurs_twice_is_written_twice() -> None:
    shared = {"a": [1]}
    assert printed({"x": shared, "y": shared}) == "x:\n  a:\n  - 1\ny:\n  a:\n  - 1\n"


def test_text_of_several_lines_is_a_block() -> None:
    assert printed({"cert": "one\ntwo\n", "line": "plain"}) == "cert: |\n  one\n  two\nline: plain\n"


def test_texts_read_back_as_they_were() -> None:
    texts = [
        "",
        "\n",
        " a\n b",
        "a \nb",
        "a\n\n",
        "\ta\nb",
        "yes",
        "1",
        "é\nü",
        "a\r\nb",
        "😀",
        "\x9b\u202e\n\u2028",
        "\x7f",
    ]
    assert yaml.safe_load(printed(texts)) == texts


def test_no_text_repaints_a_terminal_or_reorders_a_line() -> None:
    hostile = "a\x1b[31m\x9b\u202e\u2066\u200f\u2028\x7f\nb"
    got = printed({hostile: [hostile]})
    assert yaml.safe_load(got) == {hostile: [hostile]}
    assert all(line.isprintable() for line in got.splitlines())

"""Prints YAML in a readable form: without anchors, and with long texts as blocks."""

from __future__ import annotations

from typing import Any, TextIO

import yaml

from apisix_ingress.model.secrets.redaction import escape, escape_in_quotes


class _Dumper(yaml.CSafeDumper):
    """Repeats a value that occurs twice, and writes a text with several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _style(text: str) -> str | None:
    if not text.isprintable() and escape(text, keep="\n\t") != text:
        return '"'
    return "|" if "\n" in text else None


_Dumper.add_representer(str, _text)


def print_yaml(document: Any, stream: TextIO) -> None:
    """Print a document; keys keep their order."""
    text = yaml.dump(document, None, _Dumper, sort_keys=False, allow_unicode=True, width=1000)
    stream.write(escape_in_quotes(text))

"""The arguments of a command become values of its parameters, or one error message."""

from pathlib import Path
from typing import Annotated, Any

import pytest

from apisix_ingress.commands.arguments.parameters import Argument, BadParameter, Option
from apisix_ingress.commands.arguments.parser import Command, UsageMistake, parse


def _even(text: str) -> None:
    if int(text) % 2:
        raise BadParameter("must be even")


def _command(
    url: Annotated[str, Argument("URL")],
    paths: Annotated[list[str] | None, Argument("PATH")] = None,
    output: Annotated[str, Option("--output", "-o", words=("text", "json"))] = "text",
    header: Annotated[list[str] | None, Option("--header", "-H")] = None,
    dry_run: Annotated[bool, Option("--dry-run", "-n")] = False,
    rate: Annotated[float, Option(limits=(0.5, 8))] = 2.0,
    even: Annotated[int | None, Option(check=_even)] = None,
    file: Annotated[Path | None, Option()] = None,
) -> None:
    """Do nothing."""


COMMAND = Command("nothing", _command)
DEFAULTS: dict[str, Any] = {
    "url": "u",
    "paths": None,
    "output": "text",
    "header": None,
    "dry_run": False,
    "rate": 2.0,
    "even": None,
    "file": None,
}


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ("u", {}),
        ("u a b", {"paths": ["a", "b"]}),
        ("u a -o json b", {"paths": ["a", "b"], "output": "json"}),
        ("-ojson u", {"output": "json"}),
        ("--output=json u", {"output": "json"}),
        ("u -H a -H b -n", {"header": ["a", "b"], "dry_run": True}),
        ("u - -H -", {"paths": ["-"], "header": ["-"]}),
        ("u --rate 0.5 --even 4", {"rate": 0.5, "even": 4}),
        ("u --file a/b", {"file": Path("a/b")}),
        ("-- u -n", {"paths": ["-n"]}),
    ],
)
def test_options_may_be_anywhere(words: str, want: dict[str, Any]) -> None:
    assert parse(COMMAND, words.split()) == DEFAULTS | want


@pytest.mark.parametrize("words", ["-h", "--help", "u --help", "-o xml -h"])
def test_help_needs_no_other_word(words: str) -> None:
    assert parse(COMMAND, words.split()) is None


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ("", "Missing argument 'URL'."),
        ("u --wrong=1", "No such option: --wrong"),
        ("u --out json", "No such option: --out; did you mean --output?"),
        ("u -x", "No such option: -x"),
        ("u -o", "Option '--output' requires an argument."),
        ("u --dry-run=yes", "Option '--dry-run' does not take a value."),
        ("u -nx", "Option '--dry-run' does not take a value."),
        ("u -o xml", "Invalid value for '--output' / '-o': must be one of text, json"),
        ("u --rate 9", "Invalid value for '--rate': 9 is not in the range 0.5<=x<=8."),
        ("u --rate fast", "Invalid value for '--rate': 'fast' is not a valid float."),
        ("u --even 1.5", "Invalid value for '--even': '1.5' is not a valid integer."),
        ("u --even 3", "Invalid value for '--even': must be even"),
    ],
)
def test_a_mistake_is_named(words: str, want: str) -> None:
    with pytest.raises(UsageMistake) as raised:
        parse(COMMAND, words.split())
    assert str(raised.value) == want


def test_surplus_arguments_are_named() -> None:
    def one(name: Annotated[str, Argument("NAME")] = "") -> None:
        """Do nothing."""

    with pytest.raises(UsageMistake, match=r"^Got unexpected extra argument\(s\) \(b c\)$"):
        parse(Command("one", one), ["a", "b", "c"])


def test_usage_shows_what_is_optional_and_what_repeats() -> None:
    assert COMMAND.usage == "nothing [OPTIONS] URL [PATH]..."

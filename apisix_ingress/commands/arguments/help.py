"""The help pages: usage, description, examples as they are typed, arguments and options, commands in groups."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from apisix_ingress.commands.arguments.parameters import Parameter
from apisix_ingress.commands.arguments.parser import Command

EXAMPLES = "Examples:\n"
"""The line before the examples in the docstring of a command; each example is one line."""

WIDTH = 78
_COLUMN = 30
"""Maximum width of the names in a list; the description of a longer one begins on the next line."""

_HELP_ROW = ("-h, --help", "Show this message and exit.")


def examples_of(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of a help page without its examples, and the examples."""
    rest, _, examples = text.partition(EXAMPLES)
    return rest.strip(), tuple(line.strip() for line in examples.splitlines() if line.strip())


def command_help(program: str, command: Command) -> Iterator[str]:
    """Yield the lines of a command's help page."""
    text, examples = examples_of(inspect.getdoc(command.function) or "")
    yield from textwrap.wrap(f"Usage: {program} {command.usage}", WIDTH)
    yield from _paragraphs(text)
    if examples:
        yield from ("", "Examples:", *(f"  {line}" for line in examples))
    yield from _rows("Arguments", [(each.names[0], _text(each)) for each in command.arguments])
    yield from _rows("Options", [*((_names(each), _text(each)) for each in command.options), _HELP_ROW])


def program_help(
    program: str, text: str, options: Sequence[tuple[str, str]], groups: Mapping[str, Sequence[tuple[str, str]]]
) -> Iterator[str]:
    """Yield the lines of the program's help page: each group of commands with their summaries."""
    yield f"Usage: {program} [OPTIONS] COMMAND [ARGS]..."
    yield from _paragraphs(text)
    yield from _rows("Options", [*options, _HELP_ROW])
    for heading, commands in groups.items():
        yield from _rows(heading, commands)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield ""
        yield from textwrap.wrap(paragraph, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _names(option: Parameter) -> str:
    names = ", ".join(sorted(option.names, key=len))
    metavar = option.declared.metavar or ("" if option.is_flag else option.type.__name__.upper())
    return f"{names} {metavar}".rstrip()


def _text(parameter: Parameter) -> str:
    has_default = parameter.default not in (None, False, "") and not parameter.is_required
    notes = [f"default: {parameter.default}"] if has_default else []
    notes += [parameter.limits] if parameter.limits else []
    notes += ["required"] if parameter.is_required else []
    return f"{parameter.declared.help}  [{'; '.join(notes)}]" if notes else parameter.declared.help


def _rows(heading: str, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    if not rows:
        return
    yield from ("", f"{heading}:")
    width = min(max(len(name) for name, _ in rows), _COLUMN) + 2
    for name, text in rows:
        first, *more = textwrap.wrap(text, WIDTH - 2 - width) or [""]
        if len(name) + 2 > width:
            yield f"  {name}"
            name = ""
        yield f"  {name:<{width}}{first}".rstrip()
        yield from (f"{'':<{width + 2}}{line}" for line in more)

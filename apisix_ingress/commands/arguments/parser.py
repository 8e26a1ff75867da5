"""Parses the arguments of a command with argparse, with messages that name the option and the mistake."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from apisix_ingress.commands.arguments.parameters import Argument, BadParameter, Parameter, parameters_of
from apisix_ingress.model.formats.near_words import did_you_mean

HELP_NAMES = ("-h", "--help")
_USAGE_STATUS = 2


@dataclass(frozen=True)
class Command:
    """A command: its name, and the function whose docstring is its help."""

    name: str
    function: Callable[..., object]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arguments and options, in the order of help."""
        return parameters_of(self.function)

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The positional arguments."""
        return tuple(each for each in self.parameters if isinstance(each.declared, Argument))

    @property
    def options(self) -> tuple[Parameter, ...]:
        """The options."""
        return tuple(each for each in self.parameters if not isinstance(each.declared, Argument))

    @property
    def usage(self) -> str:
        """The command and its arguments, as a usage line shows them."""
        return " ".join((self.name, "[OPTIONS]", *map(_piece, self.arguments)))


class UsageMistake(Exception):
    """The command line cannot be parsed; the message gives the reason."""


def parse(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """Return the value of each parameter, or None if help was requested.

    Raises:
        UsageMistake: The command line cannot be parsed.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(*HELP_NAMES, action="store_true", dest=_HELP)
    for each in command.options:
        _add(parser, each)
    end = words.index(_END) if _END in words else len(words)
    try:
        found, others = parser.parse_known_args(list(words[:end]))
    except argparse.ArgumentError as error:
        raise UsageMistake(_misused(error)) from None
    given = vars(found)
    if given.pop(_HELP):
        return None
    unknown = [word for word in others if word.startswith("-") and word != "-"]
    if unknown:
        raise UsageMistake(_unknown_option(unknown[0].partition("=")[0], command))
    given |= _positional(command, [*others, *words[end + 1 :]])
    return {each.name: _value(each, given[each.name]) for each in command.parameters}


def end_with(mistake: UsageMistake, program: str, command: Command | None = None) -> NoReturn:
    """End the program with a usage error: how to call the command, and the mistake."""
    usage, called = (f"{program} [OPTIONS] COMMAND [ARGS]...", program)
    if command is not None:
        usage, called = f"{program} {command.usage}", f"{program} {command.name}"
    print(f"Usage: {usage}\nTry '{called} -h' for help.\n\nError: {mistake}", file=sys.stderr)
    raise SystemExit(_USAGE_STATUS)


_END = "--"
"""Ends the options."""

_HELP = "show help"
"""The destination of -h; no parameter of a function has this name."""


def _piece(argument: Parameter) -> str:
    metavar = argument.names[0] if argument.is_required else f"[{argument.names[0]}]"
    return f"{metavar}..." if argument.is_list else metavar


def _add(parser: argparse.ArgumentParser, option: Parameter) -> None:
    if option.is_flag:
        parser.add_argument(*option.names, dest=option.name, action="store_true")
    else:
        parser.add_argument(*option.names, dest=option.name, action="append" if option.is_list else "store")


def _unknown_option(name: str, command: Command) -> str:
    advice = did_you_mean(name, (each for option in command.options for each in option.names))
    return f"No such option: {name}" + (f"; {advice}" if advice else "")


def _misused(error: argparse.ArgumentError) -> str:
    """Return the message about an option that lacks its value, or has one although it is a flag."""
    name = next(each for each in (error.argument_name or "").split("/") if each.startswith("--"))
    return f"Option '{name}' " + ("requires an argument." if "expected" in str(error) else "does not take a value.")


def _positional(command: Command, words: Sequence[str]) -> dict[str, Any]:
    """Return the words of each argument; only the last argument of a command may be a list."""
    found: dict[str, Any] = {}
    rest = list(words)
    for each in command.arguments:
        if each.is_list:
            found[each.name], rest = rest, []
        else:
            found[each.name] = rest.pop(0) if rest else None
    if rest:
        raise UsageMistake(f"Got unexpected extra argument(s) ({' '.join(rest)})")
    return found


def _value(parameter: Parameter, given: Any) -> Any:
    """Return the value of a parameter, or its default."""
    if given is None or given == []:
        if parameter.is_required:
            raise UsageMistake(f"Missing argument '{parameter.names[0]}'.")
        return parameter.default
    if parameter.is_flag:
        return given
    try:
        return [parameter.value_of(text) for text in given] if parameter.is_list else parameter.value_of(given)
    except BadParameter as error:
        names = " / ".join(f"'{name}'" for name in parameter.names)
        raise UsageMistake(f"Invalid value for {names}: {error}") from None

"""What commands declare: options and arguments, as annotations of the parameters of a function; checks their values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from apisix_ingress.errors import UsageError


class BadParameter(UsageError):
    """A check rejected the value of a parameter; the message gives the reason."""


Complete = Callable[[Sequence[str]], Iterable[str]]
"""Returns the values that shells offer, given the words of the command before the value."""


def no_words(before: Sequence[str]) -> Iterable[str]:
    """Offer nothing."""
    return ()


class Option:
    """An option; without names, it is called as the function's parameter."""

    def __init__(
        self,
        *names: str,
        metavar: str = "",
        help: str = "",
        check: Callable[[str], object] | None = None,
        words: Sequence[str] = (),
        limits: tuple[float | None, float | None] = (None, None),
        complete: Complete = no_words,
    ) -> None:
        """Declare an option.

        Args:
            names: The long name first, e.g. `--output`, `-o`.
            metavar: Stands for the value in help.
            help: What it is.
            check: Raises `BadParameter` for a value that is not accepted.
            words: The only values that are accepted.
            limits: The smallest and the largest accepted number.
            complete: What shells offer; by default `words`.
        """
        self.names, self.metavar, self.help = names, metavar, help
        self.check, self.words, self.limits = check, tuple(words), limits
        self.complete: Complete = (lambda before: self.words) if self.words else complete


@dataclass(frozen=True)
class Argument:
    """A positional argument."""

    metavar: str
    help: str = ""
    complete: Complete = no_words


@dataclass(frozen=True)
class Parameter:
    """A parameter of a command: its declaration, type and default."""

    name: str
    declared: Option | Argument
    type: type
    is_list: bool
    default: Any

    @property
    def is_flag(self) -> bool:
        """Whether it is an option without a value."""
        return self.type is bool

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of an option, or the metavar of an argument."""
        if isinstance(self.declared, Argument):
            return (self.declared.metavar,)
        return self.declared.names or (f"--{self.name.replace('_', '-')}",)

    @property
    def limits(self) -> str:
        """The limits of a number as text, or an empty string."""
        if isinstance(self.declared, Argument):
            return ""
        least, greatest = self.declared.limits
        low = "" if least is None else f"{least}<=" if greatest is not None else f"x>={least}"
        return low if greatest is None else f"{low}x<={greatest}"

    def value_of(self, text: str) -> Any:
        """Return the value of a text on the command line.

        Raises:
            BadParameter: It is not accepted.
        """
        value = self._converted(text)
        if isinstance(self.declared, Option):
            least, greatest = self.declared.limits
            if (least is not None and value < least) or (greatest is not None and value > greatest):
                raise BadParameter(f"{text} is not in the range {self.limits}.")
            if self.declared.words and text not in self.declared.words:
                raise BadParameter(f"must be one of {', '.join(self.declared.words)}")
            if self.declared.check is not None:
                self.declared.check(text)
        return value

    def _converted(self, text: str) -> Any:
        if self.type in (int, float):
            try:
                return self.type(text)
            except ValueError:
                kind = "integer" if self.type is int else "float"
                raise BadParameter(f"'{text}' is not a valid {kind}.") from None
        return Path(text) if self.type is Path else text


def parameters_of(function: Callable[..., object]) -> tuple[Parameter, ...]:
    """Return the parameters that a function declares."""
    found = inspect.signature(function, eval_str=True).parameters.values()
    return tuple(_parameter(each) for each in found if _declared(each) is not None)


def _declared(parameter: inspect.Parameter) -> Option | Argument | None:
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return next((each for each in metadata if isinstance(each, (Option, Argument))), None)


def _parameter(parameter: inspect.Parameter) -> Parameter:
    declared = _declared(parameter)
    assert declared is not None
    (kind,) = [each for each in _alternatives(parameter.annotation.__origin__) if each is not NoneType]
    is_list = get_origin(kind) is list
    return Parameter(parameter.name, declared, get_args(kind)[0] if is_list else kind, is_list, parameter.default)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return (annotation,) if isinstance(annotation, type) or get_origin(annotation) is list else get_args(annotation)

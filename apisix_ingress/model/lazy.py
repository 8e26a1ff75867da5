"""A property that is computed once: `functools.cached_property` without its lock, which Python 3.12 removes.

That lock is shared by all instances of a class and costs more than most of the values computed here. Without it, two
threads may compute the same value twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """Compute the value at the first access; later accesses find it in the instance."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> T | Self:
        """Return the value and store it in the instance."""
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value

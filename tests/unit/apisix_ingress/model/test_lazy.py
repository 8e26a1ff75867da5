"""A lazy property is computed once per instance."""

from apisix_ingress.model.lazy import lazy


class Square:
    def __init__(self, side: int) -> None:
        self.side = side
        self.computed = 0

    @lazy
    def area(self) -> int:
        """Return the area."""
        self.computed += 1
        return self.side * self.side


def test_value_is_computed_at_the_first_access_only_and_per_instance() -> None:
    one, two = Square(2), Square(3)
    assert (one.computed, one.area, one.area, two.area) == (0, 4, 4, 9)
    assert (one.computed, two.computed) == (1, 1)


def test_class_shows_the_property_with_its_docstring() -> None:
    assert Square.area.__doc__ == "Return the area."

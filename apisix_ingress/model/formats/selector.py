"""Label selectors as Kubernetes writes them in a string: equality based and set based.

Grammar: apimachinery ``labels.Parse``, without the numeric ``>`` and ``<``. Parsing and matching only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from apisix_ingress.model.formats.object_names import SUBDOMAIN
from apisix_ingress.model.formats.patterns import TextPattern, ValuePattern

Operator = Literal["in", "notin", "exists", "!exists"]

_NAME = ValuePattern(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_VALUE = ValuePattern(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_EQUALITY = ValuePattern(r"([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)")
_SET = ValuePattern(r"(?s)(\S+)\s+(in|notin)\s*\((.*)\)", 65_536)
_COMMA_OR_PARENTHESIS = TextPattern("[,()]")


class SelectorError(ValueError):
    """The text is not a label selector; the message quotes the invalid part."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. As in Kubernetes, ``notin`` also holds when the label is absent."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether `labels` fulfil this condition."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!exists":
                return value is None

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!exists":
                return f"!{self.key}"
            case _:
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; none of them selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether `labels` fulfil every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_selector(text: str) -> Selector:
    """Parse ``a=b,c!=d,e in (x,y),f notin (z),g,!h``; an empty text selects everything.

    Raises:
        SelectorError: with the requirement that cannot be read and the reason.
    """
    if not text.strip():
        return Selector()
    return Selector(tuple(_parse_requirement(part.strip()) for part in _split(text)))


def _split(text: str) -> Iterator[str]:
    """Yield the requirements: a comma separates them except in the parentheses of a set."""
    start = 0
    signs = [(found.start, found[0]) for found in _COMMA_OR_PARENTHESIS.finditer(text)]
    is_inside = False
    commas = []
    for place, sign in reversed(signs):
        if sign != ",":
            is_inside = sign == ")"
        elif not is_inside:
            commas.append(place)
    for place in reversed(commas):
        yield text[start:place]
        start = place + 1
    yield text[start:]


def _parse_requirement(part: str) -> Requirement:
    if not part:
        raise SelectorError("empty requirement: a comma stands at an end or twice in a row")
    if found := _SET.fullmatch(part):
        key, operator, values = found.groups()
        return _requirement(part, key, "in" if operator == "in" else "notin", values.split(","))
    if found := _EQUALITY.fullmatch(part):
        key, operator, value = found.groups()
        return _requirement(part, key, "notin" if operator == "!=" else "in", [value])
    if part.startswith("!"):
        return _requirement(part, part[1:].strip(), "!exists", [])
    return _requirement(part, part, "exists", [])


def _requirement(part: str, key: str, operator: Operator, values: list[str]) -> Requirement:
    """Check the label's key and values (apimachinery ``IsQualifiedName``, ``IsValidLabelValue``)."""
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fits(name) or (slash and not SUBDOMAIN.fits(prefix)):
        remedy = "write a=b, a!=b, a in (b,c), a notin (b), a or !a"
        raise SelectorError(f"{part!r}: {key!r} is not a label key; {remedy}")
    stripped = frozenset(value.strip() for value in values)
    for value in stripped:
        if not _VALUE.fits(value):
            remedy = "use at most 63 letters, digits, '-', '_' or '.'"
            raise SelectorError(f"{part!r}: {value!r} is not a label value; {remedy}")
    return Requirement(key, operator, stripped)

"""Generates a page per topic with the full text of the examples; the first comment of each describes it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "examples"
SETTINGS = "# settings: "
"""Beginning of the line with the settings below `kubernetes` that an example needs."""

TOPICS: Mapping[str, str] = {
    "ingress": "Ingress",
    "routes": "Routes",
    "canary": "Canary releases",
    "upstreams": "Upstreams",
    "tls": "TLS",
    "authentication": "Authentication",
    "plugins": "Plugins",
    "stream": "TCP and UDP",
    "gateway-api": "Gateway API",
    "gateway": "Whole gateways",
}
"""Folder → title. `quickstart` belongs to the quick start; `backends` has the objects that other examples reference."""

HOW_TO_TRY = """\
`examples/backends` contains the Services, Pods and Secrets that examples refer to. To see the records of an example:

```console
$ apisix-ingress translate -f examples/backends -f examples/{example}
```
"""


@dataclass(frozen=True)
class Example:
    """A file with the objects of one example."""

    path: Path

    @property
    def name(self) -> str:
        """Topic and file, e.g. `canary/weights`."""
        return f"{self.topic}/{self.path.stem}"

    @property
    def topic(self) -> str:
        """The folder."""
        return self.path.parent.name

    @property
    def title(self) -> str:
        """The file's name as a heading."""
        text = self.path.stem.replace("-", " ")
        return text[:1].upper() + text[1:]

    @cached_property
    def text(self) -> str:
        """The whole file."""
        return self.path.read_text(encoding="utf-8")

    @property
    def says(self) -> str:
        """What it shows: its first comment."""
        return " ".join(line[1:].strip() for line in self._head() if not line.startswith(SETTINGS))

    @property
    def settings(self) -> dict[str, str]:
        """The settings below `kubernetes` that it requires."""
        lines = [line.removeprefix(SETTINGS) for line in self._head() if line.startswith(SETTINGS)]
        return yaml.safe_load(lines[0]) if lines else {}

    @property
    def body(self) -> str:
        """The objects, without the comment."""
        return "\n".join(self.text.splitlines()[len(list(self._head())) :]) + "\n"

    @cached_property
    def objects(self) -> tuple[dict[str, Any], ...]:
        """Its objects."""
        return tuple(yaml.safe_load_all(self.text))

    def _head(self) -> Iterator[str]:
        for line in self.text.splitlines():
            if not line.startswith("#"):
                return
            yield line


def examples() -> tuple[Example, ...]:
    """Return every example, by topic and name."""
    return tuple(Example(path) for topic in TOPICS for path in sorted((FOLDER / topic).glob("*.yaml")))


def of_kind(kind: str) -> list[tuple[str, str]]:
    """Return title and link (from a page of a kind) of the examples that have an object of the kind."""
    return [
        (f"{TOPICS[each.topic]}: {each.title.lower()}", f"../examples/{each.topic}.md#{each.path.stem}")
        for each in examples()
        if any(item["kind"] == kind for item in each.objects)
    ]


def page(topic: str) -> str:
    """Return the page of a topic."""
    found = [each for each in examples() if each.topic == topic]
    head = f"# Examples: {TOPICS[topic]}\n\n{HOW_TO_TRY.format(example=f'{found[0].name}.yaml')}"
    return "\n".join([head, *map(_section, found)])


def _section(example: Example) -> str:
    parts = [f"## {example.title}", example.says]
    if example.settings:
        wanted = ", ".join(f"`kubernetes.{name}: {value}`" for name, value in example.settings.items())
        parts.append(f"This example requires the setting {wanted}.")
    parts.append(f"`examples/{example.name}.yaml`\n\n```yaml\n{example.body}```")
    return "\n\n".join(parts) + "\n"

"""How commands present themselves: usage without braces, examples as they are typed, commands in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

EXAMPLES = "Examples:\n"
"""Begins the examples in the docstring of a command, one per line."""

PLUGIN = "kubectl-"
"""Prefix of the programs that kubectl runs as its plugins."""


def examples_of(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of a help page without its examples, and the examples."""
    rest, _, examples = text.partition(EXAMPLES)
    return rest.strip(), tuple(line.strip() for line in examples.splitlines() if line.strip())


def shown_name(program: str) -> str:
    """Return what users type to run the program with this file name."""
    if not program.startswith(PLUGIN):
        return "apisix-ingress"
    return f"kubectl {program.removeprefix(PLUGIN).replace('_', '-')}"


class HelpCommand(TyperCommand):
    """A command with arguments shown without braces, which users might type, and with examples that never wrap."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the pieces of the usage line."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the description, then the examples line by line."""
        whole = self.help or ""
        text, examples = examples_of(whole)
        try:
            self.help = text
            super().format_help_text(ctx, formatter)
        finally:
            self.help = whole
        if examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in examples))


class HelpGroup(TyperGroup):
    """The program: its commands are listed in groups."""

    sections: Mapping[str, Sequence[str]] = {
        "Manifests, without a cluster": ("lint", "translate", "migrate"),
        "A running cluster and its gateways": ("status", "doctor", "tree", "explain", "diff", "orphans", "wait"),
        "Changes and reports": ("adopt", "verify", "bundle"),
        "The controller": ("run", "check-config", "crds", "version"),
    }

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group of commands with the first sentence of each."""
        for heading, names in self.sections.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, command.get_short_help_str(70)) for name, command in found if command is not None]
            with formatter.section(heading):
                formatter.write_dl(rows)

"""The commands in groups, and the program: it finds the command, parses its options and calls it.

Only the module of the command in use is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from apisix_ingress.commands.arguments.parser import HELP_NAMES, Command, UsageMistake, end_with, parse

_FOLDER = "apisix_ingress.commands"

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Manifests, without a cluster": {
        "lint": "manifests.lint",
        "translate": "manifests.translate",
        "migrate": "manifests.migrate",
    },
    "A running cluster and its gateways": {
        "status": "cluster.status",
        "hosts": "cluster.hosts",
        "certificates": "cluster.certificates",
        "changes": "cluster.changes",
        "dashboard": "cluster.dashboard",
        "doctor": "cluster.doctor",
        "tree": "cluster.tree",
        "explain": "gateways.explain",
        "diff": "gateways.diff",
        "orphans": "gateways.orphans",
        "wait": "cluster.wait",
    },
    "Changes and reports": {
        "adopt": "gateways.adopt",
        "replace-2x": "gateways.replace_2x",
        "verify": "gateways.verify",
        "bundle": "cluster.bundle",
    },
    "The controller": {"run": "run", "check-config": "own", "crds": "own", "version": "own"},
}
"""The commands of each group, with the module of each."""

MODULES: Mapping[str, str] = {name: module for group in GROUPS.values() for name, module in group.items()}

PLUGIN = "kubectl-"
"""Prefix of the programs that kubectl runs as its plugins."""

_INSTALL, _SHOW = "--install-completion", "--show-completion"
_TEXT = (
    "Ingress controller for Kubernetes: Ingress, Gateway API and apisix.apache.org/v2 objects become Apache APISIX"
    " records."
)
_OPTIONS = (
    (_INSTALL, "Install completion for the current shell."),
    (_SHOW, "Show completion for the current shell, to copy it or customize the installation."),
)


def shown_name(program: str) -> str:
    """Return what users type to run the program with this file name."""
    if not program.startswith(PLUGIN):
        return "apisix-ingress"
    return f"kubectl {program.removeprefix(PLUGIN).replace('_', '-')}"


def load(name: str) -> Command:
    """Return a command by its name."""
    module = import_module(f"{_FOLDER}.{MODULES[name]}")
    return Command(name, getattr(module, name.replace("-", "_")))


def commands() -> tuple[Command, ...]:
    """Return every command, sorted by name."""
    return tuple(load(name) for name in sorted(MODULES))


def run_program(words: Sequence[str], program: str) -> None:
    """Run a command.

    Args:
        words: The arguments after the name of the program.
        program: What users type to run it.

    Raises:
        SystemExit: The command ended with an exit status, or the arguments are invalid.
        IngressError: The command failed.
    """
    if "_APISIX_INGRESS_COMPLETE" in os.environ:
        from apisix_ingress.commands.arguments.completion import answer

        _print(answer(os.environ, tuple(MODULES), load))
    elif not words or words[0] in HELP_NAMES:
        _print_help(program)
    elif words[0] in (_INSTALL, _SHOW):
        _complete(words[0], words[1] if len(words) > 1 else "")
    elif words[0] in MODULES:
        _call(load(words[0]), words[1:], program)
    elif words[0].startswith("-"):
        end_with(UsageMistake(f"No such option: {words[0]}"), program)
    else:
        from apisix_ingress.model.formats.near_words import did_you_mean

        advice = did_you_mean(words[0], MODULES)
        end_with(UsageMistake(f"No such command '{words[0]}'." + (f" D{advice[1:]}" if advice else "")), program)


def complete_for_kubectl(words: Sequence[str]) -> None:
    """Print what follows the words after `kubectl apisix-ingress`, for kubectl's completion."""
    from apisix_ingress.commands.arguments.completion import answer_kubectl

    _print(answer_kubectl(words, tuple(MODULES), load))


def _call(command: Command, words: Sequence[str], program: str) -> None:
    try:
        values = parse(command, words)
    except UsageMistake as mistake:
        end_with(mistake, program, command)
    if values is None:
        from apisix_ingress.commands.arguments.help import command_help

        _print(command_help(program, command))
    else:
        command.function(**values)


def _print_help(program: str) -> None:
    from apisix_ingress.commands.arguments.help import program_help

    _print(program_help(program, _TEXT, _OPTIONS, {heading: map(load, names) for heading, names in GROUPS.items()}))


def _complete(option: str, shell: str) -> None:
    """Install or print the completion of a shell, by default the user's."""
    from apisix_ingress.commands.arguments.completion import SCRIPTS, install, shell_of
    from apisix_ingress.commands.common.output import fail

    name = shell or shell_of(os.environ)
    if name not in SCRIPTS:
        fail(f"{option} {name}".rstrip() + f": must be one of {', '.join(SCRIPTS)}")
    if option == _SHOW:
        print(SCRIPTS[name], end="")
    else:
        print(f"{name} completion installed in {install(name, Path.home())}\nIt takes effect in new shells.")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)

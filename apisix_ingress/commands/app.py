"""The commands in groups, and the program: it finds the command, parses its options and calls it.

Only the module of the command in use is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from apisix_ingress.commands.arguments.completion import SCRIPTS, answer, answer_kubectl, shell_of
from apisix_ingress.commands.arguments.help import command_help, program_help
from apisix_ingress.commands.arguments.parser import HELP_NAMES, Command, UsageMistake, end_with, parse
from apisix_ingress.errors import UsageError
from apisix_ingress.model.formats.near_words import did_you_mean

_FOLDER = "apisix_ingress.commands"

GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Manifests, without a cluster": {
        "lint": ("manifests.lint", "Find mistakes in manifests, by code, file and line."),
        "translate": ("manifests.translate", "Print the records of manifests."),
        "migrate": ("manifests.migrate", "Report how Ingresses of ingress-nginx would be served."),
    },
    "A running cluster and its gateways": {
        "status": ("cluster.status", "Show gateways, objects that need attention, and the leader."),
        "hosts": ("cluster.hosts", "List hosts: state, since when, backends, certificate, objects, cause."),
        "certificates": (
            "cluster.certificates",
            "List certificates: validity, hosts, issuer, Secret; missing ones first.",
        ),
        "changes": ("cluster.changes", "List what changed in the gateways in the last hour."),
        "dashboard": ("cluster.dashboard", "Open the status page of the leader in a browser."),
        "doctor": ("cluster.doctor", "Check permissions, CRDs, clocks, keys, plugins and more."),
        "tree": ("cluster.tree", "Draw hosts, routes, upstreams and pods with their owners."),
        "explain": ("gateways.explain", "Show what response a request gets, and why."),
        "diff": ("gateways.diff", "Show what a sync would write to each gateway cluster, or to the one in --cluster."),
        "orphans": ("gateways.orphans", "List records without an object, and dangling references."),
        "wait": ("cluster.wait", "Wait until an object is in effect in every gateway."),
    },
    "Changes and reports": {
        "adopt": ("gateways.adopt", "Take over unmanaged records."),
        "replace-2x": ("gateways.replace_2x", "Replace the records of apisix-ingress-controller 2.x."),
        "verify": ("gateways.verify", "Compare the responses of two gateways."),
        "bundle": ("cluster.bundle", "Write an archive for a bug report, without secrets."),
    },
    "The controller": {
        "run": ("run", "Run the controller until SIGTERM, SIGINT or SIGHUP."),
        "check-config": ("own", "Validate a configuration file, including the environment."),
        "crds": ("own", "Print the CustomResourceDefinitions."),
        "version": ("own", "Print the version."),
    },
}
"""The commands of each group: name → module and summary. Help shows the summary without importing the module."""

MODULES: Mapping[str, str] = {name: module for group in GROUPS.values() for name, (module, _) in group.items()}

PLUGIN = "kubectl-"
"""Prefix of the programs that kubectl runs as its plugins."""

_COMPLETION = "--show-completion"
_TEXT = (
    "Ingress controller for Kubernetes: Ingress, Gateway API and apisix.apache.org/v2 objects become Apache APISIX"
    " records."
)
_OPTIONS = ((_COMPLETION, "Print the completion script of the current shell, or of the one that follows."),)
_SUMMARIES = {heading: [(name, summary) for name, (_, summary) in rows.items()] for heading, rows in GROUPS.items()}


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
        _print(answer(os.environ, tuple(MODULES), load))
    elif not words or words[0] in HELP_NAMES:
        _print_help(program)
    elif words[0] == _COMPLETION:
        _print_completion(words[1] if len(words) > 1 else shell_of(os.environ))
    elif words[0] in MODULES:
        _call(load(words[0]), words[1:], program)
    elif words[0].startswith("-"):
        end_with(UsageMistake(f"No such option: {words[0]}"), program)
    else:
        advice = did_you_mean(words[0], MODULES)
        end_with(UsageMistake(f"No such command '{words[0]}'." + (f" D{advice[1:]}" if advice else "")), program)


def complete_for_kubectl(words: Sequence[str]) -> None:
    """Print what follows the words after `kubectl apisix-ingress`, for kubectl's completion."""
    _print(answer_kubectl(words, tuple(MODULES), load))


def _call(command: Command, words: Sequence[str], program: str) -> None:
    try:
        values = parse(command, words)
    except UsageMistake as mistake:
        end_with(mistake, program, command)
    if values is None:
        _print(command_help(program, command))
    else:
        command.function(**values)


def _print_help(program: str) -> None:
    _print(program_help(program, _TEXT, _OPTIONS, _SUMMARIES))


def _print_completion(shell: str) -> None:
    if shell not in SCRIPTS:
        raise UsageError(f"{_COMPLETION} {shell}".rstrip() + f": must be one of {', '.join(SCRIPTS)}")
    print(SCRIPTS[shell], end="")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)

"""The command line: parses arguments, calls the program, prints. Every import that costs time is inside a command."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from apisix_ingress.commands.adopt import adopt
from apisix_ingress.commands.bundle import bundle
from apisix_ingress.commands.diff import diff
from apisix_ingress.commands.doctor import doctor
from apisix_ingress.commands.explain import explain
from apisix_ingress.commands.lint import lint
from apisix_ingress.commands.orphans import orphans
from apisix_ingress.commands.shared import (
    AdminKeyOption,
    AdminUrlOption,
    ConfigOption,
    Output,
    OutputOption,
    PlainUsage,
    Report,
    ReportOption,
    fail,
    print_json,
    settings_of,
    tell,
)
from apisix_ingress.commands.status import status
from apisix_ingress.commands.translate import translate
from apisix_ingress.commands.tree import tree
from apisix_ingress.commands.wait import wait
from apisix_ingress.streams import open_streams

app = typer.Typer(
    name="apisix-ingress",
    help="Ingress controller for Kubernetes: Ingress and apisix.apache.org/v2 objects become Apache APISIX records.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.command()(lint)
app.command(cls=PlainUsage)(explain)
app.command()(diff)
app.command()(orphans)
app.command(cls=PlainUsage)(adopt)
app.command()(status)
app.command(cls=PlainUsage)(tree)
app.command(cls=PlainUsage)(wait)
app.command()(doctor)
app.command()(bundle)


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What only a write ends with; commands that write a file tell of it themselves."""


def main() -> None:
    """Run the command line; a wrong configuration, or output without room, ends it with one line and exit code 2."""
    open_streams()
    try:
        _run_command()
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _fail_output(error)
    finally:
        _flush()


def _flush() -> None:
    """Write what is left: at the exit of the interpreter it would be too late to tell of a failure."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return  # whoever read it has enough
    except OSError as error:
        _fail_output(error)


def _fail_output(error: OSError) -> NoReturn:
    # What is left in the buffer goes nowhere, or the interpreter would try once more at its exit, and complain.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    fail(f"standard output: {error.strerror}")


def _run_command() -> None:
    from apisix_ingress.errors import IngressError

    if sys.argv[1:] in (["version"], ["--version"]):  # the second is what many try first
        # typer imports pydantic before it calls any command: a quarter of a second for one line.
        return version()
    try:
        app(standalone_mode=True)
    except IngressError as error:
        fail(str(error))


@app.command()
def run(
    config: ConfigOption = None,
    kubeconfig: Annotated[str | None, typer.Option(help="Kubeconfig file.", show_default=False)] = None,
    admin_url: AdminUrlOption = None,
    admin_key: AdminKeyOption = None,
    manifests: Annotated[
        str | None,
        typer.Option(help="File or directory to follow instead of an API server.", show_default=False),
    ] = None,
    http_listen: Annotated[str | None, typer.Option(help="Address of health and metrics.", show_default=False)] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.", show_default=False)] = None,
    log_format: Annotated[str | None, typer.Option(help="auto, console or json.", show_default=False)] = None,
) -> None:
    """Run the controller until SIGTERM or SIGINT.

    Exit 0 once it was told to stop, 2 if it can't start.

    Example: apisix-ingress run --kubeconfig ~/.kube/config --admin-url http://127.0.0.1:9180/apisix/admin
    """
    from apisix_ingress.lean import lean_imports

    with lean_imports():
        from apisix_ingress.app import run_controller

    overrides = {
        "kubernetes": {"kubeconfig": kubeconfig},
        "http": {"listen": http_listen},
        "log": {"level": log_level, "format": log_format},
        "clusters": {0: {"admin_url": admin_url, "admin_key": admin_key}},
    }
    if manifests == "":
        fail("--manifests '': no such file or folder")  # as a path it would be the current folder
    raise SystemExit(run_controller(settings_of(config, overrides), Path(manifests) if manifests else None))


app.command()(translate)


@app.command()
def crds(output: OutputOption = Output.yaml) -> None:
    """Print the CustomResourceDefinitions.

    Exit 0 always.

    Example: apisix-ingress crds | kubectl apply --server-side -f -
    """
    import crds as definitions

    if output == Output.json:
        print_json({"apiVersion": "v1", "kind": "List", "items": definitions.manifests()})
        return
    import yaml

    yaml.safe_dump_all(definitions.manifests(), sys.stdout, sort_keys=False, explicit_start=True, width=1000)


@app.command("check-config", cls=PlainUsage)
def check_config(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Configuration file (YAML).")],
    output: ReportOption = Report.text,
) -> None:
    """Check a configuration file, the environment over it.

    Exit 0 if the controller would take it, 2 if not.

    Example: apisix-ingress check-config config.yaml
    """
    from apisix_ingress.cautions import cautions

    settings = settings_of(file)
    found, names = list(cautions(settings)), [cluster.name for cluster in settings.clusters]
    if output == Report.json:
        print_json({"file": str(file), "clusters": names, "cautions": found})
        return
    tell(f"warning: {line}" for line in found)
    print(f"{file}: ok, gateway clusters: {', '.join(names)}")


@app.command()
def version(output: ReportOption = Report.text) -> None:
    """Print the version.

    Exit 0 always.

    Example: apisix-ingress version
    """
    from apisix_ingress import __version__

    if output == Report.json:
        print_json({"version": __version__})
    else:
        print(__version__)

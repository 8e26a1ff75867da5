"""The command line as users see it: help, standard streams, paths, exit status; and the small commands."""

import inspect
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import crds
from apisix_ingress import __version__
from apisix_ingress.commands.app import MODULES, load
from apisix_ingress.commands.arguments.help import examples_of
from tests.flow.commandline import BOUND, COMMAND, PROJECT, WEB, Cli, environment

COMMANDS = tuple(sorted(MODULES))
"""Every command."""


def test_help_names_every_command(cli: Cli) -> None:
    got = cli("--help")
    assert (got.returncode, got.stderr) == (0, "")
    assert [name for name in COMMANDS if f"  {name} " not in got.stdout] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(cli: Cli, command: str) -> None:
    got = cli.inside(command, "--help")
    assert (got.returncode, got.stderr) == (0, "")
    examples = got.stdout.partition("\nExamples:\n")[2].partition("\n\n")[0].splitlines()
    assert examples
    assert all(line.startswith(f"  apisix-ingress {command}") for line in examples)


def test_help_of_the_program_has_the_first_sentence_of_each_command(cli: Cli) -> None:
    got = " ".join(cli.inside("--help").stdout.split())
    summaries = {name: (inspect.getdoc(load(name).function) or "").partition("\n")[0] for name in COMMANDS}
    assert [name for name, summary in summaries.items() if f"{name} {summary}" not in got] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_help_do_not_wrap(command: str) -> None:
    _, examples = examples_of(inspect.getdoc(load(command).function) or "")
    assert examples
    assert [line for line in examples if len(line) > 78] == []


def test_program_is_a_plugin_of_kubectl(cli: Cli) -> None:
    scripts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-apisix_ingress"] == scripts["apisix-ingress"]
    plugin = cli.folder / "kubectl-apisix_ingress"
    plugin.write_text(f"#!{sys.executable}\nfrom apisix_ingress.cli import main\nmain()\n")
    plugin.chmod(0o755)
    got = subprocess.run([plugin, "status", "--help"], capture_output=True, text=True, timeout=BOUND, check=False)
    assert got.stdout.startswith("Usage: kubectl apisix-ingress status [OPTIONS]")
    assert scripts["kubectl_complete-apisix_ingress"] == "apisix_ingress.cli:complete_kubectl"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_terminal(cli: Cli, command: str) -> None:
    usage, *lines = cli.inside(*filter(None, [command]), "--help").stdout.splitlines()
    assert "{" not in usage
    assert [line for line in (usage, *lines) if len(line) > 80] == []
    assert [line for line in lines if line.endswith("...")] == []


@pytest.mark.parametrize("word", ["version", "--version"])
def test_version_prints_only_the_version(cli: Cli, word: str) -> None:
    got = cli(word)
    assert (got.returncode, got.stdout, got.stderr) == (0, f"{__version__}\n", "")


@pytest.mark.parametrize("command", ["--help", "version"])
def test_simple_output_imports_no_slow_module(cli: Cli, command: str) -> None:
    got = cli(command, python=["-X", "importtime"])
    imported = {line.rpartition("|")[2].strip() for line in got.stderr.splitlines()}
    assert "apisix_ingress.cli" in imported
    assert imported & {"aiohttp", "cryptography", "httpx", "kubernetes", "pydantic", "structlog", "yaml"} == set()


def test_unknown_command_is_a_usage_error(cli: Cli) -> None:
    got = cli("nosuch")
    assert (got.returncode, got.stdout) == (2, "")
    assert "No such command 'nosuch'" in got.stderr


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ("lnit", "No such command 'lnit'. Did you mean lint?"),
        ("hotss", "No such command 'hotss'. Did you mean hosts?"),
        ("status --kidn Ingress", "No such option: --kidn; did you mean --kind?"),
        ("tree ApisixRout shop/web", "unknown kind 'ApisixRout'; did you mean ApisixRoute?"),
        ("tree wep.example.org -f web.yaml", "no routes for wep.example.org; did you mean web.example.org?"),
    ],
)
async def test_a_mistyped_word_is_reported_with_the_most_similar_one(cli: Cli, words: str, want: str) -> None:
    cli.write("web.yaml", WEB)
    assert want in (await cli.beside(*words.split())).stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "version",
        "crds",
        "crds -o json",
        "lint web.yaml",
        "translate web.yaml",
        "explain -f web.yaml http://web.example.org/",
    ],
)
def test_a_full_output_device_is_reported_in_one_line(cli: Cli, command: str, unbuffered: str) -> None:
    cli.write("web.yaml", WEB)
    with Path("/dev/full").open("w") as full:
        got = subprocess.run(
            [*COMMAND, *command.split()],
            cwd=cli.folder,
            env={**environment(cli.folder), "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=BOUND,
            check=False,
        )
    assert (got.returncode, got.stderr) == (2, "error: standard output: No space left on device\n")


@pytest.mark.parametrize(
    "command",
    [
        "translate",
        "lint",
        "lint -o sarif",
        "diff",
        "orphans -o json",
        "adopt routes/1",
        "explain http://web.example.org/",
        "tree",
    ],
)
async def test_a_missing_path_ends_a_command(cli: Cli, command: str) -> None:
    cli.write("web.yaml", WEB)
    got = await cli.beside(*command.split(), "-f", "web.yaml", "-f", "nowhere", "-f", "", "-f", "web.yaml/below")
    reported = ["error: nowhere: no such file or folder", "error: '': no such file or folder"]
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr.splitlines() == [*reported, "error: web.yaml/below: no such file or folder"]


@pytest.mark.parametrize("command", ["translate", "lint", "diff --admin-url http://127.0.0.1:1"])
async def test_an_inaccessible_path_is_named(cli: Cli, command: str) -> None:
    (cli.folder / "link.yaml").symlink_to("nowhere")
    long = "x" * 300
    got = await cli.beside(*command.split(), "-f", ".", "-f", long)
    said = got.stdout + got.stderr
    assert got.returncode == (2 if command.startswith("diff") else 1)
    for path, why in ((long, "File name too long"), ("link.yaml", "No such file or directory")):
        assert [line for line in said.splitlines() if path in line and line.endswith(f"cannot be read: {why}")], said


@pytest.mark.parametrize("command", ["translate", "lint --allow-empty", "explain http://web.example.org/", "tree"])
async def test_a_path_without_an_object_is_reported_beside_the_report(cli: Cli, command: str) -> None:
    (cli.folder / "empty").mkdir()
    got = await cli.beside(*command.split(), "-f", cli.write("web.yaml", WEB), "-f", "empty")
    assert (got.returncode, got.stderr) == (0, "warning: no objects in empty\n")


@pytest.mark.parametrize(
    ("arguments", "status", "want"),
    [
        (["web.example.org"], 0, ""),
        (["b.example.org"], 1, "no routes for b.example.org; did you mean web.example.org?\n"),
        (["ApisixRoute", "default/b"], 1, "no routes for ApisixRoute default/b\n"),
        (["--dot", "b.example.org"], 1, "no routes for b.example.org; did you mean web.example.org?\n"),
        (["ar"], 2, "error: ar is a kind: add the name of the object, as NAMESPACE/NAME\n"),
        (["acc"], 2, "error: acc is a kind: add the name of the object\n"),
    ],
)
async def test_tree_reports_that_there_is_nothing_to_draw(
    cli: Cli, arguments: list[str], status: int, want: str
) -> None:
    got = await cli.beside("tree", "-f", cli.write("web.yaml", WEB), *arguments)
    assert (got.returncode, got.stderr) == (status, want)


async def test_an_empty_tree_is_reported(cli: Cli) -> None:
    (cli.folder / "empty").mkdir()
    got = await cli.beside("tree", "-f", "empty", "-o", "json")
    assert (got.returncode, json.loads(got.stdout)) == (1, {"hosts": [], "streams": []})
    assert got.stderr == "warning: no objects in empty\nno routes\n"


def without(cli: Cli, stream: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a standard stream closed, as `>&-` does."""
    return subprocess.run(
        ["sh", "-c", f"exec {' '.join((*COMMAND, *arguments))} {stream}"],
        cwd=cli.folder,
        env=environment(cli.folder),
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    ["version", "crds", "translate web.yaml", "lint web.yaml", "explain -f web.yaml http://web.example.org/", "doctor"],
)
def test_standard_output_that_is_closed_changes_no_exit_status(cli: Cli, command: str) -> None:
    cli.write("web.yaml", WEB)
    got = without(cli, ">&-", *command.split())
    assert (got.returncode, got.stdout, got.stderr) == (int(command == "doctor"), "", "")


@pytest.mark.parametrize("command", ["version", "lint web.yaml", "lint nowhere"])
def test_standard_error_that_is_closed_changes_no_exit_status(cli: Cli, command: str) -> None:
    cli.write("web.yaml", WEB)
    want = cli(*command.split())
    got = without(cli, "2>&-", *command.split())
    assert (got.returncode, got.stdout, got.stderr) == (want.returncode, want.stdout, "")


def test_standard_input_that_is_closed_is_empty(cli: Cli) -> None:
    got = without(cli, "<&-", "lint", "-")
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr == "error: no manifests in standard input: correct the path, or add --allow-empty\n"


def test_crds_prints_what_can_be_applied(cli: Cli) -> None:
    got = cli("crds")
    assert (got.returncode, got.stderr) == (0, "")
    assert list(yaml.safe_load_all(got.stdout)) == crds.manifests()


def test_check_config_names_the_gateway_clusters(cli: Cli) -> None:
    cli.write("config.yaml", "clusters: [{name: default}, {name: edge, admin_url: https://edge.example.org/a}]\n")
    got = cli("check-config", "config.yaml")
    assert (got.returncode, got.stderr) == (0, "")
    assert got.stdout == "config.yaml: ok, gateway clusters: default, edge\n"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("kubernetes: {ingres_class: x}", "kubernetes.ingres_class: unknown key, did you mean ingress_class?"),
        ("clusters: [{sync: {timout: 1s}}]", "clusters[0].sync.timout: unknown key, did you mean timeout?"),
        ("http: {listen: 5}", "http.listen: must be a string: write ':5' in quotes"),
        ("clusters: [{sync: {timeout: x}}]", "clusters[0].sync.timeout: 'x' is not a duration"),
        ("log: 3", "log: must be a mapping"),
        ("log: [", "config.yaml: line 2, column 1: "),
    ],
)
def test_check_config_says_in_one_line_what_is_wrong(cli: Cli, text: str, want: str) -> None:
    got = cli("check-config", cli.write("config.yaml", text))
    assert (got.returncode, got.stdout) == (2, "")
    assert (got.stderr.startswith(f"error: {want}"), got.stderr.count("\n")) == (True, 1), got.stderr


def test_check_config_reports_unwise_settings(cli: Cli) -> None:
    got = cli(
        "check-config",
        cli.write(
            "config.yaml", "preset: multi-tenant\nkubernetes: {code_plugins: allow, internal_addresses: [10.9.0.0/16]}"
        ),
    )
    assert (got.returncode, got.stderr.partition(":")[0], got.stderr.count("\n")) == (0, "warning", 1)
    assert "kubernetes.code_plugins: allow disables a protection of preset multi-tenant" in got.stderr

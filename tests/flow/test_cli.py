"""The command line as its users meet it: a process, its output, its exit status."""

import asyncio
import json
import os
import pty
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
import yaml

import crds
from apisix_ingress import __version__
from apisix_ingress.cli import app
from tests.fakes.adminapi import FakeAdminApi
from tests.flow.commandline import BOUND, COMMAND, QUICKSTART, Cli, environment

COMMANDS = tuple(
    sorted(str(command.name or getattr(command.callback, "__name__", "")) for command in app.registered_commands)
)
"""Every command that there is."""
KINDS = [
    "consumers",
    "global_rules",
    "plugin_configs",
    "plugin_metadata",
    "routes",
    "ssls",
    "stream_routes",
    "upstreams",
]
WEB = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.244.1.1], conditions: {ready: true}}]
---
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: {name: web}
spec:
  http:
    - name: all
      match: {hosts: [web.example.org], paths: [/*]}
      backends: [{serviceName: web, servicePort: 80}]
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def test_help_names_every_command(cli: Cli) -> None:
    got = cli("--help")
    assert (got.returncode, got.stderr) == (0, "")
    assert [name for name in COMMANDS if f"  {name} " not in got.stdout] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(cli: Cli, command: str) -> None:
    got = cli(command, "--help")
    assert (got.returncode, got.stderr) == (0, "")
    assert f"Example: apisix-ingress {command}" in got.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_terminal(cli: Cli, command: str) -> None:
    usage, *lines = cli(*filter(None, [command]), "--help").stdout.splitlines()
    assert "{" not in usage
    assert [line for line in (usage, *lines) if len(line) > 80] == []
    assert [line for line in lines if line.endswith("...")] == []


@pytest.mark.parametrize("word", ["version", "--version"])
def test_version_prints_the_version_alone(cli: Cli, word: str) -> None:
    got = cli(word)
    assert (got.returncode, got.stdout, got.stderr) == (0, f"{__version__}\n", "")


@pytest.mark.parametrize("command", ["--help", "version"])
def test_nothing_slow_is_imported_for_a_line_of_text(cli: Cli, command: str) -> None:
    got = cli(command, python=["-X", "importtime"])
    imported = {line.rpartition("|")[2].strip() for line in got.stderr.splitlines()}
    assert "apisix_ingress.cli" in imported
    assert imported & {"aiohttp", "cryptography", "httpx", "kubernetes", "pydantic", "structlog", "yaml"} == set()


def test_unknown_command_is_a_usage_error(cli: Cli) -> None:
    got = cli("nosuch")
    assert (got.returncode, got.stdout) == (2, "")
    assert "No such command 'nosuch'" in got.stderr


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
def test_output_that_finds_no_room_is_told_in_one_line(cli: Cli, command: str, unbuffered: str) -> None:
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


# translate


def test_translate_prints_the_document(cli: Cli) -> None:
    got = cli("translate", "-f", cli.write("web.yaml", WEB), "-o", "json")
    assert (got.returncode, got.stderr) == (0, "")
    shared = {
        "desc": "Created by apisix-ingress-controller, DO NOT modify it manually",
        "labels": {"managed-by": "apisix-ingress-controller"},
    }
    route = {
        "id": "aada6d61",
        "name": "default_web_all",
        **shared,
        "uris": ["/*"],
        "hosts": ["web.example.org"],
        "upstream_id": "d6efb5e6",
    }
    upstream = {
        "id": "d6efb5e6",
        "name": "default_web_80",
        **shared,
        "type": "roundrobin",
        "scheme": "http",
        "nodes": [{"host": "10.244.1.1", "port": 8080, "weight": 100}],
    }
    records = {kind: [] for kind in KINDS} | {"routes": [route], "upstreams": [upstream]}
    assert json.loads(got.stdout) == {"records": records, "problems": []}


def test_translate_sorts_every_list_by_id(cli: Cli) -> None:
    got = json.loads(cli("translate", "-f", str(QUICKSTART), "-o", "json").stdout)
    ids = {kind: [record["id"] for record in records] for kind, records in got["records"].items()}
    assert list(ids) == KINDS
    assert (len(ids["routes"]), len(ids["upstreams"])) == (3, 3)
    assert {kind: sorted(found) for kind, found in ids.items()} == ids


def test_translate_reads_files_folders_and_standard_input_alike(cli: Cli) -> None:
    want = cli("translate", "-f", cli.write("web.yaml", WEB), "-o", "json")
    assert cli("translate", "-f", "-", "-o", "json", stdin=WEB).stdout == want.stdout
    (cli.folder / "folder" / "below").mkdir(parents=True)
    documents = WEB.split("---")
    cli.write("folder/one.yaml", documents[0])
    cli.write("folder/below/two.yml", documents[1])
    got = cli("translate", "-f", "folder", "-f", "-", "-o", "json", stdin=documents[2])
    assert (got.returncode, got.stdout) == (0, want.stdout)


def test_translate_prints_yaml_with_the_same_content(cli: Cli) -> None:
    want = json.loads(cli("translate", "-f", str(QUICKSTART), "-o", "json").stdout)
    got = cli("translate", "-f", str(QUICKSTART))
    assert (got.returncode, yaml.safe_load(got.stdout)) == (0, want)


def test_translate_exits_with_1_if_there_is_a_problem(cli: Cli) -> None:
    route = WEB.split("---")[2]
    got = cli("translate", "-f", cli.write("route.yaml", route), "-o", "json")
    message = "Service default/web does not exist; create it or correct the name"
    path = "spec.http[0].backends[0].serviceName"
    want = {"object": "ApisixRoute default/web", "code": "ServiceNotFound", "path": path, "message": message}
    assert got.returncode == 1
    assert json.loads(got.stdout) == {"records": {kind: [] for kind in KINDS}, "problems": [want]}
    assert got.stderr == f"error: ApisixRoute default/web: {path}: {message}\n"


UNREADABLE = {
    "a": ("a: b\n c: [\n", "line 2, column 3: mapping values are not allowed in this context"),
    "b": ("a: 1\na: 2\n", "document 1: line 2, column 1: key 'a' is given twice"),
    "c": ("- a list\n", "document 1: not a mapping"),
    "d": ("metadata: {name: x}\n", "document 1: no kind"),
    "e": (
        "kind: ApisixRoute\napiVersion: apisix.apache.org/v2\nmetadata: {name: x}\nspec: 5\n",
        "document 1: ApisixRoute x: spec must be a mapping",
    ),
}


def test_translate_names_file_and_place_of_what_it_cannot_read(cli: Cli) -> None:
    cli.write("good.yaml", WEB)
    for name, (text, _) in UNREADABLE.items():
        cli.write(f"{name}.yaml", text)
    got = cli("translate", "-f", ".", "-o", "json")
    document = json.loads(got.stdout)
    want = [(f"{name}.yaml", message) for name, (_, message) in UNREADABLE.items()]
    assert (got.returncode, got.stderr.splitlines()) == (1, [f"error: {file}: {message}" for file, message in want])
    shape = {"object": "", "code": "ManifestInvalid"}
    assert document["problems"] == [{**shape, "path": file, "message": message} for file, message in want]
    assert len(document["records"]["routes"]) == 1


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
async def test_a_path_where_nothing_is_ends_a_command(cli: Cli, command: str) -> None:
    cli.write("web.yaml", WEB)
    got = await cli.beside(*command.split(), "-f", "web.yaml", "-f", "nowhere", "-f", "", "-f", "web.yaml/below")
    told = ["error: nowhere: no such file or folder", "error: '': no such file or folder"]
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr.splitlines() == [*told, "error: web.yaml/below: no such file or folder"]


@pytest.mark.parametrize("command", ["translate", "lint", "explain http://web.example.org/", "tree"])
async def test_a_path_without_an_object_is_told_beside_the_report(cli: Cli, command: str) -> None:
    (cli.folder / "empty").mkdir()
    got = await cli.beside(*command.split(), "-f", cli.write("web.yaml", WEB), "-f", "empty")
    assert (got.returncode, got.stderr) == (0, "warning: no objects in empty\n")


@pytest.mark.parametrize(
    ("arguments", "status", "want"),
    [
        (["web.example.org"], 0, ""),
        (["b.example.org"], 1, "nothing to draw: nothing is published for b.example.org\n"),
        (["ApisixRoute", "default/b"], 1, "nothing to draw: nothing is published for ApisixRoute default/b\n"),
        (["--dot", "b.example.org"], 1, "nothing to draw: nothing is published for b.example.org\n"),
        (["ar"], 2, "error: ar is a kind: give the name of the object as well, as NAMESPACE/NAME\n"),
        (["acc"], 2, "error: acc is a kind: give the name of the object as well\n"),
    ],
)
async def test_tree_says_that_there_is_nothing_to_draw(cli: Cli, arguments: list[str], status: int, want: str) -> None:
    got = await cli.beside("tree", "-f", cli.write("web.yaml", WEB), *arguments)
    assert (got.returncode, got.stderr) == (status, want)


async def test_tree_of_nothing_says_so(cli: Cli) -> None:
    (cli.folder / "empty").mkdir()
    got = await cli.beside("tree", "-f", "empty", "-o", "json")
    assert (got.returncode, json.loads(got.stdout)) == (1, {"hosts": [], "streams": []})
    assert got.stderr == "warning: no objects in empty\nnothing to draw: nothing is published\n"


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
    assert (got.returncode, got.stdout) == (0, "no problems\n")
    assert got.stderr == "warning: no objects in standard input\n"


def test_translate_warns_of_kinds_that_are_not_read(cli: Cli) -> None:
    stranger = "apiVersion: apps/v9\nkind: Stranger\nmetadata: {name: x}\n"
    got = cli("translate", "-f", cli.write("web.yaml", f"{WEB}---\n{stranger}---\n{stranger}"), "-o", "json")
    assert got.returncode == 0
    assert got.stderr == "warning: apps/v9/Stranger is not a kind that is read: 2 objects left out\n"
    assert len(json.loads(got.stdout)["records"]["routes"]) == 1


def test_translate_names_a_misspelt_field(cli: Cli) -> None:
    got = cli("translate", cli.write("web.yaml", WEB.replace("hosts:", "host:")), "-o", "json")
    path, message = "spec.http[0].match.host", "unknown field, did you mean hosts?"
    want = {"object": "ApisixRoute default/web", "code": "UnknownField", "path": path, "message": message}
    document = json.loads(got.stdout)
    assert (got.returncode, document["problems"], len(document["records"]["routes"])) == (1, [want], 1)
    assert got.stderr == f"warning: ApisixRoute default/web: {path}: {message}\n"


def test_translate_counts_objects_of_other_versions_as_problems(cli: Cli) -> None:
    got = cli("translate", "-f", cli.write("old.yaml", WEB.replace("org/v2", "org/v2beta3")), "-o", "json")
    message = "document 3: ApisixRoute apisix.apache.org/v2beta3 is not read: convert it to apisix.apache.org/v2"
    want = {"object": "", "code": "KindNotRead", "path": "old.yaml", "message": message}
    assert (got.returncode, json.loads(got.stdout)["problems"]) == (1, [want])
    assert got.stderr == f"error: old.yaml: {message}\n"


def test_translate_warns_where_there_is_nothing(cli: Cli) -> None:
    (cli.folder / "empty").mkdir()
    got = cli("translate", "-f", "empty", "-")
    assert (got.returncode, got.stderr.splitlines()) == (
        0,
        ["warning: no objects in standard input", "warning: no objects in empty"],
    )


INGRESS = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %s, annotations: {%s}}
spec: {%s}
---
"""


def test_translate_warns_of_objects_that_are_not_ours(cli: Cli) -> None:
    spec = INGRESS % ("by-spec", "", "ingressClassName: nginx")
    annotated = INGRESS % ("by-annotation", "kubernetes.io/ingress.class: traefik", "")
    plain = INGRESS % ("without", "", "")
    got = cli("translate", "-f", cli.write("a.yaml", spec + annotated + plain), "-o", "json")
    assert (got.returncode, json.loads(got.stdout)["problems"]) == (0, [])
    assert sorted(got.stderr.splitlines()) == [
        "warning: Ingress default/by-annotation: left out: its class (traefik) is not ours",
        "warning: Ingress default/by-spec: left out: its class (nginx) is not ours",
        "warning: Ingress default/without: left out: it has no class",
    ]


def test_translate_says_nothing_of_unknown_fields_in_what_is_not_ours(cli: Cli) -> None:
    cli.write("config.yaml", "kubernetes: {ingress_class: edge, namespace_selector: team=a}\n")
    route = WEB.replace("hosts:", "host:")
    here = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {team: %s}}\n---\n"
    classed = route.replace("  http:", "  ingressClassName: other\n  http:")
    for namespace, text, want in [
        ("default", classed, "its class (other) is not ours"),
        ("elsewhere", route, "its namespace is not selected"),
    ]:
        file = cli.write("a.yaml", here % (namespace, "a") + text)
        got = cli("translate", file, "-o", "json", "--config", "config.yaml")
        assert (got.returncode, json.loads(got.stdout)["problems"]) == (0, [])
        assert got.stderr == f"warning: ApisixRoute default/web: left out: {want}\n"


def test_translate_takes_paths_with_and_without_the_option(cli: Cli) -> None:
    want = cli("translate", "-f", cli.write("web.yaml", WEB), "-o", "json")
    documents = WEB.split("---")
    names = [cli.write(f"{number}.yaml", text) for number, text in enumerate(documents)]
    got = cli("translate", "-o", "json", "-f", names[0], names[1], names[2])
    assert (got.returncode, got.stdout) == (0, want.stdout)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ([], "error: give the paths of manifests, e.g. apisix-ingress translate -f examples/quickstart"),
        (["-f", "x", "-o", "xml"], "Error: Invalid value for '--output' / '-o': must be one of yaml, json"),
    ],
)
def test_translate_with_a_wrong_usage_says_what_is_right(cli: Cli, arguments: list[str], want: str) -> None:
    got = cli("translate", *arguments)
    assert (got.returncode, got.stdout, got.stderr.splitlines()[-1]) == (2, "", want)


def test_translate_asks_for_the_end_of_a_document(cli: Cli) -> None:
    got = cli("translate", "-f", "-", stdin=WEB.replace("---\n", ""))
    problem = "line 6, column 1: key 'apiVersion' is given twice; is a --- missing before it?"
    assert (got.returncode, got.stderr) == (1, f"error: standard input: document 1: {problem}\n")


def test_translate_prints_problems_once_on_a_terminal(cli: Cli) -> None:
    cli.write("web.yaml", WEB.replace("hosts:", "host:"))
    reader, terminal = pty.openpty()
    try:
        got = subprocess.run(
            [*COMMAND, "translate", "-f", "web.yaml"],
            cwd=cli.folder,
            env=environment(cli.folder),
            stdout=terminal,
            stderr=subprocess.PIPE,
            text=True,
            timeout=BOUND,
            check=False,
        )
        shown = os.read(reader, 65536).decode()
    finally:
        os.close(terminal)
        os.close(reader)
    assert (got.returncode, got.stderr, shown.count("did you mean hosts?")) == (1, "", 1)


def test_translate_hides_private_keys_unless_told_to_show_them(cli: Cli) -> None:
    issued = trustme.CA().issue_cert("web.example.org")
    certificate, key = issued.cert_chain_pems[0].bytes().decode(), issued.private_key_pem.bytes().decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "web"},
        "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": certificate, "tls.key": key},
    }
    tls = {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixTls",
        "metadata": {"name": "web"},
        "spec": {"hosts": ["web.example.org"], "secret": {"name": "web", "namespace": "default"}},
    }
    cli.write("tls.yaml", yaml.safe_dump_all([secret, tls]))
    hidden, shown = (cli("translate", "-f", "tls.yaml", "-o", "json", *more) for more in ([], ["--show-secrets"]))
    assert (hidden.returncode, hidden.stderr, shown.returncode) == (0, "", 0)
    assert "PRIVATE KEY" not in hidden.stdout
    (with_key,) = json.loads(shown.stdout)["records"]["ssls"]
    (without,) = json.loads(hidden.stdout)["records"]["ssls"]
    assert with_key["key"].strip() == key.strip()
    assert without == {**with_key, "key": "[private key hidden: --show-secrets]"}
    readable = cli("translate", "-f", "tls.yaml").stdout
    assert "    cert: |\n      -----BEGIN CERTIFICATE-----\n" in readable


# crds, check-config


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
        ("http: {listen: 5}", "http.listen: must be text: write ':5' in quotes"),
        ("clusters: [{sync: {timeout: x}}]", "clusters[0].sync.timeout: 'x' is no duration"),
        ("log: 3", "log: must be a mapping"),
        ("log: [", "config.yaml: line 2, column 1: "),
    ],
)
def test_check_config_says_in_one_line_what_is_wrong(cli: Cli, text: str, want: str) -> None:
    got = cli("check-config", cli.write("config.yaml", text))
    assert (got.returncode, got.stdout) == (2, "")
    assert (got.stderr.startswith(f"error: {want}"), got.stderr.count("\n")) == (True, 1), got.stderr


def test_check_config_tells_what_is_better_not_left_so(cli: Cli) -> None:
    got = cli("check-config", cli.write("config.yaml", "preset: multi-tenant\nkubernetes: {code_plugins: allow}"))
    assert (got.returncode, got.stderr.partition(":")[0], got.stderr.count("\n")) == (0, "warning", 1)
    assert "kubernetes.code_plugins: allow takes a protection of preset multi-tenant off" in got.stderr


# run: what ends it


def kubeconfig(server: str) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "anyone"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    return yaml.safe_dump(document)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (["--config", "nowhere.yaml"], "nowhere.yaml: can't be read: No such file or directory"),
        (["--config", "typo.yaml"], "clusterz: unknown key, did you mean clusters?"),
        (["--kubeconfig", "nowhere"], "kubeconfig nowhere: no such file"),
        (["--kubeconfig", "typo.yaml"], "kubeconfig typo.yaml"),
        ([], "kubernetes: no way to the API server: this is no Pod, KUBECONFIG is not set and "),
        (["--manifests", "nowhere"], "--manifests nowhere: no such file or folder"),
        (["--manifests", ""], "--manifests '': no such file or folder"),
        (["--manifests", ".", "--admin-url", "ftp://x"], "clusters[0].admin_url: must be an http or https URL"),
        (["--manifests", ".", "--config", "key.yaml"], "cluster default: admin_key_file /nowhere: can't be read"),
    ],
)
def test_run_ends_with_one_line_that_says_what_to_fix(cli: Cli, arguments: list[str], want: str) -> None:
    cli.write("typo.yaml", "clusterz: []\n")
    cli.write("key.yaml", "clusters: [{admin_key_file: /nowhere}]\n")
    got = cli("run", "--http-listen", "127.0.0.1:0", *arguments)
    assert (got.returncode, got.stdout) == (2, "")
    assert (got.stderr.startswith(f"error: {want}"), got.stderr.count("\n")) == (True, 1), got.stderr


def test_run_ends_if_its_port_is_taken(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        got = cli("run", "--manifests", ".", "--http-listen", f"127.0.0.1:{port}")
    want = f"error: http.listen: can't listen on 127.0.0.1:{port}: another process does; "
    assert (got.returncode, got.stdout, got.stderr.count("\n")) == (2, "", 1)
    assert got.stderr.startswith(want)


# run: what it outlives


@dataclass(frozen=True)
class Running:
    """A controller that was started."""

    process: asyncio.subprocess.Process
    log: Path
    port: int

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what it logged under a name."""
        lines = map(json.loads, self.log.read_text().splitlines())
        return [line for line in lines if line["event"] == name]

    async def probe(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{self.port}{path}") as reply:
            return reply.status, await reply.text()

    async def stop(self) -> int:
        """End it as Kubernetes does; return its exit status."""
        self.process.terminate()
        return await asyncio.wait_for(self.process.wait(), BOUND)


@asynccontextmanager
async def running(folder: Path, *arguments: str) -> AsyncIterator[Running]:
    """Start the controller; it is killed at the end if it still runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "log"
    with log.open("wb") as stderr:
        command = (*COMMAND, "run", "--http-listen", f"127.0.0.1:{port}", "--log-format", "json", *arguments)
        process = await asyncio.create_subprocess_exec(
            *command, cwd=folder, env=environment(folder), stdout=asyncio.subprocess.DEVNULL, stderr=stderr
        )
    try:
        yield Running(process, log, port)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110  # another process makes it true
            await asyncio.sleep(0.02)


async def test_run_goes_on_with_a_wrong_admin_key_and_hardly_asks(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        arguments = ("--manifests", str(QUICKSTART), "--admin-url", gateway.url, "--admin-key", "not-the-key")
        async with running(cli.folder, *arguments) as controller:
            await until(lambda: bool(controller.events("cluster.unauthorized")))
            asked = len(gateway.seen)
            await asyncio.sleep(1.5)  # time in which a loop would show
            assert (await controller.probe("/readyz"))[0] == 200
            status, text = await controller.probe("/apisix/healthz")
            assert await controller.stop() == 0
        assert (asked, len(gateway.seen), gateway.records) == (1, 1, {})
    (line,) = controller.events("cluster.unauthorized")
    assert "admin_key" in line["error"]
    assert (status, "default" in text) == (500, True)
    assert "not-the-key" not in controller.log.read_text()


async def test_run_waits_for_a_gateway_that_is_away(cli: Cli) -> None:
    gateway = FakeAdminApi()
    await gateway.start()
    await gateway.stop()
    arguments = ("--manifests", str(QUICKSTART), "--admin-url", gateway.url, "--admin-key", gateway.key)
    async with running(cli.folder, *arguments) as controller:
        await until(lambda: bool(controller.events("cluster.unreachable")))
        async with gateway:
            await until(lambda: len(gateway.ids("routes")) == 3)
        assert await controller.stop() == 0
    (line,) = controller.events("cluster.unreachable")
    assert f"127.0.0.1:{gateway.port}" in line["error"]


async def test_run_waits_for_an_api_server_that_is_away(cli: Cli) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    cli.write("kubeconfig", kubeconfig(f"http://{address}"))
    async with running(cli.folder, "--kubeconfig", "kubeconfig") as controller:
        await until(lambda: bool(controller.events("apiserver.unreachable")))
        await asyncio.sleep(1.5)  # time in which a loop would show
        status, text = await controller.probe("/readyz")
        assert await controller.stop() == 0
    assert status == 503
    assert json.loads(text)["checks"]["objects"] == f"API server {address}: can't connect: Connection refused"
    (line,) = controller.events("apiserver.unreachable")
    assert line["server"] == address
    assert not controller.events("reflector.failed")
    assert not controller.events("lease.unavailable")

"""`lint` as users see it, and rules for every command."""

import inspect
import json
import re
import subprocess
from pathlib import Path

import pytest

from apisix_ingress.commands.app import MODULES, load
from tests.flow.commandline import BOUND, COMMAND, QUICKSTART, Cli, environment

ROUTE = """\
apiVersion: v1
kind: Service
metadata: {name: other}
---
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: {name: web}
spec:
  http:
    - name: all
      match: {hosts: ["web.example.org:80"], paths: [/*]}
      backends: [{serviceName: none, servicePort: 80}]
"""
MISSING = "error AIX0101 ServiceNotFound: ApisixRoute default/web: spec.http[0].backends[0].serviceName: "
PORT = "warning AIX0503 HostNeverMatches: ApisixRoute default/web: spec.http[0].match.hosts[0]: "
WITHOUT_FORMATS = {"dashboard", "run"}
"""Commands that print no document."""


async def test_lint_prints_places_and_codes(cli: Cli) -> None:
    got = await cli.beside("lint", cli.write("web.yaml", ROUTE))
    lines = got.stdout.splitlines()
    assert (got.returncode, got.stderr, lines[-1]) == (1, "", "1 error, 1 warning")
    for line, want in zip(lines, (f"web.yaml:11:23: {PORT}", f"web.yaml:12:19: {MISSING}"), strict=False):
        assert line.startswith(want)
    assert (await cli.beside("lint", str(QUICKSTART))).stdout == "no problems\n"


NONE = "no problems"
NGINX = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %s, annotations: {nginx.ingress.kubernetes.io/proxy-body-size: 8m}}
spec:
  ingressClassName: nginx
  rules:
    - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n---\n"
NGINX_CLASS = """\
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
"""


async def test_lint_says_that_ingresses_of_ingress_nginx_are_not_checked_and_which_setting_changes_that(
    cli: Cli,
) -> None:
    cli.write("config.yaml", "ingress_nginx: {enabled: true}\n")
    cli.write("one.yaml", NGINX % "a")
    cli.write("two.yaml", NGINX % "a" + NGINX % "b" + SERVICE)
    cli.write("class.yaml", NGINX_CLASS)
    off = "ingress class nginx belongs to ingress-nginx: set ingress_nginx.enabled to true to serve it"
    path = "spec.rules[0].http.paths[0].backend: the files contain no Services of namespace default"
    note = "note AIX0806 NotChecked: Ingress default"
    for arguments, want in [
        (["one.yaml"], [f"one.yaml:1:1: {note}/a: {off}", f"{NONE}; 1 object was not checked completely"]),
        (
            ["two.yaml", "class.yaml"],
            [
                f"two.yaml:1:1: {note}/a: {off}",
                f"two.yaml:9:1: {note}/b: {off}",
                f"{NONE}; 2 objects were not checked completely",
            ],
        ),
        (
            ["one.yaml", "--config", "config.yaml"],
            [f"one.yaml:7:50: {note}/a: {path}", f"{NONE}; 1 object was not checked completely"],
        ),
        (["two.yaml", "class.yaml", "--config", "config.yaml"], [NONE]),
    ]:
        got = await cli.beside("lint", *arguments)
        assert (got.returncode, got.stdout.splitlines(), got.stderr) == (3 if len(want) > 1 else 0, want, "")
        assert (await cli.beside("lint", "--allow-unchecked", *arguments)).returncode == 0


APART = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: shared, namespace: infra}]
  rules:
    - matches: [{path: {type: RegularExpression, value: "/("}}]
      filters: [{type: ExtensionRef, extensionRef: {group: apisix.apache.org, kind: PluginConfig, name: gone}}]
      backendRefs: [{name: web, port: 80}]
"""


async def test_lint_checks_a_route_without_its_gateway_and_services(cli: Cli) -> None:
    status, document = await cli.json("lint", cli.write("web.yaml", APART))
    got = [(item["code"], item["level"], item["path"]) for item in document["findings"]]
    assert (status, got) == (
        1,
        [
            ("AIX0806", "note", "spec.parentRefs"),
            ("AIX0514", "error", "spec.rules[0].matches[0].path.value"),
            ("AIX1008", "error", "spec.rules[0].filters"),
            ("AIX0806", "note", "spec.rules[0].backendRefs[0]"),
        ],
    )


@pytest.mark.parametrize(("arguments", "status"), [([], 2), (["--allow-empty"], 0)])
async def test_lint_of_a_folder_without_manifests_is_an_error_unless_it_is_allowed(
    cli: Cli, arguments: list[str], status: int
) -> None:
    (cli.folder / "none").mkdir()
    assert (await cli.beside("lint", "none", *arguments)).returncode == status


@pytest.mark.parametrize(("others", "status"), [([], 2), (["web.yaml"], 1)])
async def test_lint_of_an_empty_file_is_an_error_unless_others_have_manifests(
    cli: Cli, others: list[str], status: int
) -> None:
    cli.write("empty.yaml", "# nothing\n---\n")
    cli.write("web.yaml", ROUTE)
    assert (await cli.beside("lint", "empty.yaml", *others)).returncode == status


@pytest.mark.parametrize(
    ("arguments", "status", "codes"),
    [
        ([], 1, ["AIX0503", "AIX0101"]),
        (["--suppress", "AIX0101"], 1, ["AIX0503"]),
        (["--suppress", "AIX0101", "--failure-threshold", "error"], 0, ["AIX0503"]),
        (["--suppress", "ServiceNotFound=ApisixRoute default/web", "--suppress", "AIX0503"], 0, []),
        (["--suppress", "AIX0101=ApisixRoute default/other"], 1, ["AIX0503", "AIX0101"]),
        (["--failure-threshold", "error"], 1, ["AIX0503", "AIX0101"]),
    ],
)
async def test_lint_fails_for_what_is_neither_suppressed_nor_below_the_threshold(
    cli: Cli, arguments: list[str], status: int, codes: list[str]
) -> None:
    cli.write("web.yaml", ROUTE)
    got, document = await cli.json("lint", "-f", "web.yaml", *arguments)
    assert (got, [item["code"] for item in document["findings"]]) == (status, codes)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ([], "error: no manifests given"),
        (["x", "--suppress", "ServiceNotFund"], "error: --suppress: unknown code ServiceNotFund: did you mean AIX0101"),
        (["x", "--failure-threshold", "info"], "'--failure-threshold': must be one of error, warning"),
        (["x", "--config", "none.yaml"], "error: none.yaml: cannot be read"),
    ],
)
async def test_lint_with_a_wrong_usage_says_what_is_right(cli: Cli, arguments: list[str], want: str) -> None:
    got = await cli.beside("lint", *arguments)
    assert (got.returncode, got.stdout, want in got.stderr) == (2, "", True)


def test_lint_reads_standard_input_and_speaks_to_workflows(cli: Cli) -> None:
    got = cli("lint", "-", "-o", "github", stdin=ROUTE)
    assert (got.returncode, got.stdout.count("\n")) == (1, 2)
    assert got.stdout.startswith("::warning file=standard input,line=11,col=23,title=AIX0503 HostNeverMatches::")
    sarif = json.loads(cli("lint", "-", "-o", "sarif", stdin=ROUTE).stdout)
    assert [result["ruleId"] for result in sarif["runs"][0]["results"]] == ["AIX0503", "AIX0101"]


@pytest.mark.parametrize(("variable", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_are_for_terminals_that_want_them(cli: Cli, variable: dict[str, str], coloured: bool) -> None:
    cli.write("web.yaml", ROUTE)
    shown = cli.on_terminal("lint", "web.yaml", **{"TERM": "xterm", **variable}).stdout
    assert "AIX0101" in shown
    assert ("\x1b[31m" in shown) is coloured


# Every command.


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_command_documents_its_exit_status_and_an_example_and_supports_json(name: str) -> None:
    command = load(name)
    text = inspect.getdoc(command.function) or ""
    assert re.search(r"^Exit \d", text, re.MULTILINE)
    assert f"Examples:\n    apisix-ingress {name}" in text
    assert ("output" in {each.name for each in command.parameters}) is (name not in WITHOUT_FORMATS)


@pytest.mark.parametrize(
    ("words", "index", "want"),
    [
        ("apisix-ingress li", 1, "lint"),
        ("apisix-ingress lint -o s", 3, "sarif"),
        ("apisix-ingress diff --cl", 2, "--cluster"),
    ],
)
def test_shells_complete_commands_and_options(cli: Cli, words: str, index: int, want: str) -> None:
    variables = {"_APISIX_INGRESS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(index)}
    got = subprocess.run(
        [Path(COMMAND[0]).with_name("apisix-ingress")],
        env={**environment(cli.folder), **variables},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert want in got.stdout.split()

"""The command `translate` as users see it: its document, its warnings, and the problems of manifests."""

import json

import pytest
import trustme
import yaml

from tests.flow.commandline import QUICKSTART, WEB, Cli

KINDS = [
    "consumer_groups",
    "consumers",
    "global_rules",
    "plugin_configs",
    "plugin_metadata",
    "protos",
    "routes",
    "secrets",
    "ssls",
    "stream_routes",
    "upstreams",
]

WEB_ROUTE = {"kind": "ApisixRoute", "namespace": "default", "name": "web"}


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


def test_translate_reads_files_folders_and_standard_input(cli: Cli) -> None:
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
    want = {"object": WEB_ROUTE, "code": "ServiceNotFound", "path": path, "message": message}
    assert got.returncode == 1
    assert json.loads(got.stdout) == {"records": {kind: [] for kind in KINDS}, "problems": [want]}
    assert got.stderr == f"error: ApisixRoute default/web: {path}: {message}\n"


UNREADABLE = {
    "a": ("a: b\n c: [\n", "line 2, column 3: mapping values are not allowed in this context"),
    "b": ("a: 1\na: 2\n", "document 1: line 2, column 1: key 'a' is given twice"),
    "c": ("- a list\n", "document 1: not a mapping"),
    "d": ("metadata: {name: x}\n", "document 1: kind is missing"),
    "e": (
        "kind: ApisixRoute\napiVersion: apisix.apache.org/v2\nmetadata: {name: x}\nspec: 5\n",
        "document 1: ApisixRoute x: spec must be a mapping",
    ),
}


def test_translate_names_file_and_position_of_unreadable_input(cli: Cli) -> None:
    cli.write("good.yaml", WEB)
    for name, (text, _) in UNREADABLE.items():
        cli.write(f"{name}.yaml", text)
    got = cli("translate", "-f", ".", "-o", "json")
    document = json.loads(got.stdout)
    want = [(f"{name}.yaml", message) for name, (_, message) in UNREADABLE.items()]
    assert (got.returncode, got.stderr.splitlines()) == (1, [f"error: {file}: {message}" for file, message in want])
    shape = {"object": None, "code": "ManifestInvalid"}
    assert document["problems"] == [{**shape, "path": file, "message": message} for file, message in want]
    assert len(document["records"]["routes"]) == 1


def test_translate_warns_about_ignored_kinds(cli: Cli) -> None:
    stranger = "apiVersion: apps/v9\nkind: Stranger\nmetadata: {name: x}\n"
    got = cli("translate", "-f", cli.write("web.yaml", f"{WEB}---\n{stranger}---\n{stranger}"), "-o", "json")
    assert got.returncode == 0
    assert got.stderr == "warning: apps/v9/Stranger is not a supported kind: 2 objects skipped\n"
    assert len(json.loads(got.stdout)["records"]["routes"]) == 1


def test_translate_names_a_misspelt_field(cli: Cli) -> None:
    got = cli("translate", cli.write("web.yaml", WEB.replace("hosts:", "host:")), "-o", "json")
    path, message = "spec.http[0].match.host", "unknown field, did you mean hosts?"
    want = {"object": WEB_ROUTE, "code": "UnknownField", "path": path, "message": message}
    document = json.loads(got.stdout)
    assert (got.returncode, document["problems"], len(document["records"]["routes"])) == (1, [want], 1)
    assert got.stderr == f"warning: ApisixRoute default/web: {path}: {message}\n"


def test_translate_counts_objects_of_other_versions_as_problems(cli: Cli) -> None:
    got = cli("translate", "-f", cli.write("old.yaml", WEB.replace("org/v2", "org/v2beta3")), "-o", "json")
    message = "document 3: ApisixRoute apisix.apache.org/v2beta3 is not read: convert it to apisix.apache.org/v2"
    want = {"object": None, "code": "KindNotRead", "path": "old.yaml", "message": message}
    assert (got.returncode, json.loads(got.stdout)["problems"]) == (1, [want])
    assert got.stderr == f"error: old.yaml: {message}\n"


def test_translate_warns_about_empty_input(cli: Cli) -> None:
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


def test_translate_warns_about_objects_of_other_controllers(cli: Cli) -> None:
    spec = INGRESS % ("by-spec", "", "ingressClassName: nginx")
    annotated = INGRESS % ("by-annotation", "kubernetes.io/ingress.class: traefik", "")
    plain = INGRESS % ("without", "", "")
    got = cli("translate", "-f", cli.write("a.yaml", spec + annotated + plain), "-o", "json")
    assert (got.returncode, json.loads(got.stdout)["problems"]) == (0, [])
    assert sorted(got.stderr.splitlines()) == [
        "warning: Ingress default/by-annotation: skipped: ingress class traefik is served by another controller",
        "warning: Ingress default/by-spec: skipped: ingress class nginx belongs to ingress-nginx: set"
        " ingress_nginx.enabled to true to serve it",
        "warning: Ingress default/without: skipped: it has no class",
    ]


def test_translate_ignores_unknown_fields_of_foreign_objects(cli: Cli) -> None:
    cli.write("config.yaml", "kubernetes: {ingress_class: edge, namespace_selector: team=a}\n")
    route = WEB.replace("hosts:", "host:")
    here = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {team: %s}}\n---\n"
    classed = route.replace("  http:", "  ingressClassName: other\n  http:")
    for namespace, text, want in [
        ("default", classed, "ingress class other is served by another controller"),
        ("elsewhere", route, "its namespace is not selected"),
    ]:
        file = cli.write("a.yaml", here % (namespace, "a") + text)
        got = cli("translate", file, "-o", "json", "--config", "config.yaml")
        assert (got.returncode, json.loads(got.stdout)["problems"]) == (0, [])
        assert got.stderr == f"warning: ApisixRoute default/web: skipped: {want}\n"


def test_translate_accepts_paths_with_and_without_the_option(cli: Cli) -> None:
    want = cli("translate", "-f", cli.write("web.yaml", WEB), "-o", "json")
    documents = WEB.split("---")
    names = [cli.write(f"{number}.yaml", text) for number, text in enumerate(documents)]
    got = cli("translate", "-o", "json", "-f", names[0], names[1], names[2])
    assert (got.returncode, got.stdout) == (0, want.stdout)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ([], "error: no manifests given, e.g. apisix-ingress translate -f examples/quickstart"),
        (["-f", "x", "-o", "xml"], "Error: Invalid value for '--output' / '-o': must be one of yaml, json"),
    ],
)
def test_translate_prints_its_usage_for_wrong_arguments(cli: Cli, arguments: list[str], want: str) -> None:
    got = cli("translate", *arguments)
    assert (got.returncode, got.stdout, got.stderr.splitlines()[-1]) == (2, "", want)


def test_translate_prompts_for_the_end_of_a_document(cli: Cli) -> None:
    got = cli("translate", "-f", "-", stdin=WEB.replace("---\n", ""))
    problem = "line 6, column 1: key 'apiVersion' is given twice; is a --- missing before it?"
    assert (got.returncode, got.stderr) == (1, f"error: standard input: document 1: {problem}\n")


def test_translate_prints_problems_once_on_a_terminal(cli: Cli) -> None:
    cli.write("web.yaml", WEB.replace("hosts:", "host:"))
    got = cli.on_terminal("translate", "-f", "web.yaml")
    assert (got.returncode, got.stderr, got.stdout.count("did you mean hosts?")) == (1, "", 1)


def test_translate_hides_private_keys_unless_requested(cli: Cli) -> None:
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

"""Files and objects of others in the hands of an operator: commands end, write nothing harmful and report what is so.

Servers that never end, redirect or send much are in `tests/flow/test_hostile_servers.py`.
"""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from e2e.attacks.values import SLOW_TO_MATCH
from tests.flow.commandline import Cli

NGINX = "nginx.ingress.kubernetes.io"
CLASS = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "IngressClass",
    "metadata": {"name": "nginx"},
    "spec": {"controller": "k8s.io/ingress-nginx"},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 80}]},
}
CONFIG = """
preset: multi-tenant
ingress_nginx: {enabled: true}
clusters: [{name: default, admin_url: "http://127.0.0.1:9180/apisix/admin", admin_key: of-a-test}]
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line in an empty folder."""
    return Cli(tmp_path)


def ingress(name: str, *paths: str, kind: str = "Prefix", **annotations: str) -> dict[str, Any]:
    """Return an Ingress of ingress-nginx for the host of its name."""
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    every = [{"path": path, "pathType": kind, "backend": backend} for path in paths or ("/",)]
    given = {f"{NGINX}/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": "default", "annotations": given},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": f"{name}.test", "http": {"paths": every}}]},
    }


def write(cli: Cli, *items: dict[str, Any]) -> str:
    """Write manifests; return the name of the file."""
    cli.write("config.yaml", CONFIG)
    cli.write("objects.yaml", yaml.safe_dump_all([CLASS, SERVICE, *items]))
    return "objects.yaml"


@pytest.mark.parametrize("command", ["translate", "lint", "migrate"])
def test_a_command_ends_whatever_the_annotations_contain(command: str, cli: Cli) -> None:
    """Each of the values kept a command busy; the status is one of a report, not of a failure."""
    items = [ingress(f"slow{number}", **given) for number, given in enumerate(SLOW_TO_MATCH.values())]
    name = write(cli, *items)
    arguments = {"translate": ("-f", name), "lint": (name,), "migrate": (name,)}[command]

    got = cli(command, *arguments, "--config", "config.yaml")

    assert got.returncode in (0, 1, 3), got.stderr


def rewrites(document: object) -> Iterator[str]:
    """Yield the replacements of `regex_uri` and the values of `uri` anywhere in a document."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name == "regex_uri":
                yield from value[1::2]
            elif name in ("replacePrefixMatch", "replaceFullPath", "rewriteTarget") or name.endswith("template"):
                yield str(value)
            else:
                yield from rewrites(value)
    elif isinstance(document, list):
        for item in document:
            yield from rewrites(item)


TARGETS = ("$1", "${1}", "$1/x", "$1$2")


@pytest.mark.parametrize("to", ["apisixroute", "httproute"])
async def test_migrate_writes_no_path_that_chooses_another_server(to: str, cli: Cli) -> None:
    items = [
        ingress(f"shop{number}", "/api(.*)()", kind="ImplementationSpecific", use_regex="true", rewrite_target=target)
        for number, target in enumerate(TARGETS)
    ]

    got = await cli.beside("migrate", write(cli, *items), "--to", to, "--write", "out")

    assert got.returncode in (0, 1), got.stderr
    documents = [each for path in (cli.folder / "out").rglob("*.yaml") for each in yaml.safe_load_all(path.read_text())]
    assert documents
    assert [each for each in rewrites(documents) if not each.startswith("/")] == []


def test_explain_ends_for_paths_with_many_stars(cli: Cli) -> None:
    rules = [
        {
            "name": f"r{number}",
            "match": {"hosts": ["shop.test"], "paths": [path]},
            "backends": [{"serviceName": "web", "servicePort": 80}],
        }
        for number, path in enumerate(("/" + "*" * 28 + "Z", "/*a*a*a*a*a*a*a*a*Z", "/**/**/**/**/**/Z"))
    ]
    stars = {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixRoute",
        "metadata": {"name": "stars", "namespace": "default"},
        "spec": {"http": rules},
    }
    name = write(cli, stars)

    got = cli("explain", f"shop.test/products/{'a' * 1500}", "-f", name)

    assert got.returncode in (0, 1), got.stderr


HOSTILE = "\x1b[31m\x9b31m\u202e\u2028\r\n::error::forged\n# heading ![x](http://evil.test/)`|<b>"


@pytest.mark.parametrize("output", ["text", "json", "markdown", "html"])
def test_a_report_of_hostile_texts_has_no_control_characters_and_no_forged_lines(output: str, cli: Cli) -> None:
    item = ingress(f"shop{HOSTILE}", f"/a{HOSTILE}", server_snippet=HOSTILE, auth_url=HOSTILE)
    item["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] = HOSTILE

    got = cli("migrate", write(cli, item), "-o", output)

    assert got.returncode == 3, got.stderr
    printed = got.stdout.splitlines()
    assert [line for line in printed if not line.isprintable()] == []
    assert [line for line in printed if line.startswith(("::error", "# heading"))] == []


@pytest.mark.parametrize("command", [("lint", "-o", "json"), ("lint", "-o", "sarif"), ("lint", "-o", "github")])
def test_findings_of_hostile_texts_have_no_control_characters(command: tuple[str, ...], cli: Cli) -> None:
    item = ingress(f"shop{HOSTILE}", f"/a{HOSTILE}", server_snippet=HOSTILE, auth_url=HOSTILE)

    got = cli(*command, write(cli, item), "--config", "config.yaml")

    assert got.returncode == 1, got.stderr
    assert [line for line in got.stdout.splitlines() if not line.isprintable()] == []


@pytest.mark.parametrize("to", ["apisixroute", "httproute"])
def test_no_host_replaces_the_manifests_of_another_host(to: str, cli: Cli) -> None:
    hosts = {
        "victim": "*.shop.test",
        "evil": "wildcard.shop.test",
        "rest": "",
        "lookalike": "any-host",
        "all": "shared",
    }
    items = [ingress(name, rewrite_target="/x") for name in (*hosts, "long")]
    for item, host in zip(items, (*hosts.values(), "x" * 300 + ".test"), strict=True):
        item["metadata"]["namespace"] = item["metadata"]["name"]
        item["spec"]["rules"][0]["host"] = host
    services = [{**SERVICE, "metadata": {"name": "web", "namespace": name}} for name in (*hosts, "long")]

    got = cli("migrate", write(cli, *items, *services), "--to", to, "--write", "out")

    assert got.returncode in (0, 1, 3), got.stderr
    documents = [each for path in (cli.folder / "out").glob("*.yaml") for each in yaml.safe_load_all(path.read_text())]
    assert {each["metadata"]["namespace"] for each in documents} >= {*hosts, "long"}


def unreadable_certificates() -> Iterator[dict[str, Any]]:
    """Yield TLS Secrets with certificates of which a part cannot be read."""
    key = generate_private_key(SECP256R1())
    name, now = x509.Name([]), datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=3650))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("shop.test")]), critical=False)
    content = builder.sign(key, SHA256()).public_bytes(Encoding.DER)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    for number, (before, after) in enumerate(UNREADABLE_PARTS):
        assert before in content
        certificate = ssl.DER_cert_to_PEM_cert(content.replace(before, after))
        data = {"tls.crt": certificate, "tls.key": pem, "ca.crt": certificate}
        meta = {"name": f"tls{number}", "namespace": "default"}
        yield {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}


UNREADABLE_PARTS = (
    (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09"),
    (b"\x82\x09shop.test", b"\x82\x09\xffhop.test"),
    (b"\x82\x09shop.test", b"\xa3\x09shop.test"),
)
"""An unknown version, a name that is not ASCII, and a kind of name that libraries do not support."""


@pytest.mark.parametrize("command", ["translate", "lint", "migrate"])
def test_a_command_reports_certificates_that_cannot_be_read(command: str, cli: Cli) -> None:
    secrets = [*unreadable_certificates()]
    items = []
    for secret in secrets:
        name = secret["metadata"]["name"]
        item = ingress(name, auth_tls_secret=f"default/{name}")
        item["spec"]["tls"] = [{"hosts": [f"{name}.test"], "secretName": name}]
        items.append(item)
        secret["data"] = {field: b64encode(text.encode()).decode() for field, text in secret.pop("stringData").items()}
    file = write(cli, *items, *secrets)

    got = cli(command, *({"translate": ("-f", file)}.get(command, (file,))), "--config", "config.yaml")

    assert got.returncode in (0, 1, 3), got.stderr
    assert "Traceback" not in got.stderr
    assert "crashed" not in got.stderr


def repeated(number: int) -> str:
    """Return a document of a few hundred bytes whose aliases repeat 100,000 nodes."""
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 5)]
    text = "\n".join(["l0: &l0 [x, x, x, x, x, x, x, x, x, x]", *levels])
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}}}\n{text}\n"


def test_a_file_with_many_documents_of_aliases_is_read_within_a_limit(cli: Cli) -> None:
    cli.write("objects.yaml", "---\n".join(repeated(number) for number in range(400)))

    got = cli("lint", "objects.yaml")

    assert got.returncode == 1, got.stderr
    assert got.stdout.count("too large once the aliases of the file are resolved") > 300


def test_a_file_with_many_keys_is_read_in_linear_time(cli: Cli) -> None:
    keys = ", ".join(f'"key{number}": 1' for number in (*range(200_000), 199_999))
    cli.write("objects.json", f'{{"apiVersion": "v1", {keys}}}')

    got = cli("lint", "objects.json")

    assert (got.returncode, "key 'key199999' is given twice" in got.stdout) == (1, True), got.stderr

"""Commands that ask the leader: hosts, changes, tree and dashboard, with a kubectl that forwards to a page."""

import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from apisix_ingress.statuspage.views.changes import EARLIER
from reference.documents import DOCUMENTS
from tests.fakes.kube.apiserver import FakeApiServer
from tests.fakes.kube.kinds import Kind
from tests.flow.commandline import Cli
from tests.flow.surveying import SurveyHarness
from tests.unit.apisix_ingress.statuspage.harness import PageHarness, make_harness, served
from tests.unit.translation.objects import make, rule, service, slice_of

KUBECTL = f"""#!{sys.executable}
import sys
open("asked", "a").write(" ".join(sys.argv[1:]) + "\\n")
error = open("error").read()
if error:
    sys.exit(error)
print("Forwarding from 127.0.0.1:" + open("port").read() + " -> 8080", flush=True)
open("pipe").read()
"""
"""Prints what `kubectl port-forward` prints, and ends when the pipe is closed or it is terminated."""


@pytest.fixture
async def page() -> AsyncIterator[PageHarness]:
    """The page of a leader with a host that is live but has no certificate, and one whose Service is missing."""
    match = {"hosts": ["web.example.org"], "paths": ["/"]}
    live = make("ApisixRoute", "web", spec={"http": [rule(match=match)]})
    lost = {"hosts": ["lost.example.org"], "paths": ["/"]}
    gone = [{"serviceName": "gone", "servicePort": 80}]
    broken = make("ApisixRoute", "broken", spec={"http": [rule(match=lost, backends=gone)]})
    secret = {"namespace": "default", "name": "none"}
    tls = make("ApisixTls", "web", spec={"hosts": ["web.example.org"], "secret": secret})
    async with served(make_harness(service(), slice_of([{"addresses": ["10.0.0.7"]}]), live, broken, tls)) as harness:
        yield harness


@pytest.fixture
def forwards(cli: Cli, page: PageHarness, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl in PATH that forwards to the page; returns the folder with what it was asked."""
    (cli.folder / "bin").mkdir()
    program = cli.folder / "bin" / "kubectl"
    program.write_text(KUBECTL)
    program.chmod(0o755)
    cli.write("port", page.url.rpartition(":")[2])
    cli.write("error", "")
    os.mkfifo(cli.folder / "pipe")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return cli.folder


def asked(folder: Path) -> Sequence[str]:
    """Return the arguments of the last call of kubectl."""
    return (folder / "asked").read_text().splitlines()[-1].split()


async def test_hosts_are_listed_with_their_state_backend_and_objects(cli: Cli, page: PageHarness) -> None:
    got = await cli.beside("hosts", "--url", page.url)
    assert got.returncode == 1
    assert [" ".join(line.split()) for line in got.stdout.splitlines()] == [
        "HOST STATE SINCE ROUTES BACKENDS CERTIFICATE OBJECTS CAUSE",
        "lost.example.org not published - 0 - - ApisixRoute default/broken Service default/gone does not exist; create"
        " it or correct the name",
        "web.example.org live - 1 default_web_80 (1) missing ApisixRoute default/web -",
    ]
    only = await cli.json("hosts", "--problems", "--url", page.url)
    assert [each["host"] for each in only[1]["hosts"]] == ["lost.example.org"]
    live = await cli.beside("hosts", "web.example", "--url", page.url)
    assert (live.returncode, len(live.stdout.splitlines())) == (0, 2)


async def test_an_unknown_host_is_reported_with_the_most_similar_one(cli: Cli, page: PageHarness) -> None:
    got = await cli.beside("hosts", "wep.example.org", "--url", page.url)
    assert (got.returncode, got.stdout) == (1, "no hosts\n")
    assert got.stderr == "no host matches wep.example.org\ndid you mean web.example.org?\n"


async def test_changes_name_the_record_and_its_object(cli: Cli, page: PageHarness) -> None:
    first, note = (await cli.beside("changes", "--url", page.url)).stdout.splitlines()
    assert first == "nothing changed in the last hour"
    assert note.startswith("The leader has led for ")
    assert note.endswith(f". {EARLIER}")
    key = page.record("routes", "default_web_rule")
    page.journal.written("default", key, "created", "", "ok")
    got = await cli.beside("changes", "ApisixRoute", "--url", page.url)
    want = f"created routes/{key.id} (default_web_rule) of ApisixRoute default/web in cluster default"
    assert got.stdout.splitlines()[0].partition(": ")[2] == want


async def test_certificates_are_listed_and_missing_ones_too(cli: Cli, page: PageHarness) -> None:
    got = await cli.beside("certificates", "--url", page.url)
    assert got.returncode == 1
    assert [" ".join(line.split()) for line in got.stdout.splitlines()] == [
        "VALIDITY EXPIRES HOSTS OBJECT SECRET ISSUER OR CAUSE",
        "missing - web.example.org ApisixTls default/web Secret default/none Secret default/none does not exist; create"
        " it or correct the name",
    ]


@pytest.mark.parametrize("command", ["certificates", "changes", "hosts"])
async def test_documents_of_the_leader_match_their_schemas(cli: Cli, page: PageHarness, command: str) -> None:
    key = page.record("routes", "default_web_rule")
    page.journal.written("default", key, "updated", "default_web_rule", "ok")
    _, document = await cli.json(command, "--url", page.url)
    DOCUMENTS[command].model_validate_json(json.dumps(document))
    assert document[command]


async def test_the_tree_of_the_leader_is_that_of_its_objects(cli: Cli, page: PageHarness) -> None:
    code, got = await cli.json("tree", "web.example.org", "--url", page.url)
    (path,) = got["hosts"][0]["paths"]
    (upstream,) = path["routes"][0]["upstreams"]
    assert (code, path["path"], upstream["nodes"][0]["address"]) == (0, "/", "10.0.0.7:8080")
    DOCUMENTS["tree"].model_validate_json(json.dumps(got))


async def test_without_a_url_the_leader_is_found_and_its_port_forwarded(harness: SurveyHarness, forwards: Path) -> None:
    harness.lead(holder="web-0_4711")
    code, got = await harness.ask("hosts", "web")
    assert (code, [each["host"] for each in got["hosts"]]) == (0, ["web.example.org"])
    kubeconfig = json.loads((forwards / harness.config).read_text())["kubernetes"]["kubeconfig"]
    where = ["--namespace=default", "--address=127.0.0.1", "pod/web-0", ":8080"]
    assert asked(forwards) == [f"--kubeconfig={kubeconfig}", "port-forward", *where]


async def test_the_dashboard_prints_the_address_and_ends_with_the_connection(
    harness: SurveyHarness, page: PageHarness, forwards: Path
) -> None:
    harness.lead(holder="web-0_4711")
    (forwards / "pipe").unlink()
    (forwards / "pipe").write_text("the connection ends at once")
    got = await harness.cli.beside("dashboard", "--no-open", "--port", "8081", "--config", harness.config)
    assert got.stdout == f"Pod default/web-0 leads; its status page: {page.url}/status\n"
    assert (got.returncode, got.stderr) == (2, "error: the connection to Pod web-0 ended; start the command again\n")
    assert asked(forwards)[-1] == "8081:8080"


RBAC = "rbac.authorization.k8s.io/v1"
BINDINGS = Kind("ClusterRoleBinding", RBAC, "clusterrolebindings", status=False, namespaced=False)


def bind(server: FakeApiServer, name: str, namespace: str) -> None:
    """Create the ClusterRoleBinding of a controller."""
    subjects = [{"kind": "ServiceAccount", "name": "apisix-ingress", "namespace": namespace}]
    labels = {"app.kubernetes.io/name": "apisix-ingress"}
    kind = {"apiVersion": RBAC, "kind": "ClusterRoleBinding"}
    server.put({**kind, "metadata": {"name": name, "labels": labels}, "subjects": subjects})


@pytest.fixture
def unnamed(harness: SurveyHarness, forwards: Path) -> SurveyHarness:
    """A configuration that does not name the namespace of the controller."""
    config = json.loads((forwards / harness.config).read_text())
    del config["kubernetes"]["election"]
    harness.cli.write(harness.config, json.dumps(config))
    harness.server.install(BINDINGS)
    harness.server.remove("leases", "apisix-ingress-leader")
    return harness


async def test_the_lease_is_in_the_namespace_of_the_controller(unnamed: SurveyHarness, forwards: Path) -> None:
    """A tenant who may write Leases must not choose the Pod."""
    bind(unnamed.server, "apisix-ingress", "ingress")
    unnamed.lead(namespace="ingress", holder="web-0_4711")
    unnamed.lead(holder="evil-0_4711")
    assert (await unnamed.ask("hosts", "web"))[0] == 0
    assert asked(forwards)[2] == "--namespace=ingress"


@pytest.mark.parametrize(
    ("namespaces", "want"),
    [
        ((), "must name one namespace, not none: set --controller-namespace"),
        (("ingress",), "Lease ingress/apisix-ingress-leader does not exist: set --controller-namespace"),
        (("a", "b"), "must name one namespace, not a, b: set --controller-namespace"),
    ],
)
async def test_the_only_lease_is_not_that_of_the_controller(
    unnamed: SurveyHarness, forwards: Path, namespaces: Sequence[str], want: str
) -> None:
    """The controller is not installed yet, or its Lease was deleted."""
    unnamed.lead(namespace="evil", holder="evil-0_4711")
    for namespace in namespaces:
        bind(unnamed.server, namespace, namespace)
    got = await unnamed.cli.beside("hosts", "web", "--config", unnamed.config)
    assert (got.returncode, want in got.stderr) == (2, True), got.stderr
    assert not (forwards / "asked").exists()


@pytest.mark.parametrize(
    ("holder", "want"),
    [
        ("", "no replica leads, so nothing is written to the gateways"),
        ("--kubeconfig=x_1", "its holder '--kubeconfig=x_1' is not a Pod"),
    ],
)
async def test_without_a_leader_commands_report_it(
    harness: SurveyHarness, forwards: Path, holder: str, want: str
) -> None:
    harness.lead(holder=holder)
    got = await harness.cli.beside("dashboard", "--no-open", "--config", harness.config)
    assert (got.returncode, want in got.stderr) == (2, True), got.stderr
    assert not (forwards / "asked").exists()


async def test_errors_of_kubectl_are_reported(
    harness: SurveyHarness, forwards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.lead(holder="web-0_4711")
    harness.cli.write("error", "error: pods is forbidden")
    got = await harness.cli.beside("dashboard", "--no-open", "--config", harness.config)
    want = "error: kubectl port-forward to Pod default/web-0: error: pods is forbidden\n"
    assert (got.returncode, got.stderr) == (2, want)
    (forwards / "bin" / "kubectl").unlink()
    monkeypatch.setenv("PATH", str(forwards / "bin"))
    got = await harness.cli.beside("hosts", "--config", harness.config)
    assert (got.returncode, "kubectl is not installed" in got.stderr) == (2, True)

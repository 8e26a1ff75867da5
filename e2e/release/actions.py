"""Stand-ins for the actions of the workflow: what GitHub's services do is done here with buildah and cosign."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.charts.kinds import ROOT
from e2e.cluster.binaries import locate_helm
from e2e.release import tools
from e2e.release.containers import Containers
from e2e.release.registry import HOST, USER, Registry
from e2e.release.rehearsal import Facts, NotRunError, Rehearsal
from e2e.release.shell import CommandError

EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
KEY_ONLY = {"COSIGN_PASSWORD": "", "COSIGN_YES": "true"}


@dataclass(frozen=True, slots=True)
class Block:
    """One step of a job as it runs: its files, and the values of `${{ … }}`."""

    rehearsal: Rehearsal
    registry: Registry
    state: Path
    github: Mapping[str, str]
    id: str

    @property
    def folder(self) -> Path:
        """The checkout of the job."""
        return self.state / "checkout"

    def environment(self) -> dict[str, str]:
        """Return the variables of GitHub, those the job has set, and those of the registry."""
        return {**self.github, **self.registry.environment(), **KEY_ONLY, **_variables(self.state / "env")}

    def fill(self, text: str) -> str:
        """Replace the expressions of a text; an unknown one is a defect of the rehearsal."""
        return EXPRESSION.sub(lambda found: self._value(found[1]), text)

    def _value(self, name: str) -> str:
        scope, _, rest = name.partition(".")
        if scope == "env":
            return _get(self.environment(), rest)
        if scope == "steps":
            step, _, output = rest.split(".")
            return _get(_variables(self.state / "outputs" / step), output)
        return {
            "github.token": self.registry.token,
            "github.actor": USER,
            "vars.PYTHON_IMAGE": pinned_base(self.rehearsal),
        }[name]

    def cosign(self, *words: str) -> str:
        """Run cosign with the key, against the registry."""
        program = str(tools.locate_tool(self.rehearsal, tools.COSIGN))
        command = self.registry.wrap(program, *words)
        return self.rehearsal.shell.run(*command, env=self.environment(), timeout=300)


def _variables(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split("=", 1) for line in lines)


def _get(variables: Mapping[str, str], name: str) -> str:
    if name not in variables:
        raise NotRunError(f"an earlier step did not set {name}")
    return variables[name]


def pinned_base(rehearsal: Rehearsal) -> str:
    """Return the base image of the Dockerfile with the digest of the one that stands in for it."""
    text = (rehearsal.checkout / "deploy/Dockerfile").read_text()
    (name,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", text, re.MULTILINE)
    digest = Containers(rehearsal).inspect(rehearsal.need("base image"))["FromImageDigest"]
    return f"{name}@{digest}"


def make_key(rehearsal: Rehearsal) -> None:
    """Make the key that stands in for the identity of the workflow."""
    cosign = tools.locate_tool(rehearsal, tools.COSIGN)
    folder = rehearsal.work / "keys"
    folder.mkdir(exist_ok=True)
    if not (folder / "cosign.key").exists():
        rehearsal.shell.run(cosign, "generate-key-pair", cwd=folder, env=KEY_ONLY)
    rehearsal.made |= {"key": str(folder / "cosign.key"), "public key": str(folder / "cosign.pub")}


def checkout(block: Block, _given: Mapping[str, str]) -> Facts:
    """Clone the commit."""
    shell = block.rehearsal.shell
    shell.run("rm", "-rf", block.folder)
    shell.run("git", "clone", "--quiet", "--shared", "--no-checkout", ROOT, block.folder)
    shell.run("git", "checkout", "--quiet", "--detach", block.rehearsal.commit, cwd=block.folder)
    return {"stand-in": "git clone"}


def installed(program: str) -> Callable[[Block, Mapping[str, str]], Facts]:
    """Return the stand-in for an action that installs a program which is here already."""

    def show(block: Block, _given: Mapping[str, str]) -> Facts:
        version = "version" if program == "go" else "--version"
        return {"stand-in": block.rehearsal.shell.run(program, version).splitlines()[0]}

    return show


def log_in(block: Block, given: Mapping[str, str]) -> Facts:
    """Log in to the registry as the workflow's user."""
    with block.registry.serving():
        command = ("buildah", "login", "--username", given["username"], "--password-stdin", given["registry"])
        block.rehearsal.shell.run(
            *block.registry.wrap(*command), env=block.environment(), stdin=given["password"], timeout=60
        )
    return {"stand-in": f"buildah login {HOST}"}


def build_and_push(block: Block, given: Mapping[str, str]) -> Facts:
    """Push the image that the part `image` has built from the same files, with its SBOM as an attestation."""
    rehearsal = block.rehearsal
    work = rehearsal.work
    image = rehearsal.need("image")
    storage = ("--root", str(work / "storage"), "--runroot", str(work / "run"))
    digest = work / "workflow" / "digest"
    push = ("buildah", *storage, "push", "--digestfile", str(digest), image, f"docker://{given['tags']}")
    with block.registry.serving():
        rehearsal.shell.run(*block.registry.wrap(*push), env=block.environment(), timeout=600)
        subject = f"{given['tags'].rpartition(':')[0]}@{digest.read_text()}"
        key = ("--key", rehearsal.need("key"), "--tlog-upload=false")
        block.cosign("attest", *key, "--type", "cyclonedx", "--predicate", rehearsal.need("SBOM"), subject)
    (block.state / "outputs" / block.id).write_text(f"digest={digest.read_text()}\n")
    rehearsal.made["published image"] = subject
    return {"stand-in": "buildah, with the image built above", "image": subject, "SBOM": "attached (CycloneDX)"}


def attest(block: Block, given: Mapping[str, str]) -> Facts:
    """Sign the provenance of files, or of something in the registry."""
    rehearsal = block.rehearsal
    predicate = rehearsal.work / "workflow" / "provenance.json"
    predicate.write_text(json.dumps(provenance(rehearsal), indent=1))
    options = ("--key", rehearsal.need("key"), "--tlog-upload=false", "--type", "slsaprovenance1",
               "--predicate", str(predicate))  # fmt: skip
    if pattern := given.get("subject-path"):
        files = sorted(block.folder.glob(pattern))
        assert files, f"no file matches {pattern}"
        for path in files:
            block.cosign("attest-blob", *options, "--output-signature", f"{path}.intoto.jsonl", str(path))
            Path(f"{path}.intoto.jsonl").rename(rehearsal.work / "workflow" / f"{path.name}.intoto.jsonl")
        return {"stand-in": "cosign attest-blob with a key", "files": str(len(files))}
    subject = f"{given['subject-name']}@{given['subject-digest']}"
    with block.registry.serving():
        block.cosign("attest", *options, subject)
    rehearsal.made[f"attested {block.state.name}"] = subject
    return {"stand-in": "cosign attest with a key", "subject": subject}


def provenance(rehearsal: Rehearsal) -> dict[str, object]:
    """Return a SLSA v1 predicate: which commit, which workflow, which base image."""
    source = {"uri": "git+https://example.org/apisix-ingress", "digest": {"gitCommit": rehearsal.commit}}
    return {
        "buildDefinition": {
            "buildType": "https://actions.github.io/buildtypes/workflow/v1",
            "externalParameters": {"workflow": {"path": ".github/workflows/release.yml"}},
            "resolvedDependencies": [source, {"uri": pinned_base(rehearsal)}],
        },
        "runDetails": {"builder": {"id": "https://example.org/apisix-ingress/release-rehearsal"}},
    }


def verify(rehearsal: Rehearsal) -> Facts:
    """Verify the signatures and provenance of image and chart, and the SBOM of the image, as a user does."""
    registry = Registry(rehearsal)
    block = Block(rehearsal, registry, rehearsal.work / "workflow" / "chart", {}, "")
    key = ("--key", rehearsal.need("public key"), "--insecure-ignore-tlog=true")
    image, chart = rehearsal.need("attested image"), rehearsal.need("attested chart")
    with registry.serving():
        for subject in (image, chart):
            block.cosign("verify", *key, subject)
            block.cosign("verify-attestation", *key, "--type", "slsaprovenance1", subject)
        block.cosign("verify-attestation", *key, "--type", "cyclonedx", image)
        try:
            block.cosign("verify", *key, rehearsal.made["published image"].partition("@")[0] + "@sha256:" + "0" * 64)
        except CommandError:
            return {"image": image, "chart": chart, "an unknown digest": "rejected"}
    raise AssertionError("cosign accepted a digest that was never published")


def pull_chart(rehearsal: Rehearsal) -> Facts:
    """Pull the chart by digest, as a user does, and render it with the digest of the image."""
    registry = Registry(rehearsal)
    block = Block(rehearsal, registry, rehearsal.work / "workflow" / "chart", {}, "")
    helm, folder = str(locate_helm()), rehearsal.work / "pulled"
    chart, image = rehearsal.need("attested chart"), rehearsal.need("attested image")
    rehearsal.shell.run("rm", "-rf", folder)
    with registry.serving():
        command = registry.wrap(helm, "pull", f"oci://{chart}", "--destination", str(folder), "--untar")
        folder.mkdir()
        rehearsal.shell.run(*command, env=block.environment())
    digest = image.partition("@")[2]
    values = ("--set", f"deployment.image.digest={digest}", "--set", "apisix.adminService.namespace=apisix",
              "--set", "gatewayProxy.provider.controlPlane.auth.adminKey.value=secret")  # fmt: skip
    rendered = rehearsal.shell.run(helm, "template", "release", folder / "apisix-ingress", *values)
    (deployment,) = [each for each in yaml.safe_load_all(rendered) if each and each["kind"] == "Deployment"]
    got = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert got == image, f"the chart installs {got} instead of {image}"
    rehearsal.made["published chart"] = str(folder / "apisix-ingress")
    return {"image in the chart": got}


STAND_INS: Mapping[str, Callable[[Block, Mapping[str, str]], Facts]] = {
    "actions/checkout": checkout,
    "actions/setup-go": installed("go"),
    "actions/setup-python": installed("python3"),
    "docker/setup-buildx-action": installed("buildah"),
    "docker/login-action": log_in,
    "docker/build-push-action": build_and_push,
    "actions/attest-build-provenance": attest,
}

"""The image: built from deploy/Dockerfile, twice, inspected, and run as the chart runs it."""

import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from e2e.cluster.client import wait_until
from e2e.devgateway.ports import free_port
from e2e.devgateway.process import DevGateway
from e2e.release.base import build_base
from e2e.release.containers import Containers, as_the_chart_does
from e2e.release.rehearsal import Facts, Rehearsal, Step
from e2e.release.sbom import write_sbom

TAG = "localhost/apisix-ingress:rehearsal"
AGAIN = "localhost/apisix-ingress:again"
PREVIOUS = "localhost/apisix-ingress:previous"
READY_TIMEOUT = 60.0
MEMORY = "256m"
# A program that compiles, installs or downloads.
UNWANTED = re.compile(
    r"/(gcc|cc|g\+\+|clang|ld|as|make|apt[\w-]*|dpkg[\w-]*|pip[\d.]*|uv|npm|perl[\d.]*|curl|wget|git)$"
)
SECRETS = re.compile(
    rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}|ghp_[A-Za-z0-9]{36}|AKIA[0-9A-Z]{16}"
)


def build(rehearsal: Rehearsal) -> Facts:
    """Build the image of the commit."""
    image = build_image(rehearsal, rehearsal.checkout, TAG)
    rehearsal.made["image"] = TAG
    return {"image": image}


def build_image(rehearsal: Rehearsal, checkout: Path, tag: str) -> str:
    """Build deploy/Dockerfile of a checkout on the base that stands in, and return the image's id."""
    base = rehearsal.need("base image")
    return Containers(rehearsal).build(
        checkout,
        tag,
        *("--timestamp", str(rehearsal.epoch), "--build-arg", f"PYTHON_IMAGE={base}"),
        *("--file", str(checkout / "deploy/Dockerfile")),
        *("--ignorefile", str(checkout / "deploy/Dockerfile.dockerignore")),
    )


def build_again(rehearsal: Rehearsal) -> Facts:
    """Build the same commit in another folder: the image must be the same, byte for byte."""
    containers = Containers(rehearsal)
    rehearsal.need("image")
    copy = rehearsal.work / "checkout-again"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(rehearsal.checkout, copy, symlinks=True)
    again = build_image(rehearsal, copy, AGAIN)
    first = containers.inspect(TAG)["FromImageID"]
    assert again == first, f"two builds differ: {first} and {again}; compare {TAG} and {AGAIN}"
    return {"both builds": first}


def inspect(rehearsal: Rehearsal) -> Facts:
    """Look at every file of the image."""
    containers = Containers(rehearsal)
    root = containers.unpack(rehearsal.need("image"), rehearsal.work / "rootfs")
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    names = {"/" + str(path.relative_to(root)) for path in files}
    programs = sorted(name for name in names if UNWANTED.search(name) and "/bin/" in name)
    assert programs == [], f"compilers or package managers in the image: {programs}"
    setuid = [str(path) for path in files if path.stat().st_mode & 0o6000]
    assert setuid == [], f"setuid programs in the image: {setuid}"
    secrets = [str(path) for path in files if has_secret(path.read_bytes())]
    assert secrets == [], f"private keys or tokens in the image: {secrets}"
    image = containers.inspect(TAG)["OCIv1"]
    assert image["config"]["User"] == "65532:65532", image["config"]
    size = sum(path.stat().st_size for path in files)
    archive = containers.save(TAG, rehearsal.work / "image.tar").stat().st_size
    layers = len(image["rootfs"]["diff_ids"])
    rehearsal.made["image archive"] = str(rehearsal.work / "image.tar")
    return {"size": f"{size / 1e6:.0f} MB unpacked, {archive / 1e6:.0f} MB compressed, {layers} layer",
            "files": str(len(files))}  # fmt: skip


def has_secret(content: bytes) -> bool:
    """Return whether a file has a private key or token; programs and libraries contain such texts as patterns."""
    return not content.startswith(b"\x7fELF") and bool(SECRETS.search(content))


def run_commands(rehearsal: Rehearsal) -> Facts:
    """Run commands of the program under the chart's security context, without a network."""
    containers = Containers(rehearsal)
    options = ("--rm", "--network", "none", *security(rehearsal, MEMORY), rehearsal.need("image"))
    started = time.monotonic()
    version = containers.podman("run", *options, "version")
    seconds = time.monotonic() - started
    crds = list(yaml.safe_load_all(containers.podman("run", *options, "crds")))
    assert {crd["kind"] for crd in crds} == {"CustomResourceDefinition"}, crds
    return {"version": f"{version}, in {seconds:.1f} s with the container", "crds": f"{len(crds)} definitions"}


def run_manifests(rehearsal: Rehearsal) -> Facts:
    """Run the controller from the image with files instead of an API server, until a gateway has the records."""
    with DevGateway() as gateway, running(rehearsal, gateway) as (name, url, seconds):
        wait_until(lambda: gateway.records("routes"), lambda routes: len(routes) >= 2, "the records of the quick start")
        containers = Containers(rehearsal)
        memory = containers.podman("stats", "--no-stream", "--format", "{{.MemUsage}}", name)
        assert "apisix_ingress" in httpx.get(f"{url}/metrics", trust_env=False).text
        containers.podman("stop", "--time", "30", name)
        code = containers.podman("inspect", "--format", "{{.State.ExitCode}}", name)
        assert code == "0", f"the controller ended with {code}: {containers.podman('logs', name)}"
    return {"ready after": f"{seconds:.1f} s, from podman run to /readyz", "memory": memory, "exit status": code}


@contextmanager
def running(rehearsal: Rehearsal, gateway: DevGateway) -> Iterator[tuple[str, str, float]]:
    """Run a controller on the machine's network; yield the container, its URL and the seconds until it was ready."""
    containers = Containers(rehearsal)
    url = f"127.0.0.1:{free_port()}"
    manifests = rehearsal.checkout / "examples/quickstart"
    command = ("run", "--manifests", "/manifests", "--admin-url", gateway.admin_url, "--http-listen", url)
    mount = (
        "--volume",
        f"{manifests}:/manifests:ro",
        "--env",
        f"APISIX_INGRESS_CLUSTERS__0__ADMIN_KEY={gateway.admin_key}",
    )
    started = time.monotonic()
    options = ("--detach", "--network", "host", *security(rehearsal, MEMORY), *mount)
    name = containers.podman("run", *options, rehearsal.need("image"), *command)
    try:
        wait_until(lambda: _answers(f"http://{url}/readyz"), bool, "the controller to be ready", READY_TIMEOUT)
        yield name, f"http://{url}", time.monotonic() - started
    finally:
        rehearsal.shell.log.open("a").write(containers.podman("logs", name) + "\n")
        containers.podman("rm", "--force", name)


def security(rehearsal: Rehearsal, memory: str) -> tuple[str, ...]:
    """Return podman's options for the chart's default security contexts."""
    values: Any = yaml.safe_load((rehearsal.checkout / "deploy/charts/apisix-ingress/values.yaml").read_text())
    deployment = values["deployment"]
    contexts = {"pod": deployment["podSecurityContext"], "container": deployment["securityContext"]}
    return tuple(as_the_chart_does(contexts, memory))


def list_components(rehearsal: Rehearsal) -> Facts:
    """Write the SBOM (CycloneDX) of the image's files."""
    rehearsal.need("image archive")
    path, components = write_sbom(rehearsal.work / "rootfs", rehearsal.work / "sbom.cdx.json")
    rehearsal.made["SBOM"] = str(path)
    return {name: str(count) for name, count in components.items()} | {"file": path.name}


def find_arm64_wheels(rehearsal: Rehearsal) -> Facts:
    """Download every locked package for arm64: wheels exist, with the locked hashes. Nothing is run."""
    folder = rehearsal.work / "arm64"
    platforms = [f"manylinux{version}_aarch64" for version in ("2014", "_2_17", "_2_28", "_2_34", "_2_36")]
    options = [word for name in platforms for word in ("--platform", name)]
    rehearsal.shell.run(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
        *("--dest", str(folder), "--only-binary", ":all:", "--python-version", "3.11", "--require-hashes", *options),
        *("-r", str(rehearsal.checkout / "requirements/run.txt")),
    )
    wheels = [path.name for path in folder.glob("*.whl")]
    return {"wheels": str(len(wheels)), "of these for aarch64": str(sum("aarch64" in name for name in wheels)),
            "not checked": "an arm64 image is not built or run here"}  # fmt: skip


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


STEPS = (
    Step("image", "a base that stands in for python:slim is built from Debian packages", build_base),
    Step("image", "the image is built from deploy/Dockerfile", build),
    Step("image", "a second build of the same commit is identical", build_again),
    Step("image", "no compiler, package manager, setuid program or private key is in the image", inspect),
    Step("image", "version and crds run under the chart's security context", run_commands),
    Step("image", "run --manifests becomes ready, writes records and stops cleanly", run_manifests),
    Step("image", "the SBOM lists the components", list_components),
    Step("image", "every locked package has a wheel for arm64", find_arm64_wheels),
)

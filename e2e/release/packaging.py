"""The wheel: installed with the users' own packages on every Python that this machine has, or Debian offers."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from e2e.release.rehearsal import Facts, NotRunError, Rehearsal, Step
from e2e.release.shell import CommandError

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
# Debian's releases that have a Python of their own; others come from the machine.
SUITES = {"3.13": "trixie", "3.14": "sid"}
# What users have beside the program: as new as possible, with their own extras.
NEIGHBOURS = ("kubernetes", "httpx[http2]", "pydantic[email]")
CERTIFICATES = "etc/ssl/certs"


def build_wheel(rehearsal: Rehearsal) -> Facts:
    """Build the wheel twice from the files of the commit: both must be the same."""
    builds = [_build(rehearsal, rehearsal.work / "wheel" / name) for name in ("first", "second")]
    assert builds[0].read_bytes() == builds[1].read_bytes(), "two builds of the wheel differ"
    rehearsal.made["wheel"] = str(builds[0])
    return {"file": builds[0].name, "size": f"{builds[0].stat().st_size / 1e3:.0f} kB"}


def install_on(version: str) -> Callable[[Rehearsal], Facts]:
    """Return the step for one version of Python."""

    def install(rehearsal: Rehearsal) -> Facts:
        wheel = Path(rehearsal.need("wheel"))
        run, python = interpreter(rehearsal, version)
        venv = rehearsal.work / "venvs" / version
        shutil.rmtree(venv, ignore_errors=True)
        uv = str(shutil.copy(Path(sys.executable).with_name("uv"), rehearsal.work / "uv"))
        bin_ = f"{venv}/bin"
        run(uv, "venv", "--quiet", "--python", python, str(venv))
        pip = (uv, "pip")
        into = ("--python", f"{bin_}/python")
        run(*pip, "install", "--quiet", *into, "--only-binary", ":all:", str(wheel), *NEIGHBOURS)
        run(*pip, "check", *into)
        listed = json.loads(run(*pip, "list", "--quiet", "--format", "json", *into))
        versions = {item["name"].lower(): item["version"] for item in listed}
        printed = [run(f"{bin_}/{name}", "version") for name in ("apisix-ingress", "kubectl-apisix_ingress")]
        assert set(printed) == {versions["apisix-ingress"]}, printed
        run(f"{bin_}/apisix-ingress", "translate", "-f", str(rehearsal.checkout / "examples/quickstart"))
        names = [re.split(r"\W", name)[0] for name in NEIGHBOURS]
        return {"Python": run(f"{bin_}/python", "--version"),
                "beside": ", ".join(f"{name} {versions[name]}" for name in names)}  # fmt: skip

    return install


def resolve(rehearsal: Rehearsal) -> Facts:
    """Let pip choose the versions as well, without installing them."""
    wheel = rehearsal.need("wheel")
    rehearsal.shell.run(sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", wheel, *NEIGHBOURS)
    return {"pip": rehearsal.shell.run(sys.executable, "-m", "pip", "--version").split(" from ")[0]}


Run = Callable[..., str]


def interpreter(rehearsal: Rehearsal, version: str) -> tuple[Run, str]:
    """Return how to run a Python of a version, and its name: the machine's own, or Debian's in a folder.

    Raises:
        NotRunError: if there is none.
    """
    for candidate in (f"python{version}", *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))):
        try:
            rehearsal.shell.run(candidate, "-c", "import venv")
        except CommandError:
            continue
        return rehearsal.shell.run, candidate
    if version not in SUITES:
        raise NotRunError(f"no Python {version} on this machine, and no supported release of Debian has one")
    return _debian(rehearsal, version), f"/usr/bin/python{version}"


def _debian(rehearsal: Rehearsal, version: str) -> Run:
    root = rehearsal.work / "debian" / version
    if not (root / "usr/bin" / f"python{version}").exists():
        _bootstrap(rehearsal, version, root)
    shared = root / str(rehearsal.work).lstrip("/")
    shared.mkdir(parents=True, exist_ok=True)

    def run(*words: str) -> str:
        # A mount namespace of its own: the mounts end with the command.
        mounts = f'mount --bind "{rehearsal.work}" "{shared}" && mount --bind /etc/ssl/certs "{root}/{CERTIFICATES}"'
        script = f'{mounts} && mount -t proc proc "{root}/proc" && exec chroot "{root}" "$@"'
        return rehearsal.shell.run("unshare", "--mount", "bash", "-c", script, "bash", *words)

    return run


def _bootstrap(rehearsal: Rehearsal, version: str, root: Path) -> None:
    packages = f"--include=ca-certificates,python{version}"
    try:
        rehearsal.shell.run("rm", "-rf", root)
        rehearsal.shell.run("debootstrap", "--variant=minbase", packages, SUITES[version], root, timeout=1200)
    except CommandError as e:
        raise NotRunError(f"no Python {version} on this machine, and debootstrap failed: {e}") from e
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")


def _build(rehearsal: Rehearsal, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    rehearsal.shell.run(
        *(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder),
        cwd=rehearsal.checkout,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


STEPS = (
    Step("packaging", "two builds of the wheel are identical", build_wheel),
    Step("packaging", "pip finds no conflict with the packages of users", resolve),
    *(
        Step("packaging", f"the wheel installs and runs on Python {version}", install_on(version))
        for version in VERSIONS
    ),
)

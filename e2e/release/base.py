"""Base images of Debian packages; one stands in for `python:…-slim`: the same release, with Debian's Python and pip."""

from pathlib import Path

from e2e.release.containers import Containers
from e2e.release.rehearsal import Facts, Rehearsal

TAG = "localhost/python:slim"
SUITE = "bookworm"
PACKAGES = "ca-certificates,python3,python3-pip,python3-venv"
# What the image of Docker Hub does differently: `python` in PATH, and pip may install into the system's Python.
CONTAINERFILE = """\
FROM scratch
ADD base.tar /
ENV LANG=C.UTF-8
CMD ["python3"]
"""


def build_base(rehearsal: Rehearsal) -> Facts:
    """Build the base image of the controller's image."""
    image = build_debian(rehearsal, rehearsal.work / "base", TAG, PACKAGES)
    rehearsal.made["base image"] = TAG
    version = Containers(rehearsal).podman("run", "--rm", "--network", "none", "--ulimit", "nofile=1024:4096",
                                "--ulimit", "nproc=4096:4096", TAG, "python", "--version")  # fmt: skip
    return {"image": image, "Python": version, "stands in for": "python:…-slim-bookworm of Docker Hub"}


def build_debian(rehearsal: Rehearsal, folder: Path, tag: str, packages: str) -> str:
    """Build an image from Debian packages and return its id; the files are kept for the next rehearsal."""
    folder.mkdir(parents=True, exist_ok=True)
    tar = folder / "base.tar"
    if not tar.exists():
        _bootstrap(rehearsal, folder / "root", tar, packages)
    (folder / "Containerfile").write_text(CONTAINERFILE)
    return Containers(rehearsal).build(folder, tag, "--timestamp", "0", "--file", str(folder / "Containerfile"))


def _bootstrap(rehearsal: Rehearsal, root: Path, tar: Path, packages: str) -> None:
    shell = rehearsal.shell
    shell.run("rm", "-rf", root)
    shell.run("debootstrap", "--variant=minbase", f"--include={packages}", SUITE, root, timeout=1200)
    for path in (*root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"), *root.glob("var/cache/apt/archives/*.deb")):
        path.unlink()
    shell.run("rm", "-rf", root / "var/lib/apt/lists", root / "var/cache/apt")
    if (root / "usr/bin/python3").exists():
        (root / "usr/bin/python").symlink_to("python3")
    options = ("--sort=name", "--mtime=@0", "--numeric-owner", "--exclude=./dev/*", "--exclude=./proc/*")
    shell.run("tar", "-C", root, *options, "-cf", tar, ".")
    shell.run("rm", "-rf", root)

"""The base image that stands in for `python:…-slim`: Debian of the same release, with Debian's Python and pip."""

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
    """Build the base image from Debian packages; the files are kept for the next rehearsal."""
    folder = rehearsal.work / "base"
    folder.mkdir(exist_ok=True)
    tar = folder / "base.tar"
    if not tar.exists():
        _bootstrap(rehearsal, folder / "root", tar)
    (folder / "Containerfile").write_text(CONTAINERFILE)
    containers = Containers(rehearsal)
    rehearsal.made["base image"] = TAG
    image = containers.build(folder, TAG, "--timestamp", "0", "--file", str(folder / "Containerfile"))
    version = containers.podman("run", "--rm", "--network", "none", "--ulimit", "nofile=1024:4096",
                                "--ulimit", "nproc=4096:4096", TAG, "python", "--version")  # fmt: skip
    return {"image": image, "Python": version, "stands in for": "python:…-slim-bookworm of Docker Hub"}


def _bootstrap(rehearsal: Rehearsal, root: Path, tar: Path) -> None:
    shell = rehearsal.shell
    shell.run("rm", "-rf", root)
    shell.run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, root, timeout=1200)
    for path in (*root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"), *root.glob("var/cache/apt/archives/*.deb")):
        path.unlink()
    shell.run("rm", "-rf", root / "var/lib/apt/lists", root / "var/cache/apt")
    (root / "usr/bin/python").symlink_to("python3")
    options = ("--sort=name", "--mtime=@0", "--numeric-owner", "--exclude=./dev/*", "--exclude=./proc/*")
    shell.run("tar", "-C", root, *options, "-cf", tar, ".")
    shell.run("rm", "-rf", root)

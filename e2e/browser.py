"""A real browser for the stories of the status page, and the accessibility checker that runs in it.

It uses an installed browser: `$APISIX_INGRESS_CHROMIUM`, Chromium or Chrome on the path, or Playwright's. `python -m
e2e.browser` installs what is missing, or explains how to install it without permission to do so. With
`APISIX_INGRESS_BROWSER=required`, as in CI, stories fail instead of being skipped.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from e2e.cluster.gobuild import cache_root, say_on_stderr

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run")
REMEDY = "install Chromium (Debian: apt-get install chromium) or name one in $APISIX_INGRESS_CHROMIUM"

AXE_VERSION = "4.10.3"
AXE_SHA512 = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
AXE_REMEDY = "run `python -m e2e.browser` where npm is installed and reaches its registry"
INSTALL_TIMEOUT = 900.0


class BrowserError(Exception):
    """Something is missing and cannot be installed; the message contains the remedy."""


def chromium(environ: Mapping[str, str] | None = None) -> Path:
    """Return the browser's program.

    Raises:
        BrowserError: There is no browser.
    """
    env = os.environ if environ is None else environ
    if named := env.get("APISIX_INGRESS_CHROMIUM"):
        return Path(named)
    found = next(filter(None, (shutil.which(name, path=env.get("PATH", "")) for name in NAMES)), None)
    if found:
        return Path(found)
    if own := sorted((Path(env.get("HOME", "/")) / ".cache" / "ms-playwright").glob("chromium-*/chrome-linux*/chrome")):
        return own[-1]
    raise BrowserError(f"there is no browser: {REMEDY}")


def axe(environ: Mapping[str, str] | None = None) -> Path:
    """Return the script of axe-core.

    Raises: BrowserError: It has not been downloaded yet.
    """
    path = _axe_path(os.environ if environ is None else environ)
    if not path.is_file():
        raise BrowserError(f"axe-core {AXE_VERSION} is not in the cache: {AXE_REMEDY}")
    return path


def _axe_path(env: Mapping[str, str]) -> Path:
    return cache_root(env) / f"axe-core-{AXE_VERSION}.min.js"


@contextmanager
def launched() -> Iterator[Browser]:
    """Run the browser; without one, a story is skipped, or fails if a browser is required."""
    program = or_skip(chromium)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def or_skip(locate: Callable[[], Path]) -> Path:
    """Return what `locate` finds; without it, skip or fail."""
    try:
        return locate()
    except BrowserError as error:
        if os.environ.get("APISIX_INGRESS_BROWSER") == "required":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def provide() -> None:
    """Install the browser and axe-core if they are missing.

    Raises: BrowserError: This user is not permitted to install it, or the installation failed.
    """
    try:
        chromium()
    except BrowserError:
        _install("chromium", REMEDY)
        chromium()
    if not _axe_path(os.environ).is_file():
        if shutil.which("npm") is None:
            _install("npm", AXE_REMEDY)
        _fetch_axe(_axe_path(os.environ))


def _install(package: str, remedy: str) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise BrowserError(f"{package} is missing and cannot be installed by this user: {remedy}")
    say_on_stderr(f"installing {package} once")
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", package]):
        done = subprocess.run(
            ["apt-get", *command], env=env, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False
        )
        if done.returncode != 0:
            raise BrowserError(f"apt-get {command[0]} failed: {done.stderr.strip()[-500:]}")


def _fetch_axe(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        command = ["npm", "pack", f"axe-core@{AXE_VERSION}", "--silent", "--ignore-scripts"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
        archives = list(Path(work).glob("*.tgz"))
        if done.returncode != 0 or len(archives) != 1:
            raise BrowserError(f"npm pack axe-core failed: {done.stderr.strip()[-500:]}")
        check_digest(archives[0].read_bytes(), AXE_SHA512)
        with tarfile.open(archives[0]) as archive:
            member = archive.extractfile("package/axe.min.js")
            assert member is not None
            fresh = Path(work, "axe.min.js")
            fresh.write_bytes(member.read())
        fresh.replace(path)


def check_digest(content: bytes, want: str) -> None:
    """Compare a SHA-512 digest in base64.

    Raises:
        BrowserError: It differs.
    """
    if base64.b64encode(hashlib.sha512(content).digest()).decode() != want:
        raise BrowserError(f"axe-core {AXE_VERSION} is not the pinned release: its digest differs")


def main() -> int:
    """Provide both; report what is missing, and fail only where they are required."""
    try:
        provide()
    except (BrowserError, subprocess.TimeoutExpired, OSError) as error:
        say_on_stderr(f"the stories of the status page cannot run: {error}")
        return 1 if os.environ.get("APISIX_INGRESS_BROWSER") == "required" else 0
    print(chromium())
    return 0


if __name__ == "__main__":
    sys.exit(main())

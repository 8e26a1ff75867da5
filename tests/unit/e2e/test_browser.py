"""The browser of the stories: where it is found, and the effect of its absence."""

import base64
import hashlib
from pathlib import Path

import pytest

from e2e import browser
from e2e.browser import AXE_VERSION, BrowserError, axe, check_digest, chromium, or_skip


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_configured_browser_outranks_the_path_which_outranks_playwright(tmp_path: Path) -> None:
    own = program(tmp_path / ".cache/ms-playwright/chromium-1200/chrome-linux", "chrome")
    env = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    assert chromium(env) == own
    on_path = program(tmp_path / "bin", "google-chrome")
    assert chromium(env) == on_path
    assert chromium(env | {"APISIX_INGRESS_CHROMIUM": "/opt/chrome"}) == Path("/opt/chrome")


def test_a_missing_browser_is_reported_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(BrowserError, match="apt-get install chromium"):
        chromium({"HOME": str(tmp_path), "PATH": str(tmp_path)})


def test_axe_is_read_from_the_cache(tmp_path: Path) -> None:
    env = {"APISIX_INGRESS_CACHE": str(tmp_path)}
    with pytest.raises(BrowserError, match=r"python -m e2e\.browser"):
        axe(env)
    (tmp_path / f"axe-core-{AXE_VERSION}.min.js").write_text("x")
    assert axe(env) == tmp_path / f"axe-core-{AXE_VERSION}.min.js"


def test_downloads_must_match_the_pinned_digest() -> None:
    check_digest(b"x", base64.b64encode(hashlib.sha512(b"x").digest()).decode())
    with pytest.raises(BrowserError, match="its digest differs"):
        check_digest(b"y", base64.b64encode(hashlib.sha512(b"x").digest()).decode())


def _nowhere() -> Path:
    raise BrowserError("there is none")


def test_story_is_skipped_without_a_browser_and_fails_if_one_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("APISIX_INGRESS_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="there is none"):
        or_skip(_nowhere)
    monkeypatch.setenv("APISIX_INGRESS_BROWSER", "required")
    with pytest.raises(pytest.fail.Exception, match="there is none"):
        or_skip(_nowhere)


def test_missing_browser_ends_the_installation_only_if_it_is_required(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(browser, "provide", _nowhere)
    monkeypatch.delenv("APISIX_INGRESS_BROWSER", raising=False)
    assert browser.main() == 0
    assert "cannot run: there is none" in capsys.readouterr().err
    monkeypatch.setenv("APISIX_INGRESS_BROWSER", "required")
    assert browser.main() == 1

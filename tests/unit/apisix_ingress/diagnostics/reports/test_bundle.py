"""The archive of a bundle: its permissions, what it overwrites, and the kept part of a ConfigMap."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path

import pytest
import yaml

from apisix_ingress.diagnostics.object_masking import Mask
from apisix_ingress.diagnostics.reports.bundle import check_target, metadata_map, write_bundle
from apisix_ingress.errors import IngressError


@pytest.fixture(autouse=True)
def open_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("force", [False, True])
def test_an_archive_is_readable_by_its_owner_only(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "one.zip"
    if force:
        path.write_text("before")
    write_bundle(path, {"a.json": "{}"}, force=force)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert zipfile.ZipFile(path).read("a.json") == b"{}"
    assert list(tmp_path.iterdir()) == [path]


def test_what_has_come_since_is_not_overwritten(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "one.zip", tmp_path / "elsewhere"
    path.symlink_to(elsewhere)
    with pytest.raises(IngressError, match="File exists"):
        write_bundle(path, {"a.json": "{}"})
    write_bundle(path, {"a.json": "{}"}, force=True)
    assert not elsewhere.exists()
    assert list(tmp_path.iterdir()) == [path]


def test_of_a_config_map_only_what_is_read_is_kept_and_its_yaml_masked() -> None:
    text = (
        "- cluster: default\n  plugins:\n  - name: http-logger\n    metadata: {log_format: {team: blue, host: $host}}\n"
    )
    raw = {"kind": "ConfigMap", "data": {"config.yaml": text, "other": "never read"}}
    (shown,) = metadata_map(raw, Mask())["data"].values()
    (entry,) = yaml.safe_load(shown)[0]["plugins"]
    assert entry == {"name": "http-logger", "metadata": {"log_format": {"team": "[redacted]", "host": "$host"}}}


@pytest.mark.parametrize("text", ["a: [", "a: {a: *b}", "x: 2001-01-01T00:00:00.5Z\ny: \u0001", 7])
def test_config_map_that_cannot_be_read_is_not_shown(text: object) -> None:
    shown = metadata_map({"data": {"config.yaml": text}}, Mask())["data"]
    assert shown in ({}, {"config.yaml": "[redacted]"})


def test_name_of_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IngressError, match=r"bundle.tar.gz: the archive is a ZIP file"):
        check_target(tmp_path / "bundle.tar.gz")
    check_target(tmp_path / "bundle.zip")

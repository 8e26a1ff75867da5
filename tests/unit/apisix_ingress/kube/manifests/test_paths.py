"""Whether something is at a path, on every version of Python."""

from pathlib import Path

import pytest

from apisix_ingress.kube.manifests.paths import exists


def test_existing_and_missing_objects_are_distinguished(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dead").symlink_to("nowhere")
    names = (".", "file", "link", "dead", "nowhere", "file/below", "a\0b")
    assert [exists(tmp_path / name) for name in names] == [True, True, True, False, False, False, False]


def test_an_inaccessible_path_is_not_reported_as_missing(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    for name in ("x" * 300, "circle"):
        with pytest.raises(OSError):  # noqa: PT011
            exists(tmp_path / name)

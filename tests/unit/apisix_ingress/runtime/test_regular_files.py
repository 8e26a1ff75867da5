"""Reading of configured files: only regular files are accepted, and large ones are read up to the limit."""

import os
import socket
from pathlib import Path

import pytest

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.manifests.loader import load
from apisix_ingress.runtime.regular_files import read_regular
from apisix_ingress.settings import ClusterSettings, load_settings

LARGEST = 10 * 2**20


@pytest.fixture
def odd(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a link to something that is not a regular file."""
    path = tmp_path / "odd"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "socket":
        monkeypatch.chdir(tmp_path)  # the path of a socket may be too long otherwise
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("odd")
    else:
        path = Path("/dev/zero")
    link = tmp_path / "z.yaml"
    link.symlink_to(path)
    return link


ODD = pytest.mark.parametrize("odd", ["pipe", "socket", "device"], indirect=True)


@ODD
def test_only_regular_files_are_accepted_everywhere(odd: Path) -> None:
    kind = "a (pipe|socket|device), not a regular file"
    with pytest.raises(OSError, match=kind):
        read_regular(odd, 10)
    for found in (load([odd]), load([odd.parent])):
        assert [f"{odd}: cannot be read: a " in str(error) for error in found.errors] in ([True], [])
    assert load([odd]).errors
    with pytest.raises(ConfigError, match=f"cannot be read: {kind}"):
        load_settings(odd)
    with pytest.raises(ConfigError, match=f"cannot be read: {kind}"):
        ClusterSettings(admin_key_file=str(odd)).read_admin_key()


def test_a_large_file_is_read_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(100 * LARGEST)
    assert len(read_regular(path, 1000)) == 1001
    assert [str(error) for error in load([path]).errors] == [f"{path}: larger than 10 MB"]
    with pytest.raises(ConfigError, match="larger than"):
        load_settings(path)
    with pytest.raises(ConfigError, match="must contain only the admin key"):
        ClusterSettings(admin_key_file=str(path)).read_admin_key()
    path.write_bytes(b"x" * 1000)
    assert read_regular(path, 1000) == b"x" * 1000


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="a folder"):
        read_regular(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 10)

"""Admin keys from files that change."""

import os
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from apisix_ingress.errors import ConfigError
from apisix_ingress.gateway.adminapi.admin_key import AdminKey


def read(path: Path) -> SecretStr:
    """Read a key as the settings do: a missing or empty file has none."""
    if not path.exists() or not path.read_text():
        raise ConfigError("no key")
    return SecretStr(path.read_text())


def test_key_file_that_is_being_replaced_keeps_the_old_key(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old-key")
    key = AdminKey(partial(read, path), str(path))
    path.unlink()
    assert key.changed()
    assert not key.refresh()
    assert key.secret == "old-key"


def test_key_file_that_can_not_be_read_is_another_one_once_and_is_read_at_each_refusal(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old-key")
    readable = True

    def read_if_allowed() -> SecretStr:
        if not readable:
            raise ConfigError("no right to")
        return read(path)

    key = AdminKey(read_if_allowed, str(path))
    for spoil in (lambda: path.write_text(""), path.unlink):
        spoil()
        got = [key.changed(), key.refresh(), key.changed(), key.refresh(), key.changed()]
        assert got == [True, False, False, False, False]
    readable = False
    path.write_text("new-key")
    assert [key.changed(), key.refresh(), key.changed()] == [True, False, False]
    readable = True  # by a change of permissions, which does not change the times of the file
    assert [key.refresh(), key.secret, key.changed()] == [True, "new-key", False]


def test_a_key_written_after_its_file_was_empty_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old-key")
    key = AdminKey(partial(read, path), str(path))
    path.write_text("")
    stamp = path.stat()
    assert not key.refresh()
    path.write_text("new-key")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # within one tick of the clock of the file system
    assert [key.changed(), key.refresh(), key.secret] == [True, True, "new-key"]

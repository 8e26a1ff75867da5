"""A place for a configuration file."""

from pathlib import Path

import pytest


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"

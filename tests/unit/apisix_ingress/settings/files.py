"""A configuration file, and what is read from it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from apisix_ingress.errors import ConfigError
from apisix_ingress.settings import Settings, load_settings


def load(path: Path, text: str, environ: Mapping[str, str] | None = None, **overrides: object) -> Settings:
    path.write_text(text, encoding="utf-8")
    return load_settings(path, overrides, environ)


def complaint(path: Path, text: str, environ: Mapping[str, str] | None = None, **overrides: object) -> str:
    """Return the error for `text`, without the name of the file."""
    with pytest.raises(ConfigError) as caught:
        load(path, text, environ, **overrides)
    return str(caught.value).replace(str(path), "FILE")

"""What `run` does, without the library that the command line is parsed with: no start is to wait for it.

The options and their help are declared once, with the other commands, in `commands.app`. Here is only which command
lines say the same to every parser: `run` and its options, each once, with a value that can't be taken for an option.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import NoReturn


def start(
    *,
    config: str | None = None,
    kubeconfig: str | None = None,
    admin_url: str | None = None,
    admin_key: str | None = None,
    manifests: str | None = None,
    http_listen: str | None = None,
    log_level: str | None = None,
    log_format: str | None = None,
) -> NoReturn:
    """Run the controller; each parameter is the option of that name.

    Raises:
        SystemExit: It was told to stop, or an argument can't be used.
        IngressError: It can't start.
    """
    from apisix_ingress.startup.slim_imports import lean_imports

    with lean_imports():
        from apisix_ingress.app import run_controller
        from apisix_ingress.settings import load_settings

    overrides = {
        "kubernetes": {"kubeconfig": kubeconfig},
        "http": {"listen": http_listen},
        "log": {"level": log_level, "format": log_format},
        "clusters": {0: {"admin_url": admin_url, "admin_key": admin_key}},
    }
    if manifests == "":
        from apisix_ingress.commands.common.output import fail

        fail("--manifests '': no such file or folder")  # as a path it would be the current folder
    settings = load_settings(None if config is None else Path(config), overrides, os.environ)
    raise SystemExit(run_controller(settings, Path(manifests) if manifests else None))


def plain_options(words: Sequence[str]) -> Mapping[str, str] | None:
    """Return the arguments of `start` that a plain command line gives; None for every other command line.

    Whatever is not plain (help, `--name=value`, an option twice or without a value, one nobody knows) is for typer.
    """
    if words[:1] != ["run"] or len(words) % 2 == 0:
        return None
    names = {f"--{name.replace('_', '-')}": name for name in signature(start).parameters}
    given = dict(zip(words[1::2], words[2::2], strict=True))
    if len(given) * 2 + 1 != len(words) or not given.keys() <= names.keys():
        return None
    if any(not value or value.startswith("-") for value in given.values()):
        return None
    return {names[word]: value for word, value in given.items()}

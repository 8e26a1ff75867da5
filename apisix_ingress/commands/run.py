"""Implements `run`: reads the settings and runs the controller until it is stopped."""

from __future__ import annotations

import gc
import os
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
        SystemExit: The controller was stopped, or an argument is invalid.
        IngressError: The controller cannot start.
    """
    # Imported modules are never garbage: without collections the imports take a tenth less time.
    gc.disable()
    from apisix_ingress.app import run_controller
    from apisix_ingress.settings import load_settings

    gc.freeze()
    gc.enable()
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
    raise SystemExit(run_controller(settings, Path(manifests) if manifests else None, config or ""))

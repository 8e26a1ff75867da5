"""Implements `run`: reads the settings and runs the controller until it is stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, NoReturn

from apisix_ingress.app import run_controller
from apisix_ingress.commands.arguments.parameters import Option
from apisix_ingress.commands.common.output import (
    AdminKeyOption,
    AdminUrlOption,
    ConfigOption,
    KubeconfigOption,
    fail,
)
from apisix_ingress.settings import load_settings

ManifestsOption = Annotated[str | None, Option(metavar="PATH", help="Manifests to watch instead of an API server.")]
ListenOption = Annotated[str | None, Option(metavar="HOST:PORT", help="Listen address of health and metrics.")]
LevelOption = Annotated[str | None, Option(metavar="LEVEL", help="debug, info, warning or error.")]
FormatOption = Annotated[str | None, Option(metavar="FORMAT", help="auto, console or json.")]


def run(
    config: ConfigOption = None,
    kubeconfig: KubeconfigOption = None,
    admin_url: AdminUrlOption = None,
    admin_key: AdminKeyOption = None,
    manifests: ManifestsOption = None,
    http_listen: ListenOption = None,
    log_level: LevelOption = None,
    log_format: FormatOption = None,
) -> NoReturn:
    """Run the controller until SIGTERM, SIGINT or SIGHUP.

    Exit 0 after a requested stop, 2 if it cannot start.

    Examples:
        apisix-ingress run --config config.yaml
        apisix-ingress run --kubeconfig ~/.kube/config --log-level debug
    """
    overrides = {
        "kubernetes": {"kubeconfig": kubeconfig},
        "http": {"listen": http_listen},
        "log": {"level": log_level, "format": log_format},
        "clusters": {0: {"admin_url": admin_url, "admin_key": admin_key}},
    }
    if manifests == "":
        fail("--manifests '': no such file or folder")  # as a path it would be the current folder
    settings = load_settings(config, overrides, os.environ)
    raise SystemExit(
        run_controller(settings, Path(manifests) if manifests else None, "" if config is None else str(config))
    )

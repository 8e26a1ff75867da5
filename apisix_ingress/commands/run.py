"""Implements `run`: reads the settings and runs the controller until it is stopped."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

from apisix_ingress.commands.arguments.parameters import Option
from apisix_ingress.commands.common.output import (
    AdminKeyOption,
    AdminUrlOption,
    ConfigOption,
    KubeconfigOption,
    fail,
)

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
    # Imported modules are never garbage: without collections the imports take a tenth less time.
    gc.disable()
    with no_system_certificates():
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
        fail("--manifests '': no such file or folder")  # as a path it would be the current folder
    settings = load_settings(config, overrides, os.environ)
    raise SystemExit(
        run_controller(settings, Path(manifests) if manifests else None, "" if config is None else str(config))
    )


@contextmanager
def no_system_certificates() -> Iterator[None]:
    """Hide the system's CA certificates from OpenSSL, and from nothing else, while modules are imported.

    aiohttp creates two TLS contexts at import, and OpenSSL parses every certificate for both: 45 ms of each start. No
    request of the controller uses them: each connection has a context of its own. They would trust no server.
    """
    names = ("SSL_CERT_FILE", "SSL_CERT_DIR")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

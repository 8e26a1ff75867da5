"""The plugin schemas that versions of APISIX publish, shipped with the program for checks without a gateway.

`python -m reference.plugin_schemas` writes the files, from a gateway with every plugin enabled.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from apisix_ingress.errors import UsageError
from apisix_ingress.webhook.schemas.book import SchemaBook, compile_subsystem

OFF_BY_DEFAULT = frozenset(
    {
        "batch-requests",
        "brotli",
        "dubbo-proxy",
        "error-log-logger",
        "error-page",
        "exit-transformer",
        "gm",
        "log-rotate",
        "node-status",
        "ocsp-stapling",
        "opentelemetry",
        "server-info",
        "skywalking",
    }
)
"""The plugins that ship with APISIX and that its default configuration does not enable (3.18, conf/config.yaml)."""

_PREFIX, _SUFFIX = "apisix-", ".json.gz"
_FOLDER = Path(__file__).parent


def versions() -> tuple[str, ...]:
    """Return the versions of APISIX whose schemas are known, the oldest first."""
    names = (path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX) for path in _FOLDER.glob(f"{_PREFIX}*{_SUFFIX}"))
    return tuple(sorted(names, key=lambda name: [int(part) for part in name.split(".")]))


def published_book(version: str = "") -> SchemaBook:
    """Return the schemas of a version such as 3.18; by default those of the newest one.

    Raises:
        UsageError: Its schemas are not known.
    """
    known = versions()
    wanted = version or known[-1]
    if wanted not in known:
        raise UsageError(f"plugin schemas of APISIX {wanted} are not included: use one of {', '.join(known)}")
    document = json.loads(gzip.decompress((_FOLDER / f"{_PREFIX}{wanted}{_SUFFIX}").read_bytes()))
    return SchemaBook(compile_subsystem(document["http"]), compile_subsystem(document["stream"]))

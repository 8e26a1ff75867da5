"""Writes the plugin schemas that `lint` uses offline, as a gateway of that version publishes them.

`python -m reference.plugin_schemas 3.18 http://127.0.0.1:9180/apisix/admin [EXTRA …]`, with the admin key in ADMIN_KEY.
The gateway must have every plugin enabled. EXTRA are plugins that it knows but could not load: only their names are
known then.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

FOLDER = Path("apisix_ingress/webhook/schemas")
_NOTES = ("description", "$comment")


def document_of(subsystems: dict[str, Any], extra: list[str]) -> bytes:
    """Return the content of the file: subsystem → plugin → schemas, without descriptions."""
    found = {name: {plugin: _entry(entry) for plugin, entry in plugins.items()} for name, plugins in subsystems.items()}
    found["http"] |= {name: {} for name in extra}
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    return gzip.compress(text.encode(), 9, mtime=0)


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: _trimmed(entry[name]) for name in ("schema", "consumer_schema") if name in entry}


def _trimmed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _trimmed(item) for key, item in value.items() if not (key in _NOTES and isinstance(item, str))}
    return [_trimmed(item) for item in value] if isinstance(value, list) else value


def _read(url: str, subsystem: str) -> Any:
    headers = {"X-API-KEY": os.environ.get("ADMIN_KEY", "")}
    request = Request(f"{url}/plugins?all=true&subsystem={subsystem}", headers=headers)
    with urlopen(request, timeout=30) as answer:  # the gateway of the user
        return json.load(answer)


if __name__ == "__main__":
    version, address, *names = sys.argv[1:]
    path = FOLDER / f"apisix-{version}.json.gz"
    path.write_bytes(document_of({name: _read(address, name) for name in ("http", "stream")}, names))
    print(path)

"""Records what a gateway says about plugin configurations, for the contract test of the checks of `lint`.

`python -m reference.plugin_answers http://127.0.0.1:9180/apisix/admin`, with the admin key in ADMIN_KEY, sends the
configurations in the file again and writes the answers. The gateway must be one for tests: it gets a route and a
consumer, which are deleted.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

FILE = Path("tests/unit/apisix_ingress/lint/plugin_answers.jsonl")
_NAME = "plugin_answers"


def _send(url: str, method: str, path: str, body: Any = None) -> str:
    """Return the error of the gateway; empty if it accepts the request."""
    headers = {"X-API-KEY": os.environ.get("ADMIN_KEY", ""), "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(f"{url}/{path}", data=data, headers=headers, method=method), timeout=30):
            return ""
    except HTTPError as error:
        return str(json.loads(error.read()).get("error_msg") or error.code)


def record(url: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return a case with the answer of the gateway at an Admin API."""
    plugins = {case["plugin"]: case["config"]}
    if case.get("consumer"):
        path, body = f"consumers/{_NAME}", {"username": _NAME, "plugins": plugins}
    else:
        upstream = {"nodes": {"127.0.0.1:1": 1}, "type": "roundrobin"}
        path, body = f"routes/{_NAME}", {"uri": f"/{_NAME}", "upstream": upstream, "plugins": plugins}
    error = _send(url, "PUT", path, body)
    if not error:
        _send(url, "DELETE", path)
    return {**case, "error": error}


if __name__ == "__main__":
    (address,) = sys.argv[1:]
    cases = [json.loads(line) for line in FILE.read_text().splitlines()]
    FILE.write_text("".join(f"{json.dumps(record(address, case), sort_keys=True)}\n" for case in cases))
    print(FILE)

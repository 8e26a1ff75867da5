"""What is done to an API server of a story's own and to its etcd: other flags, history that is forgotten."""

import base64
import json
import urllib.request
from typing import Any

from e2e.cluster.local import LocalCluster


def restart(cluster: LocalCluster, *flags: str) -> None:
    """Start the API server again with further flags; the last of a name counts."""
    cluster.kill_apiserver()
    cluster.apiserver.command += flags
    cluster.start_apiserver()


def compact(cluster: LocalCluster) -> None:
    """Have etcd forget all history, through its JSON gateway."""
    flag = "--etcd-servers="
    url = next(each.removeprefix(flag) for each in cluster.apiserver.command if each.startswith(flag))

    def call(path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(f"{url}/v3/kv/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    revision = call("range", {"key": base64.b64encode(b"x").decode()})["header"]["revision"]
    call("compaction", {"revision": revision, "physical": True})

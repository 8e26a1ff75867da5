"""Operations on a separate API server and its etcd: restart with other flags, compaction."""

import base64
import json
import urllib.request
from typing import Any

from e2e.cluster.local import LocalCluster


def restart(cluster: LocalCluster, *flags: str) -> None:
    """Restart the API server with additional flags; the last flag with a name is used."""
    cluster.kill_apiserver()
    cluster.apiserver.command += flags
    cluster.start_apiserver()


def compact(cluster: LocalCluster) -> None:
    """Compact etcd's whole history, through its JSON gateway."""
    flag = "--etcd-servers="
    url = next(each.removeprefix(flag) for each in cluster.apiserver.command if each.startswith(flag))

    def call(path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(f"{url}/v3/kv/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    revision = call("range", {"key": base64.b64encode(b"x").decode()})["header"]["revision"]
    call("compaction", {"revision": revision, "physical": True})

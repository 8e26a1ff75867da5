"""What a start must not import."""

import json
import subprocess
import sys
from pathlib import Path


def test_the_kubernetes_package_is_imported_only_to_run_a_credential_plugin(tmp_path: Path) -> None:
    config = {
        "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "x", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": "x",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    script = (
        "import asyncio, sys\n"
        "import apisix_ingress.app\n"
        "from apisix_ingress.kube.client.api import KubeApi\n"
        "async def connect():\n"
        "    async with await KubeApi.connect(sys.argv[1]):\n"
        "        pass\n"
        "asyncio.run(connect())\n"
        "print(*{'kubernetes', 'requests', 'urllib3', 'oauthlib', 'dateutil', 'websocket'} & set(sys.modules))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "config")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"

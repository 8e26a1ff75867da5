"""What the command line must not import before a command needs it: `--help` must print immediately."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"aiohttp", "click", "cryptography", "httpx", "kubernetes", "pydantic", "rich", "structlog", "yaml"}


@pytest.mark.parametrize("argument", ["--help", "version"])
def test_help_and_version_import_nothing_heavy(argument: str) -> None:
    script = (
        "import sys\n"
        "from apisix_ingress.cli import main\n"
        f"sys.argv = ['apisix-ingress', {argument!r}]\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    pass\n"
        "print('modules:', *sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    got = set(done.stdout.rpartition("modules:")[2].split())
    assert got & HEAVY == set()


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

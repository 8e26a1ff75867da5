"""What the command line must not import before a command needs it: `--help` answers at once."""

import subprocess
import sys

import pytest

HEAVY = {"aiohttp", "cryptography", "httpx", "kubernetes", "pydantic", "structlog", "yaml"}


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
    assert ("typer" in got) == (argument == "--help")
    assert got & HEAVY == set()


def test_the_controller_imports_no_part_of_a_library_that_it_never_uses() -> None:
    script = (
        "import gc, sys\n"
        "from apisix_ingress.startup.slim_imports import lean_imports\n"
        "with lean_imports():\n"
        "    import apisix_ingress.app\n"
        "unused = {'colorama', 'greenlet', 'httpx._client', 'pygments', 'rich', 'tenacity'}\n"
        "print(gc.isenabled(), *sorted({*unused, 'structlog'} & set(sys.modules)))\n"
        "import rich\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "structlog"]


def test_of_httpx_only_the_exceptions_are_imported_and_the_whole_for_who_asks_later() -> None:
    script = (
        "import sys\n"
        "from apisix_ingress.startup.slim_imports import lean_imports\n"
        "with lean_imports():\n"
        "    import apisix_ingress.app\n"
        "    from apisix_ingress.gateway.adminapi.retry import CUT_OFF\n"
        "print(*sorted(name for name in sys.modules if name.partition('.')[0] == 'httpx'))\n"
        "import httpx\n"
        "print(httpx.ReadError in CUT_OFF, httpx.AsyncClient.__name__)\n"
        "with lean_imports():\n"
        "    import httpx as again\n"
        "print(again is httpx)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["httpx._exceptions", "True", "AsyncClient", "True"]


def test_templates_and_regular_expressions_are_loaded_with_the_first_page_that_needs_them() -> None:
    script = (
        "import sys\n"
        "import apisix_ingress.statuspage.service\n"
        "from apisix_ingress.statuspage.render import link\n"
        "print(link('/x'), *({'jinja2', 'regex'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["/status/x"]


def test_no_system_certificates_are_read_by_an_import_and_all_by_who_asks_later() -> None:
    script = (
        "import ssl\n"
        "from apisix_ingress.startup.slim_imports import lean_imports\n"
        "both = lambda: (ssl.SSLContext.load_default_certs, ssl.SSLContext.set_default_verify_paths)\n"
        "before = both()\n"
        "with lean_imports():\n"
        "    import apisix_ingress.app\n"
        "    inside = ssl.create_default_context()\n"
        "    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\n"
        "    bare.set_default_verify_paths()\n"
        "print(inside.cert_store_stats()['x509'], inside.verify_mode.name, inside.check_hostname)\n"
        "print(bare.cert_store_stats()['x509'], *(one is other for one, other in zip(both(), before)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "CERT_REQUIRED", "True", "0", "True", "True"]


def test_a_start_loads_what_is_for_some_clusters_or_for_later_only_when_it_is_needed() -> None:
    script = (
        "import sys\n"
        "from apisix_ingress.startup.slim_imports import lean_imports\n"
        "with lean_imports():\n"
        "    import apisix_ingress.app\n"
        "of_kinds = ('route', 'upstream', 'tls', 'consumer', 'cluster_config', 'plugin_config', 'global_rule')\n"
        "for name in ('apisix_ingress.statuspage.service', 'aiohttp.web', *(f'crds.v2.{kind}' for kind in of_kinds),\n"
        "             *(f'translation.{kind}' for kind in ('ingress', 'plugin_metadata', *of_kinds))):\n"
        "    if name in sys.modules:\n"
        "        print(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_of_prometheus_client_only_what_counts_is_imported_and_the_whole_with_the_first_look() -> None:
    script = (
        "import sys\n"
        "from apisix_ingress.startup.slim_imports import lean_imports\n"
        "with lean_imports():\n"
        "    from apisix_ingress.observability.metrics import Metrics\n"
        "print(*({'prometheus_client', 'http.server', 'wsgiref'} & set(sys.modules)))\n"
        "metrics = Metrics(pod='p', namespace='n')\n"
        "metrics.set_leader(True)\n"
        "print(b'_leader' in metrics.render())\n"
        "import prometheus_client, prometheus_client.metrics\n"
        "from apisix_ingress.observability.metrics import Counter\n"
        "print(prometheus_client.Counter is Counter is prometheus_client.metrics.Counter)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\nTrue\nTrue\n"

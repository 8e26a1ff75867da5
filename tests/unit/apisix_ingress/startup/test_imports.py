"""What the command line must not import before a command needs it: `--help` answers at once."""

import subprocess
import sys

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


def test_templates_and_regular_expressions_are_loaded_with_the_first_page_that_needs_them() -> None:
    script = (
        "import sys\n"
        "import apisix_ingress.statuspage.service\n"
        "from apisix_ingress.statuspage.render import link\n"
        "print(link('/x'), *({'jinja2', 'regex'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["/status/x"]


def test_a_start_loads_what_is_for_some_clusters_or_for_later_only_when_it_is_needed() -> None:
    script = (
        "import sys\n"
        "import apisix_ingress.app\n"
        "of_kinds = ('route', 'upstream', 'tls', 'consumer', 'cluster_config', 'plugin_config', 'global_rule')\n"
        "for name in ('apisix_ingress.statuspage.service', 'aiohttp.web', *(f'crds.v2.{kind}' for kind in of_kinds),\n"
        "             *(f'translation.{kind}' for kind in ('ingress', 'plugin_metadata', *of_kinds))):\n"
        "    if name in sys.modules:\n"
        "        print(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == ""

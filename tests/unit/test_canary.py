"""The search for canaries in the output of tests can fail."""

import base64
import subprocess
import sys
from pathlib import Path

import pytest

from tests.canary import marked, shown_in

ROOT = Path(__file__).parents[2]
LEAK = """
import sys
import structlog
from tests.canary import marked

def test_print():
    print(marked("key"))

def test_log():
    structlog.get_logger().info("oops", key=marked("key"))

def test_quiet():
    print("nothing", file=sys.stderr)
"""


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_a_canary_is_found_wherever_base64_puts_it(before: str) -> None:
    encoded = base64.b64encode(f"{before}{marked('key')} and more".encode()).decode()
    assert shown_in([("log", f"x {encoded}"), ("stdout", marked("key")), ("stderr", "none")]) == ["log", "stdout"]


def test_a_test_that_shows_a_canary_fails(tmp_path: Path) -> None:
    (tmp_path / "test_leak.py").write_text(LEAK)
    # Without the summary, which repeats reasons, whole ones under CI.
    options = ["-rN", "-p", "tests.canary", "-p", "no:cacheprovider", "-q", "--rootdir", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ("2 failed, 1 passed" in done.stdout, done.stdout.count("a secret is shown")) == (True, 2), done.stdout

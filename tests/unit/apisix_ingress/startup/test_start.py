"""A signal that arrives while the program starts ends it."""

import signal
import subprocess
import sys

import pytest


def signalled_while_starting(number: signal.Signals, *, first_process: bool) -> subprocess.CompletedProcess[str]:
    """Run the program, which gets a signal before the controller handles signals."""
    script = (
        "import os, signal, sys\n"
        # A shell that runs the tests in the background may ignore it, and processes inherit that.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from apisix_ingress import cli\n"
        "me = os.getpid()\n"
        f"if {first_process}: os.getpid = lambda: 1\n"
        "def run_command():\n"
        f"    os.kill(me, {int(number)})\n"
        "    print('went on')\n"
        "cli._run_command = run_command\n"
        "sys.argv = ['apisix-ingress', 'run']\n"
        "cli.main()\n"
    )
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("number", "first_process", "status"),
    [
        (signal.SIGTERM, True, 143),
        (signal.SIGTERM, False, -signal.SIGTERM),
        (signal.SIGINT, True, 130),
        (signal.SIGINT, False, 130),
    ],
)
def test_a_signal_before_the_controller_listens_ends_the_program(
    number: signal.Signals, *, first_process: bool, status: int
) -> None:
    done = signalled_while_starting(number, first_process=first_process)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")

"""Signals to a command whose ports are published."""

import os
import signal
import subprocess
import sys

import pytest

OUTER = """
import asyncio, sys
from e2e.cluster.forward import run_with_ports
sys.exit(asyncio.run(run_with_ports([sys.executable, "-c", sys.argv[1]], [])))
"""
INNER = """
import signal, sys
codes = {signal.SIGINT: 40, signal.SIGTERM: 41}
# Held back until it is waited for: one that came just before a pause would not end that.
signal.pthread_sigmask(signal.SIG_BLOCK, codes)
print("ready", flush=True)
sys.exit(codes[signal.sigwait(codes)])
"""


@pytest.mark.parametrize(("number", "want"), [(signal.SIGINT, 40), (signal.SIGTERM, 41)])
def test_a_signal_to_the_outer_process_reaches_the_command(number: signal.Signals, want: int) -> None:
    # A session of its own has no terminal: what a script or another shell sends.
    with subprocess.Popen(
        [sys.executable, "-c", OUTER, INNER], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as outer:
        try:
            assert outer.stdout is not None
            assert outer.stdout.readline() == "ready\n"
            os.kill(outer.pid, number)
            assert outer.wait(30) == want
        finally:
            outer.kill()

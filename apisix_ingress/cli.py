"""The entry point of the program: runs the command and turns an exception into one line and an exit status.

The commands are imported inside functions, so that `version` is fast and SIGTERM is handled from the start.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import NoReturn

from apisix_ingress import __version__
from apisix_ingress.errors import IngressError
from apisix_ingress.startup.std_streams import open_streams

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a full output device. Commands that write a file report failures themselves."""

_INTERRUPTED = 128 + 2
"""The exit status of shells for SIGINT."""

_TERMINATED = 128 + 15
"""The exit status of shells for SIGTERM."""


def main() -> None:
    """Run the command line. On a configuration error or a full output device, print one line and exit with status 2."""
    _handle_sigterm()
    open_streams()
    try:
        _run_command()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    except BrokenPipeError:
        _drop_output()  # the reader has closed the pipe
        raise SystemExit(1) from None
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _fail_output(error)
    finally:
        _flush()


def complete_kubectl() -> None:
    """Complete a command line of the kubectl plugin; kubectl runs this as `kubectl_complete-apisix_ingress`."""
    from apisix_ingress.commands.app import complete_for_kubectl

    complete_for_kubectl(sys.argv[1:])


def _handle_sigterm() -> None:
    """Exit on SIGTERM also as PID 1, for which the kernel ignores the signal unless the process handles it.

    Otherwise a process that gets SIGTERM before the controller installs its handler would start, lead, and be killed.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(_TERMINATED))


def _flush() -> None:
    """Write buffered output now, because the interpreter's exit is too late to report a failure."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return  # the reader has closed the pipe
    except OSError as error:
        _fail_output(error)


def _fail_output(error: OSError) -> NoReturn:
    _drop_output()
    _fail(f"standard output: {error.strerror}")


def _drop_output() -> None:
    # Discard the rest of the buffer; otherwise the interpreter would try to write it at exit and print an error.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _run_command() -> None:
    words = sys.argv[1:]
    if words in (["version"], ["--version"]):  # --version because many users try it first
        print(__version__)
        return
    try:
        from apisix_ingress.commands.app import run_program, shown_name

        run_program(words, shown_name(os.path.basename(sys.argv[0])))
    except IngressError as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    from apisix_ingress.commands.common.output import fail

    fail(message)

"""The entry point of the program: runs the command and turns errors into one line and an exit status.

Imports that take time are inside functions, so that `version` answers at once and SIGTERM is handled from the start.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import NoReturn

from apisix_ingress.startup.std_streams import open_streams

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Commands whose only write is their output; commands that write a file report failures themselves."""

_INTERRUPTED = 128 + 2
"""The exit status of shells for SIGINT, and typer's."""

_TERMINATED = 128 + 15
"""The exit status of shells for SIGTERM."""


def main() -> None:
    """Run the command line; a configuration error, or a full output device, ends it with one line and exit status 2."""
    _heed_sigterm()
    open_streams()
    try:
        _run_command()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _fail_output(error)
    finally:
        _flush()


def _heed_sigterm() -> None:
    """Let SIGTERM end the first process of a container too: there it is ignored unless the process handles it.

    Otherwise a process that is asked to stop before the controller listens for it would start, lead, and be killed in
    the end.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(_TERMINATED))


def _flush() -> None:
    """Write buffered output: at the exit of the interpreter it would be too late to report a failure."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return  # whoever read it has enough
    except OSError as error:
        _fail_output(error)


def _fail_output(error: OSError) -> NoReturn:
    _drop_output()
    _fail(f"standard output: {error.strerror}")


def _drop_output() -> None:
    # What is left in the buffer goes nowhere, or the interpreter would try once more at its exit, and complain.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _run_command() -> None:
    from apisix_ingress.errors import IngressError

    words = sys.argv[1:]
    if words in (["version"], ["--version"]):  # the second is what many try first
        from apisix_ingress import __version__

        print(__version__)
        return
    try:
        from apisix_ingress.commands.app import app

        app(standalone_mode=True)
    except IngressError as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    from apisix_ingress.commands.common.output import fail

    fail(message)

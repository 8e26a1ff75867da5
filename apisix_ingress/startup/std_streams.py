"""Opens standard streams that the parent process has closed."""

import os
import sys


def open_streams() -> None:
    """Open closed standard streams on /dev/null.

    Python has None for a closed stream, and the next file or socket would get its number: output for the stream would
    go into that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115  # for the life of the process

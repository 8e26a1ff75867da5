"""The standard streams of this process, which whoever started it may have closed. Nothing is written here."""

import os
import sys


def open_streams() -> None:
    """Open standard streams that were closed on nothing: what is told on one of them must not get into another.

    Before that Python has None for a stream that was closed, and the next file or socket would get its number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115  # for the life of the process

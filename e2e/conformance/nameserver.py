"""The stand-in for CoreDNS in Pods of the suite, run as a script: it responds to every query without records."""

from __future__ import annotations

import socket

_ANSWER = 0x8180
"""Flags: a response, recursion desired and available, no error."""


def main() -> None:
    """Respond on UDP port 53 until the process ends."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("0.0.0.0", 53))
    while True:
        question, client = server.recvfrom(4096)
        server.sendto(question[:2] + _ANSWER.to_bytes(2, "big") + question[4:], client)


if __name__ == "__main__":
    main()

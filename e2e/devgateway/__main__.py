"""Command line of the development gateway: `python -m e2e.devgateway`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from e2e.devgateway.adminapi.service import DEFAULT_ADMIN_KEY
from e2e.devgateway.etcd import EtcdDown
from e2e.devgateway.server import Gateway, Options


def say(line: str) -> None:
    """Print one line immediately: tests and `make demo` wait for these lines."""
    print(line, flush=True)


def parse(arguments: list[str]) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m e2e.devgateway", description="A stand-in for Apache APISIX, for development only."
    )
    parser.add_argument("--admin", default=Options.admin, help="listen address of the Admin API")
    parser.add_argument("--proxy", default=Options.proxy, help="listen addresses for HTTP traffic, separated by commas")
    parser.add_argument("--tls", default=Options.tls, help="listen addresses for HTTPS traffic, separated by commas")
    parser.add_argument("--admin-key", default=DEFAULT_ADMIN_KEY, help="the admin key (default: APISIX's old default)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--etcd", help="URL of an etcd to use (default: start one)")
    where.add_argument(
        "--standalone",
        nargs="?",
        type=int,
        const=10 * 2**20,
        default=0,
        metavar="BYTES",
        help="keep records in memory, given by the Admin API, up to a size (default: 10 MiB)",
    )
    where.add_argument(
        "--data-dir", type=Path, help="data directory of the etcd that this program starts (default: data is not kept)"
    )
    parser.add_argument("--no-stream", action="store_true", help="reject stream routes, as if stream mode were off")
    parser.add_argument("--faults", action="store_true", help="enable /devgateway/ on the admin listener, for tests")
    found = parser.parse_args(arguments)
    return Options(
        admin=found.admin,
        proxy=found.proxy,
        tls=found.tls,
        admin_key=found.admin_key,
        etcd=found.etcd,
        data_dir=found.data_dir,
        stream=not found.no_stream,
        standalone=found.standalone,
        faults=found.faults,
    )


async def serve(options: Options) -> None:
    """Run until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with Gateway(options, say):
        await stop.wait()
    say("stopped")


def main() -> int:
    """Run the command; return the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    options = parse(sys.argv[1:])
    try:
        asyncio.run(serve(options))
    except (OSError, RuntimeError, ValueError, EtcdDown) as error:
        print(f"devgateway: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

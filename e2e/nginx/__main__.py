"""`python -m e2e.nginx [CASE...]`: replays the recording against a gateway, inside `e2e.netns`."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path

from e2e.nginx.client import Client
from e2e.nginx.corpus import CASES, Case, cases
from e2e.nginx.replay import Result, Setup, replaying
from e2e.nginx.world import Certificates

RESULTS = Path(__file__).with_name("results.json")
"""Group → number of cases, and how many of them a real APISIX 3.18 serves as recorded, for the documentation."""


async def _main(args: argparse.Namespace) -> None:
    certificates = Certificates()
    client = Client(args.proxy, args.http, args.https, certificates.context)
    results: list[Result] = []
    wanted = [case for case in cases(args.cases) if not args.case or any(map(case.name.startswith, args.case))]
    setup = Setup(args.admin_url, args.admin_key, client, certificates, args.dns_port, args.target, args.lean)
    async with replaying(setup) as replay:
        for case in wanted:
            if case.why_skipped:
                print(f"skip {case.name}: {case.why_skipped}", flush=True)
                continue
            try:
                result = await replay.run(case)
            except Exception as error:
                result = Result(case, (f"replay failed: {error!r}",), ())
            results.append(result)
            _show(result)
    _summary(wanted, results)
    if args.write:
        RESULTS.write_text(json.dumps(_table(wanted, results), indent=1) + "\n")


def _show(result: Result) -> None:
    state = "ok    " if not result.differences else "differ" if result.verdicts else "SILENT"
    print(f"{state} {result.case.name}", flush=True)
    for line in result.differences[:4]:
        print("       ", line[:600], flush=True)


def _summary(wanted: list[Case], results: list[Result]) -> None:
    good = sum(not result.differences for result in results)
    silent = sum(bool(result.differences) and not result.verdicts for result in results)
    print(f"{good} of {len(wanted)} as recorded, {silent} differ without a verdict")


def _table(wanted: list[Case], results: list[Result]) -> dict[str, list[int]]:
    total = Counter(case.group for case in wanted)
    good = Counter(result.case.group for result in results if not result.differences)
    return {group: [total[group], good[group]] for group in sorted(total)}


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m e2e.nginx", description=__doc__)
    parser.add_argument("case", nargs="*", help="beginning of a name; every case without one")
    parser.add_argument("--cases", type=Path, default=CASES, help="a packed recording")
    parser.add_argument("--admin-url", default="http://127.0.0.1:9180/apisix/admin")
    parser.add_argument("--admin-key", default="")
    parser.add_argument("--proxy", default="127.0.0.1")
    parser.add_argument("--http", type=int, default=80)
    parser.add_argument("--https", type=int, default=443)
    parser.add_argument("--dns-port", type=int, default=5353, help="the gateway's resolver must be there")
    parser.add_argument("--target", choices=("apisixroute", "httproute"), help="replay `migrate --write`")
    parser.add_argument("--lean", action="store_true", help="replay with `ingress_nginx.fidelity: lean`")
    parser.add_argument("--write", action="store_true", help="write results.json")
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()

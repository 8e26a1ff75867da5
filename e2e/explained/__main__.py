"""`python -m e2e.explained`: compares `explain` with a gateway for generated sets of objects, and prints the shares."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import ExitStack

from e2e.devgateway.process import DevGateway
from e2e.explained.compare import Target, compare_sets, shares
from e2e.explained.corpus import comparable, compare_corpus
from e2e.explained.objects import PROVIDERS

CORPUS = "corpus"


def target_of(gateway: DevGateway) -> Target:
    """Return a development gateway as the target of a comparison."""
    host, _, http = gateway.proxy_address.partition(":")
    return Target(gateway.admin_url, gateway.admin_key, host, int(http), int(gateway.tls_address.partition(":")[2]))


def main() -> None:
    """Compare, print a line per provider and each wrong prediction, and exit 1 if there is one."""
    parser = argparse.ArgumentParser(prog="python -m e2e.explained", description=__doc__)
    parser.add_argument("--sets", type=int, default=100, help="sets of objects of each provider")
    parser.add_argument("--start", type=int, default=0, help="number of the first set")
    parser.add_argument("--provider", action="append", choices=[*PROVIDERS, CORPUS])
    parser.add_argument("--every", type=int, default=1, help="only each n-th case of the corpus")
    parser.add_argument("--admin-url", default="", help="default: a development gateway")
    parser.add_argument("--admin-key", default="")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--http", type=int, default=9080)
    parser.add_argument("--https", type=int, default=9443)
    args = parser.parse_args()
    wrong = 0
    with ExitStack() as stack:
        target = Target(args.admin_url, args.admin_key, args.host, args.http, args.https)
        if not args.admin_url:
            target = target_of(stack.enter_context(DevGateway(stream=False, faults=False)))
        for provider in args.provider or (*PROVIDERS, CORPUS):
            seeds = range(args.start, args.start + args.sets)
            comparison = compare_corpus(target, comparable(args.every)) if provider == CORPUS else None
            found = asyncio.run(comparison or compare_sets(target, provider, seeds))
            for each in found:
                if each.verdict == "wrong":
                    print(each.text)
            counts = shares(found)
            wrong += counts["wrong"]
            print(f"{provider}: {counts['right']} right, {counts['cannot say']} cannot say, {counts['wrong']} wrong")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()

"""Measures what records cost a real APISIX: CPU time of its worker per request, compared with routes by hand.

    python -m benchmarks.data_plane --admin-url URL --admin-key KEY --proxy-url URL --master PID --backend HOST:PORT

It writes the records of each configuration to the gateway, which must have one worker, and measures the configurations
in turn, each in a new worker: LuaJIT compiles what a worker has done first. The backend must respond with 200 to every
request. It needs wrk. `--attribute NAME` also measures the routes of a configuration without one plugin or condition at
a time. The records stay in the gateway.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from urllib.parse import urlsplit

from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import UPSERT_RANK
from benchmarks.data_plane.configurations import BY_HAND, CONFIGURATIONS, PATHS, REQUESTED, Json, Site, records
from benchmarks.data_plane.load import Gateway, Run
from translation.nginx.functions.attached import FIELD


def main() -> None:
    """Write the records, measure, and print a table."""
    arguments = _parser().parse_args()
    names = arguments.configurations.split(",")
    sites = [Site(name, arguments.hosts, arguments.backend, _port(arguments.proxy_url)) for name in (BY_HAND, *names)]
    every = {site: records(site) for site in sites}
    for body in every.values():
        _write(arguments, body)
    hosts = {site.name: [site.host(number) for number in range(site.hosts)] for site in sites}
    routes = {site.name: sum(key.kind == "routes" for key in body) for site, body in every.items()}
    for site, body in every.items():
        if site.name == arguments.attribute:
            for part, changed in _variants(site, body):
                _write(arguments, changed)
                hosts[f"without {part}"] = sorted({host for each in changed.values() for host in each["hosts"]})
    gateway = Gateway(arguments.proxy_url, arguments.master)
    _report(_measured(gateway, hosts, arguments), routes, arguments.hosts * len(PATHS))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.data_plane",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--admin-url", required=True)
    parser.add_argument("--admin-key", required=True)
    parser.add_argument("--proxy-url", required=True)
    parser.add_argument("--master", type=int, required=True, help="process ID of the gateway's nginx master")
    parser.add_argument("--backend", required=True, help="address and port")
    parser.add_argument("--configurations", default=",".join(CONFIGURATIONS), help="names; default %(default)s")
    parser.add_argument("--attribute", help="a configuration whose plugins are left out one at a time")
    parser.add_argument(
        "--hosts", type=int, default=300, help="hosts with three paths each; requests go to all of them"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=1, help="duration of a run")
    parser.add_argument("--connections", type=int, default=16)
    return parser


def _port(url: str) -> int:
    return urlsplit(url).port or 80


def _write(arguments: argparse.Namespace, bodies: Mapping[RecordKey, Json]) -> None:
    headers = {"X-API-KEY": arguments.admin_key, "Content-Type": "application/json"}
    for key in sorted(bodies, key=lambda each: UPSERT_RANK[each.kind]):
        url = f"{arguments.admin_url}/{key}"
        request = urllib.request.Request(url, json.dumps(bodies[key]).encode(), headers, method="PUT")
        with urllib.request.urlopen(request) as response:
            response.read()


def _variants(site: Site, bodies: Mapping[RecordKey, Json]) -> Iterator[tuple[str, dict[RecordKey, Json]]]:
    """Yield the routes of the first host, without one plugin or field, for a host of their own."""
    of_host = {key: body for key, body in bodies.items() if body.get("hosts") == [site.host(0)]}
    own = {key: body for key, body in of_host.items() if "upstream_id" in body}
    plugins = {name for body in own.values() for name in body.get("plugins", {})}
    values = {
        name for body in own.values() for each in body.get("plugins", {}).values() for name in each.get(FIELD, {})
    }
    for part in (*sorted(plugins), *sorted(values), "plugins", "vars", "enable_websocket", "timeout", "nothing"):
        name = part.replace("_", "-")
        yield (
            part,
            {
                RecordKey(key.kind, f"{key.id}-{name}"): _without(body, part) | {"hosts": [f"{name}.{site.host(0)}"]}
                for key, body in own.items()
            },
        )


def _without(body: Json, part: str) -> Json:
    """Return a route without a field, a plugin, or a value of the functions."""
    kept = {name: value for name, value in body.items() if name not in (part, "name")}
    for name, plugin in kept.get("plugins", {}).items():
        values = {key: value for key, value in plugin.get(FIELD, {}).items() if key != part}
        kept["plugins"] = {**kept["plugins"], name: plugin | ({FIELD: values} if FIELD in plugin else {})}
    if part in kept.get("plugins", {}):
        kept["plugins"] = {name: plugin for name, plugin in kept["plugins"].items() if name != part}
    return kept


def _measured(
    gateway: Gateway, hosts: Mapping[str, Sequence[str]], arguments: argparse.Namespace
) -> dict[str, list[Run]]:
    """Return the runs of each configuration; a run that is not counted comes before each."""
    found: dict[str, list[Run]] = {name: [] for name in hosts}
    for _ in range(arguments.rounds):
        for name, runs in found.items():
            gateway.renew_worker()
            gateway.run(hosts[name], REQUESTED, arguments.seconds, arguments.connections)
            runs.append(gateway.run(hosts[name], REQUESTED, arguments.seconds, arguments.connections))
    return found


def _report(found: Mapping[str, Sequence[Run]], routes: Mapping[str, int], paths: int) -> None:
    base = median(run.cpu for run in found[BY_HAND])
    print("| configuration | routes per path | CPU per request | ratio | requests/s | p99 |\n|---|---|---|---|---|---|")
    for name, runs in found.items():
        cpu, rate, p99 = (median(getattr(run, each) for run in runs) for each in ("cpu", "rate", "p99"))
        per_path = f"{routes[name] / paths:.2f}" if name in routes else ""
        print(f"| {name} | {per_path} | {cpu:.1f} µs | {cpu / base:.2f} | {rate:.0f} | {p99:.1f} ms |")


if __name__ == "__main__":
    main()

"""The setup for API server faults: routes, a gateway, and a controller behind a proxy.

It tracks the desired routes, so that after any fault it can check whether the gateway is in sync, and whether anything
was deleted by mistake. The tests define the faults.
"""

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.cluster.echo import EchoServers
from e2e.conftest import OWN
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.faults.proxies.api_proxy import ApiProxy
from e2e.story import route, says
from e2e.traffic import Traffic
from e2e.workload import PodFactory

ROUTES = "apisixroutes"
WATCHES = {"verb": "watch", "resource": ROUTES}
"""Matches watches of routes."""
BASE = tuple(f"base-{number:02}" for number in range(40))
"""Enough that losing all of them at once is suspicious."""
PATIENCE = 60.0


class ApiStand:
    """The environment of a story; created by `stand`.

    Attributes:
        api: A client of the API server, not through the proxy.
        want: Name of a route → its desired path.
    """

    def __init__(self, api: KubeClient, pods: PodFactory, gateway: DevGateway, proxy: ApiProxy, folder: Path) -> None:
        self.api, self.pods, self.gateway, self.proxy = api, pods, gateway, proxy
        self.namespace = pods.namespace
        self.host = f"{self.namespace}.example.org"
        self.traffic = Traffic(gateway.proxy_url)
        self.want: dict[str, str] = {}
        self._folder = folder
        self._meant: set[str] = set()
        self._changes = 0

    def controller(self, kubeconfig: Path, *, name: str = "own", **settings: Any) -> Controller:
        """Return a controller for the namespace, not yet started."""
        kubernetes = {
            "namespace_selector": f"kubernetes.io/metadata.name={self.namespace}",
            "election": {"name": f"lease-{self.namespace}"},
            **settings.pop("kubernetes", {}),
        }
        gateways = {"default": self.gateway}
        return Controller(
            self._folder, name=name, kubeconfig=kubeconfig, gateways=gateways, kubernetes=kubernetes, **settings
        )

    # -- objects

    def put(self, *names: str, version: str = "1") -> None:
        """Apply routes whose paths contain name and version."""
        self.want |= {name: f"/{name}/{version}" for name in names}
        manifests = [route(self.host, name=name, path=self.want[name]) for name in names]
        self.api.apply(manifests, namespace=self.namespace)

    def drop(self, *names: str) -> None:
        """Delete routes; from now on the gateway may lose them."""
        known = {each["name"]: key for key, each in self.gateway.records("routes").items()}
        for name in names:
            del self.want[name]
            self._meant.add(known.get(f"{self.namespace}_{name}_rule", ""))
            self.api.delete("ApisixRoute", name, namespace=self.namespace)

    def go_back(self, want: dict[str, str]) -> None:
        """Record that the API server has lost all changes after these routes."""
        known = {each["name"]: key for key, each in self.gateway.records("routes").items()}
        self._meant |= {known[f"{self.namespace}_{name}_rule"] for name in self.want.keys() - want.keys()}
        self.want = want

    def change(self) -> None:
        """Add two routes, change two, and delete the routes that the previous call added."""
        self._changes += 1
        self.drop(*[name for name in self.want if name.startswith("new-")])
        self.put(f"new-{self._changes}-a", f"new-{self._changes}-b")
        self.put(*BASE[:2], version=f"{self._changes + 1}")

    # -- records

    def routes(self) -> dict[str, str]:
        """Return what the gateway has: name of a route → its path."""
        found = self.gateway.records("routes").values()
        begin = f"{self.namespace}_"
        return {each["name"].removeprefix(begin).removesuffix("_rule"): each["uris"][0] for each in found}

    def until_right(self, timeout: float = PATIENCE) -> float:
        """Wait until the gateway is in sync; return the seconds that it took."""
        began = time.monotonic()
        wait_until(self.routes, lambda got: got == self.want, f"exactly {len(self.want)} routes", timeout)
        return time.monotonic() - began

    def until_said(self, name: str, status: str = "True") -> None:
        """Wait until the condition of a route is about its current generation."""
        self.api.wait("ApisixRoute", name, says(status), f"to be {status}", namespace=self.namespace)

    def writes(self) -> int:
        """Return the number of writes so far."""
        return len(self.gateway.write_log())

    def wrong_deletes(self, after: int = 0) -> list[str]:
        """Return wrong deletes: of any upstream, and of routes whose objects exist."""
        deletes = [write["path"] for write in self.gateway.write_log(after) if write["method"] == "DELETE"]
        return [path for path in deletes if path.rpartition("/")[2] not in self._meant]

    # -- requests and faults

    def asked(self, verb: str, resource: str = ROUTES, *, after: int = 0) -> list[Manifest]:
        """Return the requests of a kind except the first ones."""
        return self.proxy.requests(verb=verb, resource=resource)[after:]

    def watched(self) -> bool:
        """Return whether the last request for routes is an open watch, to which a rule for watches applies."""
        looks = sorted([*self.asked("list"), *self.asked("watch")], key=lambda line: line["number"])
        answered = {line["number"] for line in self.proxy.log.lines("answer")}
        return bool(looks) and looks[-1]["verb"] == "watch" and looks[-1]["number"] in answered

    def faults(self, action: str) -> int:
        """Return how often an action was applied."""
        return len(self.proxy.log.lines("fault", action=action))

    def until_played(self, action: str, times: int = 1) -> None:
        """Wait until an action was performed this many times in total."""
        wait_until(lambda: self.faults(action), lambda got: got >= times, f"{times} times {action}", PATIENCE)

    def overlapping(self, verb: str = "list") -> list[str]:
        """Return the kinds with two such requests in flight at the same time."""
        ended = {line["number"]: line["monotonic"] for line in self.proxy.log.lines("answer")}
        found: set[str] = set()
        busy_until: dict[str, float] = {}
        for line in self.proxy.requests(verb=verb):
            if busy_until.get(line["resource"], 0.0) > line["monotonic"]:
                found.add(line["resource"])
            busy_until[line["resource"]] = ended.get(line["number"], float("inf"))
        return sorted(found)


@contextmanager
def stand(
    api: KubeClient, kubeconfig: Path, echo_servers: EchoServers, folder: Path, base: Sequence[str] = BASE
) -> Iterator[ApiStand]:
    """Create a namespace with a pod, its Service and some routes, a gateway, and a proxy with this kubeconfig."""
    with ExitStack() as stack:
        mark = {"e2e-story": secrets.token_hex(3)}
        namespace = stack.enter_context(api.namespace("fault", labels=OWN | mark))
        pods = stack.enter_context(PodFactory(api, namespace, echo_servers))
        gateway = stack.enter_context(DevGateway())
        proxy = stack.enter_context(ApiProxy(kubeconfig, folder))
        made = ApiStand(api, pods, gateway, proxy, folder)
        pods.create("web")
        pods.service("web", {"app": "web"})
        made.put(*base)
        yield made


def calm(made: ApiStand, own: Controller) -> None:
    """End all faults and wait until all kinds are watched and the gateway is in sync."""
    made.proxy.play()
    wait_until(lambda: own.probe("/readyz"), lambda got: got[0] == 200, "every kind to be followed", PATIENCE)
    wait_until(made.watched, bool, "the routes to be watched", PATIENCE)
    made.until_right()


@contextmanager
def in_order(made: ApiStand, own: Controller) -> Iterator[ApiStand]:
    """Yield the setup in sync, restore it afterwards, and check that nothing was deleted by mistake."""
    calm(made, own)
    yield made
    calm(made, own)
    assert made.wrong_deletes() == []

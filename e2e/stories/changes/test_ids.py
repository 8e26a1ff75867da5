"""A story about ids: forged names that result in the ids of other records."""

from contextlib import ExitStack

from e2e.cluster.client import Manifest, wait_until
from e2e.cluster.echo import EchoServers
from e2e.conftest import OWN
from e2e.story import Stage, route, says
from e2e.traffic import RequestLoop
from e2e.workload import PodFactory
from tests.forging import forge

FLAPS = 6


def plugin_config(name: str, plugin: str, **config: object) -> Manifest:
    plugins = [{"name": plugin, "enable": True, "config": config}]
    return {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixPluginConfig",
        "metadata": {"name": name},
        "spec": {"plugins": plugins},
    }


class Attacker:
    """A tenant whose namespace sorts before the victim's, and who knows the names of the victim's records."""

    def __init__(self, stage: Stage, pods: PodFactory) -> None:
        self._stage, self._pods = stage, pods
        mine, victim = pods.namespace, stage.namespace
        self.service = forge(f"{victim}_web_80", f"{mine}_s", "_80").removeprefix(f"{mine}_").removesuffix("_80")
        self.config = forge(f"{victim}_guard", f"{mine}_p").removeprefix(f"{mine}_")
        self.rule = forge(f"{victim}_web_rule", f"{mine}_attack_").removeprefix(f"{mine}_attack_")

    def attack(self) -> None:
        """Create a Service, a plugin config and a route with forged names until they are published."""
        stage, namespace = self._stage, self._pods.namespace
        config = plugin_config(self.config, "fault-injection", abort={"http_status": 200, "body": "attacker"})
        host = f"{namespace}.example.org"
        mine = route(host, name="attack", service=self.service, plugin_config_name=self.config)
        mine["spec"]["http"][0]["name"] = self.rule
        self._pods.service(self.service, {"app": "theirs"})
        stage.api.apply([config, mine], namespace=namespace)
        stage.traffic.until_status(200, host)
        for kind, name in (("ApisixRoute", "attack"), ("ApisixPluginConfig", self.config), ("Service", self.service)):
            stage.api.delete(kind, name, namespace=namespace)
        wait_until(lambda: self._names(namespace), lambda got: not got, "the attacker's records to be gone")

    def _names(self, namespace: str) -> list[str]:
        kinds = ("routes", "plugin_configs", "upstreams")
        found = [body["name"] for kind in kinds for body in self._stage.gateway.records(kind).values()]
        return [name for name in found if name.startswith(f"{namespace}_")]


def test_forged_names_neither_get_requests_of_a_victim_nor_remove_its_protection(
    stage: Stage, echo_servers: EchoServers
) -> None:
    own = stage.start()
    stage.serve()
    guarded = route(stage.host, name="guarded", path="/guarded", plugin_config_name="guard")
    stage.apply([plugin_config("guard", "key-auth"), route(stage.host, path="/open"), guarded])
    stage.traffic.until_status(401, stage.host, "/guarded")
    stage.traffic.until_status(200, stage.host, "/open")
    ids = {kind: set(stage.gateway.records(kind)) for kind in ("routes", "upstreams", "plugin_configs")}
    with ExitStack() as stack:
        labels = OWN | {"e2e-story": stage.mark}
        namespace = stack.enter_context(stage.api.namespace("a", labels))
        pods = stack.enter_context(PodFactory(stage.api, namespace, echo_servers))
        pods.create("theirs")
        attacker = Attacker(stage, pods)
        open_ = stack.enter_context(RequestLoop(stage.traffic, stage.host, "/open"))
        closed = stack.enter_context(RequestLoop(stage.traffic, stage.host, "/guarded"))
        for number in range(FLAPS):
            attacker.attack()
            if number == FLAPS // 2:
                assert own.stop() == 0
                own.start()
    assert {(answer.status, answer.pod) for _, answer in open_.answers} == {(200, "web")}
    assert {answer.status for _, answer in closed.answers} == {401}
    assert {kind: set(stage.gateway.records(kind)) for kind in ids} == ids
    stage.wait_route(says("True"), "to be well")

"""A story of two tenants with one slow gateway: hundreds of rules of one do not delay the other.

A proxy delays each write by a second. The order of writes is asserted, not the time.
"""

import time

from e2e.cluster.client import wait_until
from e2e.faults.proxies.admin_proxy import AdminProxy
from e2e.story import Stage, route, says

RULES = 400
AT_ONCE = 16
"""Default number of concurrent writes."""
SLOW = {"match": {"method": "PUT|DELETE"}, "action": "delay", "seconds": 1.0}


def test_hundreds_of_rules_of_one_tenant_delay_neither_a_route_nor_a_revocation_of_another(
    stage: Stage, proxy: AdminProxy
) -> None:
    stage.start({"default": proxy})
    stage.serve()
    guarded: dict[str, dict[str, object]] = {"key-auth": {}}
    stage.apply([route(stage.host, plugins=guarded), keyed("jack", f"{stage.namespace}-key")])
    stage.traffic.until_status(200, stage.host, headers={"apikey": f"{stage.namespace}-key"})
    with stage.another_namespace("hog") as hog:
        stage.api.apply([external(), many_rules()], namespace=hog)
        proxy.play(SLOW)
        wait_until(lambda: len(stage.gateway.records("routes")), lambda got: got > AT_ONCE, "the first of its rules")
        before, began = len(proxy.entries()), time.monotonic()
        stage.apply(route(stage.host, name="new", path="/new"))
        stage.api.delete("ApisixConsumer", "jack", namespace=stage.namespace)
        stage.traffic.until_status(401, stage.host, headers={"apikey": f"{stage.namespace}-key"})
        stage.traffic.until_status(200, stage.host, "/new")
        routes = stage.gateway.records("routes")
        proxy.play()
        ours = {f"routes/{id_}" for id_, body in routes.items() if body["name"].endswith("_new_rule")}
        writes = sorted(proxy.writes(before), key=lambda entry: entry.received)
        revoked = next(place for place, entry in enumerate(writes) if entry.record.startswith("consumers/"))
        added = next(place for place, entry in enumerate(writes) if entry.record in ours)
        late = [entry for entry in writes if entry.received >= began]
        assert len(routes) < RULES, "there was nothing to overtake"
        assert max(revoked, added) <= 3 * AT_ONCE, (revoked, added, len(late))
        stage.wait_route(says("True"), "to be synced", "new")
        wait_until(lambda: len(stage.gateway.records("routes")), lambda got: got == RULES + 2, "all rules")


def keyed(name: str, key: str) -> dict[str, object]:
    """Return a consumer with a key."""
    spec = {"authParameter": {"keyAuth": {"value": {"key": key}}}}
    return {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixConsumer", "metadata": {"name": name}, "spec": spec}


def external() -> dict[str, object]:
    """Return an upstream without a Service."""
    spec = {"externalNodes": [{"type": "Domain", "name": "hog.example.org", "port": 80}]}
    return {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixUpstream", "metadata": {"name": "web"}, "spec": spec}


def many_rules() -> dict[str, object]:
    """Return one ApisixRoute with many rules."""
    rules = [
        {
            "name": f"r{number}",
            "match": {"hosts": [f"r{number}.hog.example.org"], "paths": ["/*"]},
            "upstreams": [{"name": "web"}],
        }
        for number in range(RULES)
    ]
    meta = {"name": "hog"}
    return {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": meta, "spec": {"http": rules}}

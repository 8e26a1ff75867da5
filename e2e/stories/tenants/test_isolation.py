"""Stories of isolation: foreign records, tenants, and one invalid object among many valid ones."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from e2e.cluster.client import Manifest, wait_until
from e2e.cluster.echo import EchoServers
from e2e.story import Stage, condition, put_paths, route, says
from e2e.traffic import RequestLoop
from e2e.workload import PodFactory

MANY = 500
FOREIGN_LABELS = (None, {"team": "blue"}, {"managed-by": "somebody"}, {"apisix-ingress/controller": "apisix-ingress"})


def foreign(uri: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a route of another owner, which responds with 418."""
    body: dict[str, Any] = {
        "uri": uri,
        "plugins": {"fault-injection": {"abort": {"http_status": 418}}},
        "upstream": {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}},
    }
    return body | ({"labels": labels} if labels else {})


def test_foreign_records_are_never_changed(stage: Stage) -> None:
    gateway = stage.gateway
    for number, labels in enumerate(FOREIGN_LABELS):
        gateway.put(f"/routes/foreign-{number}", foreign(f"/foreign/{number}", labels))
    gateway.put("/upstreams/foreign", {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}})
    gateway.put("/global_rules/foreign", {"plugins": {"response-rewrite": {"headers": {"X-Global": "yes"}}}})
    gateway.put("/consumers/foreign", {"username": "foreign", "plugins": {"key-auth": {"key": "a-key-of-theirs"}}})
    gateway.put("/plugin_configs/foreign", {"plugins": {"cors": {}}})
    kinds = ("routes", "upstreams", "global_rules", "consumers", "plugin_configs")
    want = {kind: gateway.records(kind) for kind in kinds}
    own = stage.start(sync={"audit_interval": "1s"})
    stage.serve()
    stage.apply(route(stage.host))
    assert stage.traffic.until_status(200, stage.host).headers["x-global"] == "yes"
    assert own.stop() == 0
    own.start()
    stage.apply(route(stage.host, path="/new"))
    stage.traffic.until_status(200, stage.host, "/new")
    stage.api.delete("ApisixRoute", "web", namespace=stage.namespace)
    wait_until(lambda: {kind: gateway.records(kind) for kind in kinds}, lambda got: got == want, "theirs alone")
    for number in range(len(FOREIGN_LABELS)):
        assert stage.traffic.send(stage.host, f"/foreign/{number}").status == 418
    assert not [line for line in gateway.write_log() if "foreign" in line["path"] and line["user_agent"]]


def test_a_foreign_record_under_a_desired_id_is_kept_and_reported(stage: Stage) -> None:
    own = stage.start(sync={"audit_interval": "1s"})
    stage.serve()
    stage.apply([route(stage.host), route(stage.host, name="other", path="/other")])
    stage.wait_route(says("True"), "to be synced")
    stage.traffic.until_status(200, stage.host, "/other")
    (id_,) = [key for key, each in stage.gateway.records("routes").items() if "_web_" in each["name"]]
    assert own.stop() == 0
    stage.gateway.put(f"/routes/{id_}", foreign("/*"))
    theirs = stage.gateway.records("routes")[id_]
    own.start()
    stage.wait_route(says("False", f"routes/{id_}", "another client created"), "to say that the id is taken")
    stage.apply(route(stage.host, path="/edited"))
    stage.wait_route(says("False", f"routes/{id_}", "another client created"), "to say that the id is taken")
    assert stage.gateway.records("routes")[id_] == theirs
    assert stage.traffic.send(stage.host).status == 418
    assert stage.traffic.send(stage.host, "/other").status == 200
    stage.gateway.call("DELETE", f"/routes/{id_}")
    stage.traffic.until_status(200, stage.host, "/edited")
    stage.wait_route(says("True"), "to be synced")


def test_one_rejected_route_of_many_affects_no_other(stage: Stage) -> None:
    own = stage.start()
    stage.serve()
    names = [f"web-{number}" for number in range(MANY)]
    bad = "web-250"
    many = [route(stage.host, name=name, path=f"/{name}") for name in names if name != bad]
    refused = {"limit-count": {"count": 0, "time_window": 60, "rejected_code": 503, "key": "remote_addr"}}
    stage.apply([*many[:250], route(stage.host, name=bad, path=f"/{bad}", plugins=refused), *many[250:]])

    def states() -> dict[str, str]:
        items = stage.api.objects("ApisixRoute", namespace=stage.namespace)
        return {item["metadata"]["name"]: condition(item).get("status", "") for item in items}

    want = dict.fromkeys(names, "True") | {bad: "False"}
    wait_until(states, lambda got: got == want, f"all but {bad} to be synced", 60)
    stage.traffic.until_status(200, stage.host, "/web-0")
    records = stage.gateway.records("routes")
    assert len(records) == MANY
    assert {stage.traffic.send(stage.host, f"/{name}").status for name in names if name != bad} == {200}
    assert stage.traffic.send(stage.host, f"/{bad}").status == 503
    (event,) = own.events("record.rejected")
    message = condition(stage.api.get("ApisixRoute", bad, namespace=stage.namespace))["message"]
    words = (event["record"], "limit-count", "count", "validation failed")
    assert [word for word in words if word not in message] == []

    def warnings() -> list[tuple[str, str]]:
        events = stage.api.objects("v1/Event", namespace=stage.namespace)
        return [(each["involvedObject"]["name"], each["message"]) for each in events if each["type"] == "Warning"]

    ((about, reported),) = wait_until(warnings, bool, "an Event")
    assert (about, [word for word in words if word not in reported]) == (bad, [])
    assert {each["object"] for each in own.events("status.written") if each["status"] == "False"} == {
        f"ApisixRoute {stage.namespace}/{bad}"
    }
    attempts = [line for line in stage.gateway.write_log() if line["path"].endswith(event["record"])]
    assert [line["status"] for line in attempts] == [400, 201]  # the rejected record, and the one that closes its path
    before = len(stage.gateway.write_log())
    stage.apply(route(stage.host, name=bad, path=f"/{bad}"))
    stage.traffic.until_status(200, stage.host, f"/{bad}")
    stage.wait_route(says("True"), "to be well", bad)
    assert put_paths(stage.gateway, before) == [f"/{event['record']}"]


def test_a_route_rejected_after_an_edit_keeps_its_last_good_record(stage: Stage) -> None:
    stage.start()
    stage.serve()
    stage.apply(route(stage.host, path="/old"))
    stage.traffic.until_status(200, stage.host, "/old")
    want = stage.gateway.records("routes")
    stage.apply(route(stage.host, path="/new", plugins={"no-such-plugin": {"a": 1}}))
    stage.wait_route(says("False", "no-such-plugin"), "to name the plugin")
    assert stage.gateway.records("routes") == want
    assert stage.traffic.send(stage.host, "/old").status == 200
    assert stage.traffic.send(stage.host, "/new").status == 404


@pytest.fixture
def tenant(stage: Stage, echo_servers: EchoServers) -> Iterator[PodFactory]:
    """A second namespace of the story, with a pod `theirs` and its Service."""
    with stage.another_tenant("theirs", echo_servers) as pods:
        yield pods


def a_second_later(item: Manifest) -> None:
    """Wait until new objects are younger than an object: creation times have a resolution of one second."""
    created = item["metadata"]["creationTimestamp"]
    wait_until(lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", lambda now: now > created, "the next second")


def ingress(host: str, *, name: str = "web", service: str = "web", **annotations: str) -> Manifest:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    marked = {f"k8s.apisix.apache.org/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "annotations": marked},
        "spec": {"ingressClassName": "apisix", "rules": [{"host": host, "http": {"paths": paths}}]},
    }


def warnings(stage: Stage, about: str, namespace: str) -> list[str]:
    events = stage.api.events(about, namespace=namespace)
    return [event["message"] for event in events if event["type"] == "Warning"]


def test_the_older_tenant_receives_the_requests_of_a_host_until_the_other_takes_over(
    stage: Stage, tenant: PodFactory
) -> None:
    own = stage.start()
    stage.serve()
    (first,) = stage.apply(ingress(stage.host, name="secret-project"))
    assert stage.traffic.until_status(200, stage.host).pod == "web"
    a_second_later(first)
    with RequestLoop(stage.traffic, stage.host) as requests:
        stage.api.apply(route(stage.host, service="theirs"), namespace=tenant.namespace)
        reported = says("False", f"go to an Ingress in namespace {stage.namespace}, which is older")
        second = stage.api.wait("ApisixRoute", "web", reported, "to be reported", namespace=tenant.namespace)
        assert "secret-project" not in condition(second)["message"]
        a_second_later(second)
        stage.api.apply(ingress(stage.host, name="third", service="theirs"), namespace=tenant.namespace)
        (event,) = wait_until(lambda: warnings(stage, "third", tenant.namespace), bool, "a Warning")
        assert f"an Ingress in namespace {stage.namespace}" in event
        assert own.stop() == 0
        own.start()
        assert stage.traffic.counts(50, stage.host) == {"web": 50}
    assert (requests.failures, {answer.pod for _, answer in requests.answers}) == ([], {"web"})
    with RequestLoop(stage.traffic, stage.host) as requests:
        stage.api.delete("Ingress", "secret-project", namespace=stage.namespace)
        stage.traffic.until(lambda answer: answer.pod == "theirs", stage.host)
        stage.api.wait("ApisixRoute", "web", says("True"), "to be in front", namespace=tenant.namespace)
    assert requests.failures == []
    assert stage.traffic.counts(50, stage.host) == {"theirs": 50}
    stage.apply(ingress(stage.host, name="secret-project"))
    wait_until(
        lambda: warnings(stage, "secret-project", stage.namespace),
        lambda got: any(f"an ApisixRoute in namespace {tenant.namespace}" in each for each in got),
        "a condition for the newcomer",
    )
    assert stage.traffic.counts(50, stage.host) == {"theirs": 50}


def test_references_to_secrets_and_code_are_rejected_and_removed_from_the_gateway(stage: Stage) -> None:
    own = stage.start()
    stage.serve()
    stage.apply(route(stage.host, plugins={"proxy-rewrite": {"headers": {"set": {"X-Leak": "$ENV://HOME"}}}}))
    stage.apply(ingress(f"ing.{stage.host}", response_rewrite_set_header="X-Leak:$secret://vault/1/a"))
    code = {"serverless-pre-function": {"functions": ["return function() end"]}}
    stage.apply(route(f"code.{stage.host}", name="code", plugins=code))
    hosts = (stage.host, f"ing.{stage.host}", f"code.{stage.host}")
    for host in hosts:
        stage.traffic.until_status(200, host)
    assert own.stop() == 0
    stage.start(kubernetes={"secret_references": "refuse", "code_plugins": "refuse"})
    field = "spec.http[0].plugins[0].config.headers.set.X-Leak"
    stage.wait_route(says("False", field, "kubernetes.secret_references: refuse"), "refused")
    stage.wait_route(says("False", "kubernetes.code_plugins: refuse"), "refused", "code")
    for host in (stage.host, f"code.{stage.host}"):
        stage.traffic.until_status(404, host)
    # Headers are ignored unless the response is rewritten, so nothing of this Ingress reaches a gateway.
    assert stage.traffic.send(f"ing.{stage.host}").status == 200
    stage.apply(
        ingress(
            f"ing.{stage.host}",
            enable_response_rewrite="true",
            response_rewrite_set_header="X-Leak:$secret://vault/1/a",
        )
    )
    wait_until(
        lambda: warnings(stage, "web", stage.namespace),
        lambda got: any("response-rewrite-set-header]: refers to an environment variable" in each for each in got),
        "a Warning that names the annotation",
    )


def test_the_admin_api_cannot_be_a_backend_if_internal_addresses_are_refused(stage: Stage) -> None:
    """Without the setting, a tenant reaches the gateway's own Admin API through the gateway."""
    own = stage.start()
    stage.serve()
    stage.apply(route(f"web.{stage.host}"))
    port = urlsplit(stage.gateway.admin_url).port
    version = {"apiVersion": "apisix.apache.org/v2"}
    for name, address in (("inner", "127.0.0.1"), ("spelled", "0x7f.1"), ("padded", "0127.0.0.1")):
        node = {"type": "Domain", "name": address, "port": port}
        outside = {**version, "kind": "ApisixUpstream", "metadata": {"name": name}, "spec": {"externalNodes": [node]}}
        match = {"hosts": [f"{name}.{stage.host}"], "paths": ["/*"]}
        spec = {"http": [{"name": "r", "match": match, "upstreams": [{"name": name}]}]}
        stage.apply([outside, {**version, "kind": "ApisixRoute", "metadata": {"name": name}, "spec": spec}])
    reached = stage.traffic.until_status(401, f"inner.{stage.host}", "/apisix/admin/routes")
    assert "token" in reached.text
    assert own.stop() == 0
    stage.start(kubernetes={"external_addresses": "refuse-internal"})
    for name in ("inner", "spelled", "padded"):
        stage.traffic.until_status(404, f"{name}.{stage.host}", "/apisix/admin/routes")
        stage.wait_route(
            says("False", "spec.externalNodes[0].name", "external_addresses: refuse-internal"), "to be reported", name
        )
    assert stage.traffic.send(f"web.{stage.host}").pod == "web"


def splitting(**target: Any) -> dict[str, Any]:
    """Return traffic-split that sends every request to one target."""
    return {"traffic-split": {"rules": [{"weighted_upstreams": [{**target, "weight": 1}]}]}}


def test_reviewed_plugins_reach_neither_the_gateway_nor_other_tenants(stage: Stage, tenant: PodFactory) -> None:
    """Without the setting, a tenant reaches the Admin API and the pods of another namespace with traffic-split."""
    own = stage.start(kubernetes={"cross_namespace": "grant"})
    stage.serve()
    stage.api.apply(route(f"theirs.{stage.host}", service="theirs"), namespace=tenant.namespace)
    assert stage.traffic.until_status(200, f"theirs.{stage.host}").pod == "theirs"
    (id_,) = [key for key, each in stage.gateway.records("upstreams").items() if each["name"].endswith("_theirs_80")]
    inner = {"type": "roundrobin", "nodes": {f"127.0.0.1:{urlsplit(stage.gateway.admin_url).port}": 1}}
    stage.apply(
        [route(f"web.{stage.host}"), route(f"inner.{stage.host}", name="inner", plugins=splitting(upstream=inner))]
    )
    stage.apply(route(f"id.{stage.host}", name="id", plugins=splitting(upstream_id=id_)))
    assert "token" in stage.traffic.until_status(401, f"inner.{stage.host}", "/apisix/admin/routes").text
    assert stage.traffic.until_status(200, f"id.{stage.host}").pod == "theirs"
    assert own.stop() == 0
    stage.start(kubernetes={"cross_namespace": "grant", "plugins": "reviewed", "external_addresses": "refuse-internal"})
    field = "spec.http[0].plugins[0].config.rules[0].weighted_upstreams[0]"
    stage.wait_route(says("False", f"{field}.upstream_id", "kubernetes.plugins: reviewed"), "to be refused", "id")
    stage.wait_route(says("False", f"{field}.upstream.nodes", "refuse-internal"), "to be refused", "inner")
    stage.traffic.until_status(404, f"id.{stage.host}")
    stage.traffic.until_status(404, f"inner.{stage.host}", "/apisix/admin/routes")
    assert stage.traffic.send(f"web.{stage.host}").pod == "web"
    assert stage.traffic.send(f"theirs.{stage.host}").pod == "theirs"


ATTACKS = (
    "http://example.com/#;\n}\n}\nssl_engine /tmp/x.so;",
    '/x"; proxy_pass http://127.0.0.1:9180; #',
    "/$scheme/${x}/%0d%0aX: y",
)


def test_values_of_known_attacks_are_rejected_or_harmless(stage: Stage) -> None:
    stage.start()
    stage.serve()
    for number, value in enumerate(ATTACKS):
        stage.apply(ingress(f"a{number}.{stage.host}", name=f"a{number}", rewrite_target=value))
    why = "metadata.annotations[k8s.apisix.apache.org/rewrite-target]: contains the control character U+000A"
    wait_until(lambda: warnings(stage, "a0", stage.namespace), lambda found: why in "".join(found), why)
    for number in (1, 2):
        stage.traffic.until(lambda answer: answer.status != 404, f"a{number}.{stage.host}")
    assert stage.traffic.send(f"a0.{stage.host}").status == 404
    found = {record["host"]: record["plugins"] for record in stage.gateway.records("routes").values()}
    assert found == {f"a{number}.{stage.host}": {"proxy-rewrite": {"uri": ATTACKS[number]}} for number in (1, 2)}

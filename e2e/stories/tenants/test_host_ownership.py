"""Stories of two tenants and one host: what a hostile tenant can take over only without the setting."""

import ssl
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from trustme import CA

from e2e.cluster.client import Manifest, wait_until
from e2e.cluster.echo import EchoServers
from e2e.stories.tenants.test_isolation import a_second_later, ingress, warnings
from e2e.story import Stage, condition, route, says
from e2e.traffic import RequestLoop
from e2e.workload import PodFactory

SHOWN_TIMEOUT = 20.0


@pytest.fixture
def evil(stage: Stage, echo_servers: EchoServers) -> Iterator[PodFactory]:
    """A second namespace of the story, with a pod `evil` and its Service."""
    with stage.another_tenant("evil", echo_servers) as pods:
        yield pods


def certificate(stage: Stage, host: str, *, namespace: str, **spec: Any) -> list[Manifest]:
    """Apply an ApisixTls for a host, with a certificate of its own authority."""
    leaf = CA().issue_cert(host)
    data = {"tls.crt": leaf.cert_chain_pems[0].bytes().decode(), "tls.key": leaf.private_key_pem.bytes().decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "server"}, "stringData": data}
    location = {"name": "server", "namespace": namespace}
    item = {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixTls",
        "metadata": {"name": "tls"},
        "spec": {"hosts": [host], "secret": location, **spec},
    }
    return stage.api.apply([secret, item], namespace=namespace)


def attacks(stage: Stage, own: str, wild: str) -> list[Manifest]:
    """Return objects that take over requests for the hosts `own` and `*.wild` of older objects."""
    rules = {
        "priority": route(own, name="priority", service="evil", path="/priority/*", priority=1),
        "exact": route(own, name="exact", service="evil", path="/login"),
        "below": route(f"pay.{wild}", name="below", service="evil"),
        "every": route(own, name="every", service="evil", path="/nothing-else-has-this"),
    }
    del rules["every"]["spec"]["http"][0]["match"]["hosts"]
    return [*rules.values(), ingress(own, name="regex", service="evil", use_regex="true")]


def test_a_host_and_names_below_a_wildcard_belong_to_one_namespace(stage: Stage, evil: PodFactory) -> None:
    own, wild = stage.host, f"wild.{stage.host}"
    first = stage.start()
    stage.serve()
    mine = route(own)
    mine["spec"]["http"][0]["match"] = {"hosts": [own, f"*.{wild}"], "paths": ["/*"]}
    (made,) = stage.apply(mine)
    stage.traffic.until_status(200, own)
    a_second_later(made)
    stage.api.apply(attacks(stage, own, wild), namespace=evil.namespace)
    for host, path in ((own, "/login"), (f"pay.{wild}", "/")):
        stage.traffic.until(lambda answer: answer.pod == "evil", host, path)
    assert first.stop() == 0
    stage.start(kubernetes={"host_ownership": "namespace"})
    foreign = says("False", f"belongs to namespace {stage.namespace}", f"share-hosts-with: {evil.namespace}")
    for name in ("priority", "exact", "below"):
        stage.api.wait("ApisixRoute", name, foreign, "to be left out", namespace=evil.namespace)
    needs = says("False", "matches requests for every host")
    stage.api.wait("ApisixRoute", "every", needs, "to be left out", namespace=evil.namespace)
    wait_until(
        lambda: warnings(stage, "regex", evil.namespace),
        lambda got: any(f"belongs to namespace {stage.namespace}" in each for each in got),
        "a Warning about the Ingress",
    )
    stage.wait_route(says("True"), "to be synced")
    for host in (own, f"pay.{wild}", f"x.y.{wild}"):
        for path in ("/", "/login", "/priority/x", "/nothing-else-has-this"):
            stage.traffic.until(lambda answer: answer.pod == "web", host, path)
    assert not [each for each in stage.gateway.records("routes").values() if each["name"].startswith(evil.namespace)]
    mine["metadata"]["annotations"] = {"apisix.apache.org/share-hosts-with": evil.namespace}
    stage.apply(mine)
    stage.traffic.until(lambda answer: answer.pod == "evil", own, "/login")
    stage.api.wait("ApisixRoute", "exact", says("True"), "to be synced", namespace=evil.namespace)
    del mine["metadata"]["annotations"]
    stage.api.delete("ApisixRoute", "web", namespace=stage.namespace)
    # Otherwise the controller may see a single change of the object, and its namespace keeps the host.
    stage.traffic.until(lambda answer: answer.pod != "web", own, "/nothing-else-has-this")
    stage.apply(mine)
    stage.traffic.until(lambda answer: answer.pod == "evil", own, "/login")
    # The older objects of the other namespace own the host now, until the operator assigns it.
    stage.wait_route(says("False", f"belongs to namespace {evil.namespace}"), "to have lost the host")
    space = stage.api.get("Namespace", stage.namespace)
    labels = space["metadata"]["labels"]
    given = {"name": stage.namespace, "labels": labels, "annotations": {"apisix.apache.org/hosts": f"{own}, *.{wild}"}}
    stage.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": given})
    for host, path in ((own, "/login"), (f"pay.{wild}", "/")):
        stage.traffic.until(lambda answer: answer.pod == "web", host, path)
    stage.wait_route(says("True"), "to have its hosts")


def test_another_namespace_cannot_disable_client_authentication(stage: Stage, evil: PodFactory) -> None:
    shop, wild = f"shop.{stage.host}", f"*.{stage.host}"
    clients = CA()
    first = stage.start()
    stage.serve()
    stage.apply(route(wild))
    data = {"ca.crt": clients.cert_pem.bytes().decode()}
    stage.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "clients"}, "stringData": data})
    client = {"caSecret": {"name": "clients", "namespace": stage.namespace}}
    _, made = certificate(stage, wild, namespace=stage.namespace, client=client)
    nobody, known = (ssl.create_default_context() for _ in range(2))
    for context in (nobody, known):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    clients.issue_cert("client@example.org").configure_cert(known)
    send = partial(stage.traffic.send_tls, shop)
    wait_until(lambda: send(context=known)[0].pod, lambda pod: pod == "web", "the client to be let in", SHOWN_TIMEOUT)
    assert send(context=nobody)[0].status in (0, 400)
    a_second_later(made)
    certificate(stage, shop, namespace=evil.namespace)
    wait_until(lambda: send(context=nobody)[0].pod, lambda pod: pod == "web", "anybody to get in", SHOWN_TIMEOUT)
    assert first.stop() == 0
    stage.start(kubernetes={"host_ownership": "namespace"})
    reported = says("False", f"host {shop} is skipped", f"belongs to namespace {stage.namespace}")
    stage.api.wait("ApisixTls", "tls", reported, "to be left out", namespace=evil.namespace)
    wait_until(lambda: send(context=nobody)[0].status, lambda got: got in (0, 400), "a rejected request", SHOWN_TIMEOUT)
    assert send(context=known)[0].pod == "web"
    assert condition(stage.api.get("ApisixTls", "tls", namespace=stage.namespace))["status"] == "True"


def test_an_old_object_does_not_get_a_host_that_it_adds_later(stage: Stage, evil: PodFactory) -> None:
    first = stage.start(kubernetes={"host_ownership": "namespace"})
    stage.serve()
    (old,) = stage.api.apply(route(f"evil.{stage.host}", service="evil"), namespace=evil.namespace)
    stage.traffic.until_status(200, f"evil.{stage.host}")
    a_second_later(old)
    stage.apply(route(stage.host))
    stage.traffic.until_status(200, stage.host)
    with RequestLoop(stage.traffic, stage.host) as requests:
        stage.api.apply(route(stage.host, service="evil", priority=9999), namespace=evil.namespace)
        foreign = says("False", f"belongs to namespace {stage.namespace}")
        stage.api.wait("ApisixRoute", "web", foreign, "to be left out", namespace=evil.namespace)
        assert first.stop() == 0
        stage.start(kubernetes={"host_ownership": "namespace"})
        stage.apply(route(f"new.{stage.host}", name="new"))
        stage.traffic.until_status(200, f"new.{stage.host}")
    assert {(answer.status, answer.pod == "evil") for _, answer in requests.answers} == {(200, False)}

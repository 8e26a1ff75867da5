"""Listeners of Gateways: conflicts, many certificates, deleted Gateways, and statuses with several writers."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from e2e.cluster.client import KubeApiError, Manifest, wait_until
from e2e.definitions.gateway_kinds import CONTROLLER, gateway, http_route, make
from e2e.story import Stage, put_paths
from e2e.traffic import RequestLoop

pytestmark = pytest.mark.usefixtures("gateway_kinds")

CLASS = make("GatewayClass", "apisix", controllerName=CONTROLLER)
ROUTES = {"allowedRoutes": {"namespaces": {"from": "All"}}}
LISTENERS, CERTIFICATES = 64, 2000


def http(name: str, hostname: str) -> Manifest:
    """Return a listener for HTTP."""
    return {"name": name, "port": 80, "protocol": "HTTP", "hostname": hostname, **ROUTES}


def reason(item: Manifest | None, listener: str, type_: str = "Accepted") -> str:
    """Return the status and reason of a condition of a listener."""
    listeners = ((item or {}).get("status") or {}).get("listeners") or []
    conditions = (each for found in listeners if found["name"] == listener for each in found["conditions"])
    return next((f"{each['status']}/{each['reason']}" for each in conditions if each["type"] == type_), "")


def wait_reason(stage: Stage, kind: str, name: str, listener: str, want: str) -> None:
    stage.api.wait(kind, name, lambda item: reason(item, listener) == want, want, namespace=stage.namespace)


def is_programmed(item: Manifest | None) -> bool:
    conditions = ((item or {}).get("status") or {}).get("conditions") or []
    return any(each["type"] == "Programmed" and each["status"] == "True" for each in conditions)


def test_listeners_that_conflict_are_not_served_until_one_changes(stage: Stage) -> None:
    stage.start()
    stage.serve()
    stage.apply([CLASS, gateway("gw", http("one", stage.host), http("two", stage.host)), http_route(stage.host)])
    wait_reason(stage, "Gateway", "gw", "one", "False/HostnameConflict")
    wait_reason(stage, "Gateway", "gw", "two", "False/HostnameConflict")
    stage.traffic.until_status(404, stage.host)
    stage.apply(gateway("gw", http("one", stage.host), http("two", f"two.{stage.host}")))
    stage.traffic.until_status(200, stage.host)
    wait_reason(stage, "Gateway", "gw", "one", "True/Accepted")


def test_a_listener_of_a_gateway_wins_over_one_of_a_listener_set(stage: Stage) -> None:
    stage.start()
    stage.serve()
    entry = gateway("gw", http("one", stage.host))
    entry["spec"]["allowedListeners"] = {"namespaces": {"from": "Same"}}
    more = [http("same", stage.host), http("other", f"other.{stage.host}")]
    route = http_route(f"other.{stage.host}", name="other")
    route["spec"]["parentRefs"] = [{"kind": "ListenerSet", "name": "set"}]
    stage.apply([CLASS, entry, make("ListenerSet", "set", parentRef={"name": "gw"}, listeners=more)])
    stage.apply([http_route(stage.host), route])
    stage.traffic.until_status(200, stage.host)
    stage.traffic.until_status(200, f"other.{stage.host}")
    wait_reason(stage, "ListenerSet", "set", "same", "False/HostnameConflict")
    wait_reason(stage, "Gateway", "gw", "one", "True/Accepted")
    stage.api.delete("ListenerSet", "set", namespace=stage.namespace)
    stage.traffic.until_status(404, f"other.{stage.host}")
    assert stage.traffic.send(stage.host).status == 200


def secrets(stage: Stage) -> list[Manifest]:
    """Return Secrets with a certificate for one host each, all with the same key."""
    key = ec.generate_private_key(ec.SECP256R1())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": f"c{number}"},
            "stringData": {
                "tls.crt": certificate(key, f"c{number}.l{number % LISTENERS}.{stage.host}"),
                "tls.key": text,
            },
        }
        for number in range(CERTIFICATES)
    ]


def certificate(key: ec.EllipticCurvePrivateKey, host: str) -> str:
    now = datetime.now(UTC)
    name = x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=30))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def secure(stage: Stage, number: int) -> Manifest:
    """Return a listener with its share of the certificates."""
    references = [{"name": f"c{each}"} for each in range(number, CERTIFICATES, LISTENERS)]
    return {
        "name": f"l{number}",
        "port": 443,
        "protocol": "HTTPS",
        "hostname": f"*.l{number}.{stage.host}",
        "tls": {"certificateRefs": references},
        **ROUTES,
    }


def test_many_listeners_have_many_certificates_and_a_rotation_is_one_write(stage: Stage) -> None:
    made = secrets(stage)
    stage.apply(made)
    stage.start()
    stage.serve()
    stage.apply([CLASS, gateway("gw", *(secure(stage, number) for number in range(LISTENERS)))])
    stage.apply(http_route(f"*.l7.{stage.host}"))
    stage.api.wait("Gateway", "gw", is_programmed, "to be programmed", namespace=stage.namespace)
    host = f"c7.l7.{stage.host}"
    wait_until(lambda: stage.traffic.send_tls(host)[0].status, lambda status: status == 200, f"{host} to be served")
    assert len(stage.gateway.records("ssls")) == LISTENERS
    before = len(stage.gateway.write_log())
    key = ec.generate_private_key(ec.SECP256R1())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    stage.apply({**made[8], "stringData": {"tls.crt": certificate(key, f"c8.l8.{stage.host}"), "tls.key": text}})
    wait_until(lambda: put_paths(stage.gateway, before), bool, "the write of the new certificate")
    assert [path.split("/")[1] for path in put_paths(stage.gateway, before)] == ["ssls"]


def test_deleting_a_gateway_ends_only_its_own_requests(stage: Stage) -> None:
    stage.start()
    stage.serve()
    other = http_route(f"other.{stage.host}", name="other")
    other["spec"]["parentRefs"] = [{"name": "second"}]
    entries = [gateway("gw", http("one", stage.host)), gateway("second", http("one", f"other.{stage.host}"))]
    stage.apply([CLASS, *entries, http_route(stage.host), other])
    for host in (stage.host, f"other.{stage.host}"):
        stage.traffic.until_status(200, host)
    with RequestLoop(stage.traffic, stage.host) as gone, RequestLoop(stage.traffic, f"other.{stage.host}") as kept:
        stage.api.delete("Gateway", "gw", namespace=stage.namespace)
        stage.traffic.until_status(404, stage.host)
        stage.api.wait(
            "HTTPRoute", "web", lambda item: not parents(item), "to have no parent", namespace=stage.namespace
        )
    assert {answer.status for _, answer in gone.answers} <= {200, 404}
    assert kept.failures == []


def parents(item: Manifest | None) -> list[Manifest]:
    found: list[Manifest] = ((item or {}).get("status") or {}).get("parents") or []
    return found


def test_a_status_that_two_controllers_write_at_once_has_the_entries_of_both(stage: Stage) -> None:
    stage.start()
    stage.serve()
    stage.apply([CLASS, gateway(), http_route(stage.host)])
    stage.traffic.until_status(200, stage.host)
    written = threading.Event()
    writer = threading.Thread(target=write_others, args=(stage, written))
    writer.start()
    generation = 0
    while not written.is_set():
        change = {"spec": {"hostnames": [f"h{generation}.{stage.host}"]}}
        stage.api.patch("HTTPRoute", "web", change, namespace=stage.namespace)
        generation += 1
    writer.join()
    stage.traffic.until_status(200, f"h{generation - 1}.{stage.host}")
    item = stage.api.wait("HTTPRoute", "web", is_settled, "to have both entries", namespace=stage.namespace)
    assert {each["controllerName"] for each in parents(item)} == {"example.org/other", CONTROLLER}


def write_others(stage: Stage, written: threading.Event) -> None:
    """Write the entry of another controller repeatedly, as a controller does: the status it read, plus its entry."""
    try:
        for number in range(40):
            item = stage.api.get("HTTPRoute", "web", namespace=stage.namespace)
            entry = {
                "parentRef": {"name": "gw"},
                "controllerName": "example.org/other",
                "conditions": [{"type": "Example", "status": "True", "reason": f"N{number}", "message": ""}],
            }
            kept = [each for each in parents(item) if each["controllerName"] != "example.org/other"]
            version = item["metadata"]["resourceVersion"]
            body = {"metadata": {"resourceVersion": version}, "status": {"parents": [*kept, entry]}}
            try:
                stage.api.patch("HTTPRoute", "web", body, namespace=stage.namespace, subresource="status")
            except KubeApiError as error:
                if error.status != 409:
                    raise
    finally:
        written.set()


def is_settled(item: Manifest | None) -> bool:
    """Return whether the controller's entry is for the current generation, and the other controller's entry exists."""
    ours = [each for each in parents(item) if each["controllerName"] == CONTROLLER]
    observed = {each["observedGeneration"] for entry in ours for each in entry["conditions"]}
    return item is not None and observed == {item["metadata"]["generation"]} and len(parents(item)) == 2

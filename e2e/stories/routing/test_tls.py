"""Stories of ApisixTls: the server's certificate, and the required client certificate."""

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from trustme import CA, LeafCert

from e2e.cluster.client import Manifest, wait_until
from e2e.scene import Scene, rule
from e2e.story import condition, says
from e2e.traffic import Response

SHOWN_TIMEOUT = 20.0


def tls_secret(scene: Scene, name: str, leaf: LeafCert, *, namespace: str = "") -> None:
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems).decode()
    data = {"tls.crt": chain, "tls.key": leaf.private_key_pem.bytes().decode()}
    scene.apply("Secret", name, namespace=namespace, stringData=data)


def apisix_tls(scene: Scene, name: str, *hosts: str, namespace: str = "", **spec: Any) -> Manifest:
    """Apply an ApisixTls whose Secret has its name."""
    secret = {"name": name, "namespace": namespace or scene.namespace}
    return scene.apply("ApisixTls", name, spec={"hosts": list(hosts), "secret": secret, **spec})


def shown(leaf: LeafCert) -> str:
    """Return a certificate as `Traffic.send_tls` shows it."""
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode()).hex()


def until_shown(scene: Scene, host: str, leaf: LeafCert) -> None:
    """Wait until a request to the host gets this certificate and a response."""

    def live(got: tuple[Response, str]) -> bool:
        return got[0].status == 200 and got[1] == shown(leaf)

    wait_until(lambda: scene.traffic.send_tls(host), live, f"the wanted certificate for {host}", SHOWN_TIMEOUT)


def until_refused(scene: Scene, host: str) -> None:
    refused = partial(scene.traffic.send_tls, host)
    wait_until(refused, lambda got: got[0].status in (0, 400), f"{host} to be refused", SHOWN_TIMEOUT)


def ssl_records(scene: Scene) -> list[Mapping[str, Any]]:
    """Return the certificate records of the story's hosts."""
    found = scene.gateway.records("ssls").values()
    return [each for each in found if any(host.endswith(scene.host) for host in each.get("snis", ()))]


def serve(scene: Scene) -> None:
    """Create a route for every host of the story."""
    scene.serve("web")
    scene.route("web", rule("rule", {"hosts": [scene.host, f"*.{scene.host}"], "paths": ["/*"]}))
    scene.wait_live("web")


def test_each_server_name_gets_its_certificate(scene: Scene) -> None:
    authority = CA()
    serve(scene)
    hosts = {name: f"{name}.{scene.host}" for name in ("a", "b")}
    leaves = {name: authority.issue_cert(host) for name, host in hosts.items()}
    for name, host in hosts.items():
        tls_secret(scene, name, leaves[name])
        apisix_tls(scene, name, host)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    for name, host in hosts.items():
        until_shown(scene, host, leaves[name])
        assert scene.traffic.send_tls(host, context=trust)[0].pod == "web"
        scene.wait_synced("ApisixTls", name)
    assert scene.traffic.send_tls(f"c.{scene.host}")[1] not in {shown(leaf) for leaf in leaves.values()}
    labels = sorted((each["labels"]["meta_secret_namespace"], each["snis"]) for each in ssl_records(scene))
    assert labels == [(scene.namespace, [host]) for host in hosts.values()]


def test_a_rotated_secret_is_followed_and_a_wrong_pair_is_not(scene: Scene) -> None:
    authority = CA()
    serve(scene)
    old, new, other = (authority.issue_cert(scene.host) for _ in range(3))
    tls_secret(scene, "web", old)
    apisix_tls(scene, "web", scene.host)
    until_shown(scene, scene.host, old)
    before = [each["id"] for each in ssl_records(scene)]
    tls_secret(scene, "web", new)
    until_shown(scene, scene.host, new)
    assert [each["id"] for each in ssl_records(scene)] == before
    scene.secret("web", **{"tls.key": other.private_key_pem.bytes().decode()})
    scene.wait_aborted("ApisixTls", "web", f"Secret {scene.namespace}/web")
    until_shown(scene, scene.host, new)


def test_a_secret_of_another_namespace_may_be_created_late(scene: Scene) -> None:
    serve(scene)
    leaf = CA().issue_cert(scene.host)
    with scene.api.namespace() as elsewhere:
        apisix_tls(scene, "web", scene.host, namespace=elsewhere)
        scene.wait_aborted("ApisixTls", "web", f"Secret {elsewhere}/web does not exist")
        tls_secret(scene, "web", leaf, namespace=elsewhere)
        until_shown(scene, scene.host, leaf)
        scene.wait_synced("ApisixTls", "web")


def test_clients_must_send_a_certificate_of_the_authority(scene: Scene) -> None:
    authority, clients, strangers = CA(), CA(), CA()
    serve(scene)
    leaf = authority.issue_cert(scene.host)
    tls_secret(scene, "web", leaf)
    scene.secret("clients", **{"ca.crt": clients.cert_pem.bytes().decode()})
    secret = {"name": "clients", "namespace": scene.namespace}
    apisix_tls(scene, "web", scene.host, client={"caSecret": secret, "depth": 2})
    known, stranger, nobody = (ssl.create_default_context() for _ in range(3))
    for context in (known, stranger, nobody):
        authority.configure_trust(context)
    clients.issue_cert("client@example.org").configure_cert(known)
    strangers.issue_cert("client@example.org").configure_cert(stranger)
    send = partial(scene.traffic.send_tls, scene.host)
    wait_until(lambda: send(context=known)[0].pod, lambda pod: pod == "web", "the client to be let in", SHOWN_TIMEOUT)
    for context in (nobody, stranger):
        assert send(context=context)[0].status in (0, 400)
    apisix_tls(scene, "web", scene.host)
    wait_until(lambda: send(context=nobody)[0].pod, lambda pod: pod == "web", "everybody to be let in", SHOWN_TIMEOUT)


def test_the_certificate_outlives_its_secret_but_not_its_object(scene: Scene) -> None:
    serve(scene)
    leaf = CA().issue_cert(scene.host)
    tls_secret(scene, "web", leaf)
    apisix_tls(scene, "web", scene.host)
    until_shown(scene, scene.host, leaf)
    scene.delete("Secret", "web")
    scene.wait_aborted("ApisixTls", "web", f"Secret {scene.namespace}/web does not exist")
    until_shown(scene, scene.host, leaf)
    scene.delete("ApisixTls", "web")
    until_refused(scene, scene.host)
    wait_until(lambda: ssl_records(scene), lambda found: not found, "the record to be gone")


def test_the_older_tenant_owns_the_host_until_the_other_takes_over_without_a_gap(scene: Scene) -> None:
    serve(scene)
    ours, theirs = CA().issue_cert(scene.host), CA().issue_cert(scene.host, f"b.{scene.host}")
    with scene.api.namespace() as elsewhere:
        tls_secret(scene, "web", ours)
        winner = apisix_tls(scene, "web", scene.host)
        until_shown(scene, scene.host, ours)
        wait_until(lambda: second_after(winner), bool, "another second to begin: ages have a resolution of seconds")
        tls_secret(scene, "theirs", theirs, namespace=elsewhere)
        hosts, place = [scene.host, f"b.{scene.host}"], {"name": "theirs", "namespace": elsewhere}
        scene.apply("ApisixTls", "theirs", namespace=elsewhere, spec={"hosts": hosts, "secret": place})
        until_shown(scene, f"b.{scene.host}", theirs)
        reported = says(
            "False", f"host {scene.host} is skipped", f"an ApisixTls in namespace {scene.namespace}, which is older"
        )
        lost = scene.api.wait("ApisixTls", "theirs", reported, "to say who has the host", namespace=elsewhere)
        assert "/web" not in str(condition(lost))
        scene.wait_synced("ApisixTls", "web")
        assert scene.traffic.send_tls(scene.host)[1] == shown(ours)
        assert sorted(host for each in ssl_records(scene) for host in each["snis"]) == [f"b.{scene.host}", scene.host]
        scene.delete("ApisixTls", "web")
        seen: list[str] = []
        wait_until(lambda: see(scene, seen), lambda got: got == shown(theirs), "the other one's certificate")
        assert set(seen) <= {shown(ours), shown(theirs)}
        scene.api.wait("ApisixTls", "theirs", says("True"), "to be synced", namespace=elsewhere)


def second_after(item: Manifest) -> bool:
    return datetime.now(UTC).strftime("%FT%TZ") > str(item["metadata"]["creationTimestamp"])


def see(scene: Scene, seen: list[str]) -> str:
    """Request the certificate of the host, and record it."""
    seen.append(scene.traffic.send_tls(scene.host)[1])
    return seen[-1]

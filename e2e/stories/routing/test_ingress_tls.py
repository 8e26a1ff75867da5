"""Stories of TLS by server name: the certificates of Ingresses, as sent to clients."""

import ssl
from collections.abc import Mapping
from typing import Any

from trustme import CA, LeafCert

from e2e.cluster.client import Manifest, wait_until
from e2e.scene import Scene, path
from e2e.story import Stage, route

SHOWN_TIMEOUT = 20.0


def certificate(authority: CA, *hosts: str) -> LeafCert:
    return authority.issue_cert(*hosts)


def tls_secret(scene: Scene, name: str, leaf: LeafCert, *, keys: tuple[str, str] = ("tls.crt", "tls.key")) -> None:
    """Apply a Secret with a certificate and its key."""
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems).decode()
    scene.secret(name, **{keys[0]: chain, keys[1]: leaf.private_key_pem.bytes().decode()})


def ingress(scene: Scene, name: str, *hosts: str, tls: list[Manifest], service: str = "web") -> None:
    rules = [{"host": host, "http": {"paths": [path("/", service)]}} for host in hosts]
    scene.ingress(name, *rules, tls=tls)


def shown(leaf: LeafCert) -> str:
    """Return a certificate as `Traffic.send_tls` shows it."""
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode()).hex()


def until_shown(scene: Scene, host: str, leaf: LeafCert) -> None:
    """Wait until a request to the host gets this certificate and a response."""

    def live(got: tuple[Any, str]) -> bool:
        return got[0].status == 200 and got[1] == shown(leaf)

    wait_until(lambda: scene.traffic.send_tls(host), live, f"the wanted certificate for {host}", SHOWN_TIMEOUT)


def ssl_records(scene: Scene) -> list[Mapping[str, Any]]:
    """Return the certificate records that come from Secrets of the story."""
    found = scene.gateway.records("ssls").values()
    return [each for each in found if each.get("labels", {}).get("meta_secret_namespace") == scene.namespace]


def until_no_certificate(scene: Scene) -> None:
    wait_until(lambda: ssl_records(scene), lambda found: not found, "every certificate to be gone")


def test_two_certificates_are_distinguished_by_server_name(scene: Scene) -> None:
    authority = CA()
    scene.serve("web")
    hosts = {name: f"{name}.{scene.host}" for name in ("a", "b")}
    leaves = {name: certificate(authority, host) for name, host in hosts.items()}
    for name, leaf in leaves.items():
        tls_secret(scene, name, leaf)
    ingress(scene, "web", *hosts.values(), tls=[{"hosts": [host], "secretName": name} for name, host in hosts.items()])
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    for name, host in hosts.items():
        until_shown(scene, host, leaves[name])
        # A client that verifies the chain and the name succeeds, too.
        assert scene.traffic.send_tls(host, context=trust)[0].pod == "web"
    assert scene.traffic.send_tls(f"c.{scene.host}")[1] not in {shown(leaf) for leaf in leaves.values()}
    got = sorted((record["snis"], record["labels"]["meta_secret_name"]) for record in ssl_records(scene))
    assert got == [([hosts["a"]], "a"), ([hosts["b"]], "b")]


def test_a_renewed_certificate_is_served_and_the_record_keeps_its_id(scene: Scene) -> None:
    authority = CA()
    scene.serve("web")
    old, new = (certificate(authority, scene.host) for _ in range(2))
    tls_secret(scene, "web", old)
    ingress(scene, "web", scene.host, tls=[{"hosts": [scene.host], "secretName": "web"}])
    until_shown(scene, scene.host, old)
    before = [record["id"] for record in ssl_records(scene)]
    tls_secret(scene, "web", new)
    until_shown(scene, scene.host, new)
    assert [record["id"] for record in ssl_records(scene)] == before


def test_a_wildcard_certificate_serves_hosts_without_a_certificate(scene: Scene) -> None:
    authority = CA()
    scene.serve("web")
    wildcard, own = certificate(authority, f"*.{scene.host}"), certificate(authority, f"own.{scene.host}")
    tls_secret(scene, "wildcard", wildcard)
    tls_secret(scene, "own", own)
    tls = [
        {"hosts": [f"*.{scene.host}"], "secretName": "wildcard"},
        {"hosts": [f"own.{scene.host}"], "secretName": "own"},
    ]
    ingress(scene, "web", f"*.{scene.host}", f"own.{scene.host}", tls=tls)
    until_shown(scene, f"any.{scene.host}", wildcard)
    until_shown(scene, f"other.{scene.host}", wildcard)
    until_shown(scene, f"own.{scene.host}", own)


def test_a_late_certificate_is_served_and_kept_after_its_secret_is_deleted(scene: Scene) -> None:
    scene.serve("web")
    leaf = certificate(CA(), scene.host)
    ingress(scene, "web", scene.host, tls=[{"hosts": [scene.host], "secretName": "late"}])

    def reported(want: str = f"Secret {scene.namespace}/late does not exist") -> int:
        events = scene.api.events("web", namespace=scene.namespace)
        return sum(event.get("count") or 1 for event in events if want in event["message"])

    before = wait_until(reported, bool, "an Event about the Secret")
    # While an issuer obtains the first certificate, requests over HTTP are served.
    scene.traffic.until_status(200, scene.host)
    assert ssl_records(scene) == []
    tls_secret(scene, "late", leaf)
    until_shown(scene, scene.host, leaf)
    # A success that ends before it is reported is not a change: the next failure would be the same one.
    wait_until(lambda: reported("synced successfully"), bool, "an Event about the success")
    scene.delete("Secret", "late")
    wait_until(reported, lambda times: times > before, "another Event about the Secret")
    until_shown(scene, scene.host, leaf)
    # The routes still follow the Ingress.
    added = {"host": f"added.{scene.host}", "http": {"paths": [path("/", "web")]}}
    served = {"host": scene.host, "http": {"paths": [path("/", "web")]}}
    scene.ingress("web", served, added, tls=[{"hosts": [scene.host], "secretName": "late"}])
    scene.traffic.until_status(200, f"added.{scene.host}")
    until_shown(scene, scene.host, leaf)


def test_a_certificate_stays_if_its_secret_is_deleted_while_no_controller_runs(stage: Stage) -> None:
    leaf = certificate(CA(), stage.host)
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems).decode()
    pair = {"tls.crt": chain, "tls.key": leaf.private_key_pem.bytes().decode()}
    served = {"host": stage.host, "http": {"paths": [path("/", "web")]}}
    tls = [{"hosts": [stage.host], "secretName": "cert"}]
    spec = {"ingressClassName": "apisix", "tls": tls, "rules": [served]}
    meta = {"metadata": {"name": "web"}}
    stage.serve()
    stage.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cert"}, "stringData": pair})
    stage.apply({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", **meta, "spec": spec})
    stage.apply(route(f"gone.{stage.host}", name="gone"))
    stage.start(name="first")
    stage.traffic.until_status(200, stage.host)
    stage.traffic.until_status(200, f"gone.{stage.host}")
    before = stage.gateway.records("ssls")
    stage.controllers[-1].stop()
    stage.api.delete("Secret", "cert", namespace=stage.namespace)
    stage.api.delete("ApisixRoute", "gone", namespace=stage.namespace)
    added = {"host": f"added.{stage.host}", "http": {"paths": [path("/", "web")]}}
    spec["rules"] = [served, added]
    stage.apply({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", **meta, "spec": spec})
    stage.start(name="second")
    stage.traffic.until_status(200, f"added.{stage.host}")
    stage.traffic.until_status(404, f"gone.{stage.host}")  # by then, records without an owner are deleted
    assert stage.gateway.records("ssls") == before
    assert stage.traffic.send_tls(stage.host)[1] == shown(leaf)


def test_certificates_are_removed_with_their_entry_and_with_the_ingress(scene: Scene) -> None:
    authority = CA()
    scene.serve("web")
    hosts = [f"{name}.{scene.host}" for name in ("a", "b")]
    for host in hosts:
        tls_secret(scene, host.split(".")[0], certificate(authority, host))
    entries = [{"hosts": [host], "secretName": host.split(".")[0]} for host in hosts]
    ingress(scene, "web", *hosts, tls=entries)
    wait_until(lambda: ssl_records(scene), lambda found: len(found) == 2, "both certificates")
    ingress(scene, "web", *hosts, tls=entries[:1])
    got = wait_until(lambda: ssl_records(scene), lambda found: len(found) == 1, "one certificate")
    assert got[0]["snis"] == [hosts[0]]
    scene.delete("Ingress", "web")
    until_no_certificate(scene)


def test_hosts_come_from_the_rules_if_the_entry_has_none(scene: Scene) -> None:
    scene.serve("web")
    leaf = certificate(CA(), scene.host)
    tls_secret(scene, "web", leaf)
    ingress(scene, "web", scene.host, tls=[{"secretName": "web"}])
    until_shown(scene, scene.host, leaf)
    assert [record["snis"] for record in ssl_records(scene)] == [[scene.host]]


def test_a_secret_with_the_keys_cert_and_key_is_accepted(scene: Scene) -> None:
    scene.serve("web")
    leaf = certificate(CA(), scene.host)
    tls_secret(scene, "web", leaf, keys=("cert", "key"))
    ingress(scene, "web", scene.host, tls=[{"hosts": [scene.host], "secretName": "web"}])
    until_shown(scene, scene.host, leaf)


def test_a_key_of_another_certificate_is_rejected_and_the_valid_pair_stays(scene: Scene) -> None:
    authority = CA()
    scene.serve("web")
    good, other = (certificate(authority, scene.host) for _ in range(2))
    tls_secret(scene, "web", good)
    ingress(scene, "web", scene.host, tls=[{"hosts": [scene.host], "secretName": "web"}])
    until_shown(scene, scene.host, good)
    scene.secret("web", **{"tls.key": other.private_key_pem.bytes().decode()})
    wait_until(
        lambda: scene.api.events("web", namespace=scene.namespace),
        lambda events: any(event["type"] == "Warning" for event in events),
        "an Event about the pair",
    )
    until_shown(scene, scene.host, good)

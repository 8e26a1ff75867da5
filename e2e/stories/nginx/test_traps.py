"""Known bugs in other implementations of ingress-nginx's annotations: each story covers one."""

from __future__ import annotations

from e2e.cluster.client import Manifest
from e2e.nginx.world import Certificates
from e2e.stories.nginx.test_provider import config, ingress, start
from e2e.story import Stage, through


def of_service(item: Manifest, service: str) -> Manifest:
    """Return an Ingress with another Service as its backend."""
    for rule in item["spec"]["rules"]:
        for path in rule["http"]["paths"]:
            path["backend"]["service"]["name"] = service
    return item


def test_a_canary_does_not_affect_longer_paths_of_another_service(stage: Stage) -> None:
    for name in ("web", "next", "api"):
        stage.serve(name)
    stage.apply(ingress(stage))
    stage.apply(of_service(ingress(stage, "api", "/api"), "api"))
    stage.apply(of_service(ingress(stage, "canary", canary="true", canary_weight="100"), "next"))
    start(stage)

    stage.traffic.until(lambda answer: answer.pod == "next", stage.host, "/")

    assert stage.traffic.counts(10, stage.host, "/api") == {"api": 10}
    assert stage.traffic.counts(10, stage.host, "/api/v1") == {"api": 10}


def test_a_canary_gets_its_share_of_every_ingress_with_the_service(stage: Stage) -> None:
    for name in ("web", "next"):
        stage.serve(name)
    stage.apply(ingress(stage, path="/a"))
    stage.apply(ingress(stage, "other", "/b"))
    stage.apply(of_service(ingress(stage, "canary", "/a", canary="true", canary_by_header="X-Canary"), "next"))
    start(stage)
    stage.traffic.until_status(200, stage.host, "/b")

    for path in ("/a", "/b"):
        stage.traffic.until(lambda answer: answer.pod == "next", stage.host, path, headers={"X-Canary": "always"})
        assert stage.traffic.counts(5, stage.host, path, headers={"X-Canary": "never"}) == {"web": 5}
        assert stage.traffic.counts(5, stage.host, path) == {"web": 5}


def test_a_rewrite_fills_in_captures_and_a_url_redirects(stage: Stage) -> None:
    stage.serve()
    stage.apply(ingress(stage, path="/old/(.*)/x", use_regex="true", rewrite_target="/new/$1"))
    stage.apply(ingress(stage, "moved", "/gone/(.*)", use_regex="true", rewrite_target="https://new.test/$1"))
    start(stage)

    assert stage.traffic.until_status(200, stage.host, "/old/a/b/x").seen["path"] == "/new/a/b"
    moved = stage.traffic.until_status(302, stage.host, "/gone/there")
    assert moved.headers["location"] == "https://new.test/there"


def test_a_path_whose_auth_secret_is_missing_is_closed(stage: Stage) -> None:
    stage.serve()
    stage.apply(ingress(stage))
    stage.apply(ingress(stage, "closed", "/closed", auth_type="basic", auth_secret="absent"))
    start(stage)

    stage.traffic.until_status(200, stage.host, "/")
    stage.traffic.until_status(503, stage.host, "/closed")
    stage.traffic.until_status(503, stage.host, "/closed/below", headers={"Authorization": "Basic am9lOnNlY3JldA=="})


def test_a_host_whose_client_authority_is_missing_is_closed(stage: Stage) -> None:
    stage.serve()
    stage.apply(ingress(stage, auth_tls_secret=f"{stage.namespace}/absent"))
    start(stage)

    stage.traffic.until_status(403, stage.host, "/")


def test_a_client_cannot_forge_the_headers_of_a_client_certificate(stage: Stage) -> None:
    stage.serve()
    authority = Certificates().filled("${CA:ca}")
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "ca"}, "stringData": {"ca.crt": authority}}
    stage.apply(secret)
    passed = {"auth_tls_pass_certificate_to_upstream": "true", "auth_tls_verify_client": "optional_no_ca"}
    stage.apply(ingress(stage, auth_tls_secret=f"{stage.namespace}/ca", ssl_redirect="false", **passed))
    start(stage)
    forged = {"ssl-client-verify": "SUCCESS", "ssl-client-subject-dn": "CN=admin", "ssl-client-cert": "forged"}

    answer = stage.traffic.until_status(200, stage.host, "/", headers=forged)

    got = {name.lower() for name in answer.seen["headers"]}
    assert not got & {name.lower() for name in forged}


def test_a_terminating_load_balancer_is_not_redirected_forever(stage: Stage) -> None:
    stage.serve()
    config(stage, use_forwarded_headers="true")
    stage.apply(ingress(stage, force_ssl_redirect="true"))
    start(stage)

    stage.traffic.until_status(308, stage.host, "/", headers={"X-Forwarded-Proto": "http"})
    stage.traffic.until_status(200, stage.host, "/", headers={"X-Forwarded-Proto": "https"})


def test_without_trust_a_client_cannot_avoid_the_redirect(stage: Stage) -> None:
    stage.serve()
    stage.apply(ingress(stage, force_ssl_redirect="true"))
    start(stage)

    stage.traffic.until_status(308, stage.host, "/", headers={"X-Forwarded-Proto": "https"})


def test_two_controllers_serve_one_ingress_and_write_nothing_to_it(stage: Stage) -> None:
    stage.serve()
    stage.apply(ingress(stage))
    before = _version(stage)
    start(stage)
    gateway = stage.another_gateway()

    section = {"enabled": True, "controller_class": f"k8s.io/{stage.namespace}"}
    election = {"election": {"name": f"second-{stage.namespace}"}}
    stage.start({"default": gateway}, name="second", ingress_nginx=section, kubernetes=election)

    stage.traffic.until_status(200, stage.host, "/")
    through(gateway).until_status(200, stage.host, "/")
    assert _version(stage) == before


def _version(stage: Stage) -> str:
    item = stage.api.get("Ingress", "web", namespace=stage.namespace)
    assert item is not None
    return str(item["metadata"]["resourceVersion"])

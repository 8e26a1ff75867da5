"""Stories of Ingress annotations: their effect on requests, responses and upstreams."""

import ssl

import pytest
from trustme import CA

from e2e.cluster.client import wait_until
from e2e.devgateway.process import DevGateway
from e2e.scene import ANNOTATION, Scene, path, plugin, websocket


def annotate(scene: Scene, text: str = "/", *, kind: str = "Prefix", **annotations: str) -> None:
    """Apply the Ingress `web` with annotations; underscores become dashes."""
    rules = {"host": scene.host, "http": {"paths": [path(text, "web", kind=kind)]}}
    scene.ingress("web", rules, annotations={key.replace("_", "-"): value for key, value in annotations.items()})


def test_the_target_is_rewritten(scene: Scene) -> None:
    scene.serve("web")
    annotate(scene, "/sample", rewrite_target="/ip")
    assert scene.until_pod("web", "/sample").seen["path"] == "/ip"


def test_the_target_is_rewritten_by_a_regular_expression(scene: Scene) -> None:
    scene.serve("web")
    annotate(scene, rewrite_target_regex="/app/(.*)", rewrite_target_regex_template="/$1")
    scene.until_pod("web")
    assert scene.send("/app/a/b?c=d").seen["path"] == "/a/b"
    assert scene.send("/a/b").seen["path"] == "/a/b"


def test_cors_allows_only_the_configured_origin(scene: Scene) -> None:
    scene.serve("web")
    good, bad = {"Origin": "https://good.example.org"}, {"Origin": "https://bad.example.org"}
    annotate(
        scene,
        enable_cors="true",
        cors_allow_origin=good["Origin"],
        cors_allow_methods="GET,POST",
        cors_allow_headers="X-Token",
    )
    got = scene.until_pod("web", headers=good).headers
    assert got["access-control-allow-origin"] == good["Origin"]
    assert (got["access-control-allow-methods"], got["access-control-allow-headers"]) == ("GET,POST", "X-Token")
    assert "access-control-allow-origin" not in scene.send(headers=bad).headers
    annotate(scene, enable_cors="false")
    scene.traffic.until(lambda got: "access-control-allow-origin" not in got.headers, scene.host, headers=good)


@pytest.mark.parametrize(
    ("name", "admits", "refuses"),
    [
        ("allowlist_source_range", "10.9.0.0/16, 127.0.0.1", "10.9.0.0/16"),
        ("blocklist_source_range", "10.9.0.0/16", "10.9.0.0/16,127.0.0.0/8"),
    ],
)
def test_client_addresses_are_admitted_and_rejected(scene: Scene, name: str, admits: str, refuses: str) -> None:
    scene.serve("web")
    annotate(scene, **{name: admits})
    scene.until_pod("web")
    annotate(scene, **{name: refuses})
    scene.until_status(403)
    annotate(scene)
    scene.until_pod("web")


def test_an_invalid_address_list_opens_nothing(scene: Scene) -> None:
    scene.serve("web")
    annotate(scene, allowlist_source_range="everybody")
    want = f"metadata.annotations[{ANNOTATION}allowlist-source-range]"
    wait_until(
        lambda: scene.api.events("web", namespace=scene.namespace),
        lambda events: any(want in event["message"] for event in events),
        "an Event about the annotation",
    )
    assert scene.send().status == 404


@pytest.mark.parametrize(
    "annotations", [{"http_allow_methods": "GET,HEAD"}, {"http_block_methods": "POST,DELETE"}], ids=["allow", "block"]
)
def test_methods_are_admitted_and_rejected(scene: Scene, annotations: dict[str, str]) -> None:
    scene.serve("web")
    annotate(scene, **annotations)
    scene.until_pod("web")
    assert {method: scene.send(method=method).status for method in ("GET", "POST", "DELETE")} == {
        "GET": 200,
        "POST": 405,
        "DELETE": 405,
    }


def test_plain_http_is_redirected_to_https(scene: Scene) -> None:
    scene.serve("web")
    annotate(scene, http_to_https="true")
    answer = scene.until_status(301, "/a?b=c")
    location = answer.headers["location"]
    assert location.startswith(f"https://{scene.host}")
    assert location.endswith("/a?b=c")


def test_requests_are_redirected_with_a_code(scene: Scene) -> None:
    scene.serve("web")
    annotate(scene, http_redirect="/anything$uri", http_redirect_code="308")
    assert scene.until_status(308, "/ip").headers["location"] == "/anything/ip"


def test_the_response_is_rewritten(scene: Scene) -> None:
    scene.serve("web")
    annotate(
        scene,
        enable_response_rewrite="true",
        response_rewrite_status_code="202",
        response_rewrite_body="aGVsbG8=",
        response_rewrite_body_base64="true",
        response_rewrite_set_header="X-Link: https://a.example.org:8443/",
        response_rewrite_remove_header="X-Pod",
    )
    answer = scene.until_status(202)
    assert (answer.text, answer.pod, answer.headers["x-link"]) == ("hello", "", "https://a.example.org:8443/")


@pytest.mark.parametrize(
    ("kind", "want"), [("keyAuth", "Missing API key"), ("basicAuth", "Missing authorization")], ids=["key", "basic"]
)
def test_authentication_is_required(scene: Scene, kind: str, want: str) -> None:
    scene.serve("web")
    annotate(scene, auth_type=kind)
    assert want in scene.until_status(401).text


def test_a_websocket_is_forwarded_if_it_is_enabled(scene: Scene) -> None:
    scene.serve("web")
    annotate(scene)
    scene.until_pod("web")
    assert websocket(scene, "/ws", "hello") == "refused"
    annotate(scene, enable_websocket="true")
    wait_until(lambda: websocket(scene, "/ws", "hello"), lambda reply: reply == "hello", "a WebSocket")


def test_https_is_used_towards_the_pods(scene: Scene) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CA().issue_cert("web.example.org").configure_cert(tls)
    scene.pods.create("web", ports={"https": 8443}, tls=tls)
    scene.pods.service("web", {"app": "web"}, {"http": (80, "https")})
    annotate(scene, upstream_scheme="HTTPS")
    assert scene.until_pod("web").seen["scheme"] == "https"
    assert (scene.record("upstreams", "web_80") or {})["scheme"] == "https"


def test_an_unknown_scheme_is_skipped_and_reported(scene: Scene) -> None:
    scene.serve("web")
    annotate(scene, upstream_scheme="nonsense")
    scene.until_pod("web")
    assert (scene.record("upstreams", "web_80") or {})["scheme"] == "http"


def test_requests_to_a_slow_pod_time_out(scene: Scene) -> None:
    scene.serve("web")
    annotate(scene, upstream_read_timeout="1s", upstream_retries="0")
    scene.until_pod("web")
    assert scene.send("/delay/1.5").status == 504
    assert scene.send("/delay/0.1").status == 200
    found = scene.record("upstreams", "web_80") or {}
    assert (found["timeout"], found["retries"]) == ({"connect": 60, "send": 60, "read": 1}, 0)


def test_settings_of_one_ingress_do_not_affect_another(scene: Scene) -> None:
    scene.serve("web", "other")
    annotate(scene, upstream_retries="3", upstream_read_timeout="7")
    scene.until_pod("web")
    rules = {"host": f"other.{scene.host}", "http": {"paths": [path("/", "other")]}}
    scene.ingress("other", rules)
    scene.until_pod("other", host=f"other.{scene.host}")
    found = scene.record("upstreams", "other_80") or {}
    assert "retries" not in found
    assert found["timeout"]["read"] == 60


def test_a_plugin_config_is_applied_by_name(scene: Scene) -> None:
    scene.serve("web")
    scene.apply("ApisixPluginConfig", "all", spec={"plugins": [plugin("echo", {"body": "from the config"})]})
    annotate(scene, plugin_config_name="all")
    scene.traffic.until(lambda answer: answer.text == "from the config", scene.host)


def test_services_of_another_namespace_are_used(scene: Scene) -> None:
    with scene.api.namespace() as other:
        # Only the pod's address matters: an EndpointSlice of a Service without a selector contains it.
        pod = scene.pods.create("web")
        service = {"name": "web", "namespace": other}
        scene.api.apply({"apiVersion": "v1", "kind": "Service", "metadata": service, "spec": {"ports": [{"port": 80}]}})
        labels = {"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "story"}
        scene.api.apply(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": "web", "namespace": other, "labels": labels},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [pod.address], "conditions": {"ready": True}}],
                "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
            }
        )
        annotate(scene, svc_namespace=other)
        scene.until_pod("web")
        assert scene.names("upstreams") == set()
        assert f"{other}_web_80" in {found["name"] for found in scene.gateway.records("upstreams").values()}


def test_an_external_authorization_service_is_called(scene: Scene) -> None:
    if not isinstance(scene.gateway, DevGateway):
        pytest.skip("a gateway that acts on forward-auth would ask a server that is not there")
    scene.serve("web")
    annotate(scene, auth_uri="http://auth.example.org/check", auth_request_headers="Authorization, X-Team")
    scene.until_pod("web")
    (found,) = scene.ingress_routes("web")
    assert found["plugins"]["forward-auth"] == {
        "uri": "http://auth.example.org/check",
        "ssl_verify": True,
        "request_headers": ["Authorization", "X-Team"],
    }

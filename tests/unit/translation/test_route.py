"""ApisixRoute: cases beyond the golden ones."""

from typing import Any

import pytest

from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.names import ingress_route_name, short_id
from apisix_ingress.state.claims import Claimant, UpstreamClaim
from apisix_ingress.state.holds import Hold
from crds import Spec, parse_spec
from tests.unit.translation.objects import (
    OPTIONS,
    bodies,
    get,
    make,
    pem,
    protected_by,
    reported,
    route,
    rule,
    secret,
    service,
    slice_of,
    upstream,
    world,
)
from translation.core.options import Options
from translation.core.outcome import KeepLast, Outcome, Published, records_of
from translation.route import translate_route

WEB = ObjectKey("Service", "default", "web")


def translate(raw: JsonObject, *objects: JsonObject, options: Options = OPTIONS) -> Outcome:
    found = world(raw, *objects)
    return translate_route(get(found, "ApisixRoute", "route"), found.view(), options)


def test_route_reads_no_endpoints() -> None:
    found = world(route(rule()), service(), slice_of(["10.1.0.1"]))
    view = found.view()
    translate_route(get(found, "ApisixRoute", "route"), view, OPTIONS)
    rivals = {"ApisixRoute", "Ingress", "HTTPRoute", "GRPCRoute", "routes"}
    assert {read.kind for read in view.reads} == {"Service", "ApisixUpstream", "upstreams"} | rivals


def test_every_mistake_is_reported_and_nothing_is_published() -> None:
    got = translate(
        route(
            rule("a", backends=[{"serviceName": "x", "servicePort": 80}, {"serviceName": "web", "servicePort": 81}]),
            rule("b", plugins=[{"name": "p", "secretRef": "nope"}], plugin_config_name="nope"),
        ),
        service(),
    )
    assert reported(got) == [
        "error ServiceNotFound spec.http[0].backends[0].serviceName",
        "error PortNotFound spec.http[0].backends[1].servicePort",
        "error SecretNotFound spec.http[1].plugins[0].secretRef",
        "error PluginConfigNotFound spec.http[1].plugin_config_name",
    ]
    assert records_of(got) == ()


def test_failed_route_claims_weakly_what_its_earlier_records_may_need() -> None:
    other = ObjectKey("Service", "default", "x")
    backends = [{"serviceName": "x", "servicePort": 80}, {"serviceName": "x", "servicePort": "http"}]
    got = translate(route(rule(backends=backends)), service())
    assert isinstance(got, KeepLast)
    assert got.claims == (UpstreamClaim(other, 80, weak=True),)


def test_holds_distinguish_routes_and_stream_routes_of_an_object() -> None:
    stream = {"name": "s", "protocol": "TCP", "match": {"ingressPort": 9100}, "backend": {"serviceName": "web"}}
    got = translate(route(rule(), stream=[stream, {"name": 7}, "junk"]))
    (routes, streams) = protected_by(got)
    assert routes == Hold("routes", "default_route_")
    assert streams.kind == "stream_routes"
    assert streams.names == {"default_route_s_tcp"}


def test_spec_that_does_not_fit_still_claims_what_can_be_read() -> None:
    http = [
        {
            "backends": [
                {"serviceName": "web", "servicePort": 80, "subset": "s", "resolveGranularity": "service"},
                {"serviceName": "web", "servicePort": "http"},
                {"serviceName": 5, "servicePort": 80},
                {"serviceName": "web", "serviceNamespace": "b", "servicePort": 80},
                {"serviceName": "web", "serviceNamespace": 5, "servicePort": 80},
            ],
            "upstreams": [{"name": "ext"}, {"name": 5}, None],
        },
        "junk",
    ]
    stream = [{"backend": {"serviceName": "tcp", "servicePort": 9000, "subset": 1}}]
    got = translate(make("ApisixRoute", "route", spec={"http": http, "stream": stream}))
    assert isinstance(got, KeepLast)
    assert got.claims == (
        UpstreamClaim(WEB, 80, "s", "service", weak=True),
        UpstreamClaim(ObjectKey("Service", "b", "web"), 80, weak=True),
        UpstreamClaim(ObjectKey("ApisixUpstream", "default", "ext"), weak=True),
        UpstreamClaim(ObjectKey("Service", "default", "tcp"), 9000, weak=True),
    )


@pytest.mark.parametrize(
    ("port", "hint"),
    [
        ("80", "it has 80 (http); do not put a number in quotes"),
        ("https", "it has 80 (http)"),
        (81, "it has 80 (http)"),
    ],
)
def test_missing_port_names_the_ports_there_are(port: Any, hint: str) -> None:
    backends = [{"serviceName": "web", "servicePort": port}]
    got = translate(route(rule(backends=backends)), service(ports=[{"name": "http", "port": 80}]))
    assert [problem.message for problem in got.problems] == [f"Service default/web has no port {port}; {hint}"]


def test_a_service_without_ports_is_reported() -> None:
    got = translate(route(rule()), service(ports=[]))
    assert [problem.message for problem in got.problems] == ["Service default/web has no port 80; it has none"]


def test_external_name_needs_no_ports() -> None:
    got = translate(route(rule()), service(ports=[], type="ExternalName", externalName="a.example.com"))
    assert isinstance(got, Published)
    assert got.claims == (UpstreamClaim(WEB, 80),)
    assert reported(got) == []


def test_bad_settings_of_an_upstream_fail_the_route_with_their_own_path() -> None:
    got = translate(route(rule()), service(), upstream(retries=-1))
    assert reported(got) == ["error InvalidSpec spec.http[0].backends[0].serviceName"]
    assert got.problems[0].message.startswith("ApisixUpstream default/web: spec.retries: ")


def test_settings_that_need_a_missing_secret_fail_the_route_and_wait_for_it() -> None:
    found = world(route(rule()), service(), upstream(tlsSecret={"name": "cli", "namespace": "b"}))
    view = found.view()
    got = translate_route(get(found, "ApisixRoute", "route"), view, OPTIONS)
    assert reported(got) == ["error SecretNotFound spec.http[0].backends[0].serviceName"]
    assert ObjectKey("Secret", "b", "cli") in view.reads


def test_a_rule_with_plugins_that_respond_needs_no_upstream() -> None:
    plugin = {"name": "redirect", "config": {"uri": "/b"}}
    got = translate(route(rule(backends=[], plugins=[plugin])))
    assert bodies(got) == [{"uris": ["/*"], "plugins": {"redirect": {"uri": "/b"}}}]


def test_rule_answered_by_a_plugin_config_has_empty_plugins() -> None:
    config = make("ApisixPluginConfig", "pc", spec={"plugins": []})
    got = translate(route(rule(backends=[], plugin_config_name="pc")), config)
    (body,) = bodies(got)
    assert body["plugins"] == {}
    assert "upstream_id" not in body


def test_plugin_config_of_a_foreign_class_is_not_found() -> None:
    config = make("ApisixPluginConfig", "pc", spec={"plugins": [], "ingressClassName": "other"})
    got = translate(route(rule(plugin_config_name="pc")), service(), config, options=Options(ingress_class="apisix"))
    assert reported(got) == ["error PluginConfigNotFound spec.http[0].plugin_config_name"]
    assert "has class other" in got.problems[0].message


@pytest.mark.parametrize(("op", "operator"), [("RegexMatch", "~~"), ("RegexMatchCaseInsensitive", "~*")])
def test_a_guarded_regular_expression_that_may_fail_has_a_route_for_errors(op: str, operator: str) -> None:
    path = {"subject": {"scope": "Path"}, "op": op, "value": "/a/((b|c)/?)*$"}
    match = {"paths": ["/*"], "methods": ["GET"], "exprs": [path]}

    got = translate(route(rule(match=match, priority=3, plugins=[{"name": "key-auth", "enable": True}])), service())

    _, body = bodies(got)
    failing = ["uri", "!", operator, "^(?:[\\s\\S]*?(?:/a/((b|c)/?)*$)|)"]
    assert {name: body[name] for name in body.keys() - {"id", "name", "desc", "labels"}} == {
        "uris": ["/*"],
        "methods": ["GET"],
        "priority": 3,
        "vars": [failing],
        "plugins": {"fault-injection": {"abort": {"http_status": 500}}},
    }


def test_plugin_without_enable_is_on() -> None:
    got = translate(route(rule(plugins=[{"name": "cors"}])), service())
    assert [body["plugins"] for body in bodies(got)] == [{"cors": {}}]


def test_what_is_listed_twice_is_sent_once() -> None:
    match = {
        "paths": ["/b", "/a", "/b"],
        "hosts": ["a.example.com", "a.example.com."],
        "methods": ["GET", "GET"],
        "remoteAddrs": ["10.0.0.1", "10.0.0.1"],
    }
    (body,) = bodies(translate(route(rule(match=match)), service()))
    assert (body["uris"], body["hosts"]) == (["/b", "/a"], ["a.example.com"])
    assert (body["methods"], body["remote_addrs"]) == (["GET"], ["10.0.0.1"])


def test_subset_does_nothing_where_the_cluster_address_is_the_node() -> None:
    backend = {"serviceName": "web", "servicePort": 80, "subset": "s", "resolveGranularity": "service"}
    unknown = translate(route(rule(backends=[backend])), service())
    known = translate(route(rule(backends=[backend])), service(), upstream(subsets=[{"name": "s", "labels": {}}]))
    assert reported(unknown) == reported(known) == ["warning SubsetUnused spec.http[0].backends[0].serviceName"]
    assert "remove resolveGranularity" in unknown.problems[0].message
    assert len(records_of(unknown)) == 1


def test_subset_of_an_upstream_of_a_foreign_class_is_not_found() -> None:
    raw = route(rule(backends=[{"serviceName": "web", "servicePort": 80, "subset": "s"}]))
    settings = upstream(subsets=[{"name": "s", "labels": {}}], ingressClassName="other")
    got = translate(raw, service(), settings, options=Options(ingress_class="apisix"))
    assert [str(problem) for problem in got.problems] == [
        "spec.http[0].backends[0].serviceName: ApisixUpstream default/web has class other, "
        "which belongs to another controller, "
        "so no pod gets requests; set its spec.ingressClassName to apisix"
    ]


def test_absent_and_refused_cross_namespace_references_read_the_same() -> None:
    config = make("ApisixPluginConfig", "pc", namespace="b", spec={"plugins": []})
    raw = route(rule(plugin_config_name="pc", plugin_config_namespace="b"))
    options = Options(cross_namespace="grant")
    absent, refused = (translate(raw, service(), *objects, options=options) for objects in ((), (config,)))
    assert absent.problems == refused.problems
    assert reported(absent) == ["error PluginConfigNotFound spec.http[0].plugin_config_name"]
    assert reported(translate(raw, service(), config)) == []


def test_filter_function_is_code() -> None:
    raw = route(rule(match={"filter_func": "function(vars) return true end"}))
    assert reported(translate(raw, service())) == []
    got = translate(raw, service(), options=Options(code_plugins="refuse"))
    assert reported(got) == ["error CodeRefused spec.http[0].match.filter_func"]


@pytest.mark.parametrize("code", ["return true", "local x = 1 function(vars) end", "function"])
def test_filter_that_is_not_a_function_is_reported(code: str) -> None:
    got = translate(route(rule(match={"filter_func": code})), service())
    assert reported(got) == ["error InvalidSpec spec.http[0].match.filter_func"]


def test_code_in_a_plugin_config_is_refused_for_the_route_that_names_it() -> None:
    plugins = [{"name": "inspect", "enable": False}, {"name": "serverless-pre-function"}, {"name": "cors"}]
    config = make("ApisixPluginConfig", "pc", spec={"plugins": plugins})
    raw = route(rule(plugin_config_name="pc"))
    assert reported(translate(raw, service(), config)) == []
    got = translate(raw, service(), config, options=Options(code_plugins="refuse"))
    assert [str(problem) for problem in got.problems] == [
        "spec.http[0].plugin_config_name: ApisixPluginConfig default/pc: spec.plugins[1].name: plugin "
        "serverless-pre-function is rejected by the controller's setting kubernetes.code_plugins: refuse; remove it"
    ]


def test_an_invalid_plugin_config_reports_it_in_its_own_status() -> None:
    config = make("ApisixPluginConfig", "pc", spec={"plugins": [{"name": 7}]})
    raw = route(rule(plugin_config_name="pc"))
    assert reported(translate(raw, service(), config, options=Options(code_plugins="refuse"))) == []


def test_refused_code_of_a_route_is_not_protected_in_a_gateway() -> None:
    raw = route(rule(plugins=[{"name": "serverless-pre-function"}]))
    got = translate(raw, service(), options=Options(code_plugins="refuse"))
    assert isinstance(got, KeepLast)
    assert (got.protected, got.claims) == ((), ())


def test_weights_of_zero_throughout_are_reported() -> None:
    backends = [{"serviceName": "web", "servicePort": 80, "weight": 0} for _ in range(2)]
    got = translate(route(rule(backends=backends)), service())
    assert reported(got) == ["warning WeightsZero spec.http[0].backends"]
    assert len(records_of(got)) == 1


def test_external_upstream_of_a_foreign_class_is_not_found() -> None:
    nodes = [{"name": "a.example.com", "type": "Domain"}]
    raw = route(rule(backends=[], upstreams=[{"name": "ext"}]))
    ext = upstream("ext", externalNodes=nodes, ingressClassName="other")
    got = translate(raw, ext, options=Options(ingress_class="apisix"))
    assert reported(got) == ["error UpstreamNotFound spec.http[0].upstreams[0].name"]
    assert got.problems[0].message == (
        "ApisixUpstream default/ext has class other, which belongs to another controller; "
        "set its spec.ingressClassName to apisix"
    )


def test_external_upstream_that_cannot_be_made_fails_the_route() -> None:
    raw = route(rule(backends=[], upstreams=[{"name": "ext"}]))
    ext = upstream("ext", externalNodes=[{"name": "Not A Host", "type": "Domain"}], retries=1)
    assert reported(translate(raw, ext)) == ["error InvalidNode spec.http[0].upstreams[0].name"]


def test_stream_route_has_plugins_and_the_name_of_the_server() -> None:
    stream = {
        "name": "s",
        "protocol": "UDP",
        "match": {"ingressPort": 9200, "host": "a.example.com"},
        "backend": {"serviceName": "web", "servicePort": 80},
        "plugins": [{"name": "mqtt-proxy", "config": {"x": 1}}],
    }
    got = translate(route(stream=[stream]), service())
    (record,) = records_of(got)
    assert record.name == "default_route_s_tcp"
    assert "name" not in record.body
    (body,) = bodies(got)
    assert body == {
        "server_port": 9200,
        "sni": "a.example.com",
        "upstream_id": body["upstream_id"],
        "plugins": {"mqtt-proxy": {"x": 1}},
    }


def test_pair_of_a_client_certificate_that_does_not_match_fails_the_route() -> None:
    objects = (
        service(),
        upstream(tlsSecret={"name": "secret", "namespace": "default"}),
        secret(tls__crt=pem(1).certificate, tls__key=pem(2).key),
    )
    assert reported(translate(route(rule()), *objects)) == [
        "error InvalidCertificate spec.http[0].backends[0].serviceName"
    ]


def test_name_with_a_control_character_is_refused() -> None:
    assert reported(translate(route(rule("a\nb")), service())) == ["error ControlCharacter spec.http[0].name"]


def test_an_empty_object_has_no_fields() -> None:
    got = translate(route())
    assert isinstance(got, Published)
    assert (got.records, got.claims, got.problems) == ((), (), ())


def test_settings_are_judged_once_however_many_rules_refer_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []

    def parse(kind: type[Spec], spec: FrozenJson) -> Any:
        judged.append(kind.__name__)
        return parse_spec(kind, spec)

    for module in ("upstreams.backends", "upstreams.settings"):
        monkeypatch.setattr(f"translation.{module}.parse_spec", parse)
    to: list[JsonObject] = [{"backends": [{"serviceName": "web", "servicePort": 80}]}, {"upstreams": [{"name": "out"}]}]
    rules = [{"name": f"r{number}", "match": {"paths": [f"/{number}"]}, **to[number % 2]} for number in range(8)]
    nodes = [{"type": "Domain", "name": "a.example.org", "port": 80}]
    out = make("ApisixUpstream", "out", spec={"externalNodes": nodes})
    settings = make("ApisixUpstream", "web", spec={"retries": 1})
    found = world(service(), settings, out, make("ApisixRoute", "many", spec={"http": rules}))
    got = translate_route(get(found, "ApisixRoute", "many"), found.view(), OPTIONS)
    assert (len(records_of(got)), got.problems) == (8, ())
    assert judged == ["ApisixUpstreamSpec", "ApisixUpstreamSpec"]


@pytest.mark.parametrize(
    ("namespace", "name", "refused"),
    [
        ("ing", "shop_6f1a2b", True),
        ("ing", "my.shop-2_0", True),
        ("ing", "shop", False),
        ("ing", "shop_canary", False),
        ("default", "shop_6f1a2b", False),
    ],
)
def test_rule_has_no_name_that_a_path_of_an_ingress_elsewhere_may_have(
    namespace: str, name: str, refused: bool
) -> None:
    manifest = make("ApisixRoute", "victim", namespace=namespace, spec={"http": [rule(name)]})
    found = world(manifest)
    got = translate_route(get(found, "ApisixRoute", "victim", namespace), found.view(), OPTIONS)
    assert [problem.path for problem in got.problems if "rename the rule" in problem.message] == (
        ["spec.http[0].name"] if refused else []
    )
    desired = found.desired
    desired.hold(Claimant("", ObjectKey("ApisixRoute", namespace, "victim")), protected_by(got))
    theirs = ingress_route_name("victim", "shop", "a.example.com", "/")
    assert not desired.is_held(RecordKey("routes", short_id(theirs)), theirs)
    own = f"{namespace}_victim_{name}"
    assert desired.is_held(RecordKey("routes", short_id(own)), own) is not refused

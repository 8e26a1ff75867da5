"""Warnings about what other objects or later changes may repair."""

from apisix_ingress.webhook.review import Verdict
from apisix_ingress.webhook.schemas.plugin_configs import Books
from tests.factories import make_custom, make_secret, make_service
from tests.unit.apisix_ingress.webhook.checks.objects import INGRESS, WITH_CLASS
from tests.unit.apisix_ingress.webhook.worlds import (
    ask,
    make_checks,
    manifest,
    plugin,
    route_spec,
    rule,
    tls_secret,
)
from translation.core.options import Options


def test_a_route_may_be_created_before_its_references() -> None:
    spec = {
        "http": [
            rule(plugin("limit-count", secretRef="late"), plugin_config_name="late"),
            rule(name="two", backends=[], upstreams=[{"name": "late"}]),
        ]
    }
    got = ask(make_checks(), manifest(spec))
    assert got.denials == ()
    assert [text.split(": ")[1].split(";")[0] for text in got.warnings] == [
        "Secret default/late does not exist",
        "Service default/web does not exist",
        "ApisixPluginConfig default/late does not exist",
        "ApisixUpstream default/late does not exist",
    ]


def test_port_that_a_service_lacks_yet_is_a_warning() -> None:
    got = ask(make_checks(make_service(ports=())), manifest(route_spec()))
    assert got == Verdict(
        warnings=("spec.http[0].backends[0].servicePort: Service default/web has no port 80; it has none",)
    )


def test_mistake_in_an_object_that_is_referred_to_is_a_warning() -> None:
    settings = make_custom("web", kind="ApisixUpstream", spec={"retries": "many"})
    got = ask(make_checks(make_service(), settings), manifest(route_spec()))
    assert got.denials == ()
    assert "ApisixUpstream default/web: spec.retries: must be an integer" in got.warnings[0]


def test_secret_without_its_values_is_a_warning() -> None:
    spec = {"authParameter": {"keyAuth": {"secretRef": {"name": "creds"}}}}
    got = ask(make_checks(make_secret("creds")), manifest(spec, kind="ApisixConsumer"))
    assert got == Verdict(
        warnings=("spec.authParameter.keyAuth.secretRef.name: Secret default/creds: key key is missing; add it",)
    )


def test_certificate_that_is_not_there_yet_is_a_warning() -> None:
    spec = dict(WITH_CLASS)["ApisixTls"]
    got = ask(make_checks(), manifest(spec, kind="ApisixTls"))
    want = "spec.secret.name: Secret default/cert does not exist; create it or correct the name"
    assert got == Verdict(warnings=(want,))


def test_a_reference_without_its_grant_is_a_warning_equal_to_absence() -> None:
    options = Options(cross_namespace="grant")
    spec = {"hosts": ["a.example.org"], "secret": {"name": "cert", "namespace": "other"}}
    there = make_checks(tls_secret("cert", namespace="other"), options=options)
    absent = make_checks(options=options)
    got = ask(there, manifest(spec, kind="ApisixTls"))
    assert got == ask(absent, manifest(spec, kind="ApisixTls"))
    assert got.denials == ()
    assert "does not exist, or references from namespace default are not permitted" in got.warnings[0]


def test_plugin_that_another_global_rule_has_is_a_warning() -> None:
    other = make_custom("a", kind="ApisixGlobalRule", spec={"plugins": [plugin("redirect")]}, created="2020-01-01")
    got = ask(make_checks(other), manifest({"plugins": [plugin("redirect")]}, kind="ApisixGlobalRule"))
    assert got.denials == ()
    assert "ApisixGlobalRule default/a already sets it" in got.warnings[0]


def test_translators_warnings_are_passed_on() -> None:
    got = ask(make_checks(make_service()), manifest(route_spec(plugin("redirect"), plugin("redirect"))))
    assert got.denials == ()
    assert got.warnings == (
        "spec.http[0].plugins[1]: plugin redirect is configured twice: the last one is used; remove one",
    )


def test_annotations_without_effect_are_reported() -> None:
    values = {
        "k8s.apisix.apache.org/enable-websockets": "true",
        "k8s.apisix.apache.org/nothing-like-it": "1",
        "k8s.apisix.apache.org/enable-cors": "true",
        "nginx.ingress.kubernetes.io/rewrite-target": "/",
        "example.org/note": "x",
    }
    books: Books = {}
    got = ask(make_checks(make_service(), books=books), manifest(INGRESS, kind="Ingress", annotations=values))
    ours, theirs = "k8s.apisix.apache.org", "nginx.ingress.kubernetes.io/rewrite-target"
    where, remedy = "metadata.annotations", "use the equivalent annotation or plugin, or remove it"
    assert got == Verdict(
        warnings=(
            f"{where}[{ours}/enable-websockets]: has no effect: did you mean {ours}/enable-websocket?",
            f"{where}[{ours}/nothing-like-it]: has no effect: "
            "it is unknown, or the annotation it depends on is not set",
            f"{where}[{theirs}]: ignored: annotation of another controller; {remedy}",
        )
    )


def test_cluster_config_of_an_unknown_cluster_is_a_warning() -> None:
    spec = dict(WITH_CLASS)["ApisixClusterConfig"]
    got = ask(make_checks(), manifest(spec, kind="ApisixClusterConfig", name="defualt", namespace=""))
    want = "metadata.name: unknown gateway cluster defualt, so the object has no effect; known: default"
    assert got == Verdict(warnings=(want,))


def test_an_object_above_the_budget_of_its_namespace_is_allowed_with_a_warning() -> None:
    checks = make_checks(make_service())
    checks.world.budget.most = 10
    got = ask(checks, manifest(route_spec()))
    assert got.allowed
    assert [warning.partition(":")[2] for warning in got.warnings] == [
        " the objects of this namespace would exceed the limit of 0 MiB of records: delete some of them, make them"
        " refer to smaller Secrets, or use fewer regular expressions"
    ]

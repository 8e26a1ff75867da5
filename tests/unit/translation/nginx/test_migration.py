"""The migration report: verdicts by Ingress and host, and interactions between Ingresses of a host."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from apisix_ingress.diagnostics.collect.offline import stored
from apisix_ingress.diagnostics.reports.migration import as_json, markdown_lines, text_lines
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.statuspage.migration_page import migration_page
from tests.unit.translation.nginx.objects import CLASS, OPTIONS, SERVICE, ingress, translated
from tests.unit.translation.nginx.realistic import realistic
from translation.nginx.migration import REFERRED, MigrationReport, migration_report


def report(*objects: dict[str, Any], read: Collection[str] = REFERRED) -> MigrationReport:
    assert OPTIONS.nginx is not None
    decoded = [RESOURCES[item["kind"]].decode(item) for item in (CLASS, SERVICE, *objects)]
    world = stored(decoded, OPTIONS)
    items = [item for item in decoded if isinstance(item, CustomObject)]
    return migration_report(items, world.view(), OPTIONS, OPTIONS.nginx, read=read)


def test_the_most_severe_verdict_wins() -> None:
    got = report(
        ingress("exact", ("/a", "Prefix"), proxy_body_size="8m"),
        ingress("close", ("/b", "Prefix"), affinity="cookie"),
        ingress("bad", ("/c", "Prefix"), configuration_snippet="more_set_headers 'X: 1';"),
    )

    assert {each.key.name: each.level for each in got.ingresses} == {
        "bad": "refused",
        "close": "approximate",
        "exact": "exact",
    }
    assert got.level == "refused"


def test_a_snippet_gets_a_suggestion_for_each_directive() -> None:
    snippet = "more_set_headers 'X: 1';\nsub_filter a b;"

    got = report(ingress("bad", ("/c", "Prefix"), configuration_snippet=snippet))

    assert [line.partition("`: ")[0] for line in got.ingresses[0].suggestions] == [
        "`more_set_headers 'X: 1';",
        "`sub_filter a b;",
    ]


def test_the_risk_says_what_needs_attention() -> None:
    got = report(
        ingress("none", ("/a", "Prefix"), proxy_body_size="8m"),
        ingress("low", ("/b", "Prefix"), affinity="cookie"),
        ingress("medium", ("/c", "Prefix"), connection_proxy_header="close"),
        ingress("high", ("/d", "Prefix"), enable_modsecurity="true"),
    )

    assert {each.key.name: each.risk for each in got.ingresses} == {
        name: name for name in ("none", "low", "medium", "high")
    }


def test_a_plain_connection_to_a_backend_with_tls_is_reported() -> None:
    secure, plain = ingress("tls", ("/a", "Prefix"), backend_protocol="HTTPS"), ingress("web", ("/b", "Prefix"))
    alone = ingress("alone", ("/c", "Prefix"), service="other", backend_protocol="HTTPS")

    got = {each.key.name: [*each.reasons()] for each in report(secure, plain, alone).ingresses}
    problems = translated(secure, plain, alone).problems

    assert {name: len(reasons) for name, reasons in got.items()} == {"alone": 0, "tls": 1, "web": 0}
    assert got["tls"][0][2].startswith("Ingress shop/web sends requests to the same Service without TLS")
    differing = [str(key) for key, problem in problems if problem.code == "NginxDiffers"]
    assert differing == ["Ingress shop/tls"]


def test_missing_objects_are_named_if_their_kind_was_read() -> None:
    item = ingress("web", ("/a", "Prefix"), service="absent", auth_type="basic", auth_secret="users")

    assert [each.partition(" does")[0] for each in report(item).ingresses[0].missing] == [
        "auth-secret: Secret shop/users",
        "Service shop/absent",
    ]
    unread = ("Service shop/absent was not read: its paths are not checked",)
    assert report(item, read=()).ingresses[0].missing == unread


def test_certificates_that_do_not_exist_are_missing_if_secrets_were_read() -> None:
    item = ingress("web", ("/a", "Prefix"))
    item["spec"]["tls"] = [{"hosts": ["shop.test"], "secretName": "gone"}]

    why = "the Secret of a certificate does not exist: clients get the default certificate, as with ingress-nginx"
    assert report(item).ingresses[0].missing == (why,)
    assert report(item, read=("Service",)).ingresses[0].missing == ()


def test_ports_that_a_service_does_not_have_are_missing() -> None:
    item = ingress("web", ("/a", "Prefix"))
    path = {**item["spec"]["rules"][0]["http"]["paths"][0], "path": "/b"}
    wrong = {**path, "backend": {"service": {"name": "web", "port": {"name": "htpp"}}}}
    item["spec"]["rules"].append({"host": "b.test", "http": {"paths": [wrong]}})

    why = "it has 80; correct the port. Until then, its paths respond with 503, as with ingress-nginx"
    want = (f"Service shop/web has no port htpp; {why}",)
    assert report(item).ingresses[0].missing == want


def test_a_closed_path_has_one_reason() -> None:
    (got,) = report(ingress("web", ("/", "Prefix"), auth_type="digest", auth_secret="users")).ingresses

    assert [path.rpartition("/")[2] for path, _ in got.refused] == ["auth-type]"]
    assert got.missing == ()


def test_a_backend_whose_secret_was_not_read_is_not_called_unverifiable() -> None:
    given = {"backend_protocol": "HTTPS", "proxy_ssl_secret": "shop/ca", "proxy_ssl_verify": "on"}

    (got,) = report(ingress("web", ("/", "Prefix"), **given), read=()).ingresses  # type: ignore[arg-type]

    assert (got.refused, got.missing) == ((), ())


def test_defaults_are_those_of_the_config_map() -> None:
    config = {
        "kind": "ConfigMap",
        "metadata": {"name": "config", "namespace": "ingress-nginx"},
        "data": {"proxy-body-size": "8m"},
    }

    assert dict(report(config).defaults)["proxy-body-size"] == "8m"


def test_the_text_starts_with_what_needs_attention_and_why() -> None:
    got = report(
        ingress("exact", ("/a", "Prefix")),
        ingress("one", ("/b", "Prefix"), enable_modsecurity="true"),
        ingress("two", ("/c", "Prefix"), enable_modsecurity="true"),
    )

    text = "\n".join(text_lines(got))
    assert "3 Ingresses on 1 host: 1 served exactly, 0 with a difference, 2 not served completely." in text
    assert "2x enable-modsecurity: " in text
    assert (
        text.index("High risk") < text.index("shop/one") < text.index("Served exactly (1)") < text.index("shop/exact")
    )


def test_the_counts_of_the_document_are_those_of_all_ingresses() -> None:
    got = as_json(
        report(
            ingress("plain", ("/a", "Prefix")),
            ingress("cors", ("/b", "Prefix"), enable_cors="true"),
            ingress("misspelt", ("/c", "Prefix"), foo="bar"),
            ingress("closed", ("/d", "Prefix"), enable_modsecurity="true"),
        )
    )

    assert got["counts"] == {"exact": 2, "approximate": 0, "refused": 1, "no effect": 1}
    assert sum(got["counts"].values()) == len(got["ingresses"])


def test_ingresses_without_a_known_class_are_listed_and_those_of_others_are_not() -> None:
    classless, unknown, foreign = (ingress(name, ("/", "Prefix")) for name in ("none", "unknown", "other"))
    del classless["spec"]["ingressClassName"]
    unknown["spec"]["ingressClassName"] = "unheard"
    foreign["spec"]["ingressClassName"] = "traefik"
    traefik = {"kind": "IngressClass", "metadata": {"name": "traefik"}, "spec": {"controller": "traefik.io/x"}}

    got = report(classless, unknown, foreign, traefik)

    assert {key.name: why.partition(";")[0] for key, why in got.unchecked.items()} == {
        "none": "it has no class",
        "unknown": "IngressClass unheard is unknown",
    }
    assert "Not part of this report (2):" in "\n".join(text_lines(got))


def test_without_ingresses_of_the_class_the_report_says_what_to_set() -> None:
    assert "controller_class" in "\n".join(text_lines(report()))


def test_a_host_names_what_one_ingress_does_to_the_others() -> None:
    got = report(
        ingress("plain", ("/a", "Prefix"), ("/b", "Prefix")),
        ingress("regex", ("/v[0-9]+", "ImplementationSpecific"), age=1, use_regex="true"),
        ingress("late", ("/a", "Prefix"), age=2),
    )

    text = "\n".join(text_lines(got))
    patterns = "use-regex or rewrite-target on shop/regex turns the paths of shop/plain, shop/late into"
    assert f"{patterns} case-insensitive patterns" in text
    assert "/a is served by shop/plain, the oldest, not by shop/late" in text


def test_every_format_names_every_ingress() -> None:
    got = report(ingress("one", ("/a", "Prefix")), ingress("two", ("/b", "Prefix"), enable_modsecurity="true"))

    shown = [
        str(as_json(got)),
        migration_page(got).replace("<wbr>", ""),
        "\n".join(markdown_lines(got)),
        "\n".join(text_lines(got)),
    ]
    assert all("shop/one" in text and "shop/two" in text for text in shown)


def test_a_host_of_a_refused_ingress_is_refused() -> None:
    got = report(ingress("bad", ("/", "Prefix"), configuration_snippet="return 403;"))

    assert [(each.host, each.level, each.ingresses) for each in got.hosts] == [
        ("shop.test", "refused", (got.ingresses[0].key,))
    ]


def test_the_page_has_hosts_first_and_its_links_lead_to_ingresses() -> None:
    page = migration_page(report(ingress("web", ("/a", "Prefix"), affinity="cookie"), ingress("waf", ("/b", "Prefix"))))

    ids, targets = (set(re.findall(pattern, page)) for pattern in (r'id="([^"]+)"', r'href="#([^"]+)"'))
    assert targets <= ids
    assert {"ingress-shop.web", "ingress-shop.waf"} <= targets
    assert page.index('id="hosts"') < page.index('id="ingresses"')
    assert not re.search(r'(src|href)="(http|/)', page)


def test_the_page_shows_texts_as_texts_and_marks_code() -> None:
    page = migration_page(report(ingress("bad", ("/", "Prefix"), configuration_snippet="add_header A '<b>' always;")))

    assert "<b>" not in page
    assert "<code>add_header A &#39;&lt;b&gt;&#39; always;</code>" in page
    page = migration_page(
        report(ingress("bad", ("/", "Prefix"), configuration_snippet="add_header A '`<b>\x9b' always;"))
    )
    assert ("<b>" in page, "\x9b" in page) == (False, False)


def test_annotations_without_effect_are_listed() -> None:
    web = ingress("web", ("/a", "Prefix"), proxy_body_sise="8m", use_regex="yes")
    web["metadata"]["annotations"]["nginx.org/rewrites"] = "serviceName=web rewrite=/b/"
    got = report(web)

    text = "\n".join(text_lines(got))
    assert "1x proxy-body-sise is unknown: check its name\n    shop/web" in text
    ignored = "1x nginx.org/rewrites: ingress-nginx ignores this annotation of another controller; remove it.\n"
    assert f"{ignored}    shop/web" in text
    assert "1x use-regex: 'yes' is not valid: the default applies\n    shop/web" in text


def test_one_reason_is_written_once_with_its_ingresses_by_namespace() -> None:
    guarded = [ingress(f"waf-{number}", (f"/{number}", "Prefix"), enable_modsecurity="true") for number in range(3)]
    guarded[0]["metadata"]["namespace"] = "api"

    text = "\n".join(text_lines(report(*guarded)))

    assert text.count("enable-modsecurity:") == 1
    assert "\n    api/waf-0\n    shop/waf-1, shop/waf-2\n" in text


def test_the_first_step_is_about_what_is_not_served() -> None:
    steps = as_json(report(ingress("waf", ("/", "Prefix"), enable_modsecurity="true")))["nextSteps"]

    assert steps[0] == "Correct 1 Ingress with a high risk, or accept that paths are not served."


def test_an_unknown_config_map_is_reported_first() -> None:
    config = {"kind": "ConfigMap", "metadata": {"name": "config", "namespace": "ingress-nginx"}, "data": {}}

    web = ingress("web", ("/", "Prefix"))
    missing = report(web)
    lines = ["\n".join(text_lines(each)) for each in (missing, replace(missing, config_map=""), report(web, config))]

    assert "ConfigMap ingress-nginx/config is not among the objects that were read" in lines[0]
    assert "Name it with --config-map" in lines[1]
    assert "ConfigMap" not in lines[2]


def test_the_report_on_300_realistic_ingresses_is_short() -> None:
    objects = realistic(300)

    lines = list(text_lines(report(*objects)))

    assert len(lines) < 200


def test_a_report_contains_no_credentials_of_snippets_and_urls() -> None:
    snippet = """proxy_set_header Authorization "Basic czNjcjN0czNjcjN0";
proxy_set_header X-Api-Key s3cr3t;
proxy_set_header X-Plain shown;
proxy_set_header X-Token $http_x_token;
set $password 's3cr3t';
more_set_headers "X-Auth-Token: s3cr3t" "X-Other: shown";
location /x { proxy_set_header Cookie "session=\\"s3cr3t"; return 200 "shown"; }
proxy_pass http://user:s3cr3t@backend/;
"""
    got = report(
        ingress("snippets", ("/a", "Prefix"), configuration_snippet=snippet, server_snippet=snippet),
        ingress("urls", ("/b", "Prefix"), auth_url="https://u:s3cr3t@auth.test/?token=s3cr3t"),
        ingress("invalid", ("/c", "Prefix"), mirror_target="https://u:s3cr3t@x/?token=s3cr3t"),
    )

    texts = ["\n".join(lines(got)) for lines in (text_lines, markdown_lines)]
    outputs = [json.dumps(as_json(got)), *texts, migration_page(got)]

    assert [text for text in outputs if "s3cr3t" in text or "czNjcjN0" in text] == []
    assert "proxy_set_header X-Token $http_x_token;" in outputs[1]
    assert "proxy_set_header X-Plain shown;" in outputs[1]

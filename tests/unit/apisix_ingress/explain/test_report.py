"""The document and the text of `explain`: certificate, route, plugins, upstreams, and notes."""

from __future__ import annotations

from typing import Any

from apisix_ingress.explain.answer import unread
from apisix_ingress.explain.report import SHOWN_MISSES, explain
from apisix_ingress.explain.request import parse_request
from apisix_ingress.explain.text import lines
from apisix_ingress.model.keys import RecordKey

Records = dict[str, dict[str, Any]]
NODES = [{"host": "10.0.0.1", "port": 80, "weight": 3}, {"host": "fd00::1", "port": 80, "weight": 1}]


def ask(url: str, records: Records, **fields: Any) -> dict[str, Any]:
    keyed = {RecordKey(*path.split("/")): {"id": path.split("/")[1], **body} for path, body in records.items()}  # type: ignore[arg-type]
    return explain(parse_request(url), keyed, lambda key: f"ApisixRoute default/{key.id}", **fields)


def test_explain_shows_a_route_with_its_plugins_and_nodes() -> None:
    got = ask(
        "shop.org/x",
        {
            "routes/r": {"uri": "/*", "upstream_id": "u", "plugin_config_id": "p", "plugins": {"cors": {}}},
            "plugin_configs/p": {"plugins": {"key-auth": {}, "cors": {}}},
            "upstreams/u": {"name": "default_web_80", "nodes": NODES},
            "global_rules/g": {"plugins": {"prometheus": {}}},
        },
    )
    assert (got["outcome"], got["notes"]) == ("route", [])
    assert got["route"] == {
        "id": "r",
        "name": "",
        "owner": "ApisixRoute default/r",
        "plugins": ["cors", "key-auth"],
        "global_plugins": ["prometheus"],
        "upstreams": [
            {
                "id": "u",
                "name": "default_web_80",
                "nodes": [{"address": "10.0.0.1:80", "weight": 3}, {"address": "[fd00::1]:80", "weight": 1}],
            }
        ],
    }


def test_service_of_a_route_gives_hosts_plugins_and_upstream() -> None:
    service = {"hosts": ["svc.org"], "plugins": {"gzip": {}}, "upstream": {"nodes": {"10.0.0.9:80": 1}}}
    records: Records = {"services/s": service, "routes/r": {"uri": "/x", "service_id": "s"}}
    assert ask("other.org/x", records)["outcome"] == "none"
    got = ask("svc.org/x", records)["route"]
    assert (got["plugins"], got["upstreams"][0]["nodes"]) == (["gzip"], [{"address": "10.0.0.9:80", "weight": 1}])


def test_every_target_of_a_traffic_split_is_reported() -> None:
    split = {"rules": [{"weighted_upstreams": [{"upstream_id": "c", "weight": 1}, {"weight": 9}]}]}
    records: Records = {
        "routes/r": {"uri": "/x", "upstream_id": "u", "plugins": {"traffic-split": split}},
        "upstreams/u": {"name": "stable", "nodes": []},
        "upstreams/c": {"name": "canary", "service_name": "web.svc", "discovery_type": "dns"},
    }
    text = "\n".join(lines(ask("a.org/x", records)))
    assert "sent to upstream stable: no nodes: 503" in text
    assert "sent to upstream canary by traffic-split weight 1: dns web.svc" in text


def test_upstream_that_is_not_there_is_reported() -> None:
    text = "\n".join(lines(ask("a.org/x", {"routes/r": {"uri": "/x", "upstream_id": "gone"}})))
    assert "sent to upstream gone: which is missing: 502" in text


def test_the_most_specific_enabled_certificate_is_used() -> None:
    records: Records = {
        "routes/r": {"uri": "/*"},
        "ssls/star": {"sni": "*"},
        "ssls/off": {"snis": ["a.b.org"], "status": 0},
        "ssls/wild": {"snis": ["*.b.org"], "client": {"ca": "x"}},
    }
    assert ask("https://a.b.org/", records)["certificate"]["id"] == "wild"
    assert ask("https://c.org/", records)["certificate"]["id"] == "star"
    assert "certificate" not in ask("http://a.b.org/", records)
    text = "\n".join(lines(ask("https://a.b.org/", records)))
    assert "certificate wild of ApisixRoute default/wild (*.b.org), and clients must present one" in text


def test_name_below_a_wildcard_with_more_labels_has_no_certificate() -> None:
    got = ask(
        "https://x.a.b.org/", {"routes/r": {"uri": "/*"}, "ssls/star": {"sni": "*"}, "ssls/w": {"sni": "*.b.org"}}
    )

    assert got["certificate"] is None
    assert got["answer"]["summary"] == "the TLS handshake fails: no certificate has this name"


def test_a_missing_certificate_is_reported_although_clients_get_another_one() -> None:
    missing = {"a.org": "ApisixTls default/a names one: Secret default/gone does not exist"}
    got = ask("https://a.org/", {"routes/r": {"uri": "/*"}, "ssls/star": {"sni": "*"}}, missing=missing)

    assert got["certificate"]["missing"] == missing["a.org"]
    assert f"  the certificate for this host is missing: {missing['a.org']}" in list(lines(got))
    assert ask("https://b.a.org/", {"ssls/star": {"sni": "*"}}, missing=missing)["certificate"]["missing"] == ""


def test_missing_certificate_is_reported() -> None:
    assert "no certificate for this name: the handshake fails" in "\n".join(lines(ask("https://a.org/", {})))


def test_why_an_answer_is_not_verified_is_printed_once() -> None:
    got = ask("a.org/", {"routes/r": {"uri": "/*"}}, unverified="the gateway is away")
    unread_answer = {**got, "answer": {**got["answer"], **unread("the gateway is away")}}

    assert sum("the gateway is away" in line for line in lines(got)) == 1
    assert sum("the gateway is away" in line for line in lines(unread_answer)) == 1


def test_tie_is_noted_with_its_remedy() -> None:
    got = ask("a.org/x", {"routes/a": {"uri": "/x"}, "routes/b": {"uri": "/x"}})
    (note,) = got["notes"]
    assert note.startswith("b and the winner have the same host, uri and priority")
    assert note.endswith("set different priorities")


def test_unknown_results_are_not_claimed() -> None:
    code = {"uri": "/x", "filter_func": "function(vars) return true end", "priority": 1}
    got = ask("a.org/x", {"routes/a": code, "routes/b": {"uri": "/x"}})
    assert (got["outcome"], got["route"]["id"]) == ("may be", "b")
    assert got["notes"] == [
        "a may answer first, depending on conditions that only the gateway can evaluate; otherwise the result is b"
    ]


def test_routes_of_the_same_host_are_listed_first_and_the_rest_is_counted() -> None:
    others = {f"routes/o{number:03}": {"uri": "/x", "host": f"h{number}.org"} for number in range(100)}
    got = ask("a.org/x", {**others, "routes/z": {"uri": "/y", "host": "a.org"}})
    assert (got["others"][0]["id"], len(got["others"]), got["more"]) == ("z", SHOWN_MISSES, 101 - SHOWN_MISSES)


def test_the_text_shows_global_plugins_losing_routes_and_how_many_were_not_tried() -> None:
    records: Records = {
        "routes/a": {"uri": "/x", "host": "a.org", "upstream": {"nodes": NODES}, "plugins": {"cors": {}}},
        "routes/b": {"uri": "/x", "host": "a.org", "priority": 3, "methods": ["PUT"]},
        "global_rules/g": {"plugins": {"request-id": {}}},
    }
    records |= {f"routes/o{number:03}": {"uri": "/x", "host": f"h{number}.org"} for number in range(100)}
    got = list(lines(ask("http://a.org/x", records)))
    assert got[:5] == [
        "GET http://a.org/x",
        "  answered by route a of ApisixRoute default/a",
        "    plugins: cors",
        "    plugins of every route: request-id",
        "    sent to upstream of its own: 10.0.0.1:80 (weight 3), [fd00::1]:80 (weight 1)",
    ]
    assert got[5].startswith("  loses: b of ApisixRoute default/b: ")
    assert got[-1] == "  does not match: 100 more routes of other hosts or paths; list them with -v"


def test_the_text_shows_that_no_route_matches() -> None:
    got = list(lines(ask("http://a.org/x", {"routes/a": {"uri": "/y"}})))
    assert got[:2] == ["GET http://a.org/x", "  404: no route matches this request"]
    assert got[2].startswith("  does not match: a of ApisixRoute default/a: ")
    assert len(got) == 3

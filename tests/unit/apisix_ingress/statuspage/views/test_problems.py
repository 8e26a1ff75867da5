"""The one list of what needs attention: sources, order, severities, times."""

from datetime import UTC, datetime
from typing import Any

from apisix_ingress.gateway.sync.observer import Outage, RecordState
from apisix_ingress.model.keys import ObjectKey
from tests.unit.apisix_ingress.statuspage.harness import ScriptedCluster, make_harness, served
from tests.unit.translation.objects import make, pem, rule, secret, service

AWAY = Outage("unreachable", "10.0.0.9:9180: Connection refused", datetime(2026, 11, 22, 8, 55, 30, tzinfo=UTC))


def shop(name: str = "route", host: str = "shop.example.org", **fields: Any) -> dict[str, Any]:
    return make("ApisixRoute", name, spec={"http": [rule(match={"hosts": [host], "paths": ["/a"]}, **fields)]})


async def test_everything_is_in_one_list_the_most_urgent_first() -> None:
    broken = shop("broken", "broken.example.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    down = ScriptedCluster("down", taken_over=False, outage=AWAY)
    harness = make_harness(service(), shop(), broken, clusters=[ScriptedCluster("up"), down])
    key = harness.record("routes", "default_route_rule")
    harness.clusters[0].states[key] = RecordState("rejected", "unknown plugin [limit-cuont]")
    harness.controller.problems["Secret"] = "403: not allowed to list"
    async with served(harness):
        found = await harness.data("problems")
        page = (await harness.ask("/status/problems")).text
    assert [(each["severity"], each["code"]) for each in found["items"]] == [
        ("critical", "NotUpToDate"),
        ("critical", "Outage"),
        ("error", "Rejected"),
        ("error", "ServiceNotFound"),
        ("degraded", "NoEndpoints"),
    ]
    assert found["counts"] == {"critical": 2, "error": 2, "degraded": 1, "warning": 0, "urgent": 5}
    assert '<span class="count urgent">5</span>' in page
    for text in ("AIX0101", "unknown plugin [limit-cuont]", "Service default/web has no ready Pod", "Effect and"):
        assert text in page


async def test_problems_are_filtered_by_severity_and_text() -> None:
    broken = shop("broken", "broken.example.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    async with served(make_harness(service(), shop(), broken)) as harness:
        assert [each["code"] for each in (await harness.data("problems", q="503"))["items"]] == ["NoEndpoints"]
        assert (await harness.data("problems", severity="degraded"))["total"] == 0
        assert [each["code"] for each in (await harness.data("problems", q="aix0101 broken"))["items"]] == [
            "ServiceNotFound"
        ]
        assert (await harness.data("problems", q="aix0101", severity="warning"))["total"] == 0


async def test_objects_with_one_cause_are_one_entry_of_the_page() -> None:
    gone = [{"serviceName": "gone", "servicePort": 80}]
    broken = [shop(f"broken-{number:02}", f"{number}.example.org", backends=gone) for number in range(25)]
    other = shop("other", "other.example.org", backends=[{"serviceName": "lost", "servicePort": 80}])
    async with served(make_harness(*broken, other)) as harness:
        found = await harness.data("problems")
        page = (await harness.ask("/status/problems")).text
        (first, _) = (await harness.data("overview"))["attention"]
    assert found["total"] == len(found["items"]) == 26
    assert [(each["message"], each["count"], len(each["more"])) for each in found["groups"]] == [
        ("Service default/gone does not exist; create it or correct the name", 25, 20),
        ("Service default/lost does not exist; create it or correct the name", 1, 0),
    ]
    assert (first["object"]["name"], first["more"][0]["object"]["name"]) == ("broken-00", "broken-01")
    for text in ("24 more with this cause", "name=broken-07", "All 25"):
        assert text in page


async def test_warnings_of_one_code_are_one_entry_with_their_messages() -> None:
    found = [make("ApisixRoute", "web", namespace=each, spec=shop()["spec"]) for each in ("one", "two", "three")]
    services = [service(namespace=each) for each in ("one", "two", "three")]
    async with served(make_harness(*services, *found)) as harness:
        (group,) = (await harness.data("problems", q="HostShared"))["groups"]
    assert (group["severity"], group["count"]) == ("warning", 3)
    assert [each["object"]["namespace"] for each in group["more"]] == ["three", "two"]


async def test_a_problem_has_its_start_time() -> None:
    broken = shop("broken", "broken.example.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    harness = make_harness(broken)
    owner = ObjectKey("ApisixRoute", "default", "broken")
    harness.journal.reported(owner)
    since = harness.journal.since(owner, "ServiceNotFound")
    async with served(harness):
        (item,) = (await harness.data("problems"))["items"]
    assert item["since"] == f"{since:%Y-%m-%dT%H:%M:%SZ}"


async def test_problem_is_as_old_as_the_condition_that_an_earlier_process_wrote() -> None:
    broken = shop("broken", "broken.example.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    message = "spec.http[0].backends[0].serviceName: Service default/gone does not exist; create it or correct the name"
    entry = {"type": "ResourcesAvailable", "status": "False", "lastTransitionTime": "2020-01-02T03:04:05Z"}
    entry["message"] = message
    broken["status"] = {"conditions": [entry]}
    healed = {**broken, "metadata": {**broken["metadata"], "name": "healed"}}
    healed["status"] = {"conditions": [{**entry, "status": "True"}]}
    harness = make_harness(broken, healed)
    harness.journal.reported(ObjectKey("ApisixRoute", "default", "healed"))
    async with served(harness):
        found = await harness.data("problems")
    since = {each["object"]["name"]: each["since"] for each in found["items"]}
    assert since["broken"] == "2020-01-02T03:04:05Z"
    assert since["healed"] > "2026"
    assert found["groups"][0]["since"] == "2020-01-02T03:04:05Z"


async def test_certificate_that_expired_is_a_problem_with_its_secret() -> None:
    pair = pem()
    cert = secret("cert", **{"tls.crt": pair.certificate, "tls.key": pair.key})
    tls = make(
        "ApisixTls", "shop", spec={"hosts": ["a.example.com"], "secret": {"name": "cert", "namespace": "default"}}
    )
    async with served(make_harness(cert, tls)) as harness:
        found = [each for each in (await harness.data("problems"))["items"] if each["code"] == "CertificateExpiry"]
        total = (await harness.data("problems", q="expired"))["total"]
        (row,) = (await harness.data("certificates"))["items"]
        page = (await harness.ask("/status/certificates")).text
    assert [(each["severity"], each["title"]) for each in found] == [("error", "Certificate expired")]
    assert (total, found[0]["since"]) == (1, "2020-01-02T00:00:00Z")
    assert "expired at 2020-01-02 00:00 UTC. Renew Secret default/cert." in found[0]["message"]
    assert (row["hosts"], row["validity"], row["expires"]) == (["a.example.com"], "expired", "2020-01-02T00:00:00Z")
    assert (row["secret"]["text"], row["self_signed"]) == ("Secret default/cert", True)
    assert "default/cert" in page
    assert pair.key.splitlines()[1] not in page


async def test_an_unused_upstream_is_not_a_problem() -> None:
    async with served(make_harness(service(), make("ApisixUpstream", "web", spec={}))) as harness:
        assert (await harness.data("problems"))["items"] == []

"""The command `bundle`, over HTTP: it contains no secrets and overwrites no file."""

import base64
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import pytest

from tests.canary import FORMS, marked
from tests.fakes.kube.apiserver import Fault
from tests.flow.surveying import SurveyHarness, plain, route, say

SECRETS: Mapping[str, Any] = {
    "plugins": [
        {"name": "http-logger", "enable": True, "config": {"uri": "http://a", "auth_header": marked("header")}},
        {"name": "csrf", "enable": True, "config": {"key": marked("csrf")}},
        {"name": "proxy-rewrite", "enable": True, "config": {"headers": {"set": {"X-Foo": marked("header value")}}}},
        {"name": "fault-injection", "enable": True, "config": {"abort": {"http_status": 418, "body": marked("body")}}},
        {
            "name": "error-log-logger",
            "enable": True,
            "config": {"uri": f"https://hooks.slack.com/services/{marked('x')}"},
        },
        {"name": "serverless-pre-function", "enable": True, "config": {"functions": [f"-- {marked('code')}"]}},
    ]
}


async def test_no_canary_is_in_a_bundle(harness: SurveyHarness) -> None:
    word = marked("word")
    data = {"word": base64.b64encode(word.encode()).decode()}
    applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"stringData": {"word": word}})}
    harness.server.put(plain("Secret", "words", data=data, meta={"annotations": applied}))
    reported = harness.server.put(route("reported", **SECRETS))
    reported["metadata"]["annotations"] = {"example.org/password": marked("note"), "example.org/x": word}
    harness.server.put(say(reported, "False", f"the gateway said {word}"))
    about = {"kind": "ApisixRoute", "name": "reported", "namespace": "default"}
    harness.server.put(
        plain("Event", "reported.1", involvedObject=about, message=f"no {word}", reason="No", type="Warning")
    )
    containers = [{"env": [{"name": "PASSWORD", "value": marked("env")}]}]
    harness.server.put(plain("Pod", "web-0", spec={"containers": containers}, status={"podIP": "10.0.0.1"}))
    await harness.fill()
    harness.gateway.records["consumers"] = {"jack": {"username": "jack", "plugins": {"key-auth": {"key": marked("k")}}}}
    harness.gateway.records["routes"]["theirs"] = {"uri": "/x", "desc": word}
    got = await harness.cli.beside("bundle", "--write", "one.zip", "--config", harness.config)
    assert (got.returncode, got.stderr) == (0, "")
    with zipfile.ZipFile(harness.cli.folder / "one.zip") as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    assert [name for name, text in files.items() if any(form in text for form in FORMS)] == []
    assert list(files) == sorted(files)
    assert {"reported.example.org" in files[name] for name in ("objects/ApisixRoute.yaml", "records/default.json")} == {
        True
    }
    assert json.loads(files["events.json"])[0]["message"] == "no [redacted]"
    assert "spec" not in files["objects/Pod.yaml"]
    command = "kubectl -n default logs -l app.kubernetes.io/name=apisix-ingress --prefix --tail=5000"
    assert f"  {command} > logs.txt\n" in files["README.txt"]
    named = {line.split()[0].rstrip(",") for line in files["README.txt"].splitlines() if line[:1].islower()}
    assert {name.partition("/")[0] for name in files if "/" in name} <= {name.rstrip("/") for name in named}


@pytest.mark.parametrize("change", ["another value", "no Secret", "no reference", "no object"])
async def test_a_record_that_is_not_up_to_date_shows_nothing_of_an_earlier_secret(
    harness: SurveyHarness, change: str
) -> None:
    word, open_plugin = marked("word"), {"name": "cors", "enable": True, "config": {"allow_origins": "https://open"}}
    secret = plain("Secret", "values", data={"odd_name": base64.b64encode(word.encode()).decode()})
    refers = {"name": "echo", "enable": True, "config": {"body": "a"}, "secretRef": "values"}
    harness.server.put(secret)
    item = harness.server.put(route("odd", plugins=[refers, open_plugin]))
    await harness.fill()
    assert word in json.dumps(harness.gateway.records)
    if change == "another value":
        harness.server.put({**secret, "data": {"odd_name": base64.b64encode(b"another-value").decode()}})
    elif change == "no object":
        harness.server.remove("secrets", "values")
        harness.server.remove("apisixroutes", "odd")
    else:
        harness.server.remove("secrets", "values")
    if change == "no reference":
        item["spec"]["http"][0]["plugins"] = [open_plugin]
        harness.server.put(item)
    _, files = await harness.ask("bundle")
    assert [name for name, text in files.items() if any(form in str(text) for form in FORMS)] == []
    records = json.loads(files["records/default.json"])["records"]
    (plugins,) = (body["plugins"] for body in records.values() if "plugins" in body)
    assert plugins["echo"] == {"body": "[redacted]", "odd_name": "[redacted]"}
    is_known = change in ("another value", "no reference")
    assert plugins["cors"] == {"allow_origins": "https://open" if is_known else "[redacted]"}


async def test_a_bundle_is_printed_as_json_and_overwrites_only_by_force(harness: SurveyHarness) -> None:
    code, got = await harness.ask("bundle")
    assert (code, list(got)) == (0, sorted(got))
    harness.cli.write("there.zip", "")
    refused = await harness.cli.beside("bundle", "--write", "there.zip", "--config", harness.config)
    assert (refused.returncode, "there.zip exists" in refused.stderr) == (2, True)
    assert (
        await harness.cli.beside("bundle", "--write", "there.zip", "--force", "--config", harness.config)
    ).returncode == 0


@pytest.mark.parametrize(
    ("target", "want"),
    [
        ("no/such/one.zip", "no/such/one.zip: cannot be written: No such file or directory"),
        ("config.yaml/one.zip", "config.yaml/one.zip: cannot be written: Not a directory"),
        (".", ".: cannot be written: Is a directory"),
    ],
)
async def test_a_bundle_that_cannot_be_written_sends_no_request(harness: SurveyHarness, target: str, want: str) -> None:
    got = await harness.cli.beside("bundle", "--force", "--write", target, "--config", harness.config)
    assert (got.returncode, got.stdout, got.stderr) == (2, "", f"error: {want}\n")
    assert harness.server.seen == []


async def test_a_failed_bundle_leaves_the_existing_file_unchanged(harness: SurveyHarness) -> None:
    harness.cli.write("there.zip", "before")
    await harness.server.stop()
    for name in ("there.zip", "new.zip"):
        assert (
            await harness.cli.beside("bundle", "--force", "--write", name, "--config", harness.config)
        ).returncode == 2
    assert (harness.cli.folder / "there.zip").read_text() == "before"
    assert not (harness.cli.folder / "new.zip").exists()


async def test_events_that_may_not_be_read_leave_a_note_in_the_bundle(harness: SurveyHarness) -> None:
    harness.server.faults.append(Fault("list", "events", status=403))
    assert "unread" in (await harness.ask("bundle"))[1]["events.json"]

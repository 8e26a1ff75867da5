"""Commands that read a gateway: what they report, and that they write only what was requested."""

import json
from typing import Any

import pytest

from apisix_ingress.model.names import owner_labels
from tests.canary import marked
from tests.fakes.adminapi import AdminFault, FakeAdminApi
from tests.fakes.kube.apiserver import FakeApiServer, Fault
from tests.flow.commandline import QUICKSTART, Cli
from tests.flow.program import SERVED, put_world

MANIFESTS = str(QUICKSTART)
KINDS = 13
"""Lists that a snapshot takes: the kinds of records, services and consumer groups."""


def at(gateway: FakeAdminApi) -> tuple[str, ...]:
    return ("--admin-url", gateway.url, "--admin-key", gateway.key)


async def fill(gateway: FakeAdminApi, cli: Cli) -> None:
    """Fill a gateway with the records of the quick start."""
    _, document = await cli.json("translate", "-f", MANIFESTS)
    for kind, bodies in document["records"].items():
        gateway.records[kind] = {body["id"]: body for body in bodies}


async def test_diff_distinguishes_an_empty_gateway_from_a_full_one_and_only_reads(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        status, empty = await cli.json("diff", "-f", MANIFESTS, *at(gateway))
        assert (status, empty["counts"], empty["unchanged"]) == (1, {"create": 6}, 0)
        await fill(gateway, cli)
        status, full = await cli.json("diff", "-f", MANIFESTS, *at(gateway))
        assert (status, full["changes"], full["unchanged"]) == (0, [], 6)
        assert [seen for seen in gateway.seen if seen[0] != "GET"] == [("POST", "configs/validate")]
        assert len(gateway.seen) == 2 * KINDS + 1
    order = [change["record"].partition("/")[0] for change in empty["changes"]]
    assert order == ["upstreams"] * 3 + ["routes"] * 3


async def test_diff_shows_what_files_would_change_in_a_cluster(cli: Cli) -> None:
    async with FakeApiServer(SERVED.values()) as server, FakeAdminApi() as gateway:
        put_world(server)
        options = (*at(gateway), "--kubeconfig", str(server.kubeconfig(cli.folder / "kubeconfig")))
        _, live = await cli.json("diff", *options)
        for change in live["changes"]:
            kind, _, id_ = change["record"].partition("/")
            gateway.records.setdefault(kind, {})[id_] = change["after"]
        assert (await cli.json("diff", *options))[1]["changes"] == []
        status, got = await cli.json("diff", "-f", MANIFESTS, *options)
        _, pruned = await cli.json("diff", "-f", MANIFESTS, "--prune", *at(gateway))
    assert (status, got["counts"], got["unchanged"]) == (1, {"create": 6}, len(live["changes"]))
    assert pruned["counts"] == {"create": 6, "hold": len(live["changes"])}  # unusually many deletes


async def test_diff_compares_every_gateway_cluster(cli: Cli) -> None:
    async with FakeAdminApi() as first, FakeAdminApi() as second:
        await fill(first, cli)
        named = {"a": first, "b": second}
        both = [{"name": name, "admin_url": each.url, "admin_key": each.key} for name, each in named.items()]
        cli.write("config.yaml", json.dumps({"clusters": both}))
        options = ("diff", "-f", MANIFESTS, "--config", "config.yaml")
        status, got = await cli.json(*options)
        chosen, only = await cli.json(*options, "--cluster", "a")
        second.faults.append(AdminFault(status=503, times=None))
        partly = await cli.beside(*options, "--stat")
    assert (status, got["cluster"], got["counts"], got["unchanged"]) == (1, "a", {}, 6)
    assert [(each["cluster"], each["counts"]) for each in got["elsewhere"]] == [("b", {"create": 6})]
    assert (chosen, only["elsewhere"]) == (0, [])
    assert partly.returncode == 2
    assert f"cluster a at {first.url}: 6 unchanged\n" in partly.stdout
    assert "error: cannot reach the Admin API of cluster b" in partly.stderr


async def test_diff_without_a_cluster_leaves_out_records_of_other_objects(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        await fill(gateway, cli)
        stranger = {"id": "1", "name": "default_other_rule", "uri": "/", "labels": owner_labels("apisix-ingress")}
        gateway.records["routes"]["1"] = stranger
        _, got = await cli.json("diff", "-f", MANIFESTS, *at(gateway))
        _, pruned = await cli.json("diff", "-f", MANIFESTS, "--prune", *at(gateway))
    assert (got["changes"], got["unchanged"], len(got["notes"])) == ([], 6, 1)
    assert "compared as if these files were the whole cluster" in got["notes"][0]
    assert "1 record of other objects are left out" not in got["notes"][0]
    assert "1 record of another object is left out" in got["notes"][0]
    assert ([change["record"] for change in pruned["changes"]], pruned["notes"]) == (["routes/1"], [])


async def test_diff_names_the_records_that_the_gateway_would_reject(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        await fill(gateway, cli)
        rejected, (id_, body) = "unknown plugin [limit-cuont]", next(iter(gateway.records["routes"].items()))
        del gateway.records["routes"][id_]
        gateway.invalid[id_] = rejected
        status, got = await cli.json("diff", "-f", MANIFESTS, *at(gateway))
        text = await cli.beside("diff", "-f", MANIFESTS, *at(gateway))
        assert gateway.writes == []
    (change,) = got["changes"]
    assert (status, change["act"], change["name"], change["why"]) == (1, "reject", body["name"], rejected)
    assert (got["counts"], got["unchanged"]) == ({"reject": 1}, 5)
    assert text.stdout.startswith(f"reject routes/{id_} ({body['name']})")
    assert "1 rejected by the gateway, 5 unchanged" in text.stdout


async def test_diff_works_with_a_gateway_that_cannot_validate(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        gateway.faults.append(AdminFault(path="configs/validate", status=404))
        status, got = await cli.json("diff", "-f", MANIFESTS, *at(gateway))
    assert (status, got["counts"]) == (1, {"create": 6})


async def test_diff_and_orphans_know_records_by_the_ids_that_the_gateway_has_for_them(cli: Cli) -> None:
    cli.write("config.yaml", "kubernetes: {record_ids: wide}\n")
    async with FakeAdminApi() as gateway:
        await fill(gateway, cli)
        gone = next(iter(gateway.records["routes"]))
        del gateway.records["routes"][gone]
        _, found = await cli.json("diff", "-f", MANIFESTS, "--config", "config.yaml", *at(gateway))
        (change,) = found["changes"]
        assert (change["act"], len(change["record"]), found["unchanged"]) == ("create", len("routes/") + 16, 5)
        assert set(change["after"]["upstream_id"]) <= set("0123456789abcdef")
        assert change["after"]["upstream_id"] in gateway.records["upstreams"]
        status, orphans = await cli.json("orphans", "-f", MANIFESTS, "--config", "config.yaml", *at(gateway))
        assert (status, orphans["orphans"]) == (0, [])


async def test_diff_prints_lines_that_differ_and_a_sum(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        await fill(gateway, cli)
        (name,) = [id_ for id_, body in gateway.records["routes"].items() if body["name"] == "default_shop_canary"]
        gateway.records["routes"][name]["priority"] = 7
        gateway.records["routes"]["mine"] = {"uri": "/mine"}
        gateway.records["routes"]["gone"] = {"uri": "/", "labels": owner_labels("apisix-ingress")}
        got = await cli.beside("diff", "-f", MANIFESTS, "--prune", *at(gateway))
        where = f"cluster default at {gateway.url}"
    assert (got.returncode, got.stderr) == (1, "")
    lines = got.stdout.splitlines()
    assert lines[0] == f"update routes/{name} (default_shop_canary) of ApisixRoute default/shop"
    assert [line for line in lines if line.startswith(("  +", "  -"))] == [
        '  -  "priority": 7,',
        '  +  "priority": 10,',
    ]
    assert lines[-2:] == ["delete routes/gone", f"{where}: 1 to update, 1 to delete, 5 unchanged"]
    assert "\x1b" not in got.stdout


async def test_diff_stat_is_a_table_of_the_changes_with_the_fields_that_differ(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        await fill(gateway, cli)
        (name,) = [id_ for id_, body in gateway.records["routes"].items() if body["name"] == "default_shop_canary"]
        gateway.records["routes"][name]["priority"] = 7
        got = await cli.beside("diff", "--stat", "-f", MANIFESTS, "--prune", *at(gateway))
        _, document = await cli.json("diff", "--stat", "-f", MANIFESTS, "--prune", *at(gateway))
    header, row, last = got.stdout.splitlines()
    assert header.split() == ["CHANGE", "RECORD", "NAME", "OBJECT", "FIELDS"]
    assert row.split("  ") == [
        "update",
        f"routes/{name}",
        "default_shop_canary",
        "ApisixRoute default/shop",
        "priority",
    ]
    assert last.endswith(": 1 to update, 5 unchanged")
    assert [set(change) & {"before", "after"} for change in document["changes"]] == [set()]


async def test_diff_in_markdown_is_a_table_with_folded_bodies(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        await fill(gateway, cli)
        gateway.records["routes"]["gone"] = {"uri": "/", "name": "a|b`<i>", "labels": owner_labels("apisix-ingress")}
        for id_, body in gateway.records["routes"].items():
            if body["name"] == "default_shop_canary":
                gateway.records["routes"][id_]["desc"] = "```"
        got = await cli.beside("diff", "-o", "markdown", "-f", MANIFESTS, "--prune", *at(gateway))
        brief = await cli.beside("diff", "-o", "markdown", "--stat", "-f", MANIFESTS, "--prune", *at(gateway))
    assert got.stdout.startswith("### cluster default at ")
    assert "| delete | routes/gone | a\\|b\\`&lt;i&gt; | - | - |" in got.stdout
    assert "\n````diff\n" in got.stdout
    assert ("<details>" in got.stdout, "<details>" in brief.stdout) == (True, False)


async def test_diff_shows_no_secret_of_either_side(cli: Cli) -> None:
    ours, theirs = marked("consumer-key"), marked("gateway-key")
    cli.write(
        "jack.yaml",
        "apiVersion: apisix.apache.org/v2\nkind: ApisixConsumer\nmetadata: {name: jack}\n"
        f"spec: {{authParameter: {{keyAuth: {{value: {{key: {ours}}}}}}}}}\n",
    )
    async with FakeAdminApi() as gateway:
        labels = owner_labels("apisix-ingress")
        body = {"username": "default_jack", "labels": labels, "plugins": {"key-auth": {"key": theirs}}}
        gateway.records["consumers"] = {"default_jack": body}
        outputs = [await cli.beside("diff", "-f", "jack.yaml", *at(gateway), "-o", form) for form in ("text", "json")]
    for got in outputs:
        assert got.returncode == 1
        assert "[hidden, differs]" in got.stdout
        assert [secret for secret in (ours, theirs) if secret in got.stdout + got.stderr] == []


@pytest.mark.parametrize("command", ["diff", "orphans"])
async def test_a_command_ends_with_one_line_if_the_gateway_rejects_it_or_is_unreachable(cli: Cli, command: str) -> None:
    async with FakeAdminApi() as gateway:
        refused = await cli.beside(command, "-f", MANIFESTS, "--admin-url", gateway.url, "--admin-key", "wrong")
        gateway.faults.append(AdminFault(path="routes", status=500))
        broken = await cli.beside(command, "-f", MANIFESTS, *at(gateway))
    away = await cli.beside(command, "-f", MANIFESTS, *at(gateway))
    stranger = await cli.beside(command, "-f", MANIFESTS, *at(gateway), "--cluster", "edge")
    for got, want in [
        (refused, "clusters[0].admin_key"),
        (broken, "GET routes: HTTP 500"),
        (away, "correct --admin-url or clusters[0].admin_url"),
        (stranger, "--cluster edge: unknown gateway cluster; the settings have default"),
    ]:
        assert (got.returncode, got.stdout, got.stderr.count("\n")) == (2, "", 1)
        assert want in got.stderr


async def test_diff_continues_without_invalid_objects_and_names_them(cli: Cli) -> None:
    route = (
        "apiVersion: apisix.apache.org/v2\nkind: ApisixRoute\nmetadata: {name: web}\nspec:\n  http:\n"
        "  - {name: r, match: {paths: [/*]}, backends: [{serviceName: none, servicePort: 80}]}\n"
    )
    async with FakeAdminApi() as gateway:
        gateway.records["routes"] = {"1": {"name": "default_web_r", "labels": owner_labels("apisix-ingress")}}
        got = await cli.beside("diff", "-f", cli.write("web.yaml", route), *at(gateway))
    assert (got.returncode, got.stdout.split(":")[0]) == (0, "keep routes/1 (default_web_r) of ApisixRoute default/web")
    assert got.stderr.startswith("error: ApisixRoute default/web: spec.http[0].backends[0]")


async def test_diff_does_not_compare_with_half_of_the_files(cli: Cli) -> None:
    cli.write("broken.yaml", "kind: [")
    async with FakeAdminApi() as gateway:
        got = await cli.beside("diff", "-f", MANIFESTS, "-f", "broken.yaml", *at(gateway))
        assert gateway.seen == []
    assert (got.returncode, got.stdout) == (2, "")
    assert "broken.yaml: line 2, column 1" in got.stderr
    assert "the comparison requires all objects" in got.stderr


async def test_without_manifests_objects_and_ledger_are_those_of_the_api_server(cli: Cli) -> None:
    async with FakeApiServer(SERVED.values()) as server, FakeAdminApi() as gateway:
        put_world(server)
        meta = {"name": "apisix-ingress-ledger", "namespace": "default"}
        ledger = {"default": '["global_rules/gone"]'}
        server.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": ledger})
        gateway.records["global_rules"] = {"gone": {"plugins": {}}, "mine": {"plugins": {}}}
        options = (*at(gateway), "--kubeconfig", str(server.kubeconfig(cli.folder / "kubeconfig")))
        status, got = await cli.json("diff", *options)
        found, nobody = await cli.json("orphans", *options)
        assert gateway.writes == []
        server.faults.append(Fault("list", "secrets", status=403))
        half = await cli.beside("diff", *options)
    acts = {(change["act"], change["record"].partition("/")[0]) for change in got["changes"]}
    assert (status, acts) == (1, {("create", "upstreams"), ("create", "routes"), ("delete", "global_rules")})
    assert (found, [item["record"] for item in nobody["orphans"]]) == (1, ["global_rules/gone"])
    assert [item["record"] for item in nobody["foreign"]] == ["global_rules/mine"]
    assert (half.returncode, half.stdout) == (2, "")
    assert "error: Secret: these credentials may not list secrets" in half.stderr


async def test_diff_does_not_compare_with_a_gateway_that_the_cluster_left(cli: Cli) -> None:
    async with FakeApiServer(SERVED.values()) as server, FakeAdminApi() as old, FakeAdminApi() as new:
        put_world(server)
        admin = {"baseURL": new.url, "adminKey": new.key}
        config = {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixClusterConfig", "metadata": {"name": "default"}}
        server.put({**config, "spec": {"admin": admin}})
        kubeconfig = ("--kubeconfig", str(server.kubeconfig(cli.folder / "kubeconfig")))
        left = await cli.beside("diff", *at(old), *kubeconfig)
        status, got = await cli.json("diff", *at(new), *kubeconfig)
        assert old.seen == []
    assert (left.returncode, left.stdout) == (2, "")
    assert f"ApisixClusterConfig default sets the address {new.url}" in left.stderr
    assert (status, got["url"], got["counts"].keys()) == (1, new.url, {"create"})


async def test_diff_asks_the_cluster_that_is_named(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        clusters = f"[{{name: near}}, {{name: far, admin_url: '{gateway.url}', admin_key: {gateway.key}}}]"
        cli.write("config.yaml", f"clusters: {clusters}\n")
        status, got = await cli.json("diff", "-f", MANIFESTS, "--config", "config.yaml", "--cluster", "far")
    assert (status, got["cluster"], got["url"]) == (1, "far", gateway.url)


async def test_explain_asks_the_gateway_and_names_the_objects(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        await fill(gateway, cli)
        gateway.records["routes"]["mine"] = {"uri": "/only-here", "service_id": "s", "priority": 1}
        gateway.records["services"] = {"s": {"hosts": ["mine.example.org"], "upstream": {"nodes": {"10.0.0.1:80": 1}}}}
        status, ours = await cli.json("explain", "shop.example.org/cart", *at(gateway))
        other, theirs = await cli.json("explain", "mine.example.org/only-here", *at(gateway))
        none = await cli.beside("explain", "nobody.example.org/", *at(gateway))
        assert {method for method, _ in gateway.seen} == {"GET"}
    assert (status, ours["route"]["owner"]["name"]) == (0, "shop")
    assert (other, theirs["route"]["id"], theirs["route"]["owner"]) == (0, "mine", None)
    assert theirs["route"]["upstreams"][0]["nodes"] == [{"address": "10.0.0.1:80", "weight": 1}]
    assert (none.returncode, "404: no route matches this request" in none.stdout) == (1, True)


async def test_explain_uses_only_the_configured_clusters(cli: Cli) -> None:
    got = await cli.beside("explain", "blog.example.org/", "-f", MANIFESTS, "--cluster", "edge")
    want = "error: --cluster edge: unknown gateway cluster; the settings have default\n"
    assert (got.returncode, got.stdout, got.stderr) == (2, "", want)


async def test_explain_says_the_same_of_manifests_and_of_the_gateway_that_has_them(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        await fill(gateway, cli)
        code, live = await cli.json("explain", "http://blog.example.org/", *at(gateway))
    assert live["cluster"] == "default"
    assert (code, {**live, "cluster": ""}) == await cli.json("explain", "http://blog.example.org/", "-f", MANIFESTS)


async def test_orphans_lists_unmanaged_records_and_only_reads(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        await fill(gateway, cli)
        labels = owner_labels("apisix-ingress")
        gateway.records["routes"]["gone"] = {"name": "default_gone_r", "labels": labels, "upstream_id": "nowhere"}
        gateway.records["routes"]["mine"] = {"uri": "/mine"}
        got = await cli.beside("orphans", "-f", MANIFESTS, *at(gateway))
        where = f"cluster default at {gateway.url}"
        assert {method for method, _ in gateway.seen} == {"GET"}
        del gateway.records["routes"]["gone"]
        clean, document = await cli.json("orphans", "-f", MANIFESTS, *at(gateway))
    assert (got.returncode, got.stderr) == (1, "")
    assert got.stdout.splitlines() == [
        "managed, without an object (the controller deletes them, unless they are unusually many):",
        "  routes/gone (default_gone_r) of ApisixRoute default/gone",
        "of another owner (never touched):",
        "  routes/mine",
        "refer to a missing record:",
        "  routes/gone (default_gone_r) of ApisixRoute default/gone: upstreams/nowhere is missing",
        f"{where}: 1 orphans, 0 kept, 1 foreign, 1 dangling",
    ]
    assert (clean, [item["record"] for item in document["foreign"]]) == (0, ["routes/mine"])


async def stolen(gateway: FakeAdminApi, cli: Cli, kind: str = "routes") -> str:
    """Remove the ownership labels of one record; return its name on the command line."""
    await fill(gateway, cli)
    id_ = min(gateway.records[kind])
    gateway.records[kind][id_] = {**gateway.records[kind][id_], "labels": {"team": "shop"}}
    gateway.records["routes"]["mine"] = {"uri": "/mine"}
    gateway.seen.clear()
    return f"{kind}/{id_}"


async def test_adopt_writes_nothing_unless_requested(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        name = await stolen(gateway, cli)
        got = await cli.beside("adopt", name, "-f", MANIFESTS, *at(gateway))
        assert {method for method, _ in gateway.seen} == {"GET"}
    assert (got.returncode, got.stderr) == (0, "")
    assert got.stdout.startswith(f"would adopt {name} (")
    assert got.stdout.endswith("nothing was written: add --apply\n")


async def test_adopt_labels_only_the_named_record(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        name = await stolen(gateway, cli)
        before = {kind: dict(bodies) for kind, bodies in gateway.records.items()}
        status, document = await cli.json("adopt", name, "routes/mine", "-f", MANIFESTS, *at(gateway), "--apply")
        kind, _, id_ = name.partition("/")
        want = {**before[kind][id_], "labels": {"team": "shop", "managed-by": "apisix-ingress-controller"}}
        assert gateway.records[kind] == {**before[kind], id_: want}
        assert {other: gateway.records[other] for other in before if other != kind} == {
            other: bodies for other, bodies in before.items() if other != kind
        }
        assert gateway.writes == [("PATCH", name)]
    assert (status, [item["act"] for item in document["records"]]) == (1, ["adopt", "refuse"])


async def test_adopt_writes_a_stream_route_whole(cli: Cli) -> None:
    cli.write(
        "stream.yaml",
        "apiVersion: apisix.apache.org/v2\nkind: ApisixRoute\nmetadata: {name: tcp}\nspec:\n  stream:\n"
        "  - {name: s, protocol: TCP, match: {ingressPort: 9100}, backend: {serviceName: blog, servicePort: 80}}\n",
    )
    files = ("-f", MANIFESTS, "-f", "stream.yaml")
    _, document = await cli.json("translate", *files)
    (body,) = document["records"]["stream_routes"]
    bare: dict[str, Any] = {name: value for name, value in body.items() if name != "labels"}
    async with FakeAdminApi() as gateway:
        gateway.records["stream_routes"] = {body["id"]: {**bare, "create_time": 1, "update_time": 2}}
        name = f"stream_routes/{body['id']}"
        got = await cli.beside("adopt", name, *files, *at(gateway), "--apply")
        assert gateway.writes == [("PUT", name)]
        assert gateway.records["stream_routes"] == {body["id"]: body}
    assert (got.returncode, got.stdout) == (
        0,
        f"adopted {name}: it then equals the desired record of ApisixRoute default/tcp\n",
    )


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("routes", "routes: write kind and id, such as routes/46eb0e41"),
        ("routes/none", "has no such record; see `apisix-"),
    ],
)
async def test_adopt_of_what_is_not_there_is_an_error(cli: Cli, name: str, want: str) -> None:
    async with FakeAdminApi() as gateway:
        got = await cli.beside("adopt", name, "-f", MANIFESTS, *at(gateway), "--apply")
        assert gateway.writes == []
    assert (got.returncode, got.stdout, want in got.stderr) == (2, "", True)

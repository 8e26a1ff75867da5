"""The status page in a real browser: its content, search, form and accessibility.

No text of a user may become markup of a page: every story fails if a dialog opens or the content security policy is
violated.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import yaml
from playwright.sync_api import Page, ViewportSize, expect

from e2e.browser import axe, or_skip
from e2e.cluster.client import KubeClient
from e2e.controller import Controller
from e2e.devgateway.ports import free_port
from e2e.gateways import RemoteGateway
from e2e.scene import Scene, path, plugin, rule
from e2e.stories.operation.page_reader import Look
from e2e.story import Stage, condition, route

PAGES = (
    "",
    "/problems",
    "/hosts",
    "/records",
    "/certificates",
    "/changes",
    "/gateway-api",
    "/conflicts",
    "/search?q=e",
)
SCHEMES: Mapping[Literal["light", "dark"], str] = {"light": "rgb(245, 247, 250)", "dark": "rgb(12, 18, 32)"}
WIDE: ViewportSize = {"width": 1280, "height": 900}
NARROW: ViewportSize = {"width": 390, "height": 844}
CORPUS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></td><svg onload=alert(1)>",
    "javascript:alert(1)",
    "'-alert(1)-'",
    "{{7*7}}${7*7}",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
)


def shop(scene: Scene) -> None:
    """Serve a shop: a route that works, one that the gateway rejects, one without its Service, two that conflict."""
    scene.serve("web")
    scene.route("shop", rule("web", {"hosts": [scene.host], "paths": ["/*"]}))
    refused = rule("refused", {"hosts": [scene.host], "paths": ["/refused"]})
    scene.route("refused", {**refused, "plugins": [plugin("limit-count", {"count": "many"})]})
    scene.route("lost", rule("lost", {"hosts": [scene.host], "paths": ["/lost"]}, service="gone"))
    scene.wait_live("shop")
    scene.route("younger", rule("web", {"hosts": [scene.host], "paths": ["/*"]}))
    scene.wait_aborted("ApisixRoute", "younger", "older")
    scene.wait_aborted("ApisixRoute", "refused", "limit-count")


def test_reader_follows_a_route_from_its_host_to_the_pod_and_finds_problems(
    scene: Scene, controller: Controller, look: Look
) -> None:
    shop(scene)
    reader = look(controller)
    page = reader.open("/records", q=f"{scene.host} shop")
    row = page.get_by_role("row").nth(1)
    expect(row).to_contain_text(scene.host)
    expect(row).to_contain_text("applied")
    row.get_by_role("link", name=f"{scene.namespace}_shop_web").click()
    (pod,) = scene.pods.pods
    expect(page.get_by_role("row", name=pod.address)).to_contain_text("web")
    expect(page.locator("#text-yaml")).to_contain_text(f"- {scene.host}")
    page.get_by_role("link", name=f"Service {scene.namespace}/web").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Service {scene.namespace}/web")

    page = reader.open()
    expect(page.get_by_role("heading", level=1)).to_contain_text("need attention")
    page = reader.open("/problems", q=f"{scene.namespace}/refused")
    expect(page.locator(".finding")).to_contain_text("failed to check the configuration of plugin limit-count")
    page = reader.open("/problems", q=f"{scene.namespace} lost")
    expect(page.locator(".finding").first).to_contain_text("ServiceNotFound")
    expect(page.locator(".finding").first).to_contain_text("spec.http[0].backends[0]")
    page = reader.open("/hosts", q=scene.host)
    expect(page.get_by_role("row").nth(1)).to_contain_text("1 closed")
    page = reader.open("/changes", q=f"{scene.namespace}_shop_web")
    expect(page.locator(".changes")).to_contain_text("created route")
    page.get_by_role("searchbox", name="Search everything").fill(f"{scene.namespace}/lost")
    page.get_by_role("searchbox", name="Search everything").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Search")
    page.get_by_role("link", name=f"ApisixRoute {scene.namespace}/lost").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"ApisixRoute {scene.namespace}/lost")
    page = reader.open("/conflicts")
    conflict = page.get_by_role("row", name=scene.host).get_by_role("cell")
    expect(conflict.nth(1)).to_have_text(f"ApisixRoute {scene.namespace}/shop")
    expect(conflict.nth(2)).to_have_text(f"ApisixRoute {scene.namespace}/younger")
    reader.assert_well()


def test_search_is_part_of_the_url_and_the_back_button_restores_it(
    scene: Scene, controller: Controller, look: Look
) -> None:
    scene.serve("web")
    for name in ("one", "two"):
        scene.route(name, rule("web", {"hosts": [f"{name}.{scene.host}"], "paths": ["/*"]}))
        scene.wait_live(name)
    reader = look(controller)
    page = reader.open("/records")
    for name in ("one", "two"):
        page.locator("#q").fill(f"{name}.{scene.host}")
        page.locator("#q").press("Enter")
        expect(page.locator("#total")).to_have_text("1 record")
        expect(page.get_by_role("row").nth(1)).to_contain_text(f"{name}.{scene.host}")
    page.reload()
    expect(page.locator("#q")).to_have_value(f"two.{scene.host}")
    page.go_back()
    expect(page.locator("#q")).to_have_value(f"one.{scene.host}")
    expect(page.get_by_role("row").nth(1)).to_contain_text(f"one.{scene.host}")
    page.go_forward()
    expect(page.get_by_role("row").nth(1)).to_contain_text(f"two.{scene.host}")
    reader.assert_well()


def test_open_page_follows_an_ingress(scene: Scene, controller: Controller, look: Look) -> None:
    scene.serve("web")
    scene.ingress("live", {"host": scene.host, "http": {"paths": [path("/before", "web")]}})
    scene.wait_ingress("live", 1)
    reader = look(controller)
    page = reader.open("/records", q=scene.host)
    expect(page.locator("#live")).to_contain_text("/before")
    link = page.get_by_role("link", name=f"Ingress {scene.namespace}/live")
    link.focus()
    page.evaluate("window.untouched = true")
    scene.ingress("live", {"host": scene.host, "http": {"paths": [path("/after", "web")]}})
    expect(page.locator("#live")).to_contain_text("/after")
    expect(page.locator("#live")).not_to_contain_text("/before")
    assert page.evaluate("window.untouched"), "the page was loaded again"
    expect(link).to_be_focused()
    scene.delete("Ingress", "live")
    expect(page.locator("#live")).to_contain_text("No matches.")
    reader.assert_well()


def test_no_text_of_a_user_becomes_markup(scene: Scene, controller: Controller, look: Look) -> None:
    scene.serve("web")
    for number, text in enumerate(CORPUS):
        match = {"hosts": [f"x{number}.{scene.host}"], "paths": [f"/{text}*"]}
        config = {"body": text, "headers": {"X": text}}
        scene.route(f"xss-{number}", rule(f"r-{number}", match, plugins=[plugin("response-rewrite", config)]))
        scene.route(f"words-{number}", rule("r", {"paths": [f"/{number}"]}, plugins=[plugin(text, {"a": text})]))
        backends = {"host": f"i{number}.{scene.host}", "http": {"paths": [path("/", "web")]}}
        scene.ingress(f"ing-{number}", backends, annotations={"rewrite-target-regex": text, "http-allow-methods": text})
    for number in range(len(CORPUS)):
        scene.wait_synced("ApisixRoute", f"xss-{number}")
        scene.wait_aborted("ApisixRoute", f"words-{number}")
    reader = look(controller)
    page = reader.open("/records", q=f"{scene.namespace} xss")
    expect(page.locator("#total")).to_have_text(f"{len(CORPUS)} records")
    shown = page.locator("tbody code").all_text_contents()
    assert {f"/{text}*" for text in CORPUS} <= set(shown)
    records = [link.get_attribute("href") or "" for link in page.locator("tbody th a").all()]
    for where in ("", "/problems", "/conflicts", *(record.removeprefix("/status") for record in records)):
        reader.open(where)
        assert page.locator("script").count() == 1
        assert page.locator("img, svg:not([class]), iframe, object, embed").count() == 0
        reader.assert_well()
    asked = [("/records", {"q": text}) for text in CORPUS]
    every = " ".join(CORPUS)
    for where, query in (*asked, ("/explain", {"url": every, "headers": every}), ("/record", {"id": every})):
        reader.open(where, **query)
        assert page.locator("script").count() == 1
        reader.assert_well()


def test_every_page_is_reachable_by_keyboard(scene: Scene, controller: Controller, look: Look) -> None:
    shop(scene)
    reader = look(controller)
    page = reader.open()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    for title in ("Overview", "Problems", "Hosts", "Routes"):
        page.keyboard.press("Tab")
        expect(page.locator("#nav a", has_text=title)).to_be_focused()
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Routes")
    _tab_to(page, "document.activeElement.id === 'q'")
    page.keyboard.type(f"{scene.namespace} shop")
    page.keyboard.press("Enter")
    expect(page.locator("#total")).to_have_text("1 record")
    _tab_to(page, "document.activeElement.href?.includes('/status/record?')")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("routes/")
    _tab_to(page, "document.activeElement.dataset.copy === 'text-yaml'")
    page.keyboard.press("Enter")
    expect(page.locator(".copying [role=status]").first).not_to_be_empty()
    reader.assert_well()


def _tab_to(page: Page, condition: str) -> None:
    """Press Tab until the condition holds for the focused element."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(condition):
            return
    raise AssertionError(f"Tab never led to: {condition}")


def test_page_is_accessible_in_both_schemes_and_on_a_small_screen(
    scene: Scene, controller: Controller, look: Look, tmp_path: Path
) -> None:
    script = or_skip(axe).read_text()
    shop(scene)
    reader = look(controller, reduced_motion="reduce", viewport=WIDE)
    page = reader.open("/records", q=f"{scene.namespace} shop")
    record = page.locator("tbody th a").first.get_attribute("href") or ""
    explained = f"/explain?{urlencode({'url': f'https://{scene.host}/refused', 'headers': 'X-A: 1'})}"
    object_page = f"/object?{urlencode({'kind': 'ApisixRoute', 'namespace': scene.namespace, 'name': 'lost'})}"
    for number, where in enumerate((*PAGES, record.removeprefix("/status"), explained, object_page)):
        page = reader.open(where)
        for scheme, background in SCHEMES.items():
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
            assert _serious(page, script) == [], (where, scheme)
        page.screenshot(path=tmp_path / f"{number}-dark.png")
        page.set_viewport_size(NARROW)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], where
        assert _serious(page, script) == [], (where, "narrow")
        page.set_viewport_size(WIDE)
    assert page.evaluate("getComputedStyle(document.getElementById('connection')).transitionDuration") == "0s"
    reader.assert_well()


def _serious(page: Page, script: str) -> list[tuple[str, str]]:
    """Return serious accessibility violations: the rule of axe-core and the element that violates it."""
    page.evaluate(script)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    grave = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    return [(each["id"], each["nodes"][0]["html"]) for each in grave]


def test_page_works_without_scripts(scene: Scene, controller: Controller, look: Look) -> None:
    shop(scene)
    reader = look(controller, java_script_enabled=False)
    page = reader.open("/records")
    page.locator("#q").fill(f"{scene.namespace} shop")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#total")).to_have_text("1 record")
    expect(page.locator("footer")).to_contain_text("live updates need JavaScript")
    expect(page.locator("#connection")).to_be_hidden()
    assert reader.wrong == []


def test_form_explains_as_the_command_line_does(stage: Stage, look: Look, tmp_path: Path) -> None:
    stage.serve()
    vars_ = [{"subject": {"scope": "Header", "name": "X-Beta"}, "op": "Equal", "value": "yes"}]
    stage.apply(route(stage.host))
    stage.apply(route(stage.host, name="beta", match={"hosts": [stage.host], "paths": ["/*"], "exprs": vars_}))
    stage.apply(route(stage.host, name="exact", path="/cart"))
    own = stage.start()
    for name in ("web", "beta", "exact"):
        stage.wait_route(lambda item: condition(item).get("status") == "True", "to be in the gateway", name)
    manifests = tmp_path / "objects.yaml"
    manifests.write_text(yaml.safe_dump_all(_objects(stage.api, stage.namespace)))
    reader = look(own)
    for url, headers in (("/cart", ""), ("/other?a=1", "X-Beta: yes")):
        asked = f"http://{stage.host}{url}"
        want = _command_line(asked, headers, manifests)
        query = urlencode({"url": asked, "headers": headers})
        found = json.loads(own.probe(f"/status/api/explain?{query}")[1])
        assert found.pop("replica")["leads"]
        assert (found.pop("cluster"), want.pop("cluster")) == ("default", "")  # manifests have no gateways
        assert found == want
        page = reader.open("/explain")
        page.get_by_label("URL").fill(asked)
        if headers:
            page.get_by_text("Method, headers, client, port").click()
            page.get_by_label("Headers, one per line").fill(headers)
        page.get_by_role("button", name="Explain").click()
        expect(page.locator("#outcome")).to_contain_text("answered by route")
        rows = page.get_by_role("region", name="Candidates").get_by_role("row").all()[1:]
        got = [[*row.get_by_role("cell").all_text_contents()][-2:] for row in rows]
        assert got == [[each["outcome"], each["reason"]] for each in want["candidates"]]
    page.get_by_label("URL").fill("ftp://nowhere")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("alert")).to_contain_text("use http:// or https://")
    reader.assert_well()


def _objects(api: KubeClient, namespace: str) -> list[dict[str, Any]]:
    kinds = ("ApisixRoute", "v1/Service", "EndpointSlice", "v1/Pod")
    found = [(kind, item) for kind in kinds for item in api.objects(kind, namespace=namespace)]
    versions = {kind: api.resource(kind) for kind in kinds}
    return [{**item, "apiVersion": versions[kind].api_version, "kind": kind.rpartition("/")[2]} for kind, item in found]


def _command_line(url: str, header: str, manifests: Path) -> Any:
    command = [sys.executable, "-P", "-m", "apisix_ingress", "explain", url, "-f", str(manifests), "-o", "json"]
    command += ["-H", header] if header else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_five_thousand_records_are_searched_and_paged(look: Look, tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "many.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": _many(50, 100)}))
    away = RemoteGateway(f"http://127.0.0.1:{free_port()}/apisix/admin", "nobody-is-there", "")
    with Controller(tmp_path / "own", gateways={"default": away}, manifests=manifests) as own:
        reader = look(own)
        page = reader.open("/records")
        expect(page.locator("#total")).to_have_text("5,000 records")
        expect(page.locator("tbody tr")).to_have_count(100)
        expect(page.locator("tbody tr").first).to_contain_text("unreachable")
        page.get_by_role("link", name="Next").click()
        expect(page.locator(".pages")).to_contain_text("Page 2 of 50")
        page.locator("#q").fill("h37.example.org /p42/")
        page.locator("#q").press("Enter")
        expect(page.locator("#total")).to_have_text("1 record")
        expect(page.locator("tbody tr")).to_contain_text("ApisixRoute shop/many-37")
        reader.assert_well()


def _many(objects: int, rules: int) -> list[dict[str, Any]]:
    """Return ApisixRoutes with many rules each, all to one Service."""
    meta = {"namespace": "shop"}
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", **meta}}
    found = [{**service, "spec": {"clusterIP": "10.0.0.1", "ports": ports}}]
    for number in range(objects):
        http = [
            rule(f"r{each}", {"hosts": [f"h{number}.example.org"], "paths": [f"/p{each}/*"]}) for each in range(rules)
        ]
        named = {
            "apiVersion": "apisix.apache.org/v2",
            "kind": "ApisixRoute",
            "metadata": {"name": f"many-{number}", **meta},
        }
        found.append({**named, "spec": {"http": http}})
    return found

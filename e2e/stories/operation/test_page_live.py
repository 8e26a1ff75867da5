"""Live updates of the status page in a real browser: leaders and followers, outages, drift."""

from playwright.sync_api import expect

from e2e.cluster.client import wait_until
from e2e.gateways import RemoteGateway
from e2e.stories.operation.page_reader import Look
from e2e.story import Stage, condition, route


def test_leader_and_follower_show_their_role_over_a_restart(stage: Stage, look: Look) -> None:
    stage.serve()
    stage.apply(route(stage.host))
    first = stage.start(name="first")
    wait_until(lambda: first.leads, bool, "the first replica to lead")
    second = stage.start(name="second")
    stage.wait_route(lambda item: condition(item).get("status") == "True", "to be in the gateway")
    leader, follower = look(first).open(), look(second).open()
    expect(leader.locator("#replica")).to_contain_text("This replica leads")
    expect(leader.locator("#live")).to_contain_text("in sync")
    expect(follower.locator("#replica")).to_contain_text("This replica is a follower. first_")
    expect(follower.locator("#live")).to_contain_text("not written by this replica")
    first.stop()
    expect(leader.locator("#connection")).to_contain_text("Connection lost: stale since")
    expect(follower.locator("#replica")).to_contain_text("This replica leads")
    expect(follower.locator("#live")).to_contain_text("in sync")
    first.start()
    expect(leader.locator("#connection")).to_have_text("Connected again.")
    expect(leader.locator("#replica")).to_contain_text("This replica is a follower. second_")


def test_a_follower_reports_a_rejected_admin_key_before_it_leads(stage: Stage, look: Look) -> None:
    stage.serve()
    stage.apply(route(stage.host))
    leader = stage.start(name="leader")
    wait_until(lambda: leader.leads, bool, "the first replica to lead")
    stage.traffic.until_status(200, stage.host)
    wrong = RemoteGateway(stage.gateway.admin_url, "not-the-key-of-this-gateway", stage.gateway.proxy_url)
    follower = stage.start({"default": wrong}, name="follower")
    wait_until(lambda: follower.probe("/readyz"), lambda got: "rejects the admin key" in got[1], "a reported key")
    assert (follower.probe("/readyz")[0], follower.probe("/apisix/healthz")[0], follower.leads) == (200, 500, False)
    assert [each.metric("apisix_ingress_controller_breaker_open") for each in (leader, follower)] == [0, 1]
    reader = look(follower)
    expect(reader.open().locator("#live")).to_contain_text("This replica could not write here as leader.")
    assert [line["cluster"] for line in follower.events("standby.unauthorized")] == ["default"]
    reader.assert_well()


def test_a_list_is_filtered_while_one_types_and_keys_open_pages(stage: Stage, look: Look) -> None:
    stage.serve()
    for name in ("one", "two"):
        stage.apply(route(f"{name}.{stage.host}", name=name))
    own = stage.start()
    for name in ("one", "two"):
        stage.wait_route(lambda item: condition(item).get("status") == "True", "to be in the gateway", name)
    reader = look(own)
    page = reader.open()
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", level=1)).to_have_text("Hosts")
    expect(page.locator("#total")).to_have_text("2 hosts")
    page.keyboard.press("/")
    page.keyboard.type("two.")
    expect(page.locator("#total")).to_have_text("1 host")
    expect(page.locator("#q")).to_be_focused()
    expect(page).to_have_url(f"{reader.url}/status/hosts?q=two.")
    page.go_back()
    expect(page.locator("#total")).to_have_text("2 hosts")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("filter this list")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Routes", exact=True).last.click()
    expect(page).to_have_url(f"{reader.url}/status/hosts?sort=routes")
    reader.assert_well()


def test_outages_and_drift_are_shown_live(stage: Stage, look: Look) -> None:
    stage.serve()
    stage.apply(route(stage.host))
    own = stage.start(sync={"audit_interval": "1s", "timeout": "1s"})
    stage.wait_route(lambda item: condition(item).get("status") == "True", "to be in the gateway")
    reader = look(own)
    page = reader.open()
    expect(page.get_by_role("heading", level=1)).to_have_text("The only route is live on 1 gateway cluster")
    stage.gateway.wipe()
    expect(page.locator("#live")).to_contain_text("differed from the desired state")
    stage.gateway.stop()
    expect(page.locator("#live")).to_contain_text("Not reachable since")
    expect(page.locator("#live")).to_contain_text("Connection refused. Writes are paused.")
    expect(page.get_by_role("heading", level=1)).to_have_text("Gateway cluster default is not reachable")
    expect(page.locator("#nav .urgent")).to_have_text("1")
    stage.gateway.start()
    expect(page.locator("#live")).to_contain_text("in sync")
    reader.assert_well()

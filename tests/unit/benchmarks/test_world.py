"""The objects of a benchmark and what the gateway should have: both have the same addresses."""

from benchmarks.adapter import fill, load
from benchmarks.world import Shape, World


def test_what_is_expected_are_the_endpoints_of_the_slices() -> None:
    world = World(Shape(3, backends=2))
    slices = [each for each in world.objects(1) if each["kind"] == "EndpointSlice"]
    got = {f"{address}:8080" for each in slices for point in each["endpoints"] for address in point["addresses"]}
    assert got == set(world.expected(1)["nodes"])
    assert len(got) == 4


def test_a_change_replaces_every_address() -> None:
    world = World(Shape(2))
    before = set(world.expected(0)["nodes"])
    kinds = [patch.kind for patch in world.change_endpoints(0)]
    assert kinds == ["EndpointSlice", "v1/Endpoints"]
    assert before & set(world.expected(0)["nodes"]) == set()


def test_no_two_routes_share_an_address() -> None:
    world = World(Shape(600, backends=2))
    nodes = [node for number in range(600) for node in world.expected(number)["nodes"]]
    assert len(nodes) == len(set(nodes))


def test_an_edit_expects_the_old_path_to_go() -> None:
    world = World(Shape(1, kind="Ingress"))
    gone, patch = world.edit(0, "new")
    assert (gone["path"], gone["absent"]) == ("/bench-0", True)
    assert world.expected(0)["path"] == "/bench-0-new"
    assert patch.body["spec"]["rules"][0]["http"]["paths"][0]["path"] == "/bench-0-new"


def test_an_http_route_leads_to_its_service_on_its_own_host() -> None:
    world = World(Shape(4, kind="HTTPRoute", hosts=2))
    route = next(each for each in world.objects(3) if each["kind"] == "HTTPRoute")
    assert (route["apiVersion"], route["spec"]["hostnames"]) == (
        "gateway.networking.k8s.io/v1",
        ["bench-1.example.org"],
    )
    assert route["spec"]["parentRefs"] == [{"name": "bench", "namespace": "default"}]
    assert route["spec"]["rules"] == [
        {"matches": [{"path": {"type": "Exact", "value": "/bench-3"}}], "backendRefs": [{"name": "s3-0", "port": 80}]}
    ]


def test_an_adapter_is_filled_in_at_every_depth() -> None:
    got = fill({"a": ["{port0}", {"b": "x{port0}"}], "c": 1}, {"port0": "80"})
    assert got == {"a": ["80", {"b": "x80"}], "c": 1}


def test_the_adapters_can_be_read() -> None:
    assert load("ours").prepare
    assert load("ours-nginx").files["config.json"]["ingress_nginx"] == {"enabled": True}
    assert load("aic-1.8.4").build["version"] == "v1.8.4"
    assert load("aic-2.2.0").programs.keys() == {"controller", "adc"}

"""Kinds that an API server does not serve, serves in another version, or does not permit to read."""

from pathlib import Path

import pytest

from apisix_ingress.model.keys import ObjectKey
from tests.fakes.kube.apiserver import FakeApiServer, Fault, Kind, Manifest, error_event
from tests.flow.kube.informer.reflecting import put_routes, reflecting, route


async def test_only_one_object_of_a_restricted_kind_is_requested(server: FakeApiServer, tmp_path: Path) -> None:
    only = ObjectKey("ApisixRoute", "default", "a")
    async with reflecting(server, tmp_path, only=only) as harness:
        await harness.until_watching()
    asked = {(seen.verb, seen.path, seen.query.get("fieldSelector")) for seen in server.seen if seen.plural}
    path = "/apis/apisix.apache.org/v2/namespaces/default/apisixroutes"
    assert asked == {("list", path, "metadata.name=a"), ("watch", path, "metadata.name=a")}


async def test_a_missing_kind_is_synced_and_detected_when_installed(server: FakeApiServer, tmp_path: Path) -> None:
    kind = server.uninstall("apisixroutes")
    async with reflecting(server, tmp_path) as harness:
        await harness.reflector.synced.wait()
        assert (harness.reflector.absent, harness.store.synced) == (True, True)
        assert "apisix.apache.org/v2 apisixroutes" in harness.reflector.problem
        server.install(kind)
        server.put(route("a"))
        await harness.until_names("a")
        await harness.until(lambda: harness.reflector.problem == "", "the end of the problem")
        assert not harness.reflector.absent


async def test_a_core_kind_that_is_missing_is_never_synced(server: FakeApiServer, tmp_path: Path) -> None:
    server.uninstall("endpointslices")
    async with reflecting(server, tmp_path, "EndpointSlice") as harness:
        await harness.until(lambda: harness.notes.failures.count("absent") >= 3, "some looks")
        assert not harness.reflector.synced.is_set()


async def test_one_404_empties_nothing(server: FakeApiServer, tmp_path: Path) -> None:
    want = put_routes(server, 3)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.faults.append(Fault("watch", "apisixroutes", status=404, times=1))
        server.faults.append(Fault("list", "apisixroutes", status=404, times=1))
        server.order(harness.plural, "end")
        await harness.until(lambda: len(harness.notes.lists) == 2, "a second list")
        assert (harness.names(), harness.reflector.absent) == (want, False)
        assert "delete" not in harness.notes.changes


async def test_a_removed_kind_is_emptied_and_read_again_when_restored(server: FakeApiServer, tmp_path: Path) -> None:
    put_routes(server, 3)
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        kind = server.uninstall("apisixroutes")
        server.order(harness.plural, "end")
        await harness.until(lambda: harness.reflector.absent, "the absence")
        assert harness.names() == set()
        server.install(kind)
        server.put(route("again"))
        await harness.until_names("again")


@pytest.mark.parametrize("version", ["v1beta1", "v1"])
async def test_the_served_version_of_several_is_read(server: FakeApiServer, tmp_path: Path, version: str) -> None:
    def grant(name: str, version: str) -> Manifest:
        api_version = f"gateway.networking.k8s.io/{version}"
        return {"kind": "ReferenceGrant", "apiVersion": api_version, "metadata": {"name": name}, "spec": {}}

    def kind(version: str) -> Kind:
        return Kind("ReferenceGrant", f"gateway.networking.k8s.io/{version}", "referencegrants")

    server.install(kind(version))
    server.put(grant("a", version))
    async with reflecting(server, tmp_path, "ReferenceGrant") as harness:
        await harness.until_names("a")
        await harness.until_watching()
        assert (harness.reflector.resource.version, harness.reflector.problem) == (version, "")
        other = {"v1": "v1beta1", "v1beta1": "v1"}[version]
        server.kinds["referencegrants"] = kind(other)
        server.order(harness.plural, error_event(410))
        await harness.until(lambda: harness.reflector.resource.version == other, "the other version")
        server.put(grant("b", other))
        await harness.until_names("a", "b")
        assert "delete" not in harness.notes.changes


async def test_a_missing_permission_is_reported_and_its_return_detected(server: FakeApiServer, tmp_path: Path) -> None:
    server.put({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {}})
    forbidden = Fault("*", "secrets", status=403)
    server.faults.append(forbidden)
    async with reflecting(server, tmp_path, "Secret") as harness:
        await harness.until(lambda: "forbidden" in harness.notes.failures, "a refusal")
        assert harness.reflector.problem.startswith("listing secrets is forbidden: grant list, watch on secrets")
        assert not harness.reflector.synced.is_set()
        server.faults.remove(forbidden)
        await harness.until_names("a")
        await harness.until(lambda: harness.reflector.problem == "", "the end of the problem")
        server.faults.append(forbidden)
        server.order("secrets", error_event(410))
        await harness.until(lambda: harness.reflector.problem.startswith("listing secrets"), "a refusal")
        assert (harness.names(), harness.store.synced) == ({"a"}, True)


GATEWAYS = Kind("Gateway", "gateway.networking.k8s.io/v1", "gateways")


async def test_an_optional_kind_that_is_forbidden_from_the_start_is_treated_as_missing(
    server: FakeApiServer, tmp_path: Path
) -> None:
    server.install(GATEWAYS)
    forbidden = Fault("*", "gateways", status=403)
    server.faults.append(forbidden)
    async with reflecting(server, tmp_path, "Gateway") as harness:
        await harness.reflector.synced.wait()
        assert harness.reflector.absent
        assert harness.reflector.problem.startswith("listing gateways.gateway.networking.k8s.io is forbidden")
        server.faults.remove(forbidden)
        server.put({"kind": "Gateway", "apiVersion": GATEWAYS.api_version, "metadata": {"name": "a"}, "spec": {}})
        await harness.until_names("a")


async def test_a_kind_that_is_read_for_another_waits_for_its_crd(server: FakeApiServer, tmp_path: Path) -> None:
    server.put({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"ca.crt": "x", "b": "y"}})
    async with reflecting(server, tmp_path, "CaBundle") as harness:
        await harness.reflector.synced.wait()
        assert (harness.reflector.absent, harness.names()) == (True, set())
        assert not [seen for seen in server.seen if seen.plural == "configmaps"]
        server.install(GATEWAYS)
        await harness.until_names("a")

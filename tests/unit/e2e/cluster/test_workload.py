"""Addresses, manifests and statuses of the pods that stories create."""

import ipaddress

from e2e.netns import POD_RANGE, POD_RANGE_V6
from e2e.workload import Pod, PodNetwork, pod_manifest, pod_status

POD = Pod("web-1", "ns", "10.244.1.0", "", {"http": 80, "admin": 9000}, {"app": "web"})


def test_addresses_are_in_the_pod_range_and_never_repeat() -> None:
    network = PodNetwork()
    got = [network.allocate() for _ in range(300)]
    assert len({v4 for v4, _ in got}) == len({v6 for _, v6 in got}) == 300
    assert all(ipaddress.ip_address(v4) in POD_RANGE for v4, _ in got)
    assert all(ipaddress.ip_address(v6) in POD_RANGE_V6 for _, v6 in got)


def test_a_pod_is_bound_to_its_node_and_names_its_ports() -> None:
    got = pod_manifest(POD, "node-b")
    assert got["metadata"] == {"name": "web-1", "namespace": "ns", "labels": {"app": "web"}}
    assert got["spec"]["nodeName"] == "node-b"
    want = [{"name": "http", "containerPort": 80}, {"name": "admin", "containerPort": 9000}]
    assert got["spec"]["containers"][0]["ports"] == want


def test_an_unready_pod_runs_but_its_ready_condition_is_false() -> None:
    got = pod_status(POD, ready=False)["status"]
    assert (got["phase"], got["podIPs"]) == ("Running", [{"ip": "10.244.1.0"}])
    conditions = {each["type"]: each["status"] for each in got["conditions"]}
    assert conditions == {"PodScheduled": "True", "Initialized": "True", "ContainersReady": "False", "Ready": "False"}


def test_a_dual_stack_pod_reports_both_addresses() -> None:
    pod = Pod("web-1", "ns", "10.244.1.0", "fd00:10:244::100", {"http": 80})
    want = [{"ip": "10.244.1.0"}, {"ip": "fd00:10:244::100"}]
    assert pod_status(pod, ready=True)["status"]["podIPs"] == want


def test_a_url_names_the_port_by_its_name() -> None:
    assert POD.url("/x", port="admin") == "http://10.244.1.0:9000/x"

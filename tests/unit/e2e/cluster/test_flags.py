"""The command lines and files of the local cluster."""

import json
from pathlib import Path

from e2e.cluster import flags

LAYOUT = flags.Layout(Path("/c"))
PORTS = flags.Ports(api=1, etcd=2, etcd_peer=3, controller_manager=4)


def test_every_listener_is_on_loopback_with_its_own_port() -> None:
    assert "--listen-client-urls=http://127.0.0.1:2" in flags.etcd(LAYOUT, PORTS)
    assert "--listen-peer-urls=http://127.0.0.1:3" in flags.etcd(LAYOUT, PORTS)
    for want in ("--bind-address=127.0.0.1", "--secure-port=1", "--etcd-servers=http://127.0.0.1:2"):
        assert want in flags.apiserver(LAYOUT, PORTS)
    for want in ("--bind-address=127.0.0.1", "--secure-port=4"):
        assert want in flags.controller_manager(LAYOUT, PORTS)


def test_the_api_server_checks_roles_and_does_not_publish_itself() -> None:
    got = flags.apiserver(LAYOUT, PORTS)
    assert "--authorization-mode=RBAC" in got
    assert "--endpoint-reconciler-type=none" in got
    assert "--audit-log-path=/c/audit.log" in got


def test_the_controllers_that_make_endpoints_run_unthrottled() -> None:
    got = flags.controller_manager(LAYOUT, PORTS)
    (controllers,) = (flag for flag in got if flag.startswith("--controllers="))
    assert {"endpoints-controller", "endpointslice-controller"} <= set(controllers.split("=")[1].split(","))
    assert "--kube-api-qps=1000" in got


def test_the_audit_policy_notes_users_but_not_the_clusters_own_traffic() -> None:
    policy = json.loads(flags.audit_policy())
    assert policy["rules"][0] == {"level": "None", "users": ["system:apiserver", "kube-controller-manager"]}
    assert policy["rules"][-1] == {"level": "Metadata"}


def test_a_token_line_quotes_its_groups() -> None:
    assert flags.token_line("t", "admin", ["a", "b"]) == 't,admin,admin,"a,b"\n'


def test_a_kubeconfig_names_the_server_its_ca_and_the_token() -> None:
    got = json.loads(flags.kubeconfig("https://127.0.0.1:1", "Q0E=", "t"))
    want = {"server": "https://127.0.0.1:1", "certificate-authority-data": "Q0E="}
    assert got["clusters"][0]["cluster"] == want
    assert got["users"][0]["user"] == {"token": "t"}

"""The command lines and configuration files of the cluster's processes, as pure functions. Nothing is started here."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVICE_ACCOUNT_ISSUER = "https://kubernetes.default.svc"
# Large enough for any suite; dual-stack, so that a story may ask for IPv6 Services.
SERVICE_RANGES = "10.96.0.0/12,fd00:10:96::/112"

# The controllers for Services, endpoints, namespaces, owners and accounts; `e2e.workload` creates pods.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
)


@dataclass(frozen=True, slots=True)
class Ports:
    """Free ports on 127.0.0.1, one for each listener of the cluster."""

    api: int
    etcd: int
    etcd_peer: int
    controller_manager: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of a cluster's files below its folder."""

    root: Path

    @property
    def ca(self) -> Path:
        return self.root / "ca.crt"

    @property
    def server_cert(self) -> Path:
        return self.root / "apiserver.crt"

    @property
    def server_key(self) -> Path:
        return self.root / "apiserver.key"

    @property
    def account_key(self) -> Path:
        """The private key that signs service-account tokens."""
        return self.root / "sa.key"

    @property
    def tokens(self) -> Path:
        return self.root / "tokens.csv"

    @property
    def audit_policy(self) -> Path:
        return self.root / "audit-policy.json"

    @property
    def audit_log(self) -> Path:
        return self.root / "audit.log"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def manager_kubeconfig(self) -> Path:
        return self.root / "controller-manager.kubeconfig"

    @property
    def etcd_data(self) -> Path:
        return self.root / "etcd"


def etcd(layout: Layout, ports: Ports) -> list[str]:
    """Return etcd's arguments: one member, no fsync, because the data is discarded at the end."""
    client = f"http://127.0.0.1:{ports.etcd}"
    peer = f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        "--name=local",
        f"--data-dir={layout.etcd_data}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=local={peer}",
        "--quota-backend-bytes=4294967296",
        "--log-level=warn",
    ]


def apiserver(layout: Layout, ports: Ports) -> list[str]:
    """Return kube-apiserver's arguments: RBAC, token users, signed service-account tokens, an audit log."""
    return [
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={ports.api}",
        # The reconciler would publish 127.0.0.1 as an endpoint, which the server itself rejects.
        "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={SERVICE_RANGES}",
        f"--tls-cert-file={layout.server_cert}",
        f"--tls-private-key-file={layout.server_key}",
        f"--client-ca-file={layout.ca}",
        f"--token-auth-file={layout.tokens}",
        "--authorization-mode=RBAC",
        f"--service-account-issuer={SERVICE_ACCOUNT_ISSUER}",
        f"--service-account-key-file={layout.account_key}",
        f"--service-account-signing-key-file={layout.account_key}",
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        "--max-requests-inflight=2000",
        "--max-mutating-requests-inflight=1000",
    ]


def controller_manager(layout: Layout, ports: Ports) -> list[str]:
    """Return kube-controller-manager's arguments: only the required controllers, without client-side rate limits."""
    return [
        f"--kubeconfig={layout.manager_kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.controller_manager}",
        "--leader-elect=false",
        f"--controllers={','.join(CONTROLLERS)}",
        # The default of 20 requests a second delays endpoints by tens of seconds behind a backlog.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        f"--root-ca-file={layout.ca}",
        f"--service-account-private-key-file={layout.account_key}",
    ]


def audit_policy() -> str:
    """Return an audit policy that logs users and requests, without bodies and without the cluster's own traffic."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "users": ["system:apiserver", "kube-controller-manager"]},
            {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*"]},
            {"level": "Metadata"},
        ],
    }
    return json.dumps(policy, indent=1)


def token_line(token: str, user: str, groups: Sequence[str] = ()) -> str:
    """Return one line of the file that --token-auth-file names."""
    return f'{token},{user},{user},"{",".join(groups)}"\n'


def kubeconfig(url: str, ca_data: str, token: str) -> str:
    """Return a kubeconfig for one token user.

    Args:
        url: of the API server.
        ca_data: the CA certificate, PEM in base64.
        token: the user's bearer token.
    """
    config: Mapping[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": url, "certificate-authority-data": ca_data}}],
        "users": [{"name": "local", "user": {"token": token}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local", "namespace": "default"}}],
        "current-context": "local",
    }
    return json.dumps(config, indent=1) + "\n"

"""The temporary certificate authority of a local cluster, and the keys for its API server."""

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from trustme import CA

from e2e.cluster.flags import Layout

SERVER_NAMES = (
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "10.96.0.1",
)


def write_certificates(layout: Layout) -> None:
    """Write a new CA, the API server's certificate and the key for service-account tokens into the layout."""
    authority = CA(organization_name="apisix-ingress e2e")
    authority.cert_pem.write_to_path(str(layout.ca))
    server = authority.issue_cert(*SERVER_NAMES, common_name="kube-apiserver")
    for blob in server.cert_chain_pems:
        blob.write_to_path(str(layout.server_cert), append=True)
    _write_key(layout.server_key, server.private_key_pem.bytes())
    _write_key(layout.account_key, _account_key())


def _account_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write_key(path: Path, pem: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(pem)

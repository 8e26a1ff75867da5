"""Sources of credentials, and the error for each kind of mistake in them."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.client.credentials import Access, InCluster, Kubeconfig, find_credentials
from apisix_ingress.kube.client.rest_config import Pem, RestConfig
from tests.fakes.clock import FakeClock

SECRET = "s3cr3t-token"


def write_kubeconfig(path: Path, **changes: Any) -> Path:
    content: dict[str, Any] = {
        "clusters": [
            {"name": "c", "cluster": {"server": "https://api.example:6443", "insecure-skip-tls-verify": True}}
        ],
        "users": [{"name": "u", "user": {"token": SECRET}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ours"}}],
        "current-context": "x",
        **changes,
    }
    path.write_text(yaml.safe_dump(content))
    return path


def user(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "u", "user": fields}]


def cluster(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "cluster": fields}]


def plugin(path: Path, answer: object, *, code: int = 0) -> dict[str, Any]:
    """Write a credential plugin that prints a response and counts its runs."""
    lines = ("#!/bin/sh", f"echo run >> {path}.runs", f"cat <<'END'\n{json.dumps(answer)}\nEND", f"exit {code}")
    path.write_text("\n".join(lines) + "\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path)}


def credential(**status: str) -> dict[str, Any]:
    return {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}


async def load(path: Path, clock: FakeClock | None = None) -> Access:
    return await Kubeconfig(str(path), clock=clock or FakeClock()).load()


async def test_a_token_in_the_kubeconfig_is_used(tmp_path: Path) -> None:
    got = await load(write_kubeconfig(tmp_path / "k"))
    assert (got.host, got.namespace, got.authorization) == ("api.example:6443", "ours", f"Bearer {SECRET}")
    assert SECRET not in repr(got)


async def test_a_token_file_is_read_each_time_without_its_line_end(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "k", users=user(tokenFile="token"))
    (tmp_path / "token").write_text("one\n")
    assert (await load(path)).authorization == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    assert (await load(path)).authorization == "Bearer two"


@pytest.mark.parametrize("content", ["", "a b", "a\nb", "a\x00b"])
async def test_a_half_written_token_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content)
    with pytest.raises(ConfigError, match="must contain one token and nothing else"):
        await load(write_kubeconfig(tmp_path / "k", users=user(tokenFile="token")))


async def test_a_plugin_returns_a_token_and_its_expiry(tmp_path: Path) -> None:
    clock = FakeClock()
    answer = credential(token=SECRET, expirationTimestamp="2026-01-01T00:10:00Z")
    got = await load(write_kubeconfig(tmp_path / "k", users=user(exec=plugin(tmp_path / "p", answer))), clock)
    assert got.authorization == f"Bearer {SECRET}"
    assert got.costly
    assert got.expires_at == clock.monotonic() + 600 - 30


@pytest.mark.parametrize(
    ("answer", "code", "want"),
    [
        (credential(token=SECRET), 3, "process returned 3"),
        (credential(), 0, "neither a token nor a client certificate"),
        ({"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "x", "status": {}}, 0, "does not match"),
        ([], 0, "malformed"),
        (5, 0, "malformed"),
        ({**credential(), "status": None}, 0, "malformed"),
    ],
)
async def test_a_failing_plugin_is_named_without_its_output(
    tmp_path: Path, answer: object, code: int, want: str
) -> None:
    path = write_kubeconfig(tmp_path / "k", users=user(exec=plugin(tmp_path / "p", answer, code=code)))
    with pytest.raises(ConfigError, match=want) as error:
        await load(path)
    assert f"credential plugin '{tmp_path}/p'" in str(error.value)
    assert SECRET not in str(error.value)


async def test_a_plugin_may_give_a_client_certificate_instead_of_a_token(tmp_path: Path) -> None:
    answer = credential(clientCertificateData="a certificate", clientKeyData="its key")
    got = await load(write_kubeconfig(tmp_path / "k", users=user(exec=plugin(tmp_path / "p", answer))))
    assert (got.config.certificate, got.config.key) == (Pem(b"a certificate"), Pem(b"its key"))
    assert (got.authorization, got.costly, got.files) == ("", True, (tmp_path / "k",))


@pytest.mark.parametrize("lacks", ["clientCertificateData", "clientKeyData"])
async def test_an_incomplete_client_certificate_is_ignored(tmp_path: Path, lacks: str) -> None:
    both = {"clientCertificateData": "a certificate", "clientKeyData": SECRET}
    answer = credential(**{name: text for name, text in both.items() if name != lacks})
    path = write_kubeconfig(tmp_path / "k", users=user(exec=plugin(tmp_path / "p", answer)))
    with pytest.raises(ConfigError, match="neither a token nor a client certificate with its key") as error:
        await load(path)
    assert SECRET not in str(error.value)


async def test_the_path_of_a_plugin_is_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    fields = plugin(tmp_path / "p", credential(token=SECRET)) | {"command": "./p", "env": [{"name": "A", "value": "b"}]}
    got = await load(write_kubeconfig(tmp_path / "k", users=user(exec=fields)))
    assert got.authorization == f"Bearer {SECRET}"


async def test_a_plugin_that_is_not_installed_is_named(tmp_path: Path) -> None:
    missing = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}
    with pytest.raises(ConfigError, match="'no-such-plugin': No such file or directory"):
        await load(write_kubeconfig(tmp_path / "k", users=user(exec=missing)))


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"clusters": cluster()}, "the cluster's server must be an http(s) URL"),
        ({"clusters": cluster(server="ftp://x")}, "the cluster's server must be an http(s) URL"),
        ({"clusters": cluster(server="https://[x")}, "the cluster's server must be an http(s) URL"),
        (
            {"clusters": cluster(server="https://x", **{"proxy-url": "socks5://p:1080"})},
            "clusters[c].proxy-url: must be an http(s) URL; SOCKS is not supported",
        ),
        (
            {"clusters": cluster(server="https://x", **{"certificate-authority": "no.crt"})},
            "clusters[c].certificate-authority: {folder}/no.crt: No such file or directory",
        ),
        ({"users": user(**{"client-key": "a\0b"})}, "users[u].client-key: the path contains a NUL character"),
        ({"users": user(**{"client-key-data": SECRET})}, "users[u].client-key-data: not valid base64"),
        ({"users": user(tokenFile="no")}, "{folder}/no: No such file or directory"),
    ],
)
async def test_a_field_that_cannot_be_used_is_named(tmp_path: Path, changes: dict[str, Any], want: str) -> None:
    with pytest.raises(ConfigError) as error:
        await load(write_kubeconfig(tmp_path / "k", **changes))
    assert want.format(folder=tmp_path) in str(error.value)
    assert str(tmp_path) in str(error.value)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({}, ""),
        ({"token": f" {SECRET}\n", "username": "a", "password": "b"}, f"Bearer {SECRET}"),
        ({"token": SECRET, "tokenFile": "no-such-file"}, f"Bearer {SECRET}"),
        ({"username": "a", "password": "b"}, "Basic YTpi"),
        ({"username": "a"}, "Basic YTo="),
        ({"password": "b"}, ""),
    ],
)
async def test_a_token_takes_precedence_over_its_file_and_both_over_a_password(
    tmp_path: Path, fields: dict[str, str], want: str
) -> None:
    assert (await load(write_kubeconfig(tmp_path / "k", users=user(**fields)))).authorization == want


async def test_certificates_are_read_from_data_rather_than_files(tmp_path: Path) -> None:
    for name in ("ca", "crt", "key"):
        (tmp_path / name).write_text(f"file {name}")
    files = {"client-certificate": "crt", "client-key": "./key"}
    data = {"client-certificate-data": "ZGF0YSBj\ncnQ=", "client-key-data": "ZGF0YSBrZXk="}
    url = {"server": "https://x/", "certificate-authority": "ca"}
    got = (await load(write_kubeconfig(tmp_path / "k", clusters=cluster(**url), users=user(**files)))).config
    assert got == RestConfig("https://x", Pem(b"file ca"), Pem(b"file crt"), Pem(b"file key"))
    assert got.files == (tmp_path / "ca", tmp_path / "crt", tmp_path / "key")
    url["certificate-authority-data"] = "ZGF0YSBjYQ=="
    path = write_kubeconfig(tmp_path / "k", clusters=cluster(**url), users=user(**files, **data))
    access = await load(path)
    assert access.config == RestConfig("https://x", Pem(b"data ca"), Pem(b"data crt"), Pem(b"data key"))
    assert (access.files, access.config.files) == ((path,), ())
    assert "data key" not in repr(access)


async def test_a_connection_without_tls_ignores_certificates(tmp_path: Path) -> None:
    url = {"server": "http://x", "certificate-authority": "no", "proxy-url": "http://p", "tls-server-name": "n"}
    path = write_kubeconfig(tmp_path / "k", clusters=cluster(**url))
    assert (await load(path)).config == RestConfig("http://x", proxy="http://p", server_name="n")


async def test_a_changed_certificate_is_a_change_of_the_files_and_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "crt").write_text("one")
    url = {"server": "https://x", "insecure-skip-tls-verify": True}
    path = write_kubeconfig(tmp_path / "k", clusters=cluster(**url), users=user(**{"client-certificate": "crt"}))
    before, stamp = await load(path), (await load(path)).stamp()
    (tmp_path / "crt").write_text("another")
    after = await load(path)
    assert (before.stamp() != stamp, before.config == after.config) == (True, False)


@pytest.mark.parametrize(
    ("path", "want"),
    [("x" * 300, "File name too long"), ("~no.such.user/config", "unknown user in the path")],
)
async def test_a_path_that_leads_nowhere_is_named(path: str, want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await Kubeconfig(path, clock=FakeClock()).load()
    assert str(caught.value) == f"kubeconfig {path}: {want}; set the path with --kubeconfig"


async def test_a_context_without_user_is_anonymous(tmp_path: Path) -> None:
    got = await load(write_kubeconfig(tmp_path / "k", contexts=[{"name": "x", "context": {"cluster": "c"}}]))
    assert (got.authorization, got.namespace) == ("", "default")


async def test_the_account_of_the_pod_is_read(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    for name, content in (("token", f"{SECRET}\n"), ("ca.crt", "PEM"), ("namespace", "ours\n")):
        (tmp_path / name).write_text(content)
    got = await InCluster(environ, tmp_path).load()
    assert (got.host, got.namespace, got.authorization) == ("[fd00::1]:443", "ours", f"Bearer {SECRET}")
    before = got.stamp()
    (tmp_path / "token").write_text("another")
    assert got.stamp() != before
    (tmp_path / "ca.crt").unlink()
    with pytest.raises(ConfigError, match=r"ca\.crt: No such file"):
        await InCluster(environ, tmp_path).load()


def test_the_flag_takes_precedence_over_the_pod_and_the_environment(tmp_path: Path) -> None:
    clock = FakeClock()
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBECONFIG": "/k"}
    assert isinstance(find_credentials("/mine", clock=clock, environ=pod), Kubeconfig)
    assert isinstance(find_credentials("", clock=clock, environ=pod), InCluster)
    assert isinstance(find_credentials("", clock=clock, environ={"KUBECONFIG": "/k"}), Kubeconfig)
    with pytest.raises(ConfigError, match="pass --kubeconfig FILE"):
        find_credentials("", clock=clock, environ={"HOME": str(tmp_path)})


async def test_a_context_is_selected_and_takes_precedence_over_the_pod(tmp_path: Path) -> None:
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u", "namespace": name}} for name in ("x", "other")]
    path = str(write_kubeconfig(tmp_path / "k", contexts=contexts))
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBECONFIG": path}
    assert (await find_credentials("", "other", clock=FakeClock(), environ=environ).load()).namespace == "other"
    with pytest.raises(ConfigError, match="no context 'third'; it has: x, other"):
        await Kubeconfig(path, "third", clock=FakeClock()).load()


async def test_the_kubeconfig_of_the_home_folder_has_the_lowest_precedence(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write_kubeconfig(tmp_path / ".kube" / "config")
    found = find_credentials("", clock=FakeClock(), environ={"HOME": str(tmp_path)})
    assert (await found.load()).authorization == f"Bearer {SECRET}"

"""Merging of kubeconfig files, the selected context, and the error for each kind of mistake."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.client.kubeconfig import read_context

SECRET = "s3cr3t-token"

ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
"""Less than 1 kB that resolves to a billion nodes."""


def write(path: Path, *, user: Any = None, cluster: Any = None, current: Any = "x", **changes: Any) -> Path:
    """Write a kubeconfig with a context, a cluster and a user named x."""
    content = {
        "clusters": [{"name": "x", "cluster": {"server": "https://x"} if cluster is None else cluster}],
        "users": [{"name": "x", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": current,
        **changes,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def merged(*paths: Path) -> str:
    return os.pathsep.join(map(str, paths))


def test_all_fields_of_a_context_are_read(tmp_path: Path) -> None:
    cluster = {
        "server": "https://a",
        "certificate-authority": "ca",
        "certificate-authority-data": "Y2E=",
        "insecure-skip-tls-verify": True,
        "tls-server-name": "name",
        "proxy-url": "http://proxy",
        "disable-compression": True,
    }
    plugin = {
        "command": "p",
        "apiVersion": "v1",
        "args": ["a"],
        "env": [{"name": "A", "value": "b"}],
        "installHint": "h",
    }
    user = {
        "client-certificate": "crt",
        "client-certificate-data": "Y3J0",
        "client-key": "key",
        "client-key-data": "a2V5",
        "token": SECRET,
        "tokenFile": "file",
        "username": "me",
        "password": "pw",
        "exec": plugin,
    }
    context = {"cluster": "x", "user": "x", "namespace": "ours"}
    path = write(tmp_path / "k", cluster=cluster, user=user, contexts=[{"name": "x", "context": context}])
    got = read_context(str(path))
    assert (got.files, got.namespace) == ((path,), "ours")
    assert got.cluster.model_dump(by_alias=True) == {k: v for k, v in cluster.items() if k != "disable-compression"}
    want = user | {"exec": {name: value for name, value in plugin.items() if name != "installHint"}}
    assert got.user.model_dump(by_alias=True) == want
    assert SECRET not in repr(got)


def test_json_may_escape_characters_as_surrogate_pairs(tmp_path: Path) -> None:
    path = write(tmp_path / "k", user={"username": "me", "password": "\U0001d11e"})
    path.write_text(json.dumps(yaml.safe_load(path.read_text())))
    assert r"\ud834\udd1e" in path.read_text()
    assert read_context(str(path)).user.password == "\U0001d11e"


def test_fields_that_are_null_are_not_set(tmp_path: Path) -> None:
    path = write(tmp_path / "k", cluster={"server": "https://a", "proxy-url": None}, user={"token": None, "exec": None})
    got = read_context(str(path))
    assert (got.cluster.proxy_url, got.user.token, got.user.exec) == ("", "", None)


def test_the_first_file_wins_for_each_name_and_for_the_current_context(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "k", user={"token": "first"}, clusters=None, current="")
    second = write(tmp_path / "b" / "k", user={"token": "second"}, cluster={"server": "https://second"})
    third = write(tmp_path / "c" / "k", user={"token": "third"}, current="other")
    got = read_context(merged(first, tmp_path / "missing", second, third))
    assert (got.files, got.user.token, got.cluster.server) == ((first, second, third), "first", "https://second")


def test_paths_are_relative_to_the_file_with_the_entry(tmp_path: Path) -> None:
    users = write(tmp_path / "users" / "k", user={"token": "t"}, clusters=[])
    clusters = write(tmp_path / "clusters" / "k", users=None)
    got = read_context(merged(users, clusters))
    assert got.user_place.path("../key") == tmp_path / "key"
    assert got.cluster_place.path("ca") == tmp_path / "clusters" / "ca"
    assert got.cluster_place.path("/ca") == Path("/ca")


def test_a_context_without_user_and_a_user_without_fields_are_anonymous(tmp_path: Path) -> None:
    context = [{"name": "x", "context": {"cluster": "x"}}]
    assert read_context(str(write(tmp_path / "k", contexts=context, users=None))).user.token == ""
    assert read_context(str(write(tmp_path / "k"))).user.token == ""


def test_entries_that_are_not_selected_are_not_validated(tmp_path: Path) -> None:
    users = [{"name": "other", "user": {"token": 5, "as": "root"}}, {"name": "x", "user": {}}]
    assert read_context(str(write(tmp_path / "k", users=users))).user.token == ""


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"current": "other"}, ": current-context: no context 'other'; it has: x"),
        ({"current": None}, ": current-context is not set: set it, or select a context with kubernetes.context"),
        ({"current": 5}, ": current-context: must be a string"),
        ({"contexts": None}, ": current-context: no context 'x'; it has: none"),
        ({"contexts": {}}, ": current-context: no context 'x'; it has: none"),
        ({"contexts": {"x": {}}}, ": contexts: must be a list"),
        ({"contexts": [{"name": "x"}]}, ": contexts[x].cluster: no cluster ''; it has: x"),
        ({"clusters": []}, ": contexts[x].cluster: no cluster 'x'; it has: none"),
        ({"users": []}, ": contexts[x] uses the user 'x', which does not exist; it has: none"),
        ({"users": [{"user": {}}]}, ": users[0]: must be a mapping with a name, which is a string"),
        ({"users": ["x"]}, ": users[0]: must be a mapping with a name, which is a string"),
        ({"users": [{"name": 5}]}, ": users[0]: must be a mapping with a name, which is a string"),
        ({"user": {"token": [SECRET]}}, ": users[x].token: Input should be a valid string"),
        ({"user": [SECRET]}, ": users[x].user: Input should be a valid dictionary or instance of User"),
        ({"user": {"exec": {"apiVersion": "v1"}}}, ": users[x].exec.command: Field required"),
        ({"cluster": {"insecure-skip-tls-verify": "true"}}, ": clusters[x].insecure-skip-tls-verify: Input should be"),
        ({"user": {"auth-provider": {"name": "oidc"}}}, ": auth-provider is not supported: use a token, a client cert"),
        ({"user": {"as": "root"}}, ": users[x].as: as is not supported: use credentials of the user to impersonate"),
        ({"user": {"as-groups": ["root"]}}, ": users[x].as-groups: as-groups is not supported: use credentials"),
    ],
)
def test_a_mistake_is_reported_with_its_file_and_field(tmp_path: Path, changes: dict[str, Any], want: str) -> None:
    path = write(tmp_path / "k", **changes)
    with pytest.raises(ConfigError) as error:
        read_context(str(path))
    assert f"kubeconfig {path}" in str(error.value)
    assert want in str(error.value)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("content", "want"),
    [
        ("", "top level must be a mapping"),
        ("a: [", "not valid YAML"),
        ("[" * 5000, "not valid YAML"),
        ("- 1", "top level must be a mapping"),
        (r'a: "\ud800"', "not valid YAML"),
        (ALIASES, "its aliases repeat too much"),
    ],
)
def test_a_file_that_is_not_a_kubeconfig_is_named(tmp_path: Path, content: str, want: str) -> None:
    (tmp_path / "k").write_text(content)
    with pytest.raises(ConfigError, match=want) as error:
        read_context(merged(write(tmp_path / "valid"), tmp_path / "k"))
    assert str(error.value).startswith(f"kubeconfig {tmp_path / 'k'}: ")


def test_a_kubeconfig_that_does_not_exist_is_reported_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        read_context(str(tmp_path / "k"))
    assert str(error.value) == f"kubeconfig {tmp_path / 'k'}: no such file; set the path with --kubeconfig"

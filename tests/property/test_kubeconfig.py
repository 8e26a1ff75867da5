"""The product's reader of kubeconfig files compared with that of the `kubernetes` package.

Intended differences, which the generated files avoid: the package takes the last current context of several files,
resolves the paths of a client certificate relative to the file with the cluster, treats empty data as set, ignores a
user name without password, and sends requests without credentials if a user does not exist.
"""

import base64
import json
import os
from collections.abc import Awaitable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.client.credentials import Kubeconfig
from apisix_ingress.kube.client.rest_config import Pem
from tests.fakes.clock import FakeClock

NAMES = st.sampled_from(["a", "b", "c"])
HERE = "/folder/of/the/kubeconfig"
"""Replaced when a kubeconfig is written."""
FILES = ("ca", "crt", "key", "token")


# PyYAML, with which the package reads JSON too, takes a surrogate pair for two characters.
PASSWORDS = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=4)


@st.composite
def pem_fields(draw: st.DrawFn, name: str, files: Sequence[str]) -> dict[str, str]:
    """Return a field and its variant with data, either, both or none."""
    data = base64.b64encode(draw(st.binary(min_size=1, max_size=8))).decode()
    every = {name: draw(st.sampled_from(files)), f"{name}-data": data}
    return {key: every[key] for key in draw(st.sets(st.sampled_from(sorted(every))))}


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, Any]:
    optional = {
        "insecure-skip-tls-verify": st.booleans(),
        "tls-server-name": st.sampled_from(["n", "api.example"]),
        "proxy-url": st.sampled_from(["http://p:3128", "https://p"]),
    }
    server = draw(
        st.sampled_from(["https://a", "https://a:6443/", "http://a", "https://[::1]:6443", "https://a/k8s//"])
    )
    ca = draw(pem_fields("certificate-authority", ["ca", "./ca", f"{HERE}/ca"]))
    return {"server": server, **ca, **draw(st.fixed_dictionaries({}, optional=optional))}


@st.composite
def users(draw: st.DrawFn) -> dict[str, Any]:
    token = st.text("abcXYZ019.-_", min_size=1, max_size=8)
    password = st.fixed_dictionaries({"username": token, "password": PASSWORDS})
    # The package resolves these relative to the cluster's file, which may be another one.
    certificate = {
        **draw(pem_fields("client-certificate", [f"{HERE}/crt", f"{HERE}/./crt"])),
        **draw(pem_fields("client-key", [f"{HERE}/key"])),
    }
    tokens = st.fixed_dictionaries({}, optional={"token": token, "tokenFile": st.sampled_from(["token", "./token"])})
    return {**certificate, **draw(tokens), **draw(st.one_of(st.just({}), password))}


@st.composite
def kubeconfigs(draw: st.DrawFn) -> dict[str, Any]:
    context = st.fixed_dictionaries(
        {"cluster": NAMES, "user": NAMES}, optional={"namespace": st.sampled_from(["ours", "default"])}
    )

    def entries(kind: str, content: st.SearchStrategy[dict[str, Any]]) -> list[dict[str, Any]]:
        names = draw(st.lists(NAMES, unique=True, min_size=1))
        return [{"name": name, kind: draw(content)} for name in names]

    config: dict[str, Any] = {
        "contexts": entries("context", context),
        "clusters": entries("cluster", clusters()),
        "users": entries("user", users()),
    }
    for kind in draw(st.sets(st.sampled_from(sorted(config)), max_size=1)):
        config[kind] = None
    return config


def written(folder: Path, configs: Sequence[dict[str, Any]]) -> str:
    """Write each kubeconfig to a folder with other files of the same names; return $KUBECONFIG."""
    paths = []
    for index, config in enumerate(configs):
        place = folder / str(index)
        place.mkdir()
        for name in FILES:
            (place / name).write_text(f"{name}{index}")
        (place / "config").write_text(json.dumps(config).replace(HERE, str(place)))
        paths.append(str(place / "config"))
    return os.pathsep.join(paths)


async def of_package(paths: str) -> dict[str, object]:
    merged = KubeConfigMerger(paths).config
    configuration = Configuration(host="")
    loader = KubeConfigLoader(merged, config_base_path=None)
    if loader._user is None:
        raise ConfigException("the user does not exist")
    await loader.load_and_set(configuration)

    def content(path: str | None) -> bytes | None:
        return None if path is None else Path(path).read_bytes()

    return {
        "host": configuration.host,
        "ca": content(configuration.ssl_ca_cert),
        "certificate": content(configuration.cert_file),
        "key": content(configuration.key_file),
        "is_verified": configuration.verify_ssl,
        "server_name": configuration.tls_server_name or "",
        "proxy": configuration.proxy or "",
        "namespace": loader.current_context["context"].get("namespace", "default"),
        "authorization": configuration.api_key.get("BearerToken", ""),
    }


async def of_ours(paths: str) -> dict[str, object]:
    access = await Kubeconfig(paths, clock=FakeClock()).load()

    def content(pem: Pem | None) -> bytes | None:
        return None if pem is None else pem.content

    config = access.config
    return {
        "host": config.host,
        "ca": content(config.ca),
        "certificate": content(config.certificate),
        "key": content(config.key),
        "is_verified": config.is_verified,
        "server_name": config.server_name,
        "proxy": config.proxy,
        "namespace": access.namespace,
        "authorization": access.authorization,
    }


async def result(load: Awaitable[dict[str, object]]) -> dict[str, object] | None:
    """Return the settings; None for an invalid kubeconfig."""
    try:
        return await load
    except (ConfigException, ConfigError):
        return None


@settings(max_examples=40, deadline=None)
@given(st.lists(kubeconfigs(), min_size=1, max_size=3), NAMES)
async def test_kubeconfigs_are_read_as_by_the_kubernetes_package(configs: list[dict[str, Any]], current: str) -> None:
    with TemporaryDirectory() as folder:
        paths = written(Path(folder), [config | {"current-context": current} for config in configs])
        assert await result(of_ours(paths)) == await result(of_package(paths))

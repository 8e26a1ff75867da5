"""`migrate`: a report on Ingresses of ingress-nginx, from manifests and from an API server."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.kube.apiserver import Fault
from tests.flow.commandline import Cli
from tests.flow.surveying import SurveyHarness, plain

CLASS = plain("IngressClass", "nginx", spec={"controller": "k8s.io/ingress-nginx"})

SHOP = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {clusterIP: 10.96.0.1, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  namespace: default
  annotations: {nginx.ingress.kubernetes.io/affinity: cookie}
spec:
  ingressClassName: nginx
  rules:
    - host: shop.test
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
"""


def nginx_ingress(name: str = "shop", **annotations: str) -> dict[str, Any]:
    """Return an Ingress of class nginx; underscores in names of annotations become dashes."""
    prefix = "nginx.ingress.kubernetes.io/"
    given = {f"{prefix}{key.replace('_', '-')}": text for key, text in annotations.items()}
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"host": f"{name}.test", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    return plain("Ingress", name, meta={"annotations": given}, spec={"ingressClassName": "nginx", "rules": [rule]})


async def test_without_manifests_the_objects_of_the_api_server_are_reported(harness: SurveyHarness) -> None:
    harness.server.put(CLASS)
    harness.server.put(nginx_ingress(affinity="cookie"))

    status, got = await harness.ask("migrate", "-o", "json")

    shop = {"kind": "Ingress", "namespace": "default", "name": "shop"}
    assert (status, [each["ingress"] for each in got["ingresses"]]) == (1, [shop])


async def test_the_config_map_of_ingress_nginx_is_read_from_the_api_server(harness: SurveyHarness) -> None:
    harness.server.put(CLASS)
    harness.server.put(nginx_ingress())
    harness.server.put(plain("ConfigMap", "nginx", data={"custom-http-errors": "503"}))

    _, got = await harness.ask("migrate", "--config-map", "default/nginx", "-o", "json")

    assert [each["key"] for each in got["config"]] == ["custom-http-errors"]


async def test_objects_that_may_not_be_listed_are_named_and_ingresses_are_required(harness: SurveyHarness) -> None:
    harness.server.faults.append(Fault("list", "ingresses", status=403))

    got = await harness.cli.beside("migrate", "--config", harness.config)

    assert (got.returncode, "the report needs the Ingresses" in got.stderr) == (2, True)


def test_a_folder_without_manifests_is_an_error(cli: Cli) -> None:
    (cli.folder / "empty").mkdir()
    got = cli("migrate", "empty")
    assert (got.returncode, got.stdout, got.stderr) == (2, "", "error: no manifests in empty: correct the path\n")


def test_an_address_of_a_config_map_has_a_namespace(cli: Cli) -> None:
    cli.write("shop.yaml", "{}")

    got = cli("migrate", "shop.yaml", "--config-map", "nginx")

    assert (got.returncode, "must be NAMESPACE/NAME" in got.stderr) == (2, True)


async def test_an_ingress_that_cannot_be_read_is_an_error_after_the_report(cli: Cli) -> None:
    cli.write("old.yaml", f"{SHOP}---\napiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {{name: old}}\n")

    status, got = await cli.json("migrate", "old.yaml")

    assert (status, len(got["ingresses"])) == (2, 1)
    (unread,) = got["unread"]
    assert unread.endswith("Kubernetes 1.22 removed this version; convert it to networking.k8s.io/v1")


async def test_an_ingress_that_an_api_server_rejects_is_not_served_exactly(cli: Cli) -> None:
    old = SHOP.replace("service: {name: web, port: {number: 80}}", "serviceName: web, servicePort: 80")
    cli.write("old.yaml", old.replace("pathType: Prefix, ", ""))

    status, got = await cli.json("migrate", "old.yaml")

    (shop,) = got["ingresses"]
    assert (status, shop["verdict"], [each["reason"] for each in shop["refused"]]) == (
        3,
        "refused",
        [
            "the API server rejects spec.rules[0].http.paths[0].pathType: required field is missing",
            "the API server rejects spec.rules[0].http.paths[0].backend: must have either service or resource",
        ],
    )


async def test_an_ingress_without_a_class_keeps_the_exit_status_from_being_zero(cli: Cli) -> None:
    cli.write("shop.yaml", SHOP.replace("  ingressClassName: nginx\n", ""))
    status, got = await cli.json("migrate", "shop.yaml")
    assert (status, [each["ingress"]["name"] for each in got["unchecked"]], got["complete"]) == (3, ["shop"], False)


REFUSED = SHOP.replace("affinity: cookie", 'configuration-snippet: "return 301 /x;"')


def test_hosts_that_are_not_served_are_among_the_differences(cli: Cli) -> None:
    cli.write("shop.yaml", REFUSED)
    got = cli("migrate", "shop.yaml", "--write", "out")
    text = (cli.folder / "out" / "DIFFERENCES.md").read_text()
    assert (got.returncode, "not written: 1" in got.stderr, "| shop.test | none |  | 1 |  |" in text) == (3, True, True)


def test_a_host_whose_paths_respond_with_503_is_closed(cli: Cli) -> None:
    data = {"allow-snippet-annotations": "true", "annotations-risk-level": "Critical"}
    config = json.dumps(plain("ConfigMap", "nginx", data=data))
    cli.write("shop.yaml", f"{REFUSED}---\n{config}\n")
    got = cli("migrate", "shop.yaml", "--config-map", "default/nginx", "--write", "out")
    text = (cli.folder / "out" / "DIFFERENCES.md").read_text()
    assert (got.returncode, "1 host: 1 with closed paths" in text) == (3, True)
    assert "configuration-snippet" in text.partition("## Closed")[2].partition("##")[0]


def test_native_manifests_and_their_differences_are_written(cli: Cli) -> None:
    cli.write("shop.yaml", SHOP)

    got = cli("migrate", "shop.yaml", "--write", "out", "--to", "apisixroute")

    assert (got.returncode, "wrote 3 files to out" in got.stderr) == (1, True)
    names = sorted(path.name for path in (cli.folder / "out").iterdir())
    assert names == ["DIFFERENCES.md", "shared.yaml", "shop.test.yaml"]
    assert cli("translate", "shop.yaml", "out").returncode == 0


def test_a_path_that_is_closed_makes_the_exit_status_3(cli: Cli) -> None:
    cli.write("shop.yaml", SHOP.replace("affinity: cookie", "auth-url: http://a.test/$host"))

    got = cli("migrate", "shop.yaml", "--write", "out")

    assert (got.returncode, "closed" in got.stderr) == (3, True)
    assert "auth-url" in (cli.folder / "out/DIFFERENCES.md").read_text()


def test_a_directory_with_files_is_not_written_to(cli: Cli) -> None:
    cli.write("shop.yaml", SHOP)

    got = cli("migrate", "shop.yaml", "--write", ".")

    assert (got.returncode, "the directory is not empty" in got.stderr) == (2, True)

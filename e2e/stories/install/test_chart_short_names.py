"""Short names of values (image, adminUrl, adminKey), and the image that an installation needs."""

from typing import Any

import pytest

from e2e.charts.chart import ADMIN_SECRET, WITH_IMAGE, WITH_KEY, HelmError, find, merged, nested, render
from e2e.charts.renders import ENDPOINTS, KEY
from e2e.cluster.client import Manifest

SECRET = nested("adminKey.existingSecret", "apisix-admin-key")
URL = "https://gw.example.org/apisix/admin"


def container(manifests: list[Manifest]) -> Any:
    """Return the container of the controller."""
    return find(manifests, "Deployment")["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (
            {"image": {"repository": "r.example.org/a", "tag": "1", "pullPolicy": "Always"}},
            {"deployment": {"image": {"repository": "r.example.org/a", "tag": "1", "pullPolicy": "Always"}}},
        ),
        ({"image": {"digest": f"sha256:{'0' * 64}"}}, {"deployment": {"image": {"digest": f"sha256:{'0' * 64}"}}}),
        ({"adminUrl": URL}, nested(ENDPOINTS, [URL])),
        (SECRET, nested(KEY, {"valueFrom": {"secretKeyRef": {"name": "apisix-admin-key"}}})),
        (
            merged(SECRET, nested("adminKey.existingSecretKey", "k")),
            nested(KEY, {"valueFrom": {"secretKeyRef": {"name": "apisix-admin-key", "key": "k"}}}),
        ),
    ],
)
def test_a_short_name_has_the_effect_of_the_long_one(short: dict[str, Any], long: dict[str, Any]) -> None:
    image = {} if "repository" in str(short) else WITH_IMAGE
    key = {} if "adminKey" in short else SECRET
    one, other = render(merged(image, key, short)), render(merged(image, key, long))
    assert one == other
    assert render(merged(image, key, short, long)) == other


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("image.repository", ("deployment.image.repository", "other.example.org/a")),
        ("image.tag", ("deployment.image.tag", "2")),
        ("image.pullPolicy", ("deployment.image.pullPolicy", "Always")),
        ("adminUrl", (ENDPOINTS, ["https://other.example.org"])),
        ("adminKey.existingSecret", (f"{KEY}.valueFrom.secretKeyRef.name", "other")),
    ],
)
def test_different_values_of_both_names_are_rejected(short: str, long: tuple[str, object]) -> None:
    given = {"image.repository": "r.example.org/a", "image.pullPolicy": "Never", "adminUrl": URL}
    values = merged(WITH_IMAGE, SECRET, nested(short, given.get(short, "one")), nested(*long))
    with pytest.raises(HelmError, match=rf"{short} \(.*\) and {long[0]} \(.*\) are two names of one value"):
        render(values)


def test_a_key_and_the_name_of_a_secret_are_rejected() -> None:
    with pytest.raises(HelmError, match="set value or valueFrom, not both; adminKey"):
        render(merged(WITH_IMAGE, SECRET, nested(KEY, {"value": "a"})))


def test_an_installation_without_an_image_is_rejected_with_the_remedy() -> None:
    with pytest.raises(HelmError, match="no image is published yet: build one with deploy/Dockerfile"):
        render(SECRET)


def test_an_image_without_a_registry_is_accepted_only_if_it_is_never_pulled() -> None:
    local = nested("image.repository", "apisix-ingress")
    with pytest.raises(HelmError, match="apisix-ingress has no registry, and Docker Hub has no image of this name"):
        render(merged(SECRET, local))
    got = container(render(merged(SECRET, local, nested("image.pullPolicy", "Never"))))
    assert (got["image"].partition(":")[0], got["imagePullPolicy"]) == ("apisix-ingress", "Never")


def test_names_of_the_2_x_chart_are_sufficient() -> None:
    got = container(render(merged(nested(KEY, ADMIN_SECRET), nested("deployment.image.repository", "r.example.org/a"))))
    assert (got["image"].partition(":")[0], got["imagePullPolicy"]) == ("r.example.org/a", "IfNotPresent")


def test_an_override_of_a_probe_keeps_its_other_fields() -> None:
    got = container(render(merged(WITH_KEY, nested("deployment.livenessProbe.failureThreshold", 60))))
    assert got["livenessProbe"] == {
        "httpGet": {"path": "/healthz", "port": "http"},
        "initialDelaySeconds": 0,
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": 60,
    }

"""APISIX accepts every record for any values of annotations: a value that it would reject is reported instead."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.ingress_nginx_values import ANNOTATIONS, CONFIG, PATHS, VALUES, rejections
from tests.unit.translation.nginx.host.bodies import SECRET, config
from tests.unit.translation.nginx.objects import ingress, translated
from translation.nginx.tables.annotations import TABLE


def rejected(path: str, annotations: dict[str, str], keys: dict[str, str], *, host: str = "shop.test") -> list[str]:
    """Return why APISIX would reject records for an Ingress, with the values that it has."""
    web = ingress("web", (path, "ImplementationSpecific"), host=host)
    web["metadata"]["annotations"] = {f"nginx.ingress.kubernetes.io/{name}": text for name, text in annotations.items()}
    outcome = translated(web, SECRET, config(**keys))
    return [f"{record.key}: {why}" for record in outcome.records for why in rejections(record)]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_gateway_accepts_the_records_for_each_annotation(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(TABLE)))
    annotations = {**data.draw(ANNOTATIONS), name: data.draw(VALUES)}

    assert rejected(data.draw(PATHS), annotations, {}) == []


@settings(max_examples=60, deadline=None)
@given(PATHS, ANNOTATIONS, CONFIG)
def test_the_gateway_accepts_the_records_for_each_key_of_the_config_map(
    path: str, annotations: dict[str, str], keys: dict[str, str]
) -> None:
    assert rejected(path, annotations, keys) == []

"""The guide for a new kind: its code runs unchanged."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import crds
from apisix_ingress.model.kinds import table
from apisix_ingress.model.kinds.resource import Resource, imported
from apisix_ingress.model.objects import CustomObject, Meta
from providers.core.base import Provider
from tests.unit.translation.objects import OPTIONS, protected_by, reported, world

GUIDE = Path(crds.__file__).parents[1] / "docs/how-to/add-a-kind.md"
TEXT = GUIDE.read_text(encoding="utf-8")
CODE = re.compile(r"^## \d\. [^\n]*`([^`\n]+)\.py`$(?:(?!^## ).)*?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch) -> Resource:
    """The row in the guide, whose modules can be imported."""
    blocks = dict(CODE.findall(TEXT))
    code = blocks.pop("apisix_ingress/model/kinds/table")
    for path, text in blocks.items():
        module = ModuleType(path.replace("/", "."))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(text, GUIDE, "exec"), module.__dict__)
    found = eval(code.rstrip(",\n"), vars(table))
    assert isinstance(found, Resource)
    return found


def test_the_example_is_translated(row: Resource) -> None:
    assert issubclass(imported(row.spec), crds.Spec)
    assert issubclass(imported(row.provider), Provider)
    assert imported(row.provider).kind == row.kind
    translate = imported(row.translator)
    obj = CustomObject(Meta(row.kind, "shop", "safe"), spec={"headers": {"X-Frame-Options": "DENY"}})
    got = translate(obj, world().view(), OPTIONS)
    (record,) = got.records
    assert record.name == f"{row.record_prefix}_shop_safe"
    assert record.body["plugins"] == {"response-rewrite": {"headers": {"set": {"X-Frame-Options": "DENY"}}}}
    broken = translate(replace(obj, spec={"headers": 5}), world().view(), OPTIONS)
    assert reported(broken) == ["error InvalidSpec spec.headers"]
    assert [hold.names for hold in protected_by(broken)] == [{record.name}]


def test_the_files_that_the_guide_names_exist() -> None:
    own = {f"{path}.py" for path, _ in CODE.findall(TEXT)} - {"apisix_ingress/model/kinds/table.py"}
    named = set(re.findall(r"`((?:apisix_ingress|crds|e2e|providers|tests|translation)/[\w/]+\.py)`", TEXT)) - own
    assert named
    assert [path for path in sorted(named) if not (GUIDE.parents[2] / path).is_file()] == []

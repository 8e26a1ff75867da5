"""ApisixPluginConfig: cases beyond the golden ones."""

from tests.unit.translation.objects import OPTIONS, get, make, protected_by, reported, world
from translation.plugin_config import translate_plugin_config


def test_spec_that_does_not_fit_keeps_what_a_gateway_has() -> None:
    found = world(make("ApisixPluginConfig", "pc", spec={"plugins": [{"enable": True}]}))
    got = translate_plugin_config(get(found, "ApisixPluginConfig", "pc"), found.view(), OPTIONS)
    assert reported(got) == ["error InvalidSpec spec.plugins[0].name"]
    (hold,) = protected_by(got)
    assert hold.names == {"default_pc"}

"""ApisixPluginConfig: a set of plugins that routes refer to by name."""

from __future__ import annotations

from pydantic import Field

from crds.v2.common import Plugin, Spec


class ApisixPluginConfigSpec(Spec):
    """The plugins of the set."""

    plugins: tuple[Plugin, ...] = Field(description="Plugins of the set.")

"""ApisixPluginConfig and ApisixConsumerGroup: a set of plugins that routes or consumers refer to by name."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from crds.v2.common import Column, Plugin, Spec


class ApisixPluginConfigSpec(Spec):
    """The plugins of the set."""

    columns: ClassVar = (Column("Plugins", ".spec.plugins[*].name", priority=1),)

    plugins: tuple[Plugin, ...] = Field(description="Plugins of the set.")


class ApisixConsumerGroupSpec(ApisixPluginConfigSpec):
    """The plugins of the group."""

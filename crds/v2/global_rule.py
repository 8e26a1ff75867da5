"""ApisixGlobalRule: plugins that run for every request."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from crds.v2.common import Column, Plugin, Spec


class ApisixGlobalRuleSpec(Spec):
    """The plugins of the rule."""

    columns: ClassVar = (Column("Plugins", ".spec.plugins[*].name", priority=1),)

    plugins: tuple[Plugin, ...] = Field(description="Plugins that run for every request.")

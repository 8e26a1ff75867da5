"""ApisixGlobalRule: plugins that run for every request."""

from __future__ import annotations

from pydantic import Field

from crds.v2.common import Plugin, Spec


class ApisixGlobalRuleSpec(Spec):
    """The plugins of the rule."""

    plugins: tuple[Plugin, ...] = Field(description="Plugins that run for every request.")

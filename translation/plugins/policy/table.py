"""Every reviewed plugin, and the fields that every plugin has."""

from collections.abc import Mapping

from translation.plugins.policy.access import ACCESS
from translation.plugins.policy.functions import FUNCTIONS
from translation.plugins.policy.model import Kind, Plugin, Rule, allow
from translation.plugins.policy.observing import OBSERVING
from translation.plugins.policy.routing import ROUTING

PLUGINS: Mapping[str, Plugin] = {**ROUTING, **ACCESS, **OBSERVING, **FUNCTIONS}
"""Plugin → its review. A plugin that is absent is rejected, except those in `translation.plugins.code`."""

ACTIONS: Mapping[str, Plugin] = {"return": allow("Responds with a status.", plain="code")}
"""Actions of the plugin workflow that are not plugins."""

COMMON: tuple[Rule, ...] = allow(
    "Every plugin has it.",
    plain="_meta.{disable,priority}",
    free="_meta.{filter,error_response}",
    code="_meta.pre_function",
).rules
"""The rules for `_meta`."""

IN_ORDER: frozenset[str] = frozenset({"proxy-mirror", "proxy-rewrite"})
"""Plugins that must run in the gateway's order: proxy-mirror appends the path of a request to its host, and a path
that was rewritten before could extend the name or port of that host."""

ORDER = Rule("_meta.priority", Kind.REFUSED, "changes where proxy-mirror sends requests")
"""The rule of these plugins."""

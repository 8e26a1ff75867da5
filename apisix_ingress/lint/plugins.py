"""Plugins of objects, by the schemas of a version of APISIX: the checks of the webhook without a gateway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.lint.plugin_checks import mistakes_beyond_schema
from apisix_ingress.model.json import FrozenJson, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.webhook.schemas.book import SchemaBook
from apisix_ingress.webhook.schemas.plugin_configs import Use, ignored_options, mistakes_of, plugin_uses
from apisix_ingress.webhook.schemas.published import OFF_BY_DEFAULT, published_book, versions
from translation.core.options import Options

_DISABLED = (
    "plugin {} ships with APISIX but is off by default: add it to `plugins` in config.yaml of the gateway, together"
    " with the plugins that you use"
)


@dataclass(frozen=True, slots=True)
class PluginRules:
    """The plugins that exist.

    Attributes:
        version: Of APISIX, for messages.
        book: Their schemas.
    """

    version: str
    book: SchemaBook

    def problems(
        self, objects: Iterable[KubeObject], outcome: Outcome, options: Options
    ) -> Iterator[tuple[ObjectKey, Problem]]:
        """Yield the mistakes in plugins of served objects."""
        view = outcome.world.view()
        for item in objects:
            key = item.meta.key
            if isinstance(item, CustomObject) and key not in outcome.left_out:
                records = outcome.world.desired.of_owner(key).values()
                uses = plugin_uses(item, view, options, records)
                yield from ((key, problem) for problem in self._of_uses(uses, options))

    def _of_uses(self, uses: Iterable[Use], options: Options) -> Iterator[Problem]:
        for use in uses:
            if use.name in options.trusted_plugins:
                continue
            if use.name in OFF_BY_DEFAULT and not use.in_stream:
                yield Problem("PluginDisabled", _DISABLED.format(use.name), use.path, "warning")
            for ignored in ignored_options(use, self.book):
                near = f"did you mean {ignored.nearest}?" if ignored.nearest else "remove it"
                message = f"plugin {use.name} of APISIX {self.version} has no such option; {near}"
                yield Problem("PluginOptionUnknown", message, ignored.path, "warning")
            is_valid = True
            for mistake in mistakes_of(use, self.book):
                if mistake.is_unknown:
                    message = f"unknown plugin {use.name} in APISIX {self.version}; {self._advice(mistake.nearest)}"
                    yield Problem("PluginUnknown", message, mistake.path)
                else:
                    yield self._invalid(use, mistake.path, mistake.message)
                    is_valid = False
            if is_valid and use.config is not None and not _is_off(use.config):
                filled = self.book.http.with_defaults(use.name, use.config, in_consumer=use.in_consumer)
                for path, message in mistakes_beyond_schema(use.name, filled):
                    yield self._invalid(use, ".".join(filter(None, (use.config_path or use.path, path))), message)

    def _invalid(self, use: Use, path: str, message: str) -> Problem:
        return Problem("PluginInvalid", f"{message} (plugin {use.name} of APISIX {self.version})", path)

    @staticmethod
    def _advice(nearest: str | None) -> str:
        if nearest:
            return f"did you mean {nearest}?"
        return "remove it, or add your own plugin to kubernetes.trusted_plugins of the configuration"


def _is_off(config: FrozenJson) -> bool:
    return mapping_in(config.get("_meta")).get("disable") is True


def plugin_rules(version: str) -> PluginRules | None:
    """Return the rules of a version of APISIX, empty for the newest known one; None for `none`.

    Raises:
        UsageError: The schemas of the version are not known.
    """
    return None if version == "none" else PluginRules(version or versions()[-1], published_book(version))

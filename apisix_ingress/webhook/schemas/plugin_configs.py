"""The plugins of an object, listed or generated, validated against the schemas that the gateways publish.

The gateway itself validates the record when it is written; here the result is known before the object is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.records import Record, is_meant_for
from apisix_ingress.state.view import View
from apisix_ingress.webhook.review import Verdict
from apisix_ingress.webhook.schemas.book import SchemaBook, Subsystem
from crds import KINDS, SpecError, parse_spec
from translation.core.context import Context
from translation.core.options import Options
from translation.plugins.configs import names_secret, translate_plugins

Books = Mapping[str, SchemaBook | None]
"""Gateway cluster → its schemas; None: unknown at present."""

_SOURCES = {"consumers": "spec.authParameter", "global_rules": "spec.monitoring"}
"""Kind of record → the field from which an unlisted plugin is generated."""


@dataclass(frozen=True, slots=True)
class Use:
    """One enabled plugin of an object.

    Attributes:
        path: The field that it comes from.
        name: Of the plugin.
        config: Merged with its Secret; None if that is unknown, so that only the name is checked.
        config_path: The field of the configuration; empty if the object has no such field.
        in_stream: Whether it works on connections.
        in_consumer: Whether it belongs to a consumer.
        clusters: The gateway clusters that get it; None for all.
    """

    path: str
    name: str
    config: JsonObject | None = field(repr=False)
    config_path: str = ""
    in_stream: bool = False
    in_consumer: bool = False
    clusters: frozenset[str] | None = None


def plugin_uses(item: CustomObject, view: View, options: Options, records: Iterable[Record]) -> tuple[Use, ...]:
    """Return the plugins of an object; `records` are those of its translation, empty if that failed."""
    listed = tuple(_listed(item, view, options))
    names = {use.name for use in listed}
    return (*listed, *(use for use in _made(item, records) if use.name not in names))


def check_plugins(uses: Sequence[Use], books: Books, unknown: Callable[[str], None] = lambda cluster: None) -> Verdict:
    """Return the mistakes in plugins according to the schemas of each cluster that gets them.

    `unknown` receives each cluster that does not know a plugin.
    """
    denials: dict[str, None] = {}
    warnings: list[str] = []
    for cluster, book in sorted(books.items()):
        mine = [use for use in uses if is_meant_for(use.clusters, cluster)]
        if book is not None:
            if any(_is_unknown(use, book) for use in mine):
                unknown(cluster)
            where = f" in gateway cluster {cluster}" if len(books) > 1 else ""
            denials.update((text, None) for use in mine for text in _mistakes(use, book, where))
        elif mine:
            warnings.append(
                f"plugins were not checked: the schemas of gateway cluster {cluster} are unknown at present"
            )
    return Verdict(tuple(denials), tuple(warnings))


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a plugin of an object.

    Attributes:
        path: The field of the object.
        message: What is wrong there; empty if the plugin is unknown.
        nearest: The most similar plugin that exists, if the plugin is unknown.
        is_unknown: Whether the gateway does not have the plugin.
    """

    path: str
    message: str = ""
    nearest: str | None = None
    is_unknown: bool = False


def mistakes_of(use: Use, book: SchemaBook) -> Iterator[Mistake]:
    """Yield what is wrong with a plugin according to the schemas of a gateway."""
    subsystem = _subsystem(use, book)
    if _is_unknown(use, book):
        yield Mistake(use.path, nearest=subsystem.nearest(use.name), is_unknown=True)
        return
    found = subsystem.mistakes(use.name, use.config, in_consumer=use.in_consumer) if use.config is not None else ()
    for path, sentence in found:
        whole = ".".join(part for part in (use.config_path or use.path, path) if part)
        yield Mistake(whole.replace(".[", "["), sentence)


def ignored_options(use: Use, book: SchemaBook) -> Iterator[Mistake]:
    """Yield the options of a plugin without effect: its schema allows them, but does not name them."""
    if use.config is None or not use.config_path:
        return
    for name, nearest in _subsystem(use, book).unknown_options(use.name, use.config, in_consumer=use.in_consumer):
        yield Mistake(f"{use.config_path}.{name}", nearest=nearest)


def _mistakes(use: Use, book: SchemaBook, where: str) -> Iterator[str]:
    found = tuple(mistakes_of(use, book))
    if found and not found[0].is_unknown:
        # The first half is 1.8's sentence, which tools look for; it had a line for each mistake as well.
        yield f"{use.path}: {use.name} plugin's config is invalid{where}"
    for mistake in found:
        if mistake.is_unknown:
            remedy = f"did you mean {mistake.nearest}?" if mistake.nearest else "enable it in the gateway or remove it"
            yield f"{use.path}: unknown plugin {use.name}{where}; {remedy}"
        else:
            yield f"{mistake.path}: {mistake.message}"


def _subsystem(use: Use, book: SchemaBook) -> Subsystem:
    return book.stream if use.in_stream else book.http


def _is_unknown(use: Use, book: SchemaBook) -> bool:
    """Return whether a cluster lacks a plugin; one without any plugins has disabled the subsystem."""
    known = _subsystem(use, book).plugins
    return bool(known) and use.name not in known


def _listed(item: CustomObject, view: View, options: Options) -> Iterator[Use]:
    """Yield the plugins that a spec lists."""
    if item.meta.kind not in KINDS:
        return
    try:
        spec = parse_spec(item.meta.kind, item.spec)
    except SpecError:
        return
    in_consumer = spec.is_consumer
    for plugins, path, in_stream in spec.plugin_lists():
        for index, plugin in enumerate(plugins):
            here = f"{path}[{index}]"
            if plugin.enable:
                scope = Context(item.meta.kind, item.meta.namespace, view, options)
                config: JsonObject | None = translate_plugins(scope, (plugin,), here)[plugin.name]
                if scope.problems and (plugin.secret_ref or names_secret(plugin.config)):
                    config = None
                yield Use(here, plugin.name, config, f"{here}.config", in_stream, in_consumer)


def _made(item: CustomObject, records: Iterable[Record]) -> Iterator[Use]:
    """Yield the plugins of records, one of a name and configuration each."""
    seen: set[tuple[str, int]] = set()
    for record in records:
        kind = record.key.kind
        path = "metadata.annotations" if RESOURCES[item.meta.kind].annotated else _SOURCES.get(kind, "spec")
        plugins = record.body.get("plugins")
        for name, config in plugins.items() if isinstance(plugins, dict) else ():
            if kind != "plugin_metadata" and (name, id(config)) not in seen:
                seen.add((name, id(config)))
                yield Use(
                    path,
                    name,
                    config,
                    in_stream=kind == "stream_routes",
                    in_consumer=kind == "consumers",
                    clusters=record.clusters,
                )

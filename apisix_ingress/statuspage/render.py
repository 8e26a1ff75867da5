"""Templates: render data as HTML. Escaping is always on; pages have no inline scripts or styles."""

from __future__ import annotations

import io
from functools import lru_cache
from importlib import resources
from urllib.parse import urlencode

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from apisix_ingress.model.formats.yaml_output import print_yaml
from apisix_ingress.model.json import JsonObject
from apisix_ingress.statuspage.look import ICONS, KEYS, NAMES, ONE_OF, TITLES, arcs, favicon, relative, tone

ASSETS = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}

_SEPARATORS = "._/-"

MOST_YAML = 32 * 1024
"""Maximum bytes of JSON of a body that is also shown as YAML, which takes 100 times as long."""

MOST_JSON = 512 * 1024
"""Maximum bytes of JSON of a body on a page; a larger one is a link."""


def render(template: str, **data: object) -> bytes:
    """Return a page."""
    return _environment().get_template(template).render(**data).encode()


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("apisix_ingress.statuspage", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals.update(
        arcs=arcs,
        favicon=favicon,
        icons=ICONS,
        keys=KEYS,
        link=link,
        names=NAMES,
        object_link=object_link,
        one_of=ONE_OF,
        record_link=record_link,
        relative=relative,
        soft=soft,
        titles=TITLES,
        tone=tone,
    )
    return environment


def link(path: str, **query: object) -> str:
    """Return the URL of a page; empty parameters are omitted."""
    given = {name: value for name, value in query.items() if value not in ("", None)}
    return f"/status{path}?{urlencode(given)}" if given else f"/status{path}"


def object_link(key: JsonObject) -> str:
    """Return the URL of the page of an object."""
    return link("/object", kind=key["kind"], namespace=key["namespace"], name=key["name"])


def record_link(kind: str, id_: str) -> str:
    """Return the URL of the page of a record."""
    return link("/record", kind=kind, id=id_)


def soft(text: str) -> Markup:
    """Return a text that may be broken after the separators of hosts, paths and names."""
    escaped = str(escape(text))
    for separator in _SEPARATORS:
        escaped = escaped.replace(separator, f"{separator}<wbr>")
    return Markup(escaped)  # escaped


def as_json(document: JsonObject) -> str:
    """Return a document as indented JSON."""
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def as_yaml(document: JsonObject) -> str:
    """Return a document as YAML."""
    stream = io.StringIO()
    print_yaml(document, stream)
    return stream.getvalue()


def texts_of(body: JsonObject) -> JsonObject:
    """Return a body as YAML and JSON, unless it is too large for a page."""
    size = len(orjson.dumps(body))
    return {
        "yaml": as_yaml(body) if size <= MOST_YAML else "",
        "json": as_json(body) if size <= MOST_JSON else "",
    }


@lru_cache(maxsize=len(ASSETS))
def asset(name: str) -> bytes:
    """Return a static file of the pages."""
    return resources.files("apisix_ingress.statuspage").joinpath("assets", name).read_bytes()

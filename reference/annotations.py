"""The page of the annotations of an Ingress: what each takes, and what an example of it really becomes.

What an annotation means is said here in a sentence; what its example makes is asked of the program. A test compares
the names with those that the program reads.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from apisix_ingress.state.world import World
from providers.core.registry import resources
from reference.markdown import cell, code, table
from translation.annotations import RouteAnnotations, read_annotations
from translation.annotations.reader import PREFIX
from translation.core.context import Context
from translation.core.options import Options

INTRODUCTION = f"""\
# Annotations of an Ingress

Every annotation begins with `{PREFIX}`, which is left out below. It counts for every rule and
backend of its Ingress and for nothing else. *What it becomes* is what the program makes of the example.

A value that can't be used where it guards access (authentication, address lists, methods), and a `rewrite-target`
that is no path, fail the Ingress: nothing new is published, what was there stays, and an Event names the annotation.
Any other bad value is left out with a warning. Flags are `true` or `false` in lower case. White space around a value
and around the items of a list does not count, but in `response-rewrite-body` and `csrf-key`. Annotations of other
controllers have no effect; for those of ingress-nginx see
[moving from ingress-nginx](../how-to/from-ingress-nginx.md).

An Ingress belongs to this controller by `spec.ingressClassName`, or by the annotation `kubernetes.io/ingress.class`,
which goes before it: see [`kubernetes.ingress_class`](../configuration.md#kubernetes).
"""


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation.

    Attributes:
        name: Without the prefix.
        takes: What values it takes.
        does: What it does.
        example: A value.
        beside: Other annotations that the example needs to do anything.
    """

    name: str
    takes: str
    does: str
    example: str
    beside: Mapping[str, str] = field(default_factory=dict)


_URI = {"auth-uri": "http://auth.example.org/check"}
_REGEX = {"rewrite-target-regex": "^/v1/(.*)", "rewrite-target-regex-template": "/$1"}
_CORS = {"enable-cors": "true"}
_REWRITE = {"enable-response-rewrite": "true"}

GROUPS: Mapping[str, tuple[Annotation, ...]] = {
    "Who may send what": (
        Annotation(
            "auth-type", "`keyAuth` or `basicAuth`", "Asks clients for the credentials of a consumer.", "keyAuth"
        ),
        Annotation("auth-uri", "URL", "Asks this address about every request, before it is sent on.", _URI["auth-uri"]),
        Annotation(
            "auth-ssl-verify", "flag", "`false`: the certificate of that address is not checked.", "false", _URI
        ),
        Annotation(
            "auth-request-headers", "list", "Headers of the client that are sent to it.", "Authorization,Cookie", _URI
        ),
        Annotation(
            "auth-upstream-headers", "list", "Headers of its answer that the backend gets.", "X-User,X-Groups", _URI
        ),
        Annotation(
            "auth-client-headers",
            "list",
            "Headers of its answer that the client gets when it refuses.",
            "Location",
            _URI,
        ),
        Annotation(
            "allowlist-source-range",
            "addresses, networks",
            "Only clients from there are let in.",
            "10.0.0.0/8,192.0.2.7",
        ),
        Annotation(
            "blocklist-source-range",
            "addresses, networks",
            "Clients from there are kept out. Not beside `allowlist-source-range`.",
            "198.51.100.0/24",
        ),
        Annotation("http-allow-methods", "methods", "All others get 405.", "GET,HEAD"),
        Annotation(
            "http-block-methods", "methods", "These get 405. Of no effect beside `http-allow-methods`.", "DELETE"
        ),
        Annotation(
            "enable-csrf", "flag", "Asks for a token against forged requests.", "true", {"csrf-key": "0123456789"}
        ),
        Annotation("csrf-key", "text", "The key that signs the token.", "0123456789", {"enable-csrf": "true"}),
        Annotation("enable-cors", "flag", "Answers questions of browsers about other origins.", "true"),
        Annotation("cors-allow-origin", "text", "Origins that are let in.", "https://www.example.org", _CORS),
        Annotation("cors-allow-methods", "text", "Methods that are let in.", "GET,POST", _CORS),
        Annotation("cors-allow-headers", "text", "Headers that are let in.", "Content-Type,X-Token", _CORS),
    ),
    "Rewriting": (
        Annotation("rewrite-target", "path", "The backend gets this path instead.", "/index.html"),
        Annotation(
            "rewrite-target-regex", "regular expression", "Part of the path that is replaced.", "^/v1/(.*)", _REGEX
        ),
        Annotation("rewrite-target-regex-template", "text", "What stands there instead.", "/$1", _REGEX),
        Annotation("http-to-https", "flag", "Sends plain http to https.", "true"),
        Annotation(
            "http-redirect",
            "address",
            "Sends the client there. Of no effect beside `http-to-https`.",
            "/new$request_uri",
        ),
        Annotation(
            "http-redirect-code",
            "301 to 308",
            "Status of the redirect; 301 if absent.",
            "308",
            {"http-redirect": "/new"},
        ),
        Annotation(
            "enable-response-rewrite",
            "flag",
            "Lets the annotations below count.",
            "true",
            {"response-rewrite-status-code": "202"},
        ),
        Annotation("response-rewrite-status-code", "200 to 598", "Status of the answer.", "202", _REWRITE),
        Annotation("response-rewrite-body", "text", "Body of the answer.", "closed", _REWRITE),
        Annotation(
            "response-rewrite-body-base64",
            "flag",
            "Whether that body is in base64.",
            "true",
            {**_REWRITE, "response-rewrite-body": "Y2xvc2Vk"},
        ),
        Annotation(
            "response-rewrite-add-header",
            "list of `name:value`",
            "Headers that are added; a value has no colon, no `/` at its end.",
            "X-A:1",
            _REWRITE,
        ),
        Annotation("response-rewrite-set-header", "list of `name:value`", "Headers that are set.", "X-A:1", _REWRITE),
        Annotation("response-rewrite-remove-header", "list", "Headers that are removed.", "Server", _REWRITE),
    ),
    "Backends": (
        Annotation("upstream-scheme", "`http`, `https`, `grpc` or `grpcs`", "What the Pods speak.", "grpc"),
        Annotation("upstream-retries", "whole number", "Tries after the first one.", "2"),
        Annotation("upstream-connect-timeout", "duration", "Time to connect.", "2s"),
        Annotation("upstream-send-timeout", "duration", "Time between two writes.", "30s"),
        Annotation("upstream-read-timeout", "duration", "Time between two reads.", "500ms"),
        Annotation("svc-namespace", "namespace", "Where the Services of the Ingress are, if not beside it.", "shop"),
    ),
    "Routes": (
        Annotation("enable-websocket", "flag", "Lets WebSocket through.", "true"),
        Annotation(
            "use-regex",
            "flag",
            "Paths of type ImplementationSpecific are regular expressions; write `^` and `$` where you mean them.",
            "true",
        ),
        Annotation(
            "plugin-config-name", "name", "An ApisixPluginConfig beside the Ingress whose plugins run.", "guarded"
        ),
    ),
}


class ExampleError(ValueError):
    """An example that the program complains about or that does nothing."""


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION.rstrip()]
    head = ("annotation", "takes", "meaning", "example", "what it becomes")
    for title, annotations in GROUPS.items():
        parts += [f"## {title}", table(head, [_row(each) for each in annotations])]
    return "\n\n".join(parts) + "\n"


def read(annotation: Annotation, scope: Context | None = None) -> RouteAnnotations:
    """Return what the program makes of an example.

    Raises:
        ExampleError: The program has something to say about it.
    """
    scope = scope or Context("Ingress", "default", World(resources(Options())).view(), Options())
    values = {**annotation.beside, annotation.name: annotation.example}
    found = read_annotations(scope, {PREFIX + name: value for name, value in values.items()})
    if scope.problems:
        raise ExampleError(f"{annotation.name}: {scope.problems}")
    return found


def _row(annotation: Annotation) -> tuple[str, ...]:
    beside = "".join(f", with {code(f'{name}: {value}')}" for name, value in _others(annotation).items())
    return (
        code(annotation.name),
        annotation.takes,
        cell(annotation.does),
        code(annotation.example) + beside,
        cell(_becomes(annotation)),
    )


def _others(annotation: Annotation) -> dict[str, str]:
    return {name: value for name, value in annotation.beside.items() if name != annotation.name}


def _becomes(annotation: Annotation) -> str:
    found = read(annotation)
    parts = [f"plugin {code(name)} {code(json.dumps(config))}" for name, config in found.plugins.items()]
    settings = {name: value for name, value in asdict(found.overrides).items() if value is not None}
    if "timeout" in settings:
        settings["timeout"] = dict(zip(("connect", "send", "read"), settings["timeout"], strict=True))
        settings["timeout"] = {name: value for name, value in settings["timeout"].items() if value}
    if settings:
        parts.append(f"upstream {code(json.dumps(settings))}")
    if found.websocket:
        parts.append("route `enable_websocket`")
    if found.use_regex:
        parts.append("a condition on `uri` of the route")
    if found.plugin_config:
        parts.append("route `plugin_config_id`")
    if found.service_namespace:
        parts.append(f"upstreams of Services in {code(found.service_namespace)}")
    if not parts:
        raise ExampleError(f"{annotation.name}: the example does nothing")
    return "; ".join(parts)

"""The page of Ingress annotations: the values of each, and the result of an example.

The descriptions are written here; the program generates the results. A test compares the names with the names that the
program reads.
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

Every annotation begins with `{PREFIX}`, which is omitted below. It applies to every rule and backend of its Ingress.
The program generates the last column from the example.

An invalid value that protects access (authentication, address lists, methods), and a `rewrite-target` that is not a
path, make the Ingress fail: it is not published, its last valid version stays, and an Event names the annotation. Any
other invalid value is ignored with a warning. Flags are `true` or `false` in lower case. White space around a value and
around list items is ignored, except in `response-rewrite-body` and `csrf-key`. Annotations of other controllers have no
effect; for those of ingress-nginx see
[moving from ingress-nginx](../how-to/from-ingress-nginx.md).

An Ingress belongs to this controller by `spec.ingressClassName`, or by the annotation `kubernetes.io/ingress.class`,
which takes precedence: see [`kubernetes.ingress_class`](../configuration.md#kubernetes).
"""


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation.

    Attributes:
        name: Without the prefix.
        takes: Its values. does: Its effect.
        example: A value.
        beside: Other annotations that the example needs to have an effect.
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
    "Access": (
        Annotation("auth-type", "`keyAuth` or `basicAuth`", "Requires the credentials of a consumer.", "keyAuth"),
        Annotation("auth-uri", "URL", "Sends a request to this URL to authorize each request.", _URI["auth-uri"]),
        Annotation(
            "auth-ssl-verify", "flag", "Whether to verify the certificate of the authorization service.", "false", _URI
        ),
        Annotation(
            "auth-request-headers",
            "list",
            "Client headers to send to the authorization service.",
            "Authorization,Cookie",
            _URI,
        ),
        Annotation(
            "auth-upstream-headers", "list", "Headers of its response to send to the backend.", "X-User,X-Groups", _URI
        ),
        Annotation(
            "auth-client-headers",
            "list",
            "Headers of its response to send to the client if the request is rejected.",
            "Location",
            _URI,
        ),
        Annotation(
            "allowlist-source-range",
            "addresses, networks",
            "Only these clients are admitted.",
            "10.0.0.0/8,192.0.2.7",
        ),
        Annotation(
            "blocklist-source-range",
            "addresses, networks",
            "These clients are rejected. Cannot be combined with `allowlist-source-range`.",
            "198.51.100.0/24",
        ),
        Annotation("http-allow-methods", "methods", "Allowed methods; others get 405.", "GET,HEAD"),
        Annotation(
            "http-block-methods",
            "methods",
            "Blocked methods, which get 405. Has no effect together with `http-allow-methods`.",
            "DELETE",
        ),
        Annotation(
            "enable-csrf",
            "flag",
            "Protects against cross-site request forgery with a token.",
            "true",
            {"csrf-key": "0123456789"},
        ),
        Annotation("csrf-key", "string", "The key that signs the token.", "0123456789", {"enable-csrf": "true"}),
        Annotation("enable-cors", "flag", "Enables CORS.", "true"),
        Annotation("cors-allow-origin", "string", "Allowed origins.", "https://www.example.org", _CORS),
        Annotation("cors-allow-methods", "string", "Allowed methods.", "GET,POST", _CORS),
        Annotation("cors-allow-headers", "string", "Allowed headers.", "Content-Type,X-Token", _CORS),
    ),
    "Rewriting": (
        Annotation("rewrite-target", "path", "The path to send to the backend.", "/index.html"),
        Annotation(
            "rewrite-target-regex", "regular expression", "Pattern of the path to replace.", "^/v1/(.*)", _REGEX
        ),
        Annotation("rewrite-target-regex-template", "string", "The replacement.", "/$1", _REGEX),
        Annotation("http-to-https", "flag", "Redirects http to https.", "true"),
        Annotation(
            "http-redirect",
            "address",
            "Redirects the client to this URL. Has no effect together with `http-to-https`.",
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
            "Enables the annotations below.",
            "true",
            {"response-rewrite-status-code": "202"},
        ),
        Annotation("response-rewrite-status-code", "200 to 598", "Status of the response.", "202", _REWRITE),
        Annotation("response-rewrite-body", "string", "Body of the response.", "closed", _REWRITE),
        Annotation(
            "response-rewrite-body-base64",
            "flag",
            "Whether the body is base64-encoded.",
            "true",
            {**_REWRITE, "response-rewrite-body": "Y2xvc2Vk"},
        ),
        Annotation(
            "response-rewrite-add-header",
            "list of `name:value`",
            "Headers to add; a value contains no colon and does not end with `/`.",
            "X-A:1",
            _REWRITE,
        ),
        Annotation("response-rewrite-set-header", "list of `name:value`", "Headers to set.", "X-A:1", _REWRITE),
        Annotation("response-rewrite-remove-header", "list", "Headers to remove.", "Server", _REWRITE),
    ),
    "Backends": (
        Annotation("upstream-scheme", "`http`, `https`, `grpc` or `grpcs`", "Protocol of the Pods.", "grpc"),
        Annotation("upstream-retries", "integer", "Retries after the first attempt.", "2"),
        Annotation("upstream-connect-timeout", "duration", "Connect timeout.", "2s"),
        Annotation("upstream-send-timeout", "duration", "Timeout between two writes.", "30s"),
        Annotation("upstream-read-timeout", "duration", "Timeout between two reads.", "500ms"),
        Annotation(
            "svc-namespace",
            "namespace",
            "Namespace of the Services, if it is not the namespace of the Ingress.",
            "shop",
        ),
    ),
    "Routes": (
        Annotation("enable-websocket", "flag", "Enables WebSocket.", "true"),
        Annotation(
            "use-regex",
            "flag",
            "Paths of type ImplementationSpecific are regular expressions that match anywhere in the path. Kubernetes"
            " requires paths to begin with `/`, not `^`; if an expression must match from the start, use an"
            " [ApisixRoute](examples/routes.md#regex-path).",
            "true",
        ),
        Annotation(
            "plugin-config-name",
            "name",
            "An ApisixPluginConfig in the namespace of the Ingress whose plugins run.",
            "guarded",
        ),
    ),
}


class ExampleError(ValueError):
    """An example with problems or without effect."""


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION.rstrip()]
    head = ("annotation", "value", "meaning", "example", "result")
    for title, annotations in GROUPS.items():
        parts += [f"## {title}", table(head, [_row(each) for each in annotations])]
    return "\n\n".join(parts) + "\n"


def read(annotation: Annotation, scope: Context | None = None) -> RouteAnnotations:
    """Return the result of an example.

    Raises:
        ExampleError: It has problems or no effect.
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

"""Matching: from conditions on a request to the fields of a route that select it.

Sources of the rules: v1-behaviour.md §2.4; the `vars` of the APISIX route schema (lua-resty-expr).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.network.host_names import host_mistake, mixed_scripts
from translation.core.context import Context

if TYPE_CHECKING:
    from crds.v2.route import Expression, Subject

Operand = str | list[str]
Var = list[Operand]
"""One condition: variable, an optional `!`, operator, operand."""

_NETWORK = ValuePattern(r"[0-9A-Fa-f.:]+(?:/(?:0|[1-9][0-9]*))?")
"""No zone (`%eth0`), and no prefix length as a mask or with a leading zero: gateways reject both."""

_OPERATORS: dict[str, tuple[str, ...]] = {
    "Equal": ("==",),
    "NotEqual": ("~=",),
    "GreaterThan": (">",),
    "GreaterThanEqual": (">=",),
    "LessThan": ("<",),
    "LessThanEqual": ("<=",),
    "In": ("in",),
    "NotIn": ("!", "in"),
    "RegexMatch": ("~~",),
    "RegexNotMatch": ("!", "~~"),
    "RegexMatchCaseInsensitive": ("~*",),
    "RegexNotMatchCaseInsensitive": ("!", "~*"),
}


def expressions(exprs: Sequence[Expression]) -> list[Var]:
    """Return the `vars` for the conditions of a rule, in their order; all of them must match."""
    return [[_variable(expr.subject), *_OPERATORS[expr.op], _operand(expr)] for expr in exprs]


def _variable(subject: Subject) -> str:
    match subject.scope:
        case "Query":
            return f"arg_{subject.name}"
        case "Header":
            return f"http_{subject.name.lower().replace('-', '_')}"
        case "Cookie":
            return f"cookie_{subject.name}"
        case "Body":
            return f"post_arg.{subject.name}"
        case "Path":
            return "uri"
        case _:  # Variable
            return subject.name


def _operand(expr: Expression) -> Operand:
    # The model permits exactly one of the two, depending on the operator.
    return expr.value if expr.value is not None else list(expr.values or ())


def check_addresses(scope: Context, addresses: Sequence[str], path: str) -> None:
    """Report each string that is neither an IP address nor a CIDR range."""
    for index, address in enumerate(addresses):
        if not is_network(address):
            message = f"{address!r} is neither an IP address nor a CIDR range such as 10.0.0.0/8"
            scope.error("InvalidAddress", f"{path}[{index}]", message)


@lru_cache(maxsize=4096)
def is_network(text: str) -> bool:
    """Return whether a string is an IP address or a CIDR range, host bits allowed, as in 1.8 and in gateways."""
    if not _NETWORK.fits(text):
        return False
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def check_paths(scope: Context, paths: Sequence[str], path: str) -> None:
    """Report each path that no request can have."""
    for index, text in enumerate(paths):
        if not text.startswith("/"):
            message = f"{text!r} never matches: begin it with /"
            scope.warn("PathNeverMatches", f"{path}[{index}]", message)


def check_hosts(scope: Context, hosts: Sequence[str], path: str) -> None:
    """Report each host with a port: the gateway accepts it and never matches it (contract: Admin API fact 18)."""
    for index, host in enumerate(hosts):
        if ":" in host and not host.startswith("["):
            scope.warn("HostNeverMatches", f"{path}[{index}]", f"{host!r} never matches: remove the port")
    check_host_names(scope, hosts, path)


def check_host_names(scope: Context, hosts: Sequence[str], path: str) -> None:
    """Report each invalid or easily confused host."""
    for index, host in enumerate(hosts):
        check_host_name(scope, host, f"{path}[{index}]")


def check_host_name(scope: Context, host: str, path: str) -> None:
    """Report an invalid host, or one that is easily confused with another."""
    if mistake := host_mistake(host):
        scope.error("InvalidHost", path, mistake)
    elif scripts := mixed_scripts(host):
        message = (
            f"{host} has letters of several scripts ({', '.join(scripts)}) in one label: it may imitate another host"
        )
        scope.warn("HostMixesScripts", path, message)

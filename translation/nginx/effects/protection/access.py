"""Access: address lists of an Ingress, and what the ConfigMap blocks for every host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apisix_ingress.model.formats.patterns import escaped_literal
from apisix_ingress.model.json import JsonObject
from translation.nginx.effects.branches import Branch, Site, answer
from translation.nginx.tables.config_map import Config
from translation.nginx.tables.values import networks

Condition = Sequence[object]


def blocked(config: Config) -> Iterator[Branch]:
    """Yield the branches for the headers that the ConfigMap blocks: before a location is looked up."""
    for key, variable in (("block-user-agents", "http_user_agent"), ("block-referers", "http_referer")):
        for word in config.texts(key):
            yield Branch((_matching(variable, word),), answer(403))


def blocked_addresses(site: Site) -> Iterator[Branch]:
    """Yield the branch for the addresses that the ConfigMap blocks."""
    cidrs = site.config.networks("block-cidrs")
    if cidrs and not reads_addresses(site):
        yield Branch((("remote_addr", "ipmatch", list(cidrs)),), answer(403))


def address_lists(site: Site) -> Iterator[Branch]:
    """Yield the branches for requests from forbidden addresses."""
    allowed, denied = _lists(site)
    if denied:
        yield Branch((("remote_addr", "ipmatch", list(denied)),), answer(403))
    if allowed:
        yield Branch((("remote_addr", "!", "ipmatch", list(allowed)),), answer(403))


def trusted_addresses(site: Site) -> Condition | None:
    """Return the condition that a request comes from an address without authentication (satisfy: any)."""
    allowed, _ = _lists(site)
    return ("remote_addr", "ipmatch", list(allowed)) if allowed else None


def address_plugins(site: Site) -> dict[str, JsonObject]:
    """Return the plugins with the same effect for an address that a plugin first has to read from a header."""
    if not reads_addresses(site):
        return {}
    plugins: dict[str, JsonObject] = {"real-ip": _real_ip(site)}
    allowed, denied = _lists(site)
    denied = tuple(dict.fromkeys((*(site.config.networks("block-cidrs") or ()), *denied)))
    if denied and allowed:
        rule = {"case": [["remote_addr", "ipmatch", list(denied)]], "actions": [["return", {"code": 403}]]}
        plugins["workflow"] = {"rules": [rule]}
    if allowed:
        plugins["ip-restriction"] = {"whitelist": list(allowed), "response_code": 403}
    elif denied:
        plugins["ip-restriction"] = {"blacklist": list(denied), "response_code": 403}
    return plugins


def reads_addresses(site: Site) -> bool:
    """Return whether the address of a client is taken from a header."""
    return site.config.flag("use-forwarded-headers") or site.config.flag("enable-real-ip")


def _real_ip(site: Site) -> JsonObject:
    header = site.config.text("forwarded-for-header").lower().replace("-", "_")
    trusted = networks(site.config.text("proxy-real-ip-cidr")) or ("0.0.0.0/0",)
    trusted_lists = [f"{each}" for each in trusted]
    return {"source": f"http_{header}", "trusted_addresses": trusted_lists, "recursive": True}


def _lists(site: Site) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the allowed and the denied addresses of an Ingress, or else of the ConfigMap."""
    values, config = site.values, site.config
    own = values.text("allowlist-source-range") or values.text("whitelist-source-range")
    allowed = networks(own) if own else config.networks("whitelist-source-range")
    deny = values.text("denylist-source-range")
    denied = networks(deny) if deny else config.networks("denylist-source-range")
    return allowed or (), denied or ()


def _matching(variable: str, word: str) -> Condition:
    """Return the condition that a header matches an entry of an nginx map."""
    if word.startswith("~*"):
        return (variable, "~*", word[2:])
    return (variable, "~~", word[1:]) if word.startswith("~") else (variable, "~*", f"^{escaped_literal(word)}$")

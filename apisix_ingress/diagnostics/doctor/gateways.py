"""The checks of `doctor` at the gateways: address, key, version, clock, plugins, stream mode."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.diagnostics.collect.gateway_state import SeenGateway
from apisix_ingress.diagnostics.collect.inventory import Inventory
from apisix_ingress.diagnostics.doctor.api_server import clock_check
from apisix_ingress.diagnostics.doctor.check import Check, fail, ok, skip, warn
from apisix_ingress.model.admin_address import PUBLISHED_KEYS, version_of
from apisix_ingress.model.records import is_meant_for
from apisix_ingress.settings import ClusterSettings
from apisix_ingress.webhook.schemas.plugin_configs import Use, plugin_uses

OLDEST = (3, 2)
"""The oldest version of APISIX that this program was tested with."""

SLOW_SECONDS = 1.0
_SHOWN = 20


def check_gateway(gateway: SeenGateway, cluster: ClusterSettings, inventory: Inventory | None) -> list[Check]:
    """Check one gateway cluster."""
    name = f"gateway {gateway.name}"
    if gateway.listing is None:
        fix = "set the admin key of the gateway" if gateway.is_refused else "check admin_url, and that the gateway runs"
        return [fail(name, f"{gateway.url}: {gateway.trouble}", fix)]
    checks = [_answer(name, gateway), *_key(name, gateway, cluster), _version(name, gateway.version)]
    checks.append(clock_check(f"{name} clock", f"gateway cluster {gateway.name}", gateway.skew))
    if inventory is not None:
        checks += [*_plugins(f"{name} plugins", gateway, inventory), *_streams(f"{name} streams", gateway, inventory)]
    return checks


def _answer(name: str, gateway: SeenGateway) -> Check:
    seconds = gateway.latency or 0.0
    words = f"Admin API at {gateway.url} reachable in {seconds * 1000:.0f} ms"
    if seconds <= SLOW_SECONDS:
        return ok(name, words)
    return warn(name, words, "check the load of the gateway and its etcd: every change waits for it")


def _key(name: str, gateway: SeenGateway, cluster: ClusterSettings) -> Iterator[Check]:
    key = "" if gateway.url != cluster.admin_url else cluster.read_admin_key().get_secret_value()
    if key in PUBLISHED_KEYS and cluster.admin_key_file:  # other addresses are in the settings
        fix = "set a secret key in the gateway (deployment.admin.admin_key of its config.yaml) and here"
        yield warn(f"{name} key", "the admin key is a published one from APISIX's default configuration", fix)
    elif not key and gateway.url == cluster.admin_url:
        fix = "set deployment.admin.admin_key_required: true and a key in the gateway's config.yaml"
        yield warn(f"{name} key", "the gateway accepts changes without an admin key", fix)
    else:
        yield ok(f"{name} key", "the admin key is accepted")


def _version(name: str, version: str) -> Check:
    numbers = version_of(version)
    if numbers is None:
        return skip(f"{name} version", f"it does not report its version, but {version or 'nothing'}")
    if numbers < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        return warn(
            f"{name} version", f"it is {version}, older than any tested version", f"upgrade it to {wanted} or later"
        )
    return ok(f"{name} version", f"it is {version}")


def _plugins(name: str, gateway: SeenGateway, inventory: Inventory) -> Iterator[Check]:
    """Yield plugins that objects use but the gateway does not have."""
    if gateway.book is None:
        yield skip(name, "the gateway does not list its plugins")
        return
    unknown: dict[tuple[str, bool], list[str]] = {}
    for owner, use in _uses(inventory):
        table = (gateway.book.stream if use.in_stream else gateway.book.http).plugins
        concerned = is_meant_for(use.clusters, gateway.name)
        if concerned and table and use.name not in table:
            unknown.setdefault((use.name, use.in_stream), []).append(f"{owner} ({use.path})")
    for (plugin, in_stream), places in sorted(unknown.items())[:_SHOWN]:
        nearest = (gateway.book.stream if in_stream else gateway.book.http).nearest(plugin)
        meant = f"did you mean {nearest}? Otherwise " if nearest else ""
        fix = f"{meant}enable it in {'stream_plugins' if in_stream else 'plugins'} of the gateway's config.yaml"
        yield fail(name, f"{plugin} is used by {', '.join(places[:3])} but not enabled", fix)
    if not unknown:
        yield ok(name, "every used plugin is enabled")


def _uses(inventory: Inventory) -> Iterator[tuple[str, Use]]:
    """Yield each plugin in use with the object that uses it."""
    view, desired = inventory.world.view(), inventory.world.desired
    for item in inventory.ours():
        records = desired.of_owner(item.meta.key).values()
        for use in plugin_uses(item, view, inventory.options, records):
            yield str(item.meta.key), use


def _streams(name: str, gateway: SeenGateway, inventory: Inventory) -> Iterator[Check]:
    wanted = [key for key in inventory.world.desired.records(gateway.name) if key.kind == "stream_routes"]
    if not wanted:
        return
    if gateway.listing is not None and "stream_routes" in gateway.listing.disabled:
        owner = inventory.owner_of(min(wanted))
        fix = "set apisix.proxy_mode: http&stream and stream_proxy in the gateway's config.yaml"
        yield fail(name, f"{len(wanted)} stream routes are desired, one by {owner}, but stream mode is off", fix)
    else:
        yield ok(name, f"{len(wanted)} stream routes are desired, and stream mode is on")

"""The checks of `doctor` on certificates: the ones that gateways serve, and the pair of the admission webhook."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from apisix_ingress.diagnostics.collect.inventory import Inventory
from apisix_ingress.diagnostics.doctor.api_server import hooks
from apisix_ingress.diagnostics.doctor.check import Check, fail, ok, skip, warn
from apisix_ingress.errors import KubeError
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.model.formats.certificates import dns_names, read_chain
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import Secret
from apisix_ingress.observability.certificate_expiry import expiries
from apisix_ingress.settings import WebhookSettings

SOON = timedelta(days=14)
_RENEW = "renew it; cert-manager renews certificates automatically"


def check_certificates(inventory: Inventory, now: datetime) -> list[Check]:
    """Check when the certificates that gateways serve expire."""
    checks = []
    ends = expiries(inventory.world.desired)
    for (namespace, name), end in ends.items():
        moment = datetime.fromtimestamp(end, now.tzinfo)
        found = _lifetime("certificates", f"the certificate in Secret {namespace}/{name}", moment, now)
        if found is not None:
            checks.append(found)
    return checks or [ok("certificates", f"{len(ends)} in use, none expires within {SOON.days} days")]


def _lifetime(name: str, what: str, end: datetime, now: datetime) -> Check | None:
    if end <= now:
        return fail(name, f"{what} expired on {end:%Y-%m-%d}", _RENEW)
    if end <= now + SOON:
        return warn(name, f"{what} expires on {end:%Y-%m-%d}", _RENEW)
    return None


async def check_webhook(api: KubeApi, settings: WebhookSettings, inventory: Inventory, now: datetime) -> list[Check]:
    """Check the registration of the admission webhook and its certificates."""
    try:
        found = [each async for each in hooks(api)]
    except KubeError as error:
        return [skip("webhook", f"registrations cannot be read: {error}")]
    if not found and settings.enabled:
        fix = "register it with a ValidatingWebhookConfiguration, as the chart does (webhook.enabled)"
        return [warn("webhook", "it is served, but not registered", fix)]
    checks = [check for name, hook in found for check in _hook(name, hook, inventory, now)]
    return checks or [ok("webhook", f"{len(found)} registered" if found else "not registered and not served")]


def _hook(name: str, hook: JsonObject, inventory: Inventory, now: datetime) -> Iterator[Check]:
    what = f"{hook.get('name')} of ValidatingWebhookConfiguration {name}"
    authorities = _certificates(hook)
    if not authorities:
        yield _without_ca(what, hook)
        return
    for authority in authorities:
        found = _lifetime("webhook", f"the CA of {what}", authority.not_valid_after_utc, now)
        if found is not None:
            yield found
    served = _served(hook, inventory)
    for secret, leaf in served:
        whose = f"the certificate in Secret {secret.meta.key.namespace}/{secret.meta.key.name}"
        found = _lifetime("webhook", whose, leaf.not_valid_after_utc, now)
        if found is not None:
            yield found
        if not any(_is_signed_by(leaf, authority) for authority in authorities):
            fix = "put the CA that signed it into caBundle (cert-manager's cainjector does)"
            yield fail("webhook", f"{whose} is not signed by the CA of {what}: API servers will not trust it", fix)


def _without_ca(what: str, hook: JsonObject) -> Check:
    fix = "set clientConfig.caBundle to the CA of its certificate (PEM in base64)"
    if hook.get("failurePolicy") == "Ignore":
        return warn("webhook", f"{what} has no readable CA: it is never called", fix)
    return fail("webhook", f"{what} has no readable CA, so every object is rejected", fix)


def _certificates(hook: JsonObject) -> list[x509.Certificate]:
    try:
        content = base64.b64decode(str((hook.get("clientConfig") or {}).get("caBundle") or ""))
        return read_chain(content)
    except ValueError:
        return []


def _served(hook: JsonObject, inventory: Inventory) -> list[tuple[Secret, x509.Certificate]]:
    """Return the certificates in Secrets for the Service of a webhook."""
    service = (hook.get("clientConfig") or {}).get("service") or {}
    namespace, host = service.get("namespace"), f"{service.get('name')}.{service.get('namespace')}.svc"
    secrets: Iterable[Secret] = inventory.world.stores["Secret"].values()
    found = []
    for secret in secrets:
        leaf = _leaf(secret) if secret.meta.namespace == namespace else None
        if leaf is not None and host in _names(leaf):
            found.append((secret, leaf))
    return found


def _leaf(secret: Secret) -> x509.Certificate | None:
    try:
        return read_chain(secret.data.get("tls.crt", b""))[0]
    except ValueError:
        return None


def _names(leaf: x509.Certificate) -> list[str]:
    try:
        return dns_names(leaf)
    except ValueError:
        return []


def _is_signed_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    if leaf == authority:
        return True
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True

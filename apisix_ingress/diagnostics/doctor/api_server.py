"""The checks of `doctor` on the API server: version, clock, permissions, CRDs, classes, leader, other controllers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import crds
from apisix_ingress.diagnostics.collect.inventory import Inventory, listed
from apisix_ingress.diagnostics.collect.leader import LEASES, SeenLease, lease_of, own_namespace
from apisix_ingress.diagnostics.doctor.check import Check, fail, ok, skip, warn
from apisix_ingress.diagnostics.doctor.clock_skew import skew_seconds
from apisix_ingress.diagnostics.doctor.permissions import missing_rights, needed_rights
from apisix_ingress.errors import KubeError, KubeForbidden, KubeNotFound
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import JsonObject, canonical
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject, IngressClass
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.settings import KubernetesSettings, Settings
from translation.core.options import ANY_CLASS
from translation.core.scope import INGRESS_CLASS_OF_ANY

OLDEST = (1, 25)
"""The first API server version that supports the rules in the CRDs."""

_VERSION = TextPattern(r"v?([0-9]{1,9})\.([0-9]{1,9})")

SKEW_SECONDS = 5.0

_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SHOWN = 8


async def check_server(api: KubeApi, clock: Clock) -> list[Check]:
    """Check that the API server is reachable, its version, and its clock."""
    try:
        found = await api.get("/version")
    except KubeError as error:
        return [fail("api-server", str(error), "check the kubeconfig, and that the API server runs")]
    return [_version(found), clock_check("api-clock", f"API server {api.host}", skew_seconds(api.date, clock.now()))]


def _version(found: JsonObject) -> Check:
    text = str(found.get("gitVersion") or "")
    numbers = _VERSION.match(text)
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        fix = f"upgrade it to {wanted} or later: older versions ignore rules"
        return warn("api-server", f"its version is {text}", fix)
    return ok("api-server", f"reachable, version {text or 'unknown'}")


def clock_check(name: str, whose: str, skew: float | None) -> Check:
    """Return the result of comparing another clock with this machine's."""
    if skew is None:
        return skip(name, f"{whose} does not report its time")
    if abs(skew) <= SKEW_SECONDS:
        return ok(name, f"the clock of {whose} agrees with this machine's")
    words = f"the clock of {whose} is {abs(skew):g} s {'ahead of' if skew > 0 else 'behind'} this machine's"
    return warn(name, words, "synchronize both clocks with a time server: certificates and tokens depend on them")


async def check_rights(api: KubeApi, settings: Settings, account: str) -> Check:
    """Check the permissions that these settings require, of a service account or of the current credentials."""
    whose = f"service account {account}" if account else "these credentials"
    needed = needed_rights(settings, own_namespace(settings.kubernetes, api))
    try:
        missing = await missing_rights(api, needed, account)
    except KubeError as error:
        return skip("rights", f"cannot be determined: {error}")
    if not missing:
        hint = "" if account else " (--account NAMESPACE/NAME checks those of the controller)"
        return ok("rights", f"{whose}: all {len(needed)} permissions that the controller uses{hint}")
    shown = ", ".join(map(str, missing[:_SHOWN])) + (f" and {len(missing) - _SHOWN} more" if missing[_SHOWN:] else "")
    return fail(
        "rights", f"{whose}: missing permissions: {shown}", "grant it with a role, as the chart does (rbac.create)"
    )


async def check_crds(api: KubeApi) -> list[Check]:
    """Check that the CRDs exist, are served, and have the version of this program."""
    found, missing, other = 0, [], []
    for ours in crds.manifests():
        name = ours["metadata"]["name"]
        try:
            theirs = await api.get(f"{_CRD}/{name}")
        except KubeNotFound:
            missing.append(name)
        except KubeError as error:
            return [skip("crds", f"cannot be read: {error}")]
        else:
            found += 1
            if not _is_same_schema(ours, theirs):
                other.append(name)
    remedy = "apisix-ingress crds | kubectl apply --server-side --force-conflicts -f -"
    checks = [fail("crds", f"not installed: {', '.join(missing)}", remedy)] if missing else []
    if other:
        checks.append(warn("crds", f"have a different version than this program: {', '.join(other)}", remedy))
    return checks or [ok("crds", f"all {found} are installed in the version of this program")]


def _is_same_schema(ours: JsonObject, theirs: JsonObject) -> bool:
    """Return whether two definitions have the same served schema in the version that is read."""
    try:
        return canonical(_schema(ours)) == canonical(_schema(theirs))
    except (AttributeError, TypeError):
        return False  # the response is not a definition


def _schema(definition: JsonObject) -> JsonObject:
    for version in (definition.get("spec") or {}).get("versions") or ():
        if version.get("name") == crds.VERSION and version.get("served"):
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            return {"schema": schema, "status": "status" in (version.get("subresources") or {})}
    return {}


def check_objects(inventory: Inventory) -> Check:
    """Check that every kind that the controller reads is readable."""
    if not inventory.unread:
        count = sum(len(store) for store in inventory.world.stores.values())
        return ok("objects", f"{count} objects read, {len(inventory.ours())} of them served")
    words = "; ".join(f"{kind}: {reason}" for kind, reason in sorted(inventory.unread.items()))
    return warn("objects", f"some kinds could not be read: {words}", "use credentials that may list these")


def check_classes(inventory: Inventory, kubernetes: KubernetesSettings) -> Check:
    """Check that Ingresses can use a class of this controller, and that no other controller has it."""
    name = kubernetes.ingress_class
    wanted = INGRESS_CLASS_OF_ANY if name == ANY_CLASS else name
    classes: list[IngressClass] = list(inventory.world.stores["IngressClass"].values())
    ours = [each.meta.name for each in classes if each.controller == kubernetes.ingress_class_controller]
    taken = [each.controller for each in classes if each.meta.name == wanted and each.meta.name not in ours]
    if taken:
        # It cannot be edited: spec.controller is immutable.
        right = f"delete the class and create it with spec.controller {kubernetes.ingress_class_controller}"
        fix = (
            f"if that controller is no longer used, {right} (this controller serves the class even if you do not);"
            " otherwise set another kubernetes.ingress_class"
        )
        return warn("ingress-class", f"IngressClass {wanted} belongs to the controller {taken[0]}", fix)
    if ours:
        return ok("ingress-class", f"served: {', '.join(sorted(ours))}")
    if not any(_is_ingress(item) for item in inventory.ours()):
        return ok("ingress-class", "no IngressClass of this controller, and no Ingress that needs one")
    fix = f"create IngressClass {wanted} with spec.controller {kubernetes.ingress_class_controller}"
    return warn("ingress-class", f"IngressClass {wanted} does not exist; Ingresses may refer to it", fix)


def _is_ingress(item: CustomObject) -> bool:
    return item.meta.kind == "Ingress"


def check_lease(lease: SeenLease) -> Check:
    """Check that there is a leader."""
    where = f"lease {lease.namespace}/{lease.name}"
    match lease.state:
        case "off":
            return ok("leader", "leader election is disabled: run a single replica only")
        case "held":
            return ok("leader", f"{lease.holder} leads, renewed {lease.age:.0f} s ago ({where})")
        case "unreadable":
            return skip("leader", f"{where} cannot be read: {lease.problem}")
        case "absent":
            return warn(
                "leader", f"{where} does not exist", "check that --namespace is the namespace of the controller"
            )
    age = f" {lease.age:.0f} s ago" if lease.age is not None else ""
    said = f"{lease.holder} renewed last{age}" if lease.holder else f"it was released{age}"
    return fail("leader", f"no leader: {said} ({where})", "check whether the controller runs, and its log")


async def check_twins(api: KubeApi, kubernetes: KubernetesSettings, clock: Clock) -> Check:
    """Check that no other controller has the same name: they would delete each other's records."""
    own, name = own_namespace(kubernetes, api), kubernetes.controller_name
    ledger = f"metadata.name={name}-ledger"
    lease = f"metadata.name={kubernetes.election.name}"
    try:
        ledgers = [raw async for raw in listed(api, RESOURCES["ConfigMap"].path(), fields=ledger)]
        leases = [lease_of(raw, clock.now()) async for raw in listed(api, f"{LEASES}/leases", fields=lease)]
    except KubeForbidden as error:
        return skip("controller-name", f"other namespaces cannot be checked: {error}")
    held = {each.namespace for each in leases if each.state == "held"}
    places = {str((raw.get("metadata") or {}).get("namespace")) for raw in ledgers}
    others = sorted((places | held) - {own})
    if not others:
        return ok("controller-name", f"no other controller named {name} found")
    words = f"a controller in namespace {', '.join(others)} may also have the name {name}"
    fix = "give each a unique kubernetes.controller_name: they delete each other's records; delete a leftover ledger"
    return warn("controller-name", words, fix)


async def hooks(api: KubeApi) -> AsyncIterator[tuple[str, JsonObject]]:
    """Yield each webhook for the kinds of this controller, with the name of its configuration.

    Raises:
        KubeError: They cannot be read.
    """
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    async for raw in listed(api, path):
        for hook in raw.get("webhooks") or ():
            if crds.GROUP in _groups(hook):
                yield str((raw.get("metadata") or {}).get("name")), hook


def _groups(hook: JsonObject) -> Iterator[str]:
    for rule in hook.get("rules") or ():
        yield from rule.get("apiGroups") or ()

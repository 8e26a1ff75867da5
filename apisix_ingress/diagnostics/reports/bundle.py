"""A support bundle: the data for a bug report, as one archive without secrets, in a fixed order.

The objects are manifests, so that `translate -f` and the tests can read them.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import yaml

from apisix_ingress import __version__
from apisix_ingress.diagnostics.collect.cluster_state import ClusterState, Step, look
from apisix_ingress.diagnostics.collect.gateway_state import SeenGateway
from apisix_ingress.diagnostics.collect.inventory import listed
from apisix_ingress.diagnostics.collect.leader import own_namespace
from apisix_ingress.diagnostics.doctor.report import checks_of_gateways, doctor_document, examine_api
from apisix_ingress.diagnostics.object_masking import Mask, masked_secret
from apisix_ingress.diagnostics.reports.status import status_document
from apisix_ingress.errors import IngressError, KubeError
from apisix_ingress.gateway.sync.observer import APPLIED
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.client.json_depth import DEEPEST
from apisix_ingress.model.formats.safe_yaml import plain, read_yaml
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import Secret
from apisix_ingress.model.secrets.redaction import blank
from apisix_ingress.model.secrets.value_mask import REDACTED
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.settings import Settings
from apisix_ingress.state.desired import Desired
from translation.plugin_metadata import DATA_KEY

EVENTS = "/api/v1/events"

LOGS = "kubectl -n {} logs -l app.kubernetes.io/name=apisix-ingress --prefix --tail=5000"
"""Prints the logs: only the permission pods/log would let the program read them."""

README = """\
Support bundle of apisix-ingress {version}. Secrets, keys, passwords, tokens and code are masked; hosts, paths and
addresses are not.

status.json, doctor.json  what the commands `status` and `doctor` print
problems.json             problems of objects according to the translation of this version
events.json               Events about the objects
objects/                  the objects that the controller reads; `apisix-ingress translate -f objects` reads them
records/                  the records of each gateway cluster
settings.json, about.json the configuration and the versions

The logs are not included, because reading them needs the permission pods/log. Add the output of these commands:

  {logs} > logs.txt
  {logs} --previous > previous.txt    # if a Pod was restarted

Without a Pod, add what the program wrote to its standard error.
"""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The timestamp of every file in the archive."""

_META = (
    "name",
    "namespace",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "resourceVersion",
)
_ANNOTATIONS = ("k8s.apisix.apache.org/", "kubernetes.io/ingress.class", "ingressclass.kubernetes.io/")
_WHOLE = ("spec", "status")
_KEPT: Mapping[str, tuple[str, ...]] = {
    "Endpoints": ("subsets",),
    "EndpointSlice": ("addressType", "endpoints", "ports"),
    "ConfigMap": ("data",),
    "Namespace": (),
    "Pod": (),
}
"""The kept fields of kinds that contain more than the controller reads; for other kinds, spec and status."""


async def collect(api: KubeApi, settings: Settings, *, step: Step) -> dict[str, str]:
    """Return the files of a bundle: name → content, masked.

    Raises:
        KubeError: The API server is unreachable.
    """
    clock = MonotonicClock()
    seen = await look(api, settings, keep=True, plugins=True, step=step)
    mask = _mask(settings, seen)
    step("checking")
    checks, _ = await examine_api(api, settings, account="", step=step, clock=clock, seen=seen)
    events = await _events(api)
    documents: dict[str, Any] = {
        "about.json": {"version": __version__, "python": platform.python_version(), "taken": clock.now().isoformat()},
        "settings.json": settings.model_dump(mode="json"),
        "status.json": status_document(seen),
        "doctor.json": doctor_document([*checks, *checks_of_gateways(seen)]),
        "problems.json": _problems(seen),
        "events.json": events,
        **{f"records/{each.name}.json": _records(each, seen.inventory.world.desired) for each in seen.gateways},
    }
    step("masking")
    files = {name: _json(mask.document(document)) for name, document in documents.items()}
    logs = LOGS.format(own_namespace(settings.kubernetes, api))
    files["README.txt"] = README.format(version=__version__, logs=logs)
    manifests = _manifests(seen, mask)
    return files | {name: _yaml(mask.document(items)) for name, items in manifests.items()}


def check_target(path: Path) -> None:
    """Check whether an archive can be written before reading anything; an existing file stays unchanged.

    Raises:
        IngressError: It cannot be written, or its name is that of another format.
    """
    if path.suffix not in ("", ".zip"):
        raise IngressError(f"{path}: the archive is a ZIP file: choose a name that ends with .zip")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        descriptor, draft = _temporary_file(path)
        os.close(descriptor)
        draft.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def write_bundle(path: Path, files: Mapping[str, str], *, force: bool = False) -> None:
    """Write an archive that only its owner may read; equal files give equal bytes.

    The file is complete or does not exist: it is first written next to its final path. Without `force` nothing is
    overwritten, not even a file created in the meantime.

    Raises:
        IngressError: It cannot be written.
    """
    try:
        descriptor, draft = _temporary_file(path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                _write(file, files)
            if force:
                draft.replace(path)
            else:
                path.hardlink_to(draft)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def _temporary_file(path: Path) -> tuple[int, Path]:
    """Return a new file in the folder of another one, open, with mode 0600, and its name."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    return descriptor, Path(name)


def _write(file: IO[bytes], files: Mapping[str, str]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, files[name])


def _unwritable(path: Path, error: OSError) -> IngressError:
    return IngressError(f"{path}: cannot be written: {error.strerror}")


def _mask(settings: Settings, seen: ClusterState) -> Mask:
    """Return the masking of every known secret."""
    secrets: Iterable[Secret] = seen.inventory.world.stores["Secret"].values()
    keys = [address.key for address in seen.inventory.moved.values()]
    for cluster in settings.clusters:
        try:
            keys.append(cluster.read_admin_key().get_secret_value())
        except IngressError:
            continue
    return Mask(secrets, keys)


def _manifests(seen: ClusterState, mask: Mask) -> dict[str, list[JsonObject]]:
    """Return one file per kind with its objects, sorted by key."""
    files: dict[str, list[JsonObject]] = {}
    for key, raw in sorted(seen.inventory.raw.items()):
        item = metadata_map(raw, mask) if key.kind == "ConfigMap" else raw
        files.setdefault(f"objects/{key.kind}.yaml", []).append(_manifest(key, item))
    return files


def metadata_map(raw: JsonObject, mask: Mask) -> JsonObject:
    """Return the ConfigMap of plugin metadata with the one key that is read, its YAML masked by field."""
    text = (raw.get("data") or {}).get(DATA_KEY)
    if not isinstance(text, str):
        return {**raw, "data": {}}
    try:
        found = [plain(each) for each in read_yaml(text.encode("utf-8", "replace"), deepest=DEEPEST)]
        shown = "".join(_yaml([mask.document(each)]) for each in found)
    except ValueError:
        shown = REDACTED
    return {**raw, "data": {DATA_KEY: shown}}


def _manifest(key: ObjectKey, raw: JsonObject) -> JsonObject:
    """Return an object with the parts that the controller reads or writes."""
    if key.kind == "Secret":
        return masked_secret(raw)
    meta = raw.get("metadata") or {}
    shown = {name: meta[name] for name in _META if name in meta}
    annotations = {
        name: text for name, text in (meta.get("annotations") or {}).items() if name.startswith(_ANNOTATIONS)
    }
    if annotations:
        shown["annotations"] = annotations
    manifest = {"apiVersion": raw["apiVersion"], "kind": key.kind, "metadata": shown}
    manifest |= {name: raw[name] for name in _KEPT.get(key.kind, _WHOLE) if name in raw}
    if key.kind == "Pod":
        status = raw.get("status") or {}
        manifest["status"] = {name: status[name] for name in ("phase", "podIP", "podIPs") if name in status}
    return manifest


def _problems(seen: ClusterState) -> list[JsonObject]:
    """Return the problems of objects according to the translation here."""
    return [
        {"object": str(owner), "code": each.code, "severity": each.severity, "path": each.path, "message": each.message}
        for owner, report in sorted(seen.inventory.world.reports.items())
        for each in report.problems
    ]


def _records(gateway: SeenGateway, desired: Desired) -> JsonObject:
    found = gateway.snapshot.bodies if gateway.snapshot else {}
    bodies = {key: _shown(body, key, gateway, desired) for key, body in found.items()}
    about = {"url": gateway.url, "version": gateway.version, "trouble": gateway.trouble}
    counts = asdict(gateway.counts()) if gateway.taken_over else None
    return {**about, "counts": counts, "records": {str(key): bodies[key] for key in sorted(bodies)}}


def _shown(body: FrozenJson, key: RecordKey, gateway: SeenGateway, desired: Desired) -> FrozenJson:
    """Return a record without the values of plugins that are not up to date.

    They may contain earlier values of a Secret, which cannot be recognized.
    """
    wanted, plugins = desired.get(key, gateway.name), body.get("plugins")
    is_ours = wanted is not None or gateway.listing is None or key in gateway.listing.owned
    is_current = wanted is not None and gateway.record_state(key) is APPLIED
    if not is_ours or is_current or not isinstance(plugins, dict):
        return body
    current = wanted.body.get("plugins") or {} if wanted else {}
    shown = {name: config if config == current.get(name) else blank(config) for name, config in plugins.items()}
    return {**body, "plugins": shown}


async def _events(api: KubeApi) -> list[JsonObject]:
    """Return the Events about served objects and Ingresses; empty without permission to read them."""
    kinds = {kind for kind, resource in RESOURCES.items() if resource.status}
    found = []
    try:
        async for raw in listed(api, EVENTS):
            about = raw.get("involvedObject") or {}
            if about.get("kind") in kinds:
                found.append(_event(raw, about))
    except KubeError as error:
        return [{"unread": str(error)}]
    return sorted(found, key=lambda event: (event["object"], event["last"], event["message"]))


def _event(raw: JsonObject, about: JsonObject) -> JsonObject:
    key = ObjectKey(str(about.get("kind")), str(about.get("namespace") or ""), str(about.get("name")))
    moment = raw.get("lastTimestamp") or raw.get("eventTime") or ""
    return {
        "object": str(key),
        "type": str(raw.get("type") or ""),
        "reason": str(raw.get("reason") or ""),
        "message": str(raw.get("message") or ""),
        "count": raw.get("count") or 1,
        "last": str(moment),
    }


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _yaml(items: list[JsonObject]) -> str:
    return str(yaml.safe_dump_all(items, sort_keys=False, explicit_start=True, allow_unicode=True, width=120))

"""Ingresses with the annotations of this controller for a host: one for each action, and its plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import JsonObject
from translation.nginx.native.merging import Merged, merged
from translation.nginx.native.model import Effect, HostPlan, Note, Written
from translation.nginx.native.objects.apisix_route import plugin_list
from translation.nginx.native.objects.names import manifest, object_name
from translation.nginx.native.objects.tls import SELF_SIGNED, apisix_tls
from translation.nginx.native.objects.upstreams import Upstreams
from translation.nginx.native.paths import Path, joined_paths

NO_SERVICE = "none of the Services of the host exists, and the object needs one; create it, or use --to apisixroute"
_LEFT_OUT = "; the whole host is skipped, because a less specific path would receive these requests"
_PREFIX = "k8s.apisix.apache.org/"
_EVERYTHING = "^/"
_CHOICE = TextPattern(r"(?:^|[^\\])\|")


def write_ingresses(plan: HostPlan, upstreams: Upstreams, ingress_class: str) -> Written:
    """Return the Ingresses and ApisixPluginConfigs of a host, and its ApisixTls for client certificates."""
    writer = _Writer(plan, upstreams, ingress_class)
    for path in joined_paths(plan.places, merged):
        writer.add(path)
    if missing := whole_host_missing(writer.notes):
        return missing
    asking = any(each.client for each in plan.certificates)
    certificates = apisix_tls(plan, ingress_class) if asking else Written((), ())
    objects = tuple(writer.objects(with_tls=not asking))
    return Written((*objects, *certificates.objects), (*writer.notes, *plan.long_paths, *certificates.notes))


def whole_host_missing(notes: Iterable[Note]) -> Written | None:
    """Return only notes if a path cannot be written: a less specific path of the host would receive its requests."""
    missing = [replace(each, reason=f"{each.reason}{_LEFT_OUT}") for each in notes if each.effect == "not written"]
    return Written((), tuple(missing)) if missing else None


@dataclass(slots=True)
class _Group:
    """Paths with one action: an Ingress.

    Attributes:
        regex: Whether the paths are regular expressions.
    """

    namespace: str
    action: Merged
    regex: bool
    hosts: tuple[str, ...]
    paths: list[JsonObject] = field(default_factory=list)


@dataclass(slots=True)
class _Writer:
    plan: HostPlan
    upstreams: Upstreams
    ingress_class: str
    notes: dict[Note, None] = field(default_factory=dict)
    _groups: list[_Group] = field(default_factory=list)

    def add(self, path: Path) -> None:
        """Add a path."""
        place, action = path.place, path.action
        if not action.closed and action.shares:
            why, different = self.upstreams.add((action.main or action.shares[0],), action.timeout)
            action = action.as_closed(why) if why else action
            self._note(path, "differs", *different)
        pattern = _pattern(path)
        if pattern is None:
            self._note(path, "not written", "an Ingress cannot express this regular expression; use --to apisixroute")
            return
        if action.closed:
            self._note(path, "closed", action.closed)
        self._note(path, "differs", *action.differs)
        if action.cases or action.shares not in ((), (action.main,)):
            self._note(
                path,
                "differs",
                "the canary gets no requests: an Ingress has one backend per path; use --to apisixroute",
            )
        if pattern["pathType"] == "ImplementationSpecific" and place.kind == "Pattern":
            self._note(
                path, "differs", "if a request matches several patterns, any of them may apply; use --to apisixroute"
            )
        backend = self._backend(path, action)
        if backend is None:
            self._note(path, "not written", NO_SERVICE)
        else:
            self._group(path, action).paths.append(pattern | {"backend": backend})

    def objects(self, *, with_tls: bool) -> Iterator[JsonObject]:
        """Yield the objects."""
        for number, group in enumerate(self._groups, 1):
            name = f"{object_name(self.plan.host)}-{number}"
            plugins = plugin_list(group.action.plugins)
            if plugins:
                spec = {"ingressClassName": self.ingress_class, "plugins": plugins}
                yield manifest("ApisixPluginConfig", group.namespace, name, spec)
            yield self._ingress(group, name, with_tls=with_tls, plugins=bool(plugins))
        if with_tls and any(each.secret is None for each in self.plan.certificates):
            self.notes[Note(self.plan.host, "", "differs", SELF_SIGNED)] = None

    def _backend(self, path: Path, action: Merged) -> JsonObject | None:
        """Return a backend; an Ingress requires one even if plugins respond."""
        share = action.main or self.plan.any_backend(path.place)
        if share is None:
            return None
        return {"service": {"name": share.claim.target.name, "port": {"number": share.claim.port}}}

    def _ingress(self, group: _Group, name: str, *, with_tls: bool, plugins: bool) -> JsonObject:
        annotations = {}
        if plugins:
            annotations[f"{_PREFIX}plugin-config-name"] = name
        if group.action.shares:
            annotations[f"{_PREFIX}enable-websocket"] = "true"
        if group.regex:
            annotations[f"{_PREFIX}use-regex"] = "true"
        rules = [{**({"host": host} if host else {}), "http": {"paths": group.paths}} for host in group.hosts or ("",)]
        spec: JsonObject = {"ingressClassName": self.ingress_class, "rules": rules}
        tls = [
            {"hosts": list(each.names), "secretName": each.secret.name}
            for each in self.plan.certificates
            if with_tls and each.secret and each.secret.namespace == group.namespace
        ]
        return manifest("Ingress", group.namespace, name, spec | ({"tls": tls} if tls else {}), annotations=annotations)

    def _note(self, path: Path, effect: Effect, *reasons: str) -> None:
        for reason in reasons:
            self.notes[Note(self.plan.host, path.place.path, effect, reason)] = None

    def _group(self, path: Path, action: Merged) -> _Group:
        place = path.place
        namespace = place.namespace
        wanted = (namespace, action.plugins, place.kind == "Pattern", place.hosts)
        for group in self._groups:
            if (group.namespace, group.action.plugins, group.regex, group.hosts) == wanted:
                return group
        self._groups.append(_Group(namespace, action, place.kind == "Pattern", place.hosts))
        return self._groups[-1]


def _pattern(path: Path) -> JsonObject | None:
    """Return path and type; None for a regular expression that an Ingress cannot have."""
    place = path.place
    if place.kind == "Exact":
        return {"path": place.uris[0], "pathType": "Exact"}
    if place.kind == "Prefix":
        if path.joined:
            return {"path": path.stem, "pathType": "Prefix"}
        return {"path": place.uris[0], "pathType": "ImplementationSpecific"}
    assert place.pattern is not None
    _, operator, text = place.pattern
    rest = str(text).removeprefix(_EVERYTHING)
    if len(rest) == len(str(text)) or _CHOICE.found(rest):
        return None
    # The path of an Ingress begins with a slash: a look-behind makes it the first character of the request's path.
    flags = "i" if operator == "~*" else ""
    return {"path": f"/(?<=^/)(?{flags}:{rest})", "pathType": "ImplementationSpecific"}

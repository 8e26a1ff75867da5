"""The listeners of a Gateway: its own and those of the ListenerSets attached to it, with their conflicts.

Listeners that share a port differ by hostname, so two with one hostname, or with protocols that cannot share a port,
conflict. If listeners of one object conflict, none is accepted (Gateway API: "Handling indistinct Listeners"). Across
objects, the Gateway's own listeners take precedence over those of ListenerSets, and older sets over newer ones.

A listener of a ListenerSet that may not use its hostname does not conflict with others and takes no requests from them:
they may belong to other teams. Those of the Gateway and of its namespace do, since everything attached depends on it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from apisix_ingress.model.assessment import ListenerKey
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import BY_PARENT
from apisix_ingress.model.network.host_claims import claimed_port
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError
from crds.gateway.common import GATEWAY_GROUP
from crds.gateway.gateways import AllowedRoutes, GatewaySpec, ListenerSetSpec, ListenerSpec, ListenerTls
from translation.core.options import Options
from translation.gateway.capabilities import PASSTHROUGH, can
from translation.gateway.entry.owned import allows_namespace, parent_of
from translation.gateway.hostnames import covers
from translation.gateway.ownership import GatewayHosts
from translation.gateway.parsing import spec_of
from translation.hosts.host_owners import HostOwners

KINDS_BY_PROTOCOL = {
    "HTTP": ("HTTPRoute", "GRPCRoute"),
    "HTTPS": ("HTTPRoute", "GRPCRoute"),
    "TLS": ("TLSRoute",),
    "TCP": ("TCPRoute",),
    "UDP": ("UDPRoute",),
}
"""Protocol → the kinds of routes that its listeners support."""

_SECURE = frozenset({"HTTPS", "TLS"})


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener.

    Attributes:
        gateway: The Gateway that it belongs to.
        owner: The Gateway or ListenerSet that defines it.
        name: Its name there.
        port: Its port.
        protocol: As written.
        hostname: In lower case; empty for every host.
        tls: Its TLS settings, or None.
        routes: The routes that it allows.
        conflict: Reason of a conflict with another listener, or empty.
        passes_tls: Whether gateways have TLS passthrough.
    """

    gateway: ObjectKey
    owner: ObjectKey
    name: str
    port: int
    protocol: str
    hostname: str = ""
    tls: ListenerTls | None = None
    routes: AllowedRoutes = field(default_factory=AllowedRoutes)
    conflict: str = ""
    passes_tls: bool = False

    @property
    def key(self) -> ListenerKey:
        """The key under which its routes are counted."""
        return ListenerKey(self.owner, self.name)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of routes that it accepts."""
        supported = KINDS_BY_PROTOCOL.get(self.protocol, ())
        if not self.routes.kinds:
            return supported
        asked = {each.kind for each in self.routes.kinds if each.group == GATEWAY_GROUP}
        return tuple(kind for kind in supported if kind in asked)

    @property
    def has_other_kinds(self) -> bool:
        """Whether it lists kinds that its protocol does not support."""
        supported = KINDS_BY_PROTOCOL.get(self.protocol, ())
        return any(each.group != GATEWAY_GROUP or each.kind not in supported for each in self.routes.kinds)

    @property
    def is_passthrough(self) -> bool:
        """Whether the backend terminates TLS."""
        return self.protocol == "TLS" and self.tls is not None and self.tls.mode == "Passthrough"

    @property
    def refusal(self) -> tuple[str, str]:
        """Reason and message why it is not accepted, apart from its hostname and its references, or empty strings."""
        if self.conflict:
            return self.conflict, f"conflicts with another listener on port {self.port}; use another port or hostname"
        if self.protocol not in KINDS_BY_PROTOCOL:
            known = ", ".join(KINDS_BY_PROTOCOL)
            return "UnsupportedProtocol", f"protocol {self.protocol} is not supported; use one of {known}"
        if self.is_passthrough and not self.passes_tls:
            return "UnsupportedValue", "TLS passthrough needs APISIX 3.19 or later; set tls.mode to Terminate"
        return "", ""

    @property
    def is_open(self) -> bool:
        """Whether routes may attach to it; their hosts are checked one by one."""
        return not self.refusal[0]


@dataclass(frozen=True, slots=True)
class Entry:
    """A Gateway with its spec, its listeners and the attached ListenerSets.

    Attributes:
        gateway: The Gateway.
        spec: Its spec.
        listeners: Its listeners, and those of the sets.
        sets: The attached ListenerSets.
        hosts: The hosts that the listeners and their routes may use.
        options: The settings.
    """

    gateway: CustomObject
    spec: GatewaySpec
    listeners: tuple[Listener, ...]
    sets: tuple[CustomObject, ...]
    hosts: GatewayHosts
    options: Options

    def refusal(self, listener: Listener) -> tuple[str, str]:
        """Return reason and message why a listener is not accepted, apart from its references, or empty strings."""
        why = "" if listener.refusal[0] else _refusal(listener, self.hosts, self.options)
        return ("UnsupportedValue", why) if why else listener.refusal

    def narrower(self, listener: Listener) -> list[str]:
        """Return the hostnames of listeners of the same port that are more specific, and take its requests."""
        return [each.hostname for each in self._narrower(listener) if self._takes_requests(each)]

    def is_taken(self, listener: Listener, host: str) -> bool:
        """Return whether a listener that is more specific takes the requests for a host of a listener."""
        found = (each for each in self._narrower(listener) if covers(each.hostname, host))
        return any(self._takes_requests(each) for each in found)

    def _narrower(self, listener: Listener) -> Iterator[Listener]:
        return (
            each
            for each in self.listeners
            if each.port == listener.port and each.is_open and each.hostname != listener.hostname
            if each.protocol != "UDP" and covers(listener.hostname, each.hostname)
        )

    def _takes_requests(self, listener: Listener) -> bool:
        return not _is_foreign(listener, self.hosts, self.options)


@dataclass(frozen=True, slots=True)
class _Read:
    """The listeners that a Gateway and its sets define.

    Attributes:
        gateway: The Gateway.
        sets: The attached ListenerSets.
        listeners: The listeners, before conflicts.
        contested: The positions of listeners that would conflict with another one.
        has_passthrough: Whether what is accepted depends on the version of the gateways.
    """

    gateway: CustomObject
    sets: tuple[CustomObject, ...]
    listeners: tuple[Listener, ...]
    contested: frozenset[int]
    has_passthrough: bool


_KEPT = 64

_read_gateways: OrderedDict[int, _Read] = OrderedDict()
"""By identity of the Gateway: thousands of routes look one up, and it may have dozens of listeners."""


def entry_of(gateway: CustomObject, view: View, options: Options, owners: HostOwners | None = None) -> Entry:
    """Return a Gateway with its listeners.

    Args:
        gateway: The Gateway.
        view: The objects to read.
        options: The settings.
        owners: The owners of hosts, if the caller has read them.

    Raises:
        SpecError: The spec of the Gateway cannot be read.
    """
    spec = spec_of(gateway, GatewaySpec)
    sets = tuple(each for each in _claiming(gateway.meta.key, view) if _may_attach(gateway, spec, each, view))
    read = _read_gateways.get(id(gateway))
    if read is None or read.gateway is not gateway or list(map(id, read.sets)) != list(map(id, sets)):
        read = _read_gateways[id(gateway)] = _read(gateway, spec, sets)
        if len(_read_gateways) > _KEPT:
            _read_gateways.popitem(last=False)
    listeners = read.listeners
    if read.has_passthrough and can(view, PASSTHROUGH):
        listeners = tuple(replace(each, passes_tls=True) for each in listeners)
    hosts = GatewayHosts(view, owners or HostOwners(view, options))
    if read.contested:
        refused = frozenset(
            at for at in read.contested if not listeners[at].is_open or _is_foreign(listeners[at], hosts, options)
        )
        listeners = _with_conflicts(listeners, refused)
    return Entry(gateway, spec, listeners, sets, hosts, options)


def gateway_port(listener: Listener, options: Options) -> int:
    """Return the port at which gateways receive the connections of a TCP or UDP listener."""
    return options.listener_ports.get(listener.port, listener.port)


def _claiming(gateway: ObjectKey, view: View) -> Sequence[CustomObject]:
    index = IndexKey("ListenerSet", BY_PARENT, f"{gateway.namespace}/{gateway.name}")
    found = (each for each in view.find(CustomObject, index) if parent_of(each) == gateway)
    return sorted(found, key=lambda each: each.meta.age)


def _may_attach(gateway: CustomObject, spec: GatewaySpec, listener_set: CustomObject, view: View) -> bool:
    allowed = spec.allowed_listeners.namespaces
    return allows_namespace(allowed, gateway.meta.namespace, listener_set.meta.namespace, view)


def _of_set(gateway: ObjectKey, listener_set: CustomObject) -> Iterable[Listener]:
    try:
        spec = spec_of(listener_set, ListenerSetSpec)
    except SpecError:
        return ()
    return (_listener(gateway, listener_set.meta.key, each) for each in spec.listeners)


def _listener(gateway: ObjectKey, owner: ObjectKey, spec: ListenerSpec) -> Listener:
    return Listener(
        gateway=gateway,
        owner=owner,
        name=spec.name,
        port=spec.port,
        protocol=spec.protocol,
        hostname=spec.hostname.lower(),
        tls=spec.tls,
        routes=spec.allowed_routes,
    )


def _refusal(listener: Listener, hosts: GatewayHosts, options: Options) -> str:
    """Return why a listener may not use its hostname or port; empty if it may."""
    if listener.protocol in ("TCP", "UDP"):
        return hosts.refusal(listener.owner, claimed_port(gateway_port(listener, options)))
    if not listener.hostname and listener.protocol == "HTTP":
        return ""  # it has no records, and the hosts of routes are checked one by one
    return hosts.refusal(listener.owner, listener.hostname)


def _is_foreign(listener: Listener, hosts: GatewayHosts, options: Options) -> bool:
    """Return whether a listener of another namespace than its Gateway may not use its hostname or port."""
    return listener.owner.namespace != listener.gateway.namespace and bool(_refusal(listener, hosts, options))


def _read(gateway: CustomObject, spec: GatewaySpec, sets: tuple[CustomObject, ...]) -> _Read:
    found = [_listener(gateway.meta.key, gateway.meta.key, each) for each in spec.listeners]
    for each in sets:
        found += _of_set(gateway.meta.key, each)
    contested = frozenset(_contested(found))
    return _Read(gateway, sets, tuple(found), contested, any(each.is_passthrough for each in found))


def _contested(found: Sequence[Listener]) -> Iterator[int]:
    """Yield the positions of listeners that would conflict with another one."""
    places = Counter(map(_place, found))
    families = Counter((_place(each), _family(each)) for each in found)
    equals = Counter((_place(each), _name(each)) for each in found)
    for at, each in enumerate(found):
        place = _place(each)
        if families[place, _family(each)] < places[place] or equals[place, _name(each)] > 1:
            yield at


def _with_conflicts(found: Sequence[Listener], refused: frozenset[int]) -> tuple[Listener, ...]:
    """Return listeners with their conflicts; those at refused positions have none."""
    taken: dict[tuple[int, bool], _Taken] = {}
    result = dict(enumerate(found))
    rivals = [(at, each) for at, each in result.items() if at not in refused]
    for _, group in groupby(rivals, key=lambda item: item[1].owner):
        beaten = [(at, replace(each, conflict=_conflict(each, taken.get(_place(each))))) for at, each in group]
        # Listeners that lose to another object no longer conflict with their siblings.
        left = _by_place(each for _, each in beaten if not each.conflict)
        for at, each in beaten:
            result[at] = replace(each, conflict=each.conflict or left[_place(each)].conflict_of_member(each))
        for at, _ in beaten:
            if not result[at].conflict:
                taken.setdefault(_place(result[at]), _Taken()).add(result[at])
    return tuple(result.values())


class _Taken:
    """The listeners of one port, counted so that a conflict with any of them is found in one step."""

    def __init__(self) -> None:
        self._families: Counter[str] = Counter()
        self._names: Counter[str | None] = Counter()

    def add(self, listener: Listener) -> None:
        """Add a listener."""
        self._families[_family(listener)] += 1
        self._names[_name(listener)] += 1

    def conflict(self, listener: Listener, own: int = 0) -> str:
        """Return the reason of a conflict with another listener than `own` equal ones, or an empty string."""
        if self._families.total() > self._families[_family(listener)]:
            return "ProtocolConflict"
        return "HostnameConflict" if self._names[_name(listener)] > own else ""

    def conflict_of_member(self, listener: Listener) -> str:
        """Return the reason of a conflict of a listener that was added."""
        return self.conflict(listener, own=1)


def _conflict(listener: Listener, taken: _Taken | None) -> str:
    return taken.conflict(listener) if taken else ""


def _by_place(listeners: Iterable[Listener]) -> Mapping[tuple[int, bool], _Taken]:
    found: dict[tuple[int, bool], _Taken] = defaultdict(_Taken)
    for each in listeners:
        found[_place(each)].add(each)
    return found


def _place(listener: Listener) -> tuple[int, bool]:
    return listener.port, listener.protocol == "UDP"


def _family(listener: Listener) -> str:
    """Return what listeners of one port must have in common: HTTPS and TLS may share one."""
    return "secure" if listener.protocol in _SECURE else listener.protocol


def _name(listener: Listener) -> str | None:
    """Return what is unique among the listeners of one port; TCP and UDP have no names."""
    return None if listener.protocol in ("TCP", "UDP") else listener.hostname

"""The configuration: its shape, its defaults with their units, and what makes one valid.

Four layers, the later over the earlier: defaults, the YAML file, the environment, flags. Items of a list are
reached by index: ``APISIX_INGRESS_CLUSTERS__0__ADMIN_KEY`` sets one field of the first cluster and leaves the
others. Nothing here opens a connection, and nowhere else is the environment read for a setting.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    SecretStr,
    ValidationError,
    model_validator,
)

from apisix_ingress.errors import ConfigError
from apisix_ingress.model.address import is_ip
from apisix_ingress.model.adminapi import HEADER_VALUE, PUBLISHED_KEY, PUBLISHED_KEYS, check_admin_url
from apisix_ingress.model.duration import parse_duration
from apisix_ingress.model.selector import Selector, parse_selector
from apisix_ingress.settings.errors import explain
from apisix_ingress.settings.layers import merge, read_environment, read_file, read_overrides

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_PUBLISH_SERVICE = re.compile(r"([a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9-]*)?")
_CONFIG_MAP = re.compile(r"([a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9.-]*)?")
# client-go's JitterFactor: a renewal is tried every retry_period, stretched by up to this factor.
_RETRY_JITTER = 1.2

MULTI_TENANT = "multi-tenant"
PRESETS: Mapping[str, Mapping[str, str]] = {
    "": {},
    MULTI_TENANT: {
        "cross_namespace": "grant",
        "code_plugins": "refuse",
        "secret_references": "refuse",
        "external_addresses": "refuse-internal",
    },
}
"""Preset → what it makes the defaults of the section `kubernetes`."""


def split_address(text: str) -> tuple[str, int]:
    """Split ``host:port``, ``[::1]:port`` or ``:port`` (every interface; the host is then empty).

    Raises:
        ValueError: it is none of these, or the port is none.
    """
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535 or (":" in host and not bracketed):
        raise ValueError(f"{text!r} is no address; write host:port, e.g. 0.0.0.0:8080 or [::]:8080")
    return host[1:-1] if bracketed else host, int(port)


def _check_address(text: str) -> str:
    split_address(text)
    return text


def _check_name(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise ValueError(f"{text!r} is no name; use at most 63 of a-z, 0-9 and '-', as in DNS")
    return text


def _check_subdomain(text: str) -> str:
    if not _SUBDOMAIN.fullmatch(text):
        raise ValueError(f"{text!r} is no object name; use a-z, 0-9, '-' and '.', as in DNS")
    return text


def _check_publish_service(text: str) -> str:
    if not _PUBLISH_SERVICE.fullmatch(text):
        raise ValueError(f"{text!r} names no Service; write namespace/name")
    return text


def _check_config_map(text: str) -> str:
    if not _CONFIG_MAP.fullmatch(text):
        raise ValueError(f"{text!r} names no ConfigMap; write namespace/name")
    return text


def _check_selector(text: str) -> str:
    parse_selector(text)
    return text


def _check_published(address: str) -> str:
    """Check an address as the API server does, which would refuse the status of every Ingress."""
    if not is_ip(address) and not _SUBDOMAIN.fullmatch(address):
        raise ValueError(f"{address!r} is neither an IP address nor a host name")
    return address


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _split_commas(value: object) -> object:
    """Let one text, as it comes from the environment or a flag, stand for a list."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _check_preset(name: str) -> str:
    if name not in ("", MULTI_TENANT):
        raise ValueError(f"must be {MULTI_TENANT} or empty")
    return name


Duration = Annotated[float, BeforeValidator(parse_duration)]
PositiveDuration = Annotated[float, BeforeValidator(parse_duration), Field(gt=0)]
Address = Annotated[str, AfterValidator(_check_address)]
Name = Annotated[str, AfterValidator(_check_name)]
ObjectName = Annotated[str, AfterValidator(_check_subdomain)]
AdminUrl = Annotated[str, AfterValidator(check_admin_url)]
PublishedAddress = Annotated[str, AfterValidator(_check_published)]


class _Section(BaseModel):
    """What all sections share: frozen, and a key nobody knows is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LogSettings(_Section):
    """What is logged, and how it looks."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe events that are logged."""
    format: Literal["auto", "console", "json"] = "auto"
    """auto: console on a terminal, JSON otherwise."""


class HttpSettings(_Section):
    """The server of /healthz, /readyz, /metrics and /status."""

    listen: Address = "0.0.0.0:8080"
    """Address, host:port."""
    status_page: Literal["local", "everyone", "none"] = "local"
    """Who is served the status page: local: who comes over loopback, as `kubectl port-forward` does."""


class WebhookSettings(_Section):
    """The admission webhook: it looks at objects before they are stored."""

    enabled: bool = False
    """Whether it is served."""
    listen: Address = "0.0.0.0:8443"
    """Address, host:port; always TLS."""
    cert_file: str = ""
    """PEM certificate chain, read again when it changes."""
    key_file: str = ""
    """PEM private key, read again when it changes."""

    @model_validator(mode="after")
    def _has_its_pair(self) -> Self:
        if self.enabled and not (self.cert_file and self.key_file):
            raise ValueError("the webhook needs both cert_file and key_file: API servers speak TLS only")
        return self


class ElectionSettings(_Section):
    """Leader election on a Lease. Without it, this process takes itself for the only one."""

    enabled: bool = True
    """Whether to elect; off only for a single replica."""
    name: ObjectName = "apisix-ingress-leader"
    """Name of the Lease."""
    namespace: str = ""
    """Namespace of the Lease; empty: the one this process runs in."""
    lease_duration: PositiveDuration = 15.0
    """Seconds a follower waits after the last renewal it saw before it takes over."""
    renew_deadline: PositiveDuration = 10.0
    """Seconds the leader goes on trying to renew before it gives up."""
    retry_period: PositiveDuration = 2.0
    """Seconds between two tries."""

    @model_validator(mode="after")
    def _keeps_order(self) -> Self:
        if self.lease_duration <= self.renew_deadline:
            raise ValueError(
                f"lease_duration ({self.lease_duration:g}s) must be longer than renew_deadline "
                f"({self.renew_deadline:g}s)"
            )
        if self.renew_deadline <= self.retry_period * _RETRY_JITTER:
            raise ValueError(
                f"renew_deadline ({self.renew_deadline:g}s) must be longer than {_RETRY_JITTER} times "
                f"retry_period ({self.retry_period:g}s)"
            )
        return self


class StatusSettings(_Section):
    """What is written to the status of objects."""

    enabled: bool = True
    """Whether status is written at all."""
    publish_service: Annotated[str, AfterValidator(_check_publish_service)] = ""
    """namespace/name of the Service whose load balancer addresses are published."""
    addresses: Annotated[tuple[PublishedAddress, ...], BeforeValidator(_split_commas)] = ()
    """Fixed IP addresses and host names to publish; with some, publish_service does not count."""


class KubernetesSettings(_Section):
    """The API server, and which of its objects are ours."""

    kubeconfig: str = ""
    """Path; empty: the credentials of the Pod, else $KUBECONFIG, else ~/.kube/config."""
    namespace_selector: Annotated[str, AfterValidator(_check_selector)] = ""
    """Label selector of the namespaces that are served, evaluated live; empty: all."""
    watch_namespaces: Annotated[tuple[Name, ...], BeforeValidator(_split_commas), AfterValidator(_unique)] = ()
    """The namespaces that are read at all, so that rights in these suffice; empty: every one."""
    ingress_class: ObjectName = "apisix-and-all"
    """apisix-and-all: Ingress of class apisix and every custom resource; otherwise that class only."""
    ingress_class_controller: str = "apisix.apache.org/apisix-ingress-controller"
    """An IngressClass whose spec.controller is this is ours, whatever its name."""
    controller_name: Name = "apisix-ingress"
    """Written to each record; two controllers of different names never touch each other's records."""
    endpoint_source: Literal["endpointslices", "endpoints"] = "endpointslices"
    """Which kind says where the Pods of a Service are."""
    cross_namespace: Literal["allow", "grant"] = "allow"
    """Whether an object may refer to another namespace freely or only with a ReferenceGrant."""
    code_plugins: Literal["allow", "refuse"] = "allow"
    """Whether objects may have plugins and fields that run code in the gateway or open its control API."""
    secret_references: Literal["allow", "refuse"] = "allow"
    """Whether objects may have the gateway fill in its environment ($env://) or its secret stores ($secret://)."""
    external_addresses: Literal["allow", "refuse-internal"] = "allow"
    """Whether objects may name addresses of the gateway itself, link-local ones and those of Admin APIs as nodes."""
    plugin_metadata: Annotated[str, AfterValidator(_check_config_map)] = ""
    """namespace/name of the ConfigMap with plugin metadata; empty: none is read."""
    election: ElectionSettings = ElectionSettings()
    status: StatusSettings = StatusSettings()

    @model_validator(mode="after")
    def _reads_what_it_publishes(self) -> Self:
        namespace = self.status.publish_service.partition("/")[0]
        if namespace and self.watch_namespaces and namespace not in self.watch_namespaces:
            raise ValueError(
                f"status.publish_service is in namespace {namespace}, which is not read: add it to watch_namespaces"
            )
        return self

    @property
    def selector(self) -> Selector:
        """`namespace_selector`, parsed."""
        return parse_selector(self.namespace_selector)


class TlsSettings(_Section):
    """TLS towards one gateway cluster; of use with an https URL only."""

    ca_file: str = ""
    """PEM certificates to trust; empty: those of the system."""
    cert_file: str = ""
    """PEM client certificate, read again when it changes."""
    key_file: str = ""
    """PEM private key of the client certificate."""
    verify: bool = True
    """Whether the gateway's certificate is checked."""

    @model_validator(mode="after")
    def _has_whole_pair(self) -> Self:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("cert_file and key_file belong together: give both or neither")
        return self


class SyncSettings(_Section):
    """How records are written to one gateway cluster."""

    concurrency: PositiveInt = 16
    """Requests in flight at once."""
    timeout: PositiveDuration = 5.0
    """Seconds for one request; with election at most lease_duration - renew_deadline."""
    audit_interval: PositiveDuration = 60.0
    """Seconds between two full comparisons with what the gateway really holds."""


class ClusterSettings(_Section):
    """One group of gateways that share their records."""

    name: Name = "default"
    """Unique; appears in logs, metrics and conditions."""
    admin_url: AdminUrl = "http://127.0.0.1:9180/apisix/admin"
    """URL of the Admin API."""
    admin_key: SecretStr = SecretStr("")
    """Value of the X-API-KEY header; empty: none is sent."""
    admin_key_file: str = ""
    """File with the admin key, instead of admin_key; read again when the gateway refuses the key."""
    tls: TlsSettings = TlsSettings()
    sync: SyncSettings = SyncSettings()

    @model_validator(mode="after")
    def _has_one_usable_key(self) -> Self:
        if self.admin_key.get_secret_value() and self.admin_key_file:
            raise ValueError("admin_key and admin_key_file exclude each other: give one of them")
        if not HEADER_VALUE.fullmatch(self.admin_key.get_secret_value()):
            raise ValueError("admin_key holds a space, line break or other character no HTTP header takes")
        return self

    def read_admin_key(self) -> SecretStr:
        """Return the admin key as it is now, from the file if one is named.

        Raises:
            ConfigError: the file can't be read, is empty or holds what no HTTP header takes.
        """
        if not self.admin_key_file:
            return self.admin_key
        where = f"cluster {self.name}: admin_key_file {self.admin_key_file}"
        try:
            key = Path(self.admin_key_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise ConfigError(f"{where}: can't be read: {reason}") from None
        if not key or not HEADER_VALUE.fullmatch(key):
            raise ConfigError(f"{where}: must hold the admin key alone, on one line")
        return SecretStr(key)


class Settings(BaseModel):
    """The whole configuration. It reads nothing by itself: file, environment and flags come merged."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    preset: Annotated[str, AfterValidator(_check_preset)] = ""
    """multi-tenant: other defaults, for objects of people who don't trust each other; see `PRESETS`."""
    log: LogSettings = LogSettings()
    http: HttpSettings = HttpSettings()
    webhook: WebhookSettings = WebhookSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    clusters: tuple[ClusterSettings, ...] = (ClusterSettings(),)

    @model_validator(mode="before")
    @classmethod
    def _lay_over_preset(cls, values: object) -> object:
        """Put what is given over the defaults of the preset."""
        preset = PRESETS.get(str(values.get("preset"))) if isinstance(values, dict) else None
        given = values.get("kubernetes", {}) if isinstance(values, dict) else None
        if not preset or not isinstance(values, dict) or not isinstance(given, dict):
            return values
        return {**values, "kubernetes": {**preset, **given}}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = [*self._taken_names(), *self._slow_writes(), *self._published_keys()]
        if not self.clusters:
            problems.append("clusters: name at least one gateway cluster")
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _taken_names(self) -> list[str]:
        first: dict[str, int] = {}
        return [
            f"clusters[{index}].name: {cluster.name!r} is the name of clusters[{first[cluster.name]}] already; "
            "give each cluster its own"
            for index, cluster in enumerate(self.clusters)
            if first.setdefault(cluster.name, index) != index
        ]

    def _published_keys(self) -> list[str]:
        return [
            f"clusters[{index}].admin_key: {PUBLISHED_KEY} (preset: {self.preset})"
            for index, cluster in enumerate(self.clusters)
            if self.preset == MULTI_TENANT and cluster.admin_key.get_secret_value() in PUBLISHED_KEYS
        ]

    def _slow_writes(self) -> list[str]:
        """A write may be in flight for `timeout`; it must have ended when the lease can run out."""
        election = self.kubernetes.election
        spare = election.lease_duration - election.renew_deadline
        return [
            f"clusters[{index}].sync.timeout: {cluster.sync.timeout:g}s is longer than kubernetes.election's "
            f"lease_duration - renew_deadline ({spare:g}s): a write could outlive the lease"
            for index, cluster in enumerate(self.clusters)
            if election.enabled and cluster.sync.timeout > spare
        ]


def load_settings(
    path: Path | None = None,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Read and check the configuration.

    Args:
        path: the YAML file, None for none.
        overrides: flags, nested as in the file; None values are ignored, items of a list are keyed by index:
            ``{"clusters": {0: {"admin_url": url}}}``.
        environ: the environment, normally `os.environ`; None for none.

    Raises:
        ConfigError: one line per problem, each with the key's full path, the remedy and where the value comes
        from.
    """
    layers = [] if path is None else [read_file(path)]
    layers.append(read_environment(environ or {}, list(Settings.model_fields)))
    layers.append(read_overrides(overrides or {}))
    try:
        return Settings(**merge(layers))  # raw values; pydantic checks them
    except ValidationError as error:
        raise ConfigError("\n".join(explain(error, Settings, layers))) from None

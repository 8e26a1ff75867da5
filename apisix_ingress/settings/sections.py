"""The sections of the configuration: every setting with its default, its unit and what goes with what.

What a value may look like is known to `fields`; what sections ask of each other to the whole, `Settings`.
"""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, PositiveInt, SecretStr, model_validator

from apisix_ingress.errors import ConfigError
from apisix_ingress.model.admin_address import HEADER_VALUE
from apisix_ingress.model.formats.selector import Selector, parse_selector
from apisix_ingress.model.names import ConsumerNames
from apisix_ingress.model.network.cluster_dns import DEFAULT_DOMAIN
from apisix_ingress.runtime.regular_files import read_regular
from apisix_ingress.settings.fields import (
    Address,
    AdminUrl,
    ConfigMapName,
    Domain,
    Duration,
    InternalAddressList,
    LabelSelector,
    Name,
    Names,
    ObjectName,
    PluginNames,
    PositiveDuration,
    PositiveSize,
    PublishedAddresses,
    ServiceName,
)

# client-go's JitterFactor, by which it stretches the time between two renewals: what suits it suits us, who try sooner.
_RETRY_JITTER = 1.2
# Bytes of the file of an admin key: no HTTP server takes a longer header.
_LONGEST_KEY = 8192


class _Section(BaseModel):
    """What all sections share: frozen, and a key nobody knows is an error."""

    # What checks a section is part of what checks the whole; on its own it is built for who makes one alone. Their
    # defaults are not checked either (`model_construct`), or it would be built for that.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


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
    client_ca_file: str = ""
    """PEM certificates of the CA that signed the API server's client certificate, read again when it changes; empty:
    everybody who reaches the port is answered."""

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
    publish_service: ServiceName = ""
    """namespace/name of the Service whose load balancer addresses are published."""
    addresses: PublishedAddresses = ()
    """Fixed IP addresses and host names to publish; with some, publish_service does not count."""


class KubernetesSettings(_Section):
    """The API server, and which of its objects are ours."""

    kubeconfig: str = ""
    """Path; empty: the credentials of the Pod, else $KUBECONFIG, else ~/.kube/config."""
    namespace_selector: LabelSelector = ""
    """Label selector of the namespaces that are served, evaluated live; empty: all."""
    watch_namespaces: Names = ()
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
    plugins: Literal["all", "reviewed"] = "all"
    """Whether objects may have every plugin, or only what was reviewed for gateways that teams share."""
    trusted_plugins: PluginNames = ()
    """Plugins that objects may have with any configuration although they were not reviewed, as those of your own."""
    secret_references: Literal["allow", "refuse"] = "allow"
    """Whether objects may have the gateway fill in its environment ($env://) or its secret stores ($secret://)."""
    external_addresses: Literal["allow", "refuse-internal"] = "allow"
    """Whether objects may name addresses of the gateway itself, link-local ones and those of Admin APIs as nodes."""
    internal_addresses: InternalAddressList = ()
    """Networks, addresses and names of gateways, etcd and admin services, which no object may name; empty: none."""
    cluster_domain: Domain = DEFAULT_DOMAIN
    """The DNS domain of the cluster, in which names count as references to Services and Pods."""
    host_ownership: Literal["shared", "namespace", "assigned"] = "shared"
    """Who may use a host: shared: any namespace; namespace: that of the oldest object; assigned: as Namespaces say."""
    consumer_names: ConsumerNames = "compatible"
    """How usernames of consumers are made. compatible: as in 1.8, where two namespaces may have the same one."""
    record_ids: Literal["compatible", "wide"] = "compatible"
    """How ids of new records are made. compatible: as in 1.8, the CRC-32 of the name, which can be forged."""
    plugin_metadata: ConfigMapName = ""
    """namespace/name of the ConfigMap with plugin metadata; empty: none is read."""
    election: ElectionSettings = ElectionSettings.model_construct()
    status: StatusSettings = StatusSettings.model_construct()

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
    check_interval: Duration = 4.0
    """Seconds between two checks that the gateway answers and still has what was written to it; 0: none."""
    largest_list: PositiveSize = 256 * 2**20
    """Bytes of the gateway's list of one kind of record; a larger list is refused."""


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
    tls: TlsSettings = TlsSettings.model_construct()
    sync: SyncSettings = SyncSettings.model_construct()

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
            key = read_regular(Path(self.admin_key_file), _LONGEST_KEY).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise ConfigError(f"{where}: can't be read: {reason}") from None
        if not key or len(key) > _LONGEST_KEY or not HEADER_VALUE.fullmatch(key):
            raise ConfigError(f"{where}: must hold the admin key alone, on one line")
        return SecretStr(key)

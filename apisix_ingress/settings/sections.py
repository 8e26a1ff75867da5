"""The sections of the configuration: every setting with its default and its unit.

`fields` validates values; `Settings` validates constraints between sections.
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
    GatewayServiceName,
    InternalAddressList,
    LabelSelector,
    Name,
    Names,
    Networks,
    ObjectName,
    PluginNames,
    PositiveDuration,
    PositiveSize,
    PublishedAddresses,
    ServiceName,
)

# client-go's JitterFactor, by which it extends the time between two renewals; this program retries sooner.
_RETRY_JITTER = 1.2
# Maximum size of an admin key file in bytes: no HTTP server accepts a longer header.
_LONGEST_KEY = 8192


class _Section(BaseModel):
    """Base of all sections: frozen, and an unknown key is an error."""

    # The validator of the whole configuration includes those of the sections, so a section builds its own only if it is
    # constructed alone. Defaults are not validated (`model_construct`): that would build it.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class LogSettings(_Section):
    """Which events are logged, and their format."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Minimum severity."""
    format: Literal["auto", "console", "json"] = "auto"
    """auto: console on a terminal, JSON otherwise."""


class HttpSettings(_Section):
    """The server of /healthz, /readyz, /metrics and /status."""

    listen: Address = "0.0.0.0:8080"
    """Address, host:port."""
    status_page: Literal["local", "everyone", "none"] = "local"
    """Who can open the status page: local: clients on loopback, as with `kubectl port-forward`."""


class GatewayApiSettings(_Section):
    """Objects of the Gateway API: Gateways, and the routes that attach to them."""

    enabled: bool | Literal["auto"] = "auto"
    """auto: if their CRDs are installed; false: they are not read."""
    address_pool: Networks = ()
    """Addresses and CIDRs from which each Gateway gets its own address; empty: Gateways share all addresses."""
    listener_ports: dict[int, int] = {}
    """Maps the port of a listener to the port on which gateways receive its requests. Without an entry, listeners
    are distinguished by scheme, or by port if there is an address_pool."""
    loopback: str = "http://127.0.0.1:9080"
    """The address at which a gateway reaches its own HTTP port, for mirrored requests and the filter ExternalAuth."""
    experimental: bool = False
    """Whether the experimental fields `retry` and `sessionPersistence` of routes are served, as far as APISIX can."""


class WebhookSettings(_Section):
    """The admission webhook: validates objects before they are stored."""

    enabled: bool = False
    """Whether the webhook is served."""
    listen: Address = "0.0.0.0:8443"
    """Address, host:port; always TLS."""
    cert_file: str = ""
    """PEM certificate chain, reloaded when it changes."""
    key_file: str = ""
    """PEM private key, reloaded when it changes."""
    client_ca_file: str = ""
    """PEM certificates of the CA that signed the API server's client certificate, reloaded when it changes; empty:
    every client is accepted."""

    @model_validator(mode="after")
    def _has_its_pair(self) -> Self:
        if self.enabled and not (self.cert_file and self.key_file):
            raise ValueError("the webhook requires both cert_file and key_file: API servers use TLS only")
        return self


class ElectionSettings(_Section):
    """Leader election on a Lease. Without it, this process assumes that it is the only one."""

    enabled: bool = True
    """Whether to elect a leader; disable only for a single replica."""
    name: ObjectName = "apisix-ingress-leader"
    """Name of the Lease."""
    namespace: str = ""
    """Namespace of the Lease; empty: that of the process."""
    lease_duration: PositiveDuration = 15.0
    """Seconds after the last renewal it saw until a follower takes over."""
    renew_deadline: PositiveDuration = 10.0
    """Seconds that the leader keeps trying to renew before it gives up."""
    retry_period: PositiveDuration = 2.0
    """Seconds between two attempts."""

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
    publish_service: GatewayServiceName = "auto"
    """namespace/name of the Service whose load balancer addresses are published. auto: the LoadBalancer Service in the
    namespace of the Admin API; empty: none."""
    addresses: PublishedAddresses = ()
    """Fixed IP addresses and host names to publish; if set, publish_service is ignored."""


class KubernetesSettings(_Section):
    """The API server, and which objects to serve."""

    kubeconfig: str = ""
    """Path; empty: the Pod's credentials, else $KUBECONFIG, else ~/.kube/config."""
    context: str = ""
    """Context of the kubeconfig; empty: its current one. With a context, the Pod's credentials are not used."""
    namespace_selector: LabelSelector = ""
    """Label selector of the namespaces to serve, evaluated continuously; empty: all."""
    secret_selector: LabelSelector = ""
    """Label selector of the Secrets to read; objects cannot refer to others. Empty: all."""
    secrets: Literal["all", "referenced"] = "all"
    """Which Secrets to read: all, or only Secrets that objects refer to, each with a watch by its name."""
    watch_namespaces: Names = ()
    """The namespaces to watch, so that permissions in these suffice; empty: all."""
    ingress_class: ObjectName = "apisix-and-all"
    """apisix-and-all: Ingresses of class apisix and all custom resources; otherwise only that class."""
    ingress_class_controller: str = "apisix.apache.org/apisix-ingress-controller"
    """Every IngressClass with this spec.controller is served, whatever its name."""
    controller_name: Name = "apisix-ingress"
    """Written to each record; controllers with different names never touch each other's records."""
    endpoint_source: Literal["endpointslices", "endpoints"] = "endpointslices"
    """The kind that Pod addresses are read from."""
    cross_namespace: Literal["allow", "grant"] = "allow"
    """Whether an object may refer to another namespace freely or only with a ReferenceGrant."""
    code_plugins: Literal["allow", "refuse"] = "allow"
    """Whether objects may use plugins and fields that run code in the gateway or expose its control API."""
    plugins: Literal["all", "reviewed"] = "all"
    """Whether objects may use every plugin, or only those reviewed for shared gateways."""
    trusted_plugins: PluginNames = ()
    """Plugins that objects may use with any configuration without a review, such as your own."""
    secret_references: Literal["allow", "refuse"] = "allow"
    """Whether objects may use references to the gateway's environment ($env://) or secret stores ($secret://)."""
    external_addresses: Literal["allow", "refuse-internal"] = "allow"
    """Whether objects may use loopback, link-local and Admin API addresses as nodes."""
    internal_addresses: InternalAddressList = ()
    """Networks, addresses and names of gateways, etcd and admin services, which no object may use; empty: none."""
    cluster_domain: Domain = DEFAULT_DOMAIN
    """The DNS domain of the Kubernetes cluster; names in it are treated as references to Services and Pods."""
    host_ownership: Literal["shared", "namespace", "assigned"] = "shared"
    """Who may use a host: shared: any namespace; namespace: that of the oldest object; assigned: as annotated on
    Namespaces."""
    consumer_names: ConsumerNames = "compatible"
    """How usernames of consumers are derived. compatible: as in 1.8, where two namespaces may have the same one."""
    record_ids: Literal["compatible", "wide"] = "compatible"
    """How ids of new records are derived. compatible: as in 1.8, the CRC-32 of the name, which can be forged."""
    plugin_metadata: ConfigMapName = ""
    """namespace/name of the ConfigMap with plugin metadata; empty: not managed."""
    election: ElectionSettings = ElectionSettings.model_construct()
    status: StatusSettings = StatusSettings.model_construct()

    @model_validator(mode="after")
    def _reads_what_it_publishes(self) -> Self:
        namespace, slash, _ = self.status.publish_service.partition("/")
        if slash and self.watch_namespaces and namespace not in self.watch_namespaces:
            raise ValueError(
                f"status.publish_service is in namespace {namespace}, which is not watched: add it to watch_namespaces"
            )
        return self

    @property
    def selector(self) -> Selector:
        """`namespace_selector`, parsed."""
        return parse_selector(self.namespace_selector)


class IngressNginxSettings(_Section):
    """Ingresses of ingress-nginx, served unchanged. The names are those of its flags, with underscores."""

    enabled: bool = False
    """Whether to serve them."""
    config_map: ConfigMapName = ""
    """namespace/name of the ConfigMap of ingress-nginx, read live; empty: its defaults apply."""
    default_backend_service: ServiceName = ""
    """namespace/name of the Service for requests that match no path; empty: they get 404."""
    default_ssl_certificate: ConfigMapName = ""
    """namespace/name of the Secret with the certificate of hosts without one; empty: a self-signed one."""
    watch_ingress_without_class: bool = False
    """Whether to serve Ingresses without a class."""
    disable_catch_all: bool = False
    """Whether to ignore Ingresses with only a default backend."""
    tcp_services_configmap: ConfigMapName = ""
    """namespace/name of the ConfigMap that maps TCP ports to Services, read live; empty: none."""
    udp_services_configmap: ConfigMapName = ""
    """namespace/name of the ConfigMap that maps UDP ports to Services, read live; empty: none."""
    strict: bool = True
    """Whether a path with a snippet is closed even if the snippet only tunes performance."""
    fidelity: Literal["exact", "lean"] = "exact"
    """`lean` gives up behaviour that costs gateways much and that few applications need; never a protection."""
    update_status: bool = False
    """Whether to write addresses to the status of the Ingresses; keep it off while ingress-nginx runs."""
    ingress_class: ObjectName = "nginx"
    """The class in the annotation kubernetes.io/ingress.class."""
    controller_class: str = "k8s.io/ingress-nginx"
    """Ingresses whose IngressClass has this spec.controller are served."""
    annotations_prefix: str = "nginx.ingress.kubernetes.io"
    """The prefix of annotations."""


class TlsSettings(_Section):
    """TLS towards one gateway cluster; requires an https URL."""

    ca_file: str = ""
    """Trusted PEM certificates; empty: those of the system."""
    cert_file: str = ""
    """PEM client certificate, read again when it changes."""
    key_file: str = ""
    """PEM private key of the client certificate."""
    verify: bool = True
    """Whether to verify the gateway's certificate."""

    @model_validator(mode="after")
    def _has_whole_pair(self) -> Self:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("cert_file and key_file belong together: set both or neither")
        return self


class SyncSettings(_Section):
    """How records are written to one gateway cluster."""

    concurrency: PositiveInt = 16
    """Maximum number of requests in flight."""
    timeout: PositiveDuration = 5.0
    """Timeout of one request, in seconds; with election at most lease_duration - renew_deadline."""
    audit_interval: PositiveDuration = 60.0
    """Seconds between two full comparisons with the gateway."""
    check_interval: Duration = 4.0
    """Seconds between two checks that the gateway responds and still has what was written to it; 0: no checks."""
    largest_list: PositiveSize = 256 * 2**20
    """Maximum size, in bytes, of the gateway's list of one kind of record; a larger list is an error."""


class ClusterSettings(_Section):
    """One group of gateways that share their records."""

    name: Name = "default"
    """Unique; appears in logs, metrics and conditions."""
    mode: Literal["apisix", "apisix-standalone"] = "apisix"
    """Where the gateways keep records: in etcd (apisix), or in their memory (apisix-standalone)."""
    admin_url: AdminUrl = "http://127.0.0.1:9180/apisix/admin"
    """URL of the Admin API. With apisix-standalone, each address of the host is a gateway, unless the URL is https."""
    more_admin_urls: tuple[AdminUrl, ...] = ()
    """URLs of other gateways of the group. With etcd, the next one is used when no connection to one is possible."""
    admin_key: SecretStr = SecretStr("")
    """Value of the X-API-KEY header; empty: requests have no key."""
    admin_key_file: str = ""
    """File with the admin key, instead of admin_key; reloaded when the gateway rejects the key."""
    tls: TlsSettings = TlsSettings.model_construct()
    sync: SyncSettings = SyncSettings.model_construct()

    @model_validator(mode="after")
    def _has_one_usable_key(self) -> Self:
        if self.admin_key.get_secret_value() and self.admin_key_file:
            raise ValueError("admin_key and admin_key_file are mutually exclusive: set one of them")
        if not HEADER_VALUE.fits(self.admin_key.get_secret_value()):
            raise ValueError(
                "admin_key contains a space, line break or other character that is invalid in an HTTP header"
            )
        return self

    def read_admin_key(self) -> SecretStr:
        """Return the current admin key, from the file if one is configured.

        Raises:
            ConfigError: the file cannot be read, is empty, or contains characters that are invalid in an HTTP header.
        """
        if not self.admin_key_file:
            return self.admin_key
        where = f"cluster {self.name}: admin_key_file {self.admin_key_file}"
        try:
            key = read_regular(Path(self.admin_key_file), _LONGEST_KEY).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise ConfigError(f"{where}: cannot be read: {reason}") from None
        if not key or len(key) > _LONGEST_KEY or not HEADER_VALUE.fits(key):
            raise ConfigError(f"{where}: must contain only the admin key, on one line")
        return SecretStr(key)

"""The configuration: its shape, its defaults with their units, and its validation.

Four layers; later layers override earlier ones: defaults, the YAML file, the environment, flags. Items of a list are
reached by index: ``APISIX_INGRESS_CLUSTERS__0__ADMIN_KEY`` sets one field of the first cluster and leaves the
others. Nothing here opens a connection, and settings are read from the environment nowhere else.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator

from apisix_ingress.errors import ConfigError
from apisix_ingress.model.admin_address import PUBLISHED_KEY, PUBLISHED_KEYS
from apisix_ingress.settings.errors import explain, misshapen
from apisix_ingress.settings.fields import split_address
from apisix_ingress.settings.layers import merge, read_environment, read_file, read_overrides
from apisix_ingress.settings.sections import (
    ClusterSettings,
    ElectionSettings,
    GatewayApiSettings,
    HttpSettings,
    IngressNginxSettings,
    KubernetesSettings,
    LogSettings,
    StatusSettings,
    SyncSettings,
    TlsSettings,
    WebhookSettings,
)

__all__ = [
    "MULTI_TENANT",
    "PRESETS",
    "ClusterSettings",
    "ElectionSettings",
    "GatewayApiSettings",
    "HttpSettings",
    "IngressNginxSettings",
    "KubernetesSettings",
    "LogSettings",
    "Settings",
    "StatusSettings",
    "SyncSettings",
    "TlsSettings",
    "WebhookSettings",
    "load_settings",
    "split_address",
]

MULTI_TENANT = "multi-tenant"
PRESETS: Mapping[str, Mapping[str, str]] = {
    "": {},
    MULTI_TENANT: {
        "cross_namespace": "grant",
        "code_plugins": "refuse",
        "plugins": "reviewed",
        "secret_references": "refuse",
        "external_addresses": "refuse-internal",
        "host_ownership": "namespace",
        "consumer_names": "unambiguous",
        "record_ids": "wide",
    },
}
"""Preset → its defaults for the section `kubernetes`."""


def _check_preset(name: str) -> str:
    if name not in ("", MULTI_TENANT):
        raise ValueError(f"must be {MULTI_TENANT} or empty")
    return name


class Settings(BaseModel):
    """The whole configuration. It reads nothing itself: file, environment and flags are already merged."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    preset: Annotated[str, AfterValidator(_check_preset)] = ""
    """multi-tenant: other defaults, for users who don't trust each other; see `PRESETS`."""
    log: LogSettings = LogSettings.model_construct()
    http: HttpSettings = HttpSettings.model_construct()
    webhook: WebhookSettings = WebhookSettings.model_construct()
    kubernetes: KubernetesSettings = KubernetesSettings.model_construct()
    gateway_api: GatewayApiSettings = GatewayApiSettings.model_construct()
    ingress_nginx: IngressNginxSettings = IngressNginxSettings.model_construct()
    clusters: tuple[ClusterSettings, ...] = (ClusterSettings.model_construct(),)

    @model_validator(mode="before")
    @classmethod
    def _lay_over_preset(cls, values: object) -> object:
        """Override the defaults of the preset with the given settings."""
        preset = PRESETS.get(str(values.get("preset"))) if isinstance(values, dict) else None
        given = values.get("kubernetes", {}) if isinstance(values, dict) else None
        if not preset or not isinstance(values, dict) or not isinstance(given, dict):
            return values
        return {**values, "kubernetes": {**preset, **given}}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = [*self._taken_names(), *self._slow_writes(), *self._published_keys()]
        if not self.clusters:
            problems.append("clusters: add at least one gateway cluster")
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _taken_names(self) -> list[str]:
        first: dict[str, int] = {}
        return [
            f"clusters[{index}].name: {cluster.name!r} is already the name of clusters[{first[cluster.name]}];"
            " give each cluster a unique name"
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
        """A write may be in flight for `timeout`; it must have ended when the lease can expire."""
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
    """Read and validate the configuration.

    Args:
        path: the YAML file, None for none.
        overrides: flags, nested as in the file; None values are ignored, items of a list are keyed by index:
            ``{"clusters": {0: {"admin_url": url}}}``.
        environ: the environment, normally `os.environ`; None for none.

    Raises:
        ConfigError: one line per problem, each with the key's full path, the remedy and the source of the value.
    """
    layers = [] if path is None else [read_file(path)]
    layers.append(read_environment(environ or {}, list(Settings.model_fields)))
    layers.append(read_overrides(overrides or {}))
    problems = misshapen(Settings, layers)
    try:
        settings = Settings(**merge(layers))  # raw values; pydantic checks them
    except ValidationError as error:
        problems += explain(error, Settings, layers)
    except ConfigError as error:
        problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    return settings

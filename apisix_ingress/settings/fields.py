"""The types of settings: their syntax, and the messages that describe it.

Names and defaults of settings are in `sections`.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from apisix_ingress.model.admin_address import check_admin_url
from apisix_ingress.model.formats.duration import parse_duration
from apisix_ingress.model.formats.object_names import LABEL, SUBDOMAIN
from apisix_ingress.model.formats.selector import parse_selector
from apisix_ingress.model.formats.size import parse_size
from apisix_ingress.model.network.address_pool import expand_pool
from apisix_ingress.model.network.internal_addresses import parse_internal
from apisix_ingress.model.network.ip_address import is_ip

_PLUGIN = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
AUTO = "auto"
"""Used in place of a name: the program finds the object."""
_PUBLISH_SERVICE = re.compile(r"([a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9-]*)?")
_CONFIG_MAP = re.compile(r"([a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9.-]*)?")


def split_address(text: str) -> tuple[str, int]:
    """Split ``host:port``, ``[::1]:port`` or ``:port`` (every interface; the host is then empty).

    Raises:
        ValueError: it has another form, or an invalid port.
    """
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535 or (":" in host and not bracketed):
        raise ValueError(f"{text!r} is not an address; write host:port, e.g. 0.0.0.0:8080 or [::]:8080")
    return host[1:-1] if bracketed else host, int(port)


def _check_address(text: str) -> str:
    split_address(text)
    return text


def _check_plugin(text: str) -> str:
    if not _PLUGIN.fullmatch(text):
        raise ValueError(f"{text!r} is not a plugin name; use letters, digits, '-', '_' and '.'")
    return text


def _check_name(text: str) -> str:
    if not LABEL.fits(text):
        raise ValueError(f"{text!r} is not a valid name; use at most 63 of a-z, 0-9 and '-', as in DNS")
    return text


def _check_subdomain(text: str) -> str:
    if not SUBDOMAIN.fits(text):
        raise ValueError(f"{text!r} is not an object name; use a-z, 0-9, '-' and '.', as in DNS")
    return text


def _check_publish_service(text: str) -> str:
    if not _PUBLISH_SERVICE.fullmatch(text):
        raise ValueError(f"{text!r} is not a Service; write namespace/name")
    return text


def _check_gateway_service(text: str) -> str:
    return text if text == AUTO else _check_publish_service(text)


def _check_config_map(text: str) -> str:
    if not _CONFIG_MAP.fullmatch(text):
        raise ValueError(f"{text!r} is not a ConfigMap; write namespace/name")
    return text


def _check_selector(text: str) -> str:
    parse_selector(text)
    return text


def _check_published(address: str) -> str:
    """Validate an address like the API server, which would otherwise reject the status of every Ingress."""
    if not is_ip(address) and not SUBDOMAIN.fits(address):
        raise ValueError(f"{address!r} is neither an IP address nor a host name")
    return address


def _check_internal(text: str) -> str:
    parse_internal(text)
    return text


def _check_domain(text: str) -> str:
    name = text.removesuffix(".").lower()
    if not SUBDOMAIN.fits(name):
        raise ValueError(f"{text!r} is not a domain name; write the cluster domain of the kubelets, e.g. cluster.local")
    return name


def _check_network(text: str) -> str:
    try:
        expand_pool([text])
    except ValueError:
        raise ValueError(f"{text!r} is neither an IP address nor a CIDR such as 192.0.2.0/28") from None
    return text


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _split_commas(value: object) -> object:
    """Accept a string, as it comes from the environment or a flag, for a list."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


Duration = Annotated[float, BeforeValidator(parse_duration), Field(ge=0)]
PositiveDuration = Annotated[float, BeforeValidator(parse_duration), Field(gt=0)]
PositiveSize = Annotated[int, BeforeValidator(parse_size), Field(gt=0)]
Address = Annotated[str, AfterValidator(_check_address)]
Name = Annotated[str, AfterValidator(_check_name)]
ObjectName = Annotated[str, AfterValidator(_check_subdomain)]
AdminUrl = Annotated[str, AfterValidator(check_admin_url)]
PublishedAddress = Annotated[str, AfterValidator(_check_published)]
PublishedAddresses = Annotated[tuple[PublishedAddress, ...], BeforeValidator(_split_commas)]
Network = Annotated[str, AfterValidator(_check_network)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(_split_commas), AfterValidator(_unique)]
InternalAddress = Annotated[str, AfterValidator(_check_internal)]
InternalAddressList = Annotated[tuple[InternalAddress, ...], BeforeValidator(_split_commas), AfterValidator(_unique)]
Domain = Annotated[str, AfterValidator(_check_domain)]
ServiceName = Annotated[str, AfterValidator(_check_publish_service)]
GatewayServiceName = Annotated[str, AfterValidator(_check_gateway_service)]
ConfigMapName = Annotated[str, AfterValidator(_check_config_map)]
LabelSelector = Annotated[str, AfterValidator(_check_selector)]
PluginName = Annotated[str, AfterValidator(_check_plugin)]
PluginNames = Annotated[tuple[PluginName, ...], BeforeValidator(_split_commas), AfterValidator(_unique)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_split_commas), AfterValidator(_unique)]

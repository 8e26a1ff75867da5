"""The fields of an Ingress of `networking.k8s.io/v1` that are translated.

The API server has validated an Ingress already; one from a file is only validated by these models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, ValidationError

from crds.parse import path_text
from crds.v2.common import SpecPart
from translation.core.context import Context


class Port(SpecPart):
    """A port of a Service, by number or by name."""

    number: int | None = Field(default=None, ge=1, le=65535)
    name: str = ""


class ServiceBackend(SpecPart):
    """A Service in the namespace of the Ingress."""

    name: str = Field(min_length=1)
    port: Port = Field(default_factory=Port)


class Backend(SpecPart):
    """The backend of a path."""

    service: ServiceBackend | None = None
    resource: dict[str, Any] | None = None


class Path(SpecPart):
    """A path and its backend."""

    path: str = ""
    path_type: Literal["Exact", "Prefix", "ImplementationSpecific"] = "ImplementationSpecific"
    backend: Backend


class Http(SpecPart):
    """The paths of a host."""

    paths: tuple[Path, ...] = ()


class Rule(SpecPart):
    """A host; empty means every host."""

    host: str = ""
    http: Http | None = None


class Tls(SpecPart):
    """A certificate and its hosts."""

    hosts: tuple[str, ...] = ()
    secret_name: str = ""


class IngressSpec(SpecPart):
    """`spec` of an Ingress. `core.scope` reads its class."""

    default_backend: Backend | None = None
    rules: tuple[Rule, ...] = ()
    tls: tuple[Tls, ...] = ()

    @cached_property
    def tls_by_host(self) -> Mapping[str, Tls]:
        """Host in lower case → the first entry that lists it."""
        return {host.lower(): entry for entry in reversed(self.tls) for host in entry.hosts}

    def services(self) -> Iterator[tuple[str, ServiceBackend]]:
        """Yield the field and the content of each reference to a Service."""
        if self.default_backend and self.default_backend.service:
            yield "spec.defaultBackend.service", self.default_backend.service
        for rule_index, rule in enumerate(self.rules):
            for index, path in enumerate(rule.http.paths if rule.http else ()):
                if path.backend.service:
                    yield f"spec.rules[{rule_index}].http.paths[{index}].backend.service", path.backend.service


def parse_ingress(scope: Context, spec: Mapping[str, Any]) -> IngressSpec | None:
    """Return the model of a spec, or report each mistake and return None. A null is treated as absent."""
    with suppress(ValidationError):
        return IngressSpec.model_validate(spec)
    try:
        return IngressSpec.model_validate(_without_nulls(spec))
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            scope.error("InvalidSpec", path_text(detail["loc"]), detail["msg"])
        return None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value

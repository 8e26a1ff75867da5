"""The options by which commands find an API server and gateways, as one parameter of a command.

A command declares a parameter `connection: Connection`; `connects` replaces it by its options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

from apisix_ingress.commands.arguments.parameters import BadParameter, Option
from apisix_ingress.commands.common.output import AdminKeyOption, AdminUrlOption, ConfigOption, KubeconfigOption
from apisix_ingress.commands.common.setup import Step, quiet_settings, run_with_progress
from apisix_ingress.model.formats.duration import parse_duration
from apisix_ingress.settings import Settings

T = TypeVar("T")

DEADLINE = "2m"
"""The default of --timeout."""

ContextOption = Annotated[str | None, Option("--context", metavar="NAME", help="Context of the kubeconfig.")]
CaFileOption = Annotated[
    str | None,
    Option("--ca-file", metavar="FILE", help="CA certificates (PEM) of the Admin API."),
]
ControllerNamespaceOption = Annotated[
    str | None,
    Option(
        "--controller-namespace",
        metavar="NAMESPACE",
        help="Namespace of the controller, of its Lease.",
    ),
]


def check_duration(text: str) -> None:
    """Check the value of an option, such as 90s or 5m.

    Raises:
        BadParameter: It is not a duration.
    """
    try:
        parse_duration(text)
    except ValueError as error:
        raise BadParameter(str(error)) from None


DeadlineOption = Annotated[
    str | None,
    Option(
        "--timeout",
        metavar="DURATION",
        help=f"Time limit for reading the API server and gateways; default {DEADLINE}.",
        check=check_duration,
    ),
]

_OPTIONS: dict[str, Any] = {
    "kubeconfig": KubeconfigOption,
    "context": ContextOption,
    "admin_url": AdminUrlOption,
    "admin_key": AdminKeyOption,
    "ca_file": CaFileOption,
    "controller_namespace": ControllerNamespaceOption,
    "deadline": DeadlineOption,
    "config": ConfigOption,
}
_PARAMETER = "connection"


@dataclass(frozen=True, slots=True)
class Connection:
    """The options for the API server, the gateways and the controller; None: not given."""

    config: Path | None = None
    kubeconfig: str | None = None
    context: str | None = None
    admin_url: str | None = None
    admin_key: str | None = None
    ca_file: str | None = None
    controller_namespace: str | None = None
    deadline: str | None = None

    @property
    def names_api_server(self) -> bool:
        """Whether an option selects an API server."""
        return not (self.config is None and self.kubeconfig is None and self.context is None)

    def run(self, work: Callable[[Step], Coroutine[Any, Any, T]]) -> T:
        """Run an operation that reads servers; it ends within the deadline.

        Raises:
            IngressError: The time is over.
        """
        return run_with_progress(work, deadline=parse_duration(self.deadline or DEADLINE))

    def settings(self) -> Settings:
        """Return the settings, overridden by the command line.

        Raises:
            ConfigError: A setting is invalid.
        """
        kubernetes = {
            "kubeconfig": self.kubeconfig,
            "context": self.context,
            "election": {"namespace": self.controller_namespace},
        }
        cluster = {"admin_url": self.admin_url, "admin_key": self.admin_key, "tls": {"ca_file": self.ca_file}}
        return quiet_settings(self.config, {"kubernetes": kubernetes, "clusters": {0: cluster}})


def connects(
    *, gateways: bool = True, controller: bool = True, deadline: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command: it gets the options of a connection in place of its parameter `connection`.

    Args:
        gateways: Whether it reads gateways, so that their address and key can be given.
        controller: Whether it reads the Lease of the controller.
        deadline: Whether its time is limited by the option for that; otherwise it has a limit of its own.
    """
    unused = {"admin_url", "admin_key", "ca_file"} if not gateways else set()
    unused |= set() if controller else {"controller_namespace"}
    unused |= set() if deadline else {"deadline"}
    return partial(_connected, names=[name for name in _OPTIONS if name not in unused])


def _connected(command: Callable[..., None], *, names: Sequence[str]) -> Callable[..., None]:
    @wraps(command)
    def connected(**given: Any) -> None:
        connection = Connection(**{name: given.pop(name) for name in names})
        command(**given, **{_PARAMETER: connection})

    kept = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != _PARAMETER]
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, keyword, default=None, annotation=_OPTIONS[name]) for name in names]
    every = [*(each.replace(kind=keyword) for each in kept), *added]
    connected.__dict__["__signature__"] = inspect.Signature(every)
    connected.__annotations__ = {each.name: each.annotation for each in every}
    del connected.__dict__["__wrapped__"]
    return connected

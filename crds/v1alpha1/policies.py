"""Policies for routes: HTTPRoutePolicy and L4RoutePolicy."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictInt

from crds.v2.common import Plugin, SpecPart

MOST_PRIORITY = 1_000_000
"""Largest priority: with the precedence of matches below it, a gateway stores it without loss."""


class PolicyTarget(SpecPart):
    """An object that a policy applies to, in the namespace of the policy."""

    group: str = ""
    kind: str
    name: str
    section_name: str = ""


class PolicySpec(SpecPart):
    """What every policy has."""

    target_refs: tuple[PolicyTarget, ...] = ()


class HttpRoutePolicySpec(PolicySpec):
    """HTTPRoutePolicy: further conditions on requests, and a priority."""

    priority: Annotated[StrictInt, Field(ge=0, le=MOST_PRIORITY)] | None = None
    vars: tuple[list[Any], ...] = ()


class L4RoutePolicySpec(PolicySpec):
    """L4RoutePolicy: plugins of stream routes."""

    plugins: tuple[Plugin, ...] = ()

"""Derives the status of Gateway API objects.

A Gateway is programmed once every gateway cluster has confirmed its records. Until then its status is left unchanged.

Installations that serve different namespaces may have the same controller name. Each of them leaves an entry alone
whose route or Gateway is in a namespace that it does not serve.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from apisix_ingress.model.assessment import Assessment
from apisix_ingress.model.condition import Condition, is_away
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from apisix_ingress.state.world import Report, World
from providers.status.conditions import Conditions
from providers.status.status_addresses import Addresses
from translation.core.options import Options
from translation.core.scope import in_scope
from translation.gateway.entry.owned import has_parent_of_ours
from translation.gateway.own_address import wrong_loopback
from translation.gateway.routes.attachment import is_elsewhere
from translation.gateway.statuses import ENTRIES, ROUTE_KINDS, Moment, status_change


class GatewayStatus:
    """Computes status documents on demand; stateless.

    Args:
        world: Reports and attachments.
        conditions: Sync states of records.
        addresses: Addresses of the gateways.
        options: The name of this controller in GatewayClasses, and the namespaces that it serves.
    """

    def __init__(self, world: World, conditions: Conditions, addresses: Addresses, options: Options) -> None:
        self._world = world
        self._conditions = conditions
        self._addresses = addresses
        self._options = options

    def change(self, key: ObjectKey, status: FrozenJson, now: str) -> JsonObject:
        """Return the status fields to write; empty if the status is up to date or records are pending.

        Args:
            key: The object.
            status: The current status in the API server.
            now: Transition time (RFC 3339) of conditions that change.
        """
        report, view = self._world.reports.get(key), self._world.view()
        assessment: Assessment | None = None
        if report is None:
            if not self._is_released(key, view):
                return {}
        else:
            condition = self._conditions.of_records(key)
            if report.assessment is None or report.assessment.is_pending or condition is None:
                return {}
            assessment = _with_records(report, condition)
            if assessment is None:
                return {}
            if key.kind == "Gateway" and (why := self._wrong_loopback(view)):
                assessment = assessment.noting("Programmed", why)
        generation = report.generation if report else 0
        attached = self._world.attachments.counts
        elsewhere = partial(is_elsewhere, namespace=key.namespace, view=view, options=self._options)
        moment = Moment(self._options.ingress_class_controller, generation, now, attached, self._published(), elsewhere)
        return status_change(key, assessment, status, moment)

    def _wrong_loopback(self, view: View) -> str:
        return wrong_loopback(self._addresses.service(), view, self._options.loopback)

    def _is_released(self, key: ObjectKey, view: View) -> bool:
        """Return whether an object without a report belongs to no Gateway of ours, rather than to another installation.

        It may also be one that was not translated yet.
        """
        item = view.get(CustomObject, key)
        if item is None or key.kind not in ENTRIES or not in_scope(key.namespace, view, self._options):
            return False
        if key.kind in ROUTE_KINDS:
            return not has_parent_of_ours(item, view, self._options)
        return bool(self._world.dependents.reads_of(key))

    def _published(self) -> Sequence[tuple[str, str]]:
        found = self._addresses.published()
        return [("IPAddress", each["ip"]) if "ip" in each else ("Hostname", each["hostname"]) for each in found]


def _with_records(report: Report, condition: Condition) -> Assessment | None:
    """Return an assessment that includes the state of the records; None to leave the status unchanged."""
    assessment = report.assessment
    if assessment is None or condition.status == "True":
        return assessment
    if assessment.parents and is_away(condition.message):
        return None
    return assessment.rejected(condition.message)

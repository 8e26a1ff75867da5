"""`status`: the controller, its gateways and its objects at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    AdminKeyOption,
    AdminUrlOption,
    ConfigOption,
    KubeconfigOption,
    Report,
    ReportOption,
)
from apisix_ingress.commands.common.setup import NamespaceOption, print_report, run_with_progress, settings_for

if TYPE_CHECKING:
    from apisix_ingress.commands.common.setup import Step
    from apisix_ingress.model.json import JsonObject


def status(
    kubeconfig: KubeconfigOption = None,
    admin_url: AdminUrlOption = None,
    admin_key: AdminKeyOption = None,
    namespace: NamespaceOption = None,
    output: ReportOption = Report.text,
    config: ConfigOption = None,
) -> None:
    """Show gateways, failing objects, and the leader.

    Exit 0 if everything is healthy, 1 if not, 2 on an error.

    Example: apisix-ingress status -n apisix-ingress --admin-url http://127.0.0.1:9180/apisix/admin
    """
    from apisix_ingress.diagnostics.collect.cluster_state import api_server, look
    from apisix_ingress.diagnostics.reports.status import status_document, status_lines

    settings = settings_for(config, kubeconfig, admin_url=admin_url, admin_key=admin_key, namespace=namespace)

    async def see(step: Step) -> JsonObject:
        async with api_server(settings) as api:
            return status_document(await look(api, settings, step=step))

    document = run_with_progress(see)
    print_report(document, status_lines(document), output)
    raise SystemExit(0 if document["healthy"] else EXIT_FOUND)

"""`replace-2x`: replaces the records of apisix-ingress-controller 2.x."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apisix_ingress.commands.common.both_sides import both_sides
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    ApplyOption,
    ClusterOption,
    ManifestsOption,
    Report,
    ReportOption,
)
from apisix_ingress.commands.common.setup import Step, print_report
from apisix_ingress.diagnostics.collect.live_records import admin_api
from apisix_ingress.diagnostics.reports.replacement import carry_out, replacement, shown
from apisix_ingress.model.json import JsonObject
from apisix_ingress.settings import Settings

_DONE = {"replace": "replaced", "delete": "deleted", "keep": "kept"}
_PLANNED = {"replace": "would replace", "delete": "would delete", "keep": "would keep"}


@connects(controller=False)
def replace_2x(
    apply: ApplyOption = False,
    filename: ManifestsOption = None,
    cluster: ClusterOption = "",
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """Replace the records of apisix-ingress-controller 2.x.

    A record of 2.x is deleted once the records of this controller for the same object are in the gateway. One with
    the ID of a record of this controller is overwritten. All others stay. Stop 2.x and start this controller first.

    Exit 0 if nothing of 2.x stays, 1 if something does, 2 on an error.

    Examples:
        apisix-ingress replace-2x --config config.yaml
        apisix-ingress replace-2x --config config.yaml --apply
    """
    settings = connection.settings()
    document = connection.run(lambda step: _replace(filename or (), settings, cluster, step, is_written=apply))
    print_report(document, _lines(document), output)
    stays = any(item["act"] == "keep" or not apply for item in document["records"])
    raise SystemExit(EXIT_FOUND if stays else 0)


async def _replace(
    paths: Sequence[str], settings: Settings, cluster: str, step: Step, *, is_written: bool
) -> JsonObject:
    wanted, snapshot = await both_sides(paths, settings, cluster, step)
    steps = replacement(wanted, snapshot)
    if is_written:
        step("writing records")
        async with admin_api(settings, cluster) as backend:
            await carry_out(backend, steps, wanted, snapshot)
    records = [shown(each, snapshot) for each in steps]
    return {"cluster": snapshot.cluster, "url": snapshot.url, "applied": is_written, "records": records}


def _lines(document: JsonObject) -> Iterator[str]:
    acts = _DONE if document["applied"] else _PLANNED
    for item in document["records"]:
        name = f" ({item['name']})" if item["name"] else ""
        yield f"{acts[item['act']]} {item['record']}{name}: {item['why']}"
    if not document["records"]:
        yield f"cluster {document['cluster']} at {document['url']}: no records of 2.x"
    elif not document["applied"]:
        yield "nothing was written: add --apply"

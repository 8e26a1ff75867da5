"""`adopt`: takes over unmanaged records that an object needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Argument
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
from apisix_ingress.diagnostics.reports.orphans import adoptions, parse_keys, take
from apisix_ingress.model.json import JsonObject
from apisix_ingress.settings import Settings

RecordsArgument = Annotated[list[str], Argument(metavar="RECORD", help="Kind and id, such as routes/46eb0e41.")]


@connects(controller=False)
def adopt(
    record: RecordsArgument,
    apply: ApplyOption = False,
    filename: ManifestsOption = None,
    cluster: ClusterOption = "",
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """Take over unmanaged records.

    Adopted records get the controller's labels and are managed from then on.

    Only the named records are written, only if an object of the manifests (without -f: of the API server) needs them,
    and only with --apply. Records of another controller are refused.

    Exit 0 if all are or would be adopted, 1 if one is refused, 2 on an error.

    Examples:
        apisix-ingress adopt routes/46eb0e41 -f manifests/ --config config.yaml
        apisix-ingress adopt routes/46eb0e41 --config config.yaml --apply
    """
    settings = connection.settings()
    document = connection.run(lambda step: _adopt(record, filename or (), settings, cluster, step, is_written=apply))
    print_report(document, _lines(document), output)
    raise SystemExit(EXIT_FOUND if any(item["act"] == "refuse" for item in document["records"]) else 0)


async def _adopt(
    names: Sequence[str], paths: Sequence[str], settings: Settings, cluster: str, step: Step, *, is_written: bool
) -> JsonObject:
    keys = parse_keys(names)
    wanted, snapshot = await both_sides(paths, settings, cluster, step)
    found = adoptions(keys, wanted, snapshot)
    if is_written:
        step("writing labels")
        async with admin_api(settings, cluster) as backend:
            for key, item in zip(keys, found, strict=True):
                if item["act"] == "adopt":
                    await take(backend, key, snapshot)
    return {"cluster": snapshot.cluster, "url": snapshot.url, "applied": is_written, "records": found}


def _lines(document: JsonObject) -> Iterator[str]:
    yield from (_line(item, is_written=document["applied"]) for item in document["records"])
    if not document["applied"] and any(item["act"] == "adopt" for item in document["records"]):
        yield "nothing was written: add --apply"


def _line(item: JsonObject, *, is_written: bool) -> str:
    name = f" ({item['name']})" if item["name"] else ""
    act = {"adopt": "adopted" if is_written else "would adopt", "refuse": "refused", "nothing": "left"}[item["act"]]
    return f"{act} {item['record']}{name}: {item['why']}"

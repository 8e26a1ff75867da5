"""`bundle`: an archive for a bug report, without secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Option
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import (
    fail,
    one_of,
    print_json,
)
from apisix_ingress.commands.common.setup import Step
from apisix_ingress.diagnostics.collect.cluster_state import api_server
from apisix_ingress.diagnostics.reports.bundle import LOGS, check_target, collect, write_bundle

FileOption = Annotated[Path, Option("--write", metavar="FILE", help="Path of the archive.")]
FormatOption = Annotated[str, one_of(("zip", "json"), description="zip: write an archive; json: print its files.")]
ForceOption = Annotated[bool, Option("--force", help="Overwrite an existing file.")]


@connects()
def bundle(
    write: FileOption = Path("apisix-ingress-bundle.zip"),
    force: ForceOption = False,
    output: FormatOption = "zip",
    *,
    connection: Connection,
) -> None:
    """Write an archive for a bug report, without secrets.

    It contains objects with their conditions and Events, the records of gateways, the output of status and doctor,
    settings and versions. It does not contain the logs; README.txt has the commands for them. Data of Secrets, keys,
    passwords, tokens and code are masked. Review the archive before you share it: it contains hosts, paths and
    addresses.

    Exit 0 on success, 2 on an error.

    Examples:
        apisix-ingress bundle --config config.yaml --write bundle.zip
    """
    if output != "json" and write.exists() and not force:
        fail(f"{write} exists: choose another name with --write, or use --force")
    settings = connection.settings()
    if output != "json":
        check_target(write)

    async def gather(step: Step) -> dict[str, str]:
        async with api_server(settings) as api:
            return await collect(api, settings, step=step)

    files = connection.run(gather)
    if output == "json":
        print_json({name: files[name] for name in sorted(files)})
    else:
        write_bundle(write, files, force=force)
        print(f"{write}: {len(files)} files")
        print(f"Attach the logs of the controller too: {LOGS.format('NAMESPACE')}")

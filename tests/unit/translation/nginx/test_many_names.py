"""Hosts with many names and paths, for which the router of a gateway would become too large."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.translation.nginx.objects import OPTIONS, ingress, translated
from translation.core.builder import MOST_ENTRIES

_NAMES = 500


def test_combinations_of_names_and_paths_are_limited_with_the_preset() -> None:
    names = ",".join(f"a{number}.shop.test" for number in range(_NAMES))
    paths = [(f"/p{number}", "Prefix") for number in range(MOST_ENTRIES // _NAMES)]
    web = ingress("web", *paths, server_alias=names)
    few = ingress("web", *paths[:10], server_alias=names)
    preset = replace(OPTIONS, plugins="reviewed")

    refused = [problem for _, problem in translated(web, options=preset).problems if problem.code == "TooLarge"]

    assert [problem.message.partition(";")[0] for problem in refused] == [
        f"generates more than {MOST_ENTRIES:,} combinations of a host and a path"
    ]
    assert not [record for record in translated(web, options=preset).records if record.key.kind == "routes"]
    assert [record for record in translated(few, options=preset).records if record.key.kind == "routes"]
    assert [record for record in translated(web).records if record.key.kind == "routes"]

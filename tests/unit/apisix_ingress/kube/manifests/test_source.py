"""Files that change, and stores that follow them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.manifests.source import ManifestSource
from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.state.store import Store
from tests.unit.apisix_ingress.kube.files import ROUTE, WEB, write
from tests.waiting import WAIT_SECONDS, until


class SourceHarness:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reads: list[Read] = []
        self.stores: dict[str, Store[Any]] = {kind: Store(kind, self.reads.append) for kind in RESOURCES}
        self.source = ManifestSource([folder], self.stores, clock=MonotonicClock())

    def note(self, name: str = "web") -> Any:
        item = self.stores["ApisixRoute"].get(ObjectKey("ApisixRoute", "default", name))
        return item and item.spec["note"]

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition, "the change", state=self.reads.copy)


@pytest.fixture
async def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SourceHarness]:
    monkeypatch.setattr("apisix_ingress.kube.manifests.source.POLL_SECONDS", 0.01)
    write(tmp_path / "m/web.yaml", ROUTE % ("web", "first"))
    made = SourceHarness(tmp_path / "m")
    task = asyncio.create_task(made.source.run())
    await made.source.synced.wait()
    yield made
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_stores_follow_files_and_generations_follow_specs(harness: SourceHarness) -> None:
    assert harness.note() == "first"
    assert all(store.synced for store in harness.stores.values())
    write(harness.folder / "web.yaml", ROUTE % ("web", "second"))
    write(harness.folder / "more/shop.yaml", ROUTE % ("shop", "new"))
    await harness.until(lambda: harness.note() == "second" and harness.note("shop") == "new")
    assert harness.stores["ApisixRoute"].get(WEB).meta.generation == 2  # type: ignore[union-attr]
    (harness.folder / "web.yaml").unlink()
    await harness.until(lambda: harness.note() is None)
    assert harness.note("shop") == "new"


async def test_a_broken_file_keeps_its_objects_until_it_is_mended(harness: SourceHarness) -> None:
    write(harness.folder / "web.yaml", "kind: [")
    await harness.until(lambda: "line 2, column 1" in harness.source.problem)
    assert harness.note() == "first"
    write(
        harness.folder / "web.yaml", "kind: ApisixRoute\napiVersion: apisix.apache.org/v2\n---\n" + ROUTE % ("b", "b")
    )
    await harness.until(lambda: harness.note("b") == "b")
    assert (harness.note(), "without metadata.name" in harness.source.problem) == ("first", True)
    write(harness.folder / "web.yaml", ROUTE % ("b", "c"))
    await harness.until(lambda: harness.note("b") == "c" and harness.note() is None)
    assert harness.source.problem == ""


async def test_an_emptied_file_keeps_its_objects_and_is_reported(harness: SourceHarness) -> None:
    (harness.folder / "web.yaml").write_text("")
    await harness.until(lambda: "web.yaml: is empty" in harness.source.problem)
    assert harness.note() == "first"
    (harness.folder / "web.yaml").write_text("# none any more\n")
    await harness.until(lambda: harness.note() is None)
    assert harness.source.problem == ""


async def test_a_vanished_folder_keeps_its_objects(harness: SourceHarness) -> None:
    harness.folder.rename(harness.folder.with_name("elsewhere"))
    await harness.until(lambda: "its objects stay unchanged" in harness.source.problem)
    assert harness.note() == "first"
    harness.folder.with_name("elsewhere").rename(harness.folder)
    await harness.until(lambda: harness.source.problem == "")
    assert harness.note() == "first"


async def test_fields_without_effect_are_logged_when_a_file_is_read(harness: SourceHarness) -> None:
    rules = "{http: [{match: {host: [a]}}, {zzz: 1}]}"
    text = f"apiVersion: apisix.apache.org/v2\nkind: ApisixRoute\nmetadata: {{name: a}}\nspec: {rules}\n"
    old = "apiVersion: apisix.apache.org/v2beta3\nkind: ApisixRoute\n"
    with capture_logs() as logs:
        file = write(harness.folder / "a.yaml", f"{text}---\n{old}")
        await harness.until(lambda: any(line["event"] == "manifests.read" for line in logs))
        write(harness.folder / "end.yaml", ROUTE % ("end", "end"))
        await harness.until(lambda: harness.note("end") == "end")
    unknown = [line for line in logs if line["event"] == "manifest.unknown_field" and line["object"].endswith("/a")]
    shape = {"event": "manifest.unknown_field", "log_level": "warning", "object": "ApisixRoute default/a"}
    assert unknown == [
        {**shape, "path": "spec.http[0].match.host", "nearest": "hosts"},
        {**shape, "path": "spec.http[1].zzz", "nearest": None},
    ]
    [unread] = [line["problem"] for line in logs if line["event"] == "manifest.unread"]
    assert unread.startswith(f"{file}: document 2: ApisixRoute apisix.apache.org/v2beta3 is not read: convert")
    assert harness.source.skipped == unread
    file.unlink()
    await harness.until(lambda: harness.source.skipped == "")


async def test_a_touched_file_queues_nothing(harness: SourceHarness) -> None:
    harness.reads.clear()
    write(harness.folder / "web.yaml", ROUTE % ("web", "first"))
    write(harness.folder / "end.yaml", ROUTE % ("end", "end"))
    await harness.until(lambda: harness.note("end") == "end")
    assert harness.reads == [ObjectKey("ApisixRoute", "default", "end")]


async def test_nothing_is_synced_before_a_file_was_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apisix_ingress.kube.manifests.source.POLL_SECONDS", 0.01)
    write(tmp_path / "web.yaml", ROUTE % ("web", "first"))
    write(tmp_path / "bad.yaml", "a: [")
    harness = SourceHarness(tmp_path)
    task = asyncio.create_task(harness.source.run())
    await harness.until(lambda: harness.note() == "first")
    assert not harness.source.synced.is_set()
    write(tmp_path / "bad.yaml", "")
    async with asyncio.timeout(WAIT_SECONDS):
        await harness.source.synced.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_nothing_is_synced_before_a_document_was_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apisix_ingress.kube.manifests.source.POLL_SECONDS", 0.01)
    text = ROUTE % ("web", "a") + "---\nkind: ApisixRoute\napiVersion: apisix.apache.org/v2\n"
    write(tmp_path / "m/web.yaml", text)
    harness = SourceHarness(tmp_path / "m")
    task = asyncio.create_task(harness.source.run())
    await harness.until(lambda: harness.note() == "a" and "without metadata.name" in harness.source.problem)
    assert not harness.source.synced.is_set()
    assert not any(store.synced for store in harness.stores.values())
    write(tmp_path / "m/web.yaml", ROUTE % ("web", "a") + "---" + ROUTE % ("other", "b"))
    async with asyncio.timeout(WAIT_SECONDS):
        await harness.source.synced.wait()
    assert (harness.note("other"), harness.source.problem) == ("b", "")
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_a_path_that_is_missing_at_the_start_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file or folder"):
        await SourceHarness(tmp_path / "none").source.run()


async def test_a_path_invalid_for_the_file_system_is_a_configuration_error(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300)
    with pytest.raises(ConfigError) as caught:
        await SourceHarness(path).source.run()
    assert str(caught.value) == f"--manifests {path}: File name too long"


async def test_a_link_that_leads_nowhere_is_skipped_until_it_leads_somewhere(harness: SourceHarness) -> None:
    target = harness.folder.with_name("target")
    (harness.folder / "late.yaml").symlink_to(target)
    write(harness.folder / "other.yaml", ROUTE % ("other", "there"))
    await harness.until(lambda: harness.note("other") == "there")
    assert (harness.source.problem, harness.note("late")) == ("", None)
    write(target, ROUTE % ("late", "there"))
    await harness.until(lambda: harness.note("late") == "there")

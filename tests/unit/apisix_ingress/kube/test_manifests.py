"""Objects from files: what is read, what is refused with which words, and how changes are followed."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.manifests import ManifestSource, find_files, load
from apisix_ingress.kube.unread import remedy
from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.kube import decode_config_map
from apisix_ingress.model.resources import RESOURCES, Resource
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.state.store import Store

ROUTE = """
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: {name: %s, creationTimestamp: 2026-01-02T03:04:05Z}
spec: {http: [], note: %s}
"""
WEB = ObjectKey("ApisixRoute", "default", "web")
CONFIG_MAP = Resource("ConfigMap", "", "v1", "configmaps", decode_config_map)
WAIT_SECONDS = 15.0


def write(path: Path, text: str) -> Path:
    """Write a file at once, as careful editors do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    os.replace(fresh, path)
    return path


def errors(*paths: Path) -> list[str]:
    return [error.message for error in load(paths).errors]


def test_files_folders_documents_and_lists_are_read(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", ROUTE % ("web", "a") + "---\n# nothing\n---\n" + ROUTE % ("shop", "b"))
    write(
        tmp_path / "deep/list.json",
        '{"kind": "List", "items": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}]}',
    )
    write(tmp_path / ".hidden/b.yaml", ROUTE % ("hidden", "c"))
    write(tmp_path / "notes.txt", "no manifest")
    got = load([tmp_path])
    keys = [item.meta.key for item in got.objects]
    assert keys == [WEB, ObjectKey("ApisixRoute", "default", "shop"), ObjectKey("Namespace", "", "x")]
    assert got.errors == ()


def test_what_the_api_server_would_add_is_there(tmp_path: Path) -> None:
    meta = load([write(tmp_path / "a.yaml", ROUTE % ("web", "a"))]).objects[0].meta
    assert (meta.namespace, meta.generation, meta.created) == ("default", 1, "2026-01-02T03:04:05Z")


def test_json_may_write_what_yaml_may_not(tmp_path: Path) -> None:
    text = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "\\ud83d\\ude00"}}'
    got = load([write(tmp_path / "a.json", text)], {"ConfigMap": CONFIG_MAP})
    assert [item.data for item in got.objects] == [{"a": "\U0001f600"}]  # type: ignore[attr-defined]


def test_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with write(tmp_path / "in", ROUTE % ("web", "a")).open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert [item.meta.key for item in load(["-"]).objects] == [WEB]


def test_kinds_that_are_not_read_are_counted(tmp_path: Path) -> None:
    text = "kind: Deployment\napiVersion: apps/v1\n---\nkind: Ingress\napiVersion: extensions/v1beta1\n"
    got = load([write(tmp_path / "a.yaml", text)])
    assert (got.ignored, got.errors) == ({"apps/v1/Deployment": 1, "extensions/v1beta1/Ingress": 1}, ())


@pytest.mark.parametrize("version", ["v1beta1", "v1"])
def test_every_version_of_a_kind_is_read(version: str, tmp_path: Path) -> None:
    file = tmp_path / "grant.yaml"
    file.write_text(f"kind: ReferenceGrant\napiVersion: gateway.networking.k8s.io/{version}\nmetadata: {{name: g}}\n")
    got = load([file])
    assert [str(item.meta.key) for item in got.objects] == ["ReferenceGrant default/g"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a: [1", "line 2, column 1: did not find expected ',' or ']'"),
        ("a: 1\na: 2", "document 1: line 2, column 1: key 'a' is given twice"),
        (
            "apiVersion: v1\nkind: A\nmetadata: {name: a}\napiVersion: v1",
            "document 1: line 4, column 1: key 'apiVersion' is given twice; is a --- missing before it?",
        ),
        ("spec:\n  kind: A\n  kind: B", "document 1: line 3, column 3: key 'kind' is given twice"),
        ("- 1", "document 1: not a mapping"),
        ("kind: List\nitems: [1]", "document 1, item 1: not a mapping"),
        ("metadata: {name: x}", "document 1: no kind"),
        ("kind: Service\napiVersion: v1", "document 1: Service without metadata.name (a text)"),
        ("kind: Service\napiVersion: v1\nmetadata: {name: 5}", "document 1: Service without metadata.name (a text)"),
        (
            "kind: Service\napiVersion: v1\nmetadata: {name: x, namespace: 5}",
            "document 1: Service x: metadata.namespace must be a text",
        ),
        (
            "kind: Service\napiVersion: v1\nmetadata: {name: x}\nspec: {ports: [{}]}",
            "document 1: Service x can't be read (KeyError: 'port')",
        ),
        (
            "kind: Secret\napiVersion: v1\nmetadata: {name: x}\ndata: {a: '!'}",
            "document 1: Secret x can't be read (ValueError: data holds a value that is not base64)",
        ),
        ("a: !!python/object:os.system {}", "document 1: line 1, column 4: a: could not determine a constructor"),
        ("a: .inf", "document 1: line 1, column 4: a: not a number that JSON has"),
        ("a: 99999999999999999999", "document 1: line 1, column 4: a: an integer too large for JSON"),
        ("a: 0x1ffffffffffffffff", "document 1: line 1, column 4: a: an integer too large for JSON"),
        ("a:\n- b: 2001-99-99", "document 1: line 2, column 6: a[0].b: no such date or time"),
        ("a: {b: !!set {c}}", "document 1: line 1, column 8: a.b: the tag !!set is not plain data"),
        ("a: !!bool maybe", "document 1: line 1, column 4: a: not a value that JSON has"),
        ("2001-99-99: a", "document 1: line 1, column 1: no such date or time"),
        ("? [a]\n: 1", "document 1: line 1, column 3: a key must be a plain text"),
        ("a: &a [*a]", "document 1: line 1, column 4: too large once its aliases are resolved"),
        ("[" * 300 + "]" * 300, "line 1, column 201: nested deeper than 200 levels"),
        ('a: "\\ud800"', "line 1, column 7: found invalid Unicode character escape code"),
        ('{"a": "\\ud800"}', "holds a value that can't be read ('utf-8' codec can't encode"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "holds a value that can't be read (key 'c' is given twice)"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, want: str) -> None:
    [got] = errors(write(tmp_path / "a.yaml", text))
    assert got.startswith(want)
    assert ("---" in got) == ("---" in want)


def test_a_document_that_cannot_be_read_harms_no_other(tmp_path: Path) -> None:
    text = ROUTE % ("web", "a") + "---\na: .inf\n---\n" + ROUTE % ("shop", "b") + "---\n- 1\n"
    got = load([write(tmp_path / "a.yaml", text)])
    assert [item.meta.name for item in got.objects] == ["web", "shop"]
    lines = text.splitlines()
    assert [error.message for error in got.errors] == [
        f"document 2: line {lines.index('a: .inf') + 1}, column 4: a: not a number that JSON has",
        "document 4: not a mapping",
    ]


def test_lists_in_lists_are_read(tmp_path: Path) -> None:
    space = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "%s"}}'
    inner = f'{{"kind": "NamespaceList", "items": [{space % "b"}, 5]}}'
    text = f'{{"kind": "List", "items": [{space % "a"}, {inner}, {space % "c"}]}}'
    got = load([write(tmp_path / "a.json", text)])
    assert [item.meta.name for item in got.objects] == ["a", "b", "c"]
    assert [error.message for error in got.errors] == ["document 1, item 2, item 2: not a mapping"]


@pytest.mark.parametrize(
    ("version", "kind", "want"),
    [
        ("apisix.apache.org/v2beta3", "ApisixRoute", "convert it to apisix.apache.org/v2"),
        ("apisix.apache.org/v2", "ApisixRoutes", "did you mean ApisixRoute?"),
        ("apisix.apache.com/v2", "ApisixRoute", "did you mean apiVersion: apisix.apache.org/v2?"),
        ("apisix.apache.org/v1alpha1", "GatewayProxy", "there is no such kind here"),
    ],
)
def test_an_object_meant_for_us_that_is_not_read_comes_with_the_remedy(
    version: str, kind: str, want: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.yaml", f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n")
    got = load([file])
    assert [str(error) for error in got.unread] == [f"{file}: document 1: {kind} {version} is not read: {want}"]
    assert (got.ignored, got.errors, got.empty) == ({}, (), ())


def test_an_object_meant_for_us_without_api_version_is_named(tmp_path: Path) -> None:
    [got] = load([write(tmp_path / "a.yaml", "kind: ApisixRoute\n")]).unread
    want = "ApisixRoute without apiVersion is not read: did you mean apiVersion: apisix.apache.org/v2?"
    assert got.message == f"document 1: {want}"


@pytest.mark.parametrize(
    ("version", "kind", "want"),
    [
        ("networking.k8s.io/v1beta1", "Ingress", "convert it to networking.k8s.io/v1"),
        ("v1", "Services", "did you mean Service?"),
        ("v1", "ServiceAccount", ""),
        ("serving.knative.dev/v1", "Service", ""),
    ],
)
def test_remedy_is_offered_only_where_there_is_one(version: str, kind: str, want: str) -> None:
    assert remedy(version, kind) == want


def test_unknown_fields_are_found_in_custom_resources_alone(tmp_path: Path) -> None:
    route = ROUTE % ("web", "a")
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {typo: 1}\n"
    got = load([write(tmp_path / "a.yaml", f"{route}---\n{service}")])
    assert [(field.key, field.path, field.message) for field in got.unknown] == [
        (WEB, "spec.note", "unknown field, it does nothing")
    ]


def test_paths_without_a_document_are_named(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.yaml", "# nothing\n---\n")
    (tmp_path / "folder").mkdir()
    web = write(tmp_path / "web.yaml", ROUTE % ("web", "a"))
    got = load([empty, web, tmp_path / "folder"])
    assert got.empty == (str(empty), str(tmp_path / "folder"))


def test_aliases_that_blow_up_are_refused_unresolved(tmp_path: Path) -> None:
    levels = [f"l{number}: &l{number} [{', '.join([f'*l{number - 1}'] * 10)}]" for number in range(1, 12)]
    [got] = errors(write(tmp_path / "bomb.yaml", "\n".join(["l0: &l0 [x, x, x]", *levels])))
    assert got.endswith("too large once its aliases are resolved")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", '{"a":'])
def test_nesting_without_end_is_refused(tmp_path: Path, opening: str) -> None:
    [got] = errors(write(tmp_path / "deep.yaml", opening * 100_000))
    assert "nested deeper" in got or "recursion" in got


def test_a_file_that_is_too_large_or_not_text_is_refused(tmp_path: Path) -> None:
    assert errors(write(tmp_path / "big.yaml", "#" * (10 * 2**20 + 1))) == ["larger than 10 MB"]
    (tmp_path / "binary.yaml").write_bytes(b"a: \xff")
    assert errors(tmp_path / "binary.yaml") == ["not UTF-8 (byte 3)"]


def test_paths_where_nothing_is_are_refused(tmp_path: Path) -> None:
    none, web = tmp_path / "none.yaml", write(tmp_path / "web.yaml", ROUTE % ("web", "a"))
    with pytest.raises(ConfigError) as caught:
        load([none, web, web / "below", ""])
    want = [f"{none}: no such file or folder", f"{web}/below: no such file or folder", "'': no such file or folder"]
    assert str(caught.value).splitlines() == want


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    web = write(tmp_path / "web.yaml", ROUTE % ("web", "a") + "---\nmetadata: {name: x}\n")
    got = load([web, tmp_path, web])
    assert ([item.meta.key for item in got.objects], len(got.errors)) == ([WEB], 1)


def test_an_object_in_two_files_is_an_error_that_names_both(tmp_path: Path) -> None:
    one = write(tmp_path / "one.yaml", ROUTE % ("web", "one"))
    two = write(tmp_path / "two.yaml", ROUTE % ("web", "two") + "---" + ROUTE % ("web", "three"))
    got = load([tmp_path])
    assert [str(error) for error in got.errors] == [
        f"{two}: document 2: ApisixRoute default/web stands in this file twice: only the first one counts",
        f"{two}: ApisixRoute default/web is in {one} already: that one counts",
    ]
    assert [item.spec["note"] for item in got.objects] == ["one"]  # type: ignore[attr-defined]


def test_files_are_found_in_a_stable_order(tmp_path: Path) -> None:
    for name in ("b.yml", "a.json", "c/d.YAML", ".e.yaml"):
        write(tmp_path / name, "")
    os.mkfifo(tmp_path / "pipe.yaml")
    assert find_files(tmp_path) == (tmp_path / "a.json", tmp_path / "b.yml", tmp_path / "c/d.YAML")


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reads: list[Read] = []
        self.stores: dict[str, Store[Any]] = {kind: Store(kind, self.reads.append) for kind in RESOURCES}
        self.source = ManifestSource([folder], self.stores, clock=MonotonicClock())

    def note(self, name: str = "web") -> Any:
        item = self.stores["ApisixRoute"].get(ObjectKey("ApisixRoute", "default", name))
        return item and item.spec["note"]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():  # noqa: ASYNC110  # what is waited for has no event to wait on
                await asyncio.sleep(0.005)


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr("apisix_ingress.kube.manifests.POLL_SECONDS", 0.01)
    write(tmp_path / "m/web.yaml", ROUTE % ("web", "first"))
    made = Bench(tmp_path / "m")
    task = asyncio.create_task(made.source.run())
    await made.source.synced.wait()
    yield made
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_stores_follow_files_and_generations_follow_specs(bench: Bench) -> None:
    assert bench.note() == "first"
    assert all(store.synced for store in bench.stores.values())
    write(bench.folder / "web.yaml", ROUTE % ("web", "second"))
    write(bench.folder / "more/shop.yaml", ROUTE % ("shop", "new"))
    await bench.until(lambda: bench.note() == "second" and bench.note("shop") == "new")
    assert bench.stores["ApisixRoute"].get(WEB).meta.generation == 2  # type: ignore[union-attr]
    (bench.folder / "web.yaml").unlink()
    await bench.until(lambda: bench.note() is None)
    assert bench.note("shop") == "new"


async def test_a_broken_file_keeps_its_objects_until_it_is_mended(bench: Bench) -> None:
    write(bench.folder / "web.yaml", "kind: [")
    await bench.until(lambda: "line 2, column 1" in bench.source.problem)
    assert bench.note() == "first"
    write(bench.folder / "web.yaml", "kind: ApisixRoute\napiVersion: apisix.apache.org/v2\n---\n" + ROUTE % ("b", "b"))
    await bench.until(lambda: bench.note("b") == "b")
    assert (bench.note(), "without metadata.name" in bench.source.problem) == ("first", True)
    write(bench.folder / "web.yaml", ROUTE % ("b", "c"))
    await bench.until(lambda: bench.note("b") == "c" and bench.note() is None)
    assert bench.source.problem == ""


async def test_a_folder_that_vanishes_empties_nothing(bench: Bench) -> None:
    bench.folder.rename(bench.folder.with_name("elsewhere"))
    await bench.until(lambda: "its objects stay as they are" in bench.source.problem)
    assert bench.note() == "first"
    bench.folder.with_name("elsewhere").rename(bench.folder)
    await bench.until(lambda: bench.source.problem == "")
    assert bench.note() == "first"


async def test_what_has_no_effect_is_logged_when_a_file_is_taken_in(bench: Bench) -> None:
    rules = "{http: [{match: {host: [a]}}, {zzz: 1}]}"
    text = f"apiVersion: apisix.apache.org/v2\nkind: ApisixRoute\nmetadata: {{name: a}}\nspec: {rules}\n"
    old = "apiVersion: apisix.apache.org/v2beta3\nkind: ApisixRoute\n"
    with capture_logs() as logs:
        file = write(bench.folder / "a.yaml", f"{text}---\n{old}")
        await bench.until(lambda: any(line["event"] == "manifests.read" for line in logs))
        write(bench.folder / "end.yaml", ROUTE % ("end", "end"))
        await bench.until(lambda: bench.note("end") == "end")
    unknown = [line for line in logs if line["event"] == "manifest.unknown_field" and line["object"].endswith("/a")]
    shape = {"event": "manifest.unknown_field", "log_level": "warning", "object": "ApisixRoute default/a"}
    assert unknown == [
        {**shape, "path": "spec.http[0].match.host", "nearest": "hosts"},
        {**shape, "path": "spec.http[1].zzz", "nearest": None},
    ]
    [unread] = [line["problem"] for line in logs if line["event"] == "manifest.unread"]
    assert unread.startswith(f"{file}: document 2: ApisixRoute apisix.apache.org/v2beta3 is not read: convert")


async def test_a_touched_file_wakes_nobody(bench: Bench) -> None:
    bench.reads.clear()
    write(bench.folder / "web.yaml", ROUTE % ("web", "first"))
    write(bench.folder / "end.yaml", ROUTE % ("end", "end"))
    await bench.until(lambda: bench.note("end") == "end")
    assert bench.reads == [ObjectKey("ApisixRoute", "default", "end")]


async def test_nothing_is_synced_while_a_file_was_never_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apisix_ingress.kube.manifests.POLL_SECONDS", 0.01)
    write(tmp_path / "web.yaml", ROUTE % ("web", "first"))
    write(tmp_path / "bad.yaml", "a: [")
    bench = Bench(tmp_path)
    task = asyncio.create_task(bench.source.run())
    await bench.until(lambda: bench.note() == "first")
    assert not bench.source.synced.is_set()
    write(tmp_path / "bad.yaml", "")
    async with asyncio.timeout(WAIT_SECONDS):
        await bench.source.synced.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_nothing_is_synced_while_a_document_was_never_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apisix_ingress.kube.manifests.POLL_SECONDS", 0.01)
    text = ROUTE % ("web", "a") + "---\nkind: ApisixRoute\napiVersion: apisix.apache.org/v2\n"
    write(tmp_path / "m/web.yaml", text)
    bench = Bench(tmp_path / "m")
    task = asyncio.create_task(bench.source.run())
    await bench.until(lambda: bench.note() == "a" and "without metadata.name" in bench.source.problem)
    assert not bench.source.synced.is_set()
    assert not any(store.synced for store in bench.stores.values())
    write(tmp_path / "m/web.yaml", ROUTE % ("web", "a") + "---" + ROUTE % ("other", "b"))
    async with asyncio.timeout(WAIT_SECONDS):
        await bench.source.synced.wait()
    assert (bench.note("other"), bench.source.problem) == ("b", "")
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_a_path_that_is_missing_at_the_start_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file or folder"):
        await Bench(tmp_path / "none").source.run()

"""Objects from files: which are read, and the errors for the others."""

import os
from pathlib import Path

import pytest

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.manifests.loader import find_files, load
from apisix_ingress.kube.manifests.unknown_fields import remedy
from apisix_ingress.model.decoders import decode_config_map
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import Resource
from tests.unit.apisix_ingress.kube.files import ROUTE, WEB, write

CONFIG_MAP = Resource("ConfigMap", "", "v1", "configmaps", decode_config_map)


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


def test_defaults_of_the_api_server_are_included(tmp_path: Path) -> None:
    meta = load([write(tmp_path / "a.yaml", ROUTE % ("web", "a"))]).objects[0].meta
    assert (meta.namespace, meta.generation, meta.created) == ("default", 1, "2026-01-02T03:04:05Z")


def test_json_may_contain_what_yaml_may_not(tmp_path: Path) -> None:
    text = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "\\ud83d\\ude00"}}'
    got = load([write(tmp_path / "a.json", text)], {"ConfigMap": CONFIG_MAP})
    assert [item.data for item in got.objects] == [{"a": "\U0001f600"}]  # type: ignore[attr-defined]


def test_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with write(tmp_path / "in", ROUTE % ("web", "a")).open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert [item.meta.key for item in load(["-"]).objects] == [WEB]


def test_kinds_that_are_not_read_are_counted(tmp_path: Path) -> None:
    text = "kind: Deployment\napiVersion: apps/v1\n---\nkind: Ingress\napiVersion: config.openshift.io/v1\n"
    got = load([write(tmp_path / "a.yaml", text)])
    assert (got.ignored, got.errors) == ({"apps/v1/Deployment": 1, "config.openshift.io/v1/Ingress": 1}, ())


@pytest.mark.parametrize("version", ["extensions/v1beta1", "networking.k8s.io/v1beta1"])
def test_an_ingress_of_a_removed_version_is_named_with_the_remedy(version: str, tmp_path: Path) -> None:
    [got] = load([write(tmp_path / "a.yaml", f"kind: Ingress\napiVersion: {version}\n")]).unread
    remedy = "Kubernetes 1.22 removed this version; convert it to networking.k8s.io/v1"
    assert got.message == f"document 1: Ingress {version} is not read: {remedy}"


def test_an_annotation_that_is_not_a_string_is_named(tmp_path: Path) -> None:
    text = "kind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {name: a, annotations: {limit-rps: 1}}\n"
    [got] = errors(write(tmp_path / "a.yaml", text))
    assert got.endswith("Ingress a cannot be read (annotations[limit-rps] must be a string: put its value in quotes)")


def test_objects_of_the_gateway_api_that_are_not_supported_are_listed(tmp_path: Path) -> None:
    got = load([write(tmp_path / "a.yaml", "kind: XMesh\napiVersion: gateway.networking.x-k8s.io/v1alpha1\n")])
    want = "document 1: XMesh gateway.networking.x-k8s.io/v1alpha1 is not supported"
    assert [each.message for each in got.unsupported] == [want]


@pytest.mark.parametrize("kind", ["HTTPRoute", "Gateway", "GatewayClass", "ReferenceGrant"])
def test_the_beta_version_of_the_gateway_api_is_read(kind: str, tmp_path: Path) -> None:
    text = f"kind: {kind}\napiVersion: gateway.networking.k8s.io/v1beta1\nmetadata: {{name: a}}\n"
    got = load([write(tmp_path / "a.yaml", text)])
    assert ([item.meta.kind for item in got.objects], got.unread, got.errors) == ([kind], (), ())


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
        ("metadata: {name: x}", "document 1: kind is missing"),
        ("kind: Service\napiVersion: v1", "document 1: Service without metadata.name (must be a string)"),
        (
            "kind: Service\napiVersion: v1\nmetadata: {name: 5}",
            "document 1: Service without metadata.name (must be a string)",
        ),
        (
            "kind: Service\napiVersion: v1\nmetadata: {name: x, namespace: 5}",
            "document 1: Service x: metadata.namespace must be a string",
        ),
        (
            "kind: Service\napiVersion: v1\nmetadata: {name: x}\nspec: {ports: [{}]}",
            "document 1: Service x cannot be read (KeyError: 'port')",
        ),
        (
            "kind: Secret\napiVersion: v1\nmetadata: {name: x}\ndata: {a: '!'}",
            "document 1: Secret x cannot be read (data holds a value that is not base64)",
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
        ('{"a": "\\ud800"}', "contains a value that cannot be read ('utf-8' codec can't encode"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "contains a value that cannot be read (key 'c' is given twice)"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, want: str) -> None:
    [got] = errors(write(tmp_path / "a.yaml", text))
    assert got.startswith(want)
    assert ("---" in got) == ("---" in want)


def test_a_document_that_cannot_be_read_affects_no_other(tmp_path: Path) -> None:
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
        ("apisix.apache.org/v1alpha1", "Unheard", "unknown kind"),
    ],
)
def test_an_unread_object_of_our_class_is_reported_with_the_remedy(
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
        (
            "networking.k8s.io/v1beta1",
            "Ingress",
            "Kubernetes 1.22 removed this version; convert it to networking.k8s.io/v1",
        ),
        ("v1", "Services", "did you mean Service?"),
        ("v1", "ServiceAccount", ""),
        ("serving.knative.dev/v1", "Service", ""),
    ],
)
def test_remedy_is_offered_only_if_there_is_one(version: str, kind: str, want: str) -> None:
    assert remedy(version, kind) == want


def test_unknown_fields_are_found_by_the_schema_of_the_kind(tmp_path: Path) -> None:
    route = ROUTE % ("web", "a")
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: x, label: {a: b}}\nspec: {port: 1}\nspecs: {}\n"
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringdata: {a: b}\n"
    got = load([write(tmp_path / "a.yaml", f"{route}---\n{service}---\n{secret}")])
    assert [(field.key.kind, field.path, field.message) for field in got.unknown] == [
        ("ApisixRoute", "spec.note", "unknown field; it has no effect"),
        ("Service", "specs", "unknown field; it has no effect"),
        ("Service", "metadata.label", "unknown field, did you mean labels?"),
        ("Service", "spec.port", "unknown field, did you mean ports?"),
    ]


@pytest.mark.parametrize(
    ("version", "kind", "is_error"),
    [
        ("networking.k8s.io/v1", "Ingres", True),
        ("networking.k8s.io/v1", "ingress", True),
        ("networking.k8s.io", "Ingress", True),
        ("v1", "Ingress", True),
        ("networking.k8s.io/v1", "HTTPRoute", True),
        ("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy", False),
        ("traefik.io/v1alpha1", "IngressRoute", False),
        ("networking.istio.io/v1", "Gateway", False),
        ("example.org/v1", "RetryPolicy", False),
    ],
)
def test_misspelled_kinds_are_errors_and_those_of_other_gateways_are_named(
    tmp_path: Path, version: str, kind: str, is_error: bool
) -> None:
    target = "spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]}\n"
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n{target}"
    got = load([write(tmp_path / "a.yaml", text)])
    assert (len(got.unread), len(got.unsupported)) == ((1, 0) if is_error else (0, 1))


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
def test_endless_nesting_is_rejected(tmp_path: Path, opening: str) -> None:
    [got] = errors(write(tmp_path / "deep.yaml", opening * 100_000))
    assert any(words in got for words in ("nested deeper", "recursion", "Stack overflow"))


def test_a_file_that_is_too_large_or_not_text_is_refused(tmp_path: Path) -> None:
    assert errors(write(tmp_path / "big.yaml", "#" * (10 * 2**20 + 1))) == ["larger than 10 MB"]
    (tmp_path / "binary.yaml").write_bytes(b"a: \xff")
    assert errors(tmp_path / "binary.yaml") == ["not UTF-8 (byte 3)"]


def test_missing_paths_are_rejected(tmp_path: Path) -> None:
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
        f"{two}: document 2: ApisixRoute default/web occurs twice in this file: only the first is used",
        f"{two}: ApisixRoute default/web is already defined in {one}, which is used",
    ]
    assert [item.spec["note"] for item in got.objects] == ["one"]  # type: ignore[attr-defined]


def test_files_are_found_in_a_stable_order(tmp_path: Path) -> None:
    for name in ("b.yml", "a.json", "c/d.YAML", ".e.yaml"):
        write(tmp_path / name, "")
    os.mkfifo(tmp_path / "pipe.yaml")
    assert find_files(tmp_path) == (tmp_path / "a.json", tmp_path / "b.yml", tmp_path / "c/d.YAML")

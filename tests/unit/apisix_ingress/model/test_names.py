"""Names, ids and ownership marks; the vectors are from 1.8."""

import pytest

from apisix_ingress.model import names


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("", ""),
        ("default", "e35e00df"),
        ("default_httpbin-route_rule1", "46eb0e41"),
        ("default_httpbin_80", "5ce57b8e"),
        ("default_httpbin_80_service", "8661c06d"),
        ("default_httpbin_v1_80", "1983d99"),
        ("default_httpbin-upstream", "f69035a2"),
        ("default_tcp-route_rule1_tcp", "64ae650b"),
        ("httpbin.org/ip", "b94764dd"),
        ("ing_default_ing1_b94764dd", "e2115deb"),
    ],
)
def test_the_short_id_is_that_of_1_8(name: str, want: str) -> None:
    assert names.short_id(name) == want


def test_wide_id_has_sixteen_hex_digits_and_differs_by_name() -> None:
    got = {names.wide_id(name) for name in ("a", "b")}
    assert all(len(id_) == 16 and int(id_, 16) >= 0 for id_ in got)
    assert len(got) == 2


def test_a_wide_id_never_changes() -> None:
    """A gateway keeps it over restarts and upgrades: the first 64 bits of the SHA-256."""
    assert names.wide_id("default_web_rule") == "3cda58ac059b748a"


def test_names_are_made_of_their_parts() -> None:
    got = [
        names.route_name("default", "httpbin-route", "rule1"),
        names.stream_route_name("default", "tcp-route", "rule1"),
        names.ingress_route_name("default", "ing1", "httpbin.org", "/ip"),
        names.service_upstream_name("default", "httpbin", 80),
        names.service_upstream_name("default", "httpbin", 80, granularity="service"),
        names.service_upstream_name("default", "httpbin", 80, subset="v1"),
        names.object_name("default", "httpbin-upstream"),
        names.consumer_name("my-team", "jack-b"),
        names.consumer_name("my-team", "jack-b", "unambiguous"),
    ]
    assert got == [
        "default_httpbin-route_rule1",
        "default_tcp-route_rule1_tcp",
        "ing_default_ing1_b94764dd",
        "default_httpbin_80",
        "default_httpbin_80_service",
        "default_httpbin_v1_80",
        "default_httpbin-upstream",
        "my_team_jack_b",
        "my-team_jack-b",
    ]


def test_names_of_an_object_begin_with_its_prefix() -> None:
    assert names.route_name("default", "web", "r").startswith(names.route_prefix("default", "web"))
    assert names.ingress_route_name("default", "web", "h", "/").startswith(names.ingress_prefix("default", "web"))
    assert not names.route_name("default", "website", "r").startswith(names.route_prefix("default", "web"))


def test_a_text_that_a_gateway_accepts_is_read_unchanged() -> None:
    longest = "é" * names.NAME_LIMIT
    assert [names.truncated(text) for text in ("default_web_rule", longest)] == ["default_web_rule", longest]


def test_a_name_too_long_for_a_gateway_is_cut_and_stays_unique() -> None:
    got = [names.truncated("n" * names.NAME_LIMIT + end) for end in ("1", "2")]
    assert [len(text) for text in got] == [names.NAME_LIMIT, names.NAME_LIMIT]
    assert got[0] != got[1]
    assert all(names.is_cut(text) for text in got)


def test_a_name_that_only_looks_shortened_is_not() -> None:
    assert [names.is_cut(text) for text in ("web~0123456789abcdef", "n" * names.NAME_LIMIT)] == [False, False]


@pytest.mark.parametrize("length", [180, 200, 240, 253])
def test_shortened_names_begin_with_the_prefix_of_their_object(length: int) -> None:
    namespace, name = "n" * 63, "w" * length
    route = names.truncated(names.route_name(namespace, name, "r"))
    ingress = names.truncated(names.ingress_route_name(namespace, name, "h", "/"))
    assert route.startswith(names.route_prefix(namespace, name))
    assert ingress.startswith(names.ingress_prefix(namespace, name))


def test_stamp_wins_over_a_label_of_the_object() -> None:
    got = names.owner_labels("apisix-ingress", {"managed-by": "me", "apisix-ingress/controller": "x", "app": "web"})
    assert got == {"managed-by": "apisix-ingress-controller", "app": "web"}


def test_controller_of_another_name_adds_it() -> None:
    want = {"managed-by": "apisix-ingress-controller", "apisix-ingress/controller": "blue"}
    assert names.owner_labels("blue") == want


@pytest.mark.parametrize("value", ["", "a b", "a\tb", "x" * 257])
def test_label_that_the_admin_api_refuses_is_skipped(value: str) -> None:
    assert names.owner_labels("apisix-ingress", {"a": value, "b": "x" * 256}) == {
        "managed-by": "apisix-ingress-controller",
        "b": "x" * 256,
    }


@pytest.mark.parametrize(
    ("labels", "controller", "want"),
    [
        ({"managed-by": "apisix-ingress-controller"}, "apisix-ingress", True),
        ({"managed-by": "apisix-ingress-controller"}, "blue", False),
        ({"managed-by": "apisix-ingress-controller", "apisix-ingress/controller": "blue"}, "blue", True),
        ({"managed-by": "apisix-ingress-controller", "apisix-ingress/controller": "blue"}, "apisix-ingress", False),
        ({"managed-by": "someone"}, "apisix-ingress", False),
        ({}, "apisix-ingress", False),
        (None, "apisix-ingress", False),
        ([], "apisix-ingress", False),
    ],
)
def test_a_record_is_managed_by_its_labels_only(labels: object, controller: str, want: bool) -> None:
    assert names.is_owned(labels, controller) is want


def test_the_label_of_a_controller_marks_its_records() -> None:
    for controller in ("apisix-ingress", "blue"):
        assert names.is_owned(names.owner_labels(controller, {"app": "web"}), controller)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("default_web_80", ("default", "web", 80)),
        ("default_web_v1_80", None),
        ("default_web_80_service", None),
        ("default_web_80~https", None),
        ("default_web", None),
        ("default_web_080", None),
        ("default_web_\u0661", None),
        ("ingress-nginx:_web_80", None),
        (f"default_{'w' * 300}_80", None),
    ],
)
def test_the_name_of_an_upstream_of_endpoints_shows_its_service(name: str, want: tuple[str, str, int] | None) -> None:
    assert names.service_port_of(name) == want

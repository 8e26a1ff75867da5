"""The canonical form of hosts, and invalid hosts."""

import pytest

from apisix_ingress.model.network.host_names import canonical_host, host_mistake, in_ascii, mixed_scripts


@pytest.mark.parametrize(
    ("host", "want"),
    [
        ("a.example.com", "a.example.com"),
        ("A.Example.COM", "a.example.com"),
        ("a.example.com.", "a.example.com"),
        ("*.Example.com", "*.example.com"),
        ("*", "*"),
        ("", ""),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("[2001:DB8:0:0::1]", "[2001:db8::1]"),
        ("[::FFFF:1.2.3.4]", "[::ffff:102:304]"),
        ("[not-an-address]", "[not-an-address]"),
        ("a.com:8080", "a.com:8080"),
        ("10.0.0.1", "10.0.0.1"),
    ],
)
def test_every_host_has_one_spelling(host: str, want: str) -> None:
    assert canonical_host(host) == want
    assert canonical_host(want) == want


@pytest.mark.parametrize(
    ("host", "want"),
    [
        ("a." + "b" * 63 + ".com", ""),
        ("a." + "b" * 64 + ".com", "is not a host name: one of its labels has 64 characters; the limit is 63"),
        (".".join(["a" * 49] * 5) + ".com.", ""),
        (".".join(["a" * 49] * 5) + ".comx", "is not a host name: it has 254 characters; the limit is 253"),
        ("a" * 65536, "is not a host name: it has 65536 characters; the limit is 253"),
        ("[" + "0:" * 60 + "]", ""),
        ("", ""),
    ],
)
def test_what_is_too_long_for_a_host_is_reported_in_numbers(host: str, want: str) -> None:
    assert host_mistake(host) == want


@pytest.mark.parametrize("host", ["a.com", "*", "*.a.com", "*a.com", "a_b.com:80", "[::1]", "A.com."])
def test_hosts_that_gateways_accept_are_valid(host: str) -> None:
    assert host_mistake(host) == ""


@pytest.mark.parametrize("host", [".", "a.*.com", "a b.com", "a/b", "bücher.example", "fe80::1%eth0", "a\n"])
def test_values_invalid_for_gateways_are_not_hosts(host: str) -> None:
    assert host_mistake(host).startswith("is not a host name: use ")


@pytest.mark.parametrize(
    ("host", "want"),
    [("bücher.example", "; write xn--bcher-kva.example"), ("a.com", ""), ("ü" * 64 + ".com", "")],
)
def test_a_host_with_invalid_letters_is_reported_with_the_correct_spelling(host: str, want: str) -> None:
    assert in_ascii(host) == want


@pytest.mark.parametrize(
    ("host", "want"),
    [
        ("xn--pple-43d.com", ("CYRILLIC", "LATIN")),  # the first letter of apple is Cyrillic
        ("www.XN--PPLE-43D.com", ("CYRILLIC", "LATIN")),
        ("xn--bcher-kva.example", ()),
        ("xn--80ak6aa92e.com", ()),  # Cyrillic throughout
        ("xn--wgv71a119e.jp", ()),
        ("xn--999999999.com", ()),
        ("a.com", ()),
    ],
)
def test_labels_that_mix_similar_scripts_are_found(host: str, want: tuple[str, ...]) -> None:
    assert mixed_scripts(host) == want

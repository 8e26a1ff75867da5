"""A path that is rewritten for a redirect only."""

from typing import Any

import pytest

from translation.core.options import Options
from translation.safety.records import faults_of

REWRITE = {"regex_uri": ["^([\\s\\S]*?)/?$", "$1"]}


@pytest.mark.parametrize(
    ("redirect", "want"),
    [
        ({"uri": "https://$host$upstream_uri"}, 0),
        ({"uri": "https://$host$upstream_uri", "ret_code": 308}, 0),
        ({"uri": "/x", "_meta": {"filter": [["scheme", "==", "http"]]}}, 1),
        ({"http_to_https": True}, 1),
        ({"regex_uri": ["^/a", "/b"]}, 1),
        ({"uri": ""}, 1),
        ([], 1),
    ],
)
def test_a_path_reaches_no_upstream_only_if_every_request_is_redirected(redirect: Any, want: int) -> None:
    plugins = {"proxy-rewrite": REWRITE, "redirect": redirect}

    assert len(faults_of("routes", {"plugins": plugins, "upstream_id": "u"}, Options())) == want


def test_a_redirect_in_a_plugin_config_may_be_replaced_by_that_of_a_route() -> None:
    plugins = {"proxy-rewrite": REWRITE, "redirect": {"uri": "https://$host$upstream_uri"}}
    assert len(faults_of("plugin_configs", {"plugins": plugins}, Options())) == 1


def test_groups_in_headers_are_replaced_twice_before_a_redirect_as_well() -> None:
    rewrite = {**REWRITE, "headers": {"set": {"X": "$1"}}}
    plugins = {"proxy-rewrite": rewrite, "redirect": {"uri": "https://$host$http_x"}}
    found = faults_of("routes", {"plugins": plugins}, Options(plugins="reviewed"))
    assert [fault.steps for fault in found] == [("plugins", "proxy-rewrite", "headers")]

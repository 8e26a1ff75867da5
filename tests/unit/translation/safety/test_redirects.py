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

"""The text of log lines: every event has a sentence, which comes before the detail of the line."""

import ast
from collections.abc import Iterator
from pathlib import Path

from apisix_ingress.observability.log_messages import SENTENCES, describe, ordered

ROOT = Path(__file__).parents[4]
METHODS = ("debug", "info", "warning", "error", "exception")


def events() -> Iterator[str]:
    """Yield the events in the code."""
    for package in ("apisix_ingress", "providers", "translation"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                    is_log = node.func.attr in METHODS and ast.unparse(node.func.value).endswith("log")
                    if is_log and isinstance(node.args[0], ast.Constant):
                        yield str(node.args[0].value)


def test_every_event_has_a_sentence() -> None:
    assert set(events()) - SENTENCES.keys() == set()


def test_a_message_is_a_sentence_with_the_detail_of_the_line() -> None:
    line = {"event": "cluster.unreachable", "cluster": "east", "error": "connection refused"}
    assert describe(None, "", dict(line)) == {
        **line,
        "message": "a gateway cluster cannot be reached: connection refused",
    }
    assert describe(None, "", {"event": "term.started"})["message"] == "this replica leads"
    assert describe(None, "", {"event": "a library said so"})["message"] == "a library said so"


def test_an_object_is_split_into_fields_to_search_by() -> None:
    got = describe(None, "", {"event": "object.problem", "object": "ApisixRoute default/web", "message": "no Service"})
    assert (got["kind"], got["namespace"], got["name"]) == ("ApisixRoute", "default", "web")
    assert got["message"] == "an object has a problem: no Service"
    got = describe(None, "", {"event": "status.failed", "object": "IngressClass apisix"})
    assert (got["kind"], got["namespace"], got["name"]) == ("IngressClass", "", "apisix")


def test_a_line_begins_with_its_time_level_event_and_message() -> None:
    line = {"cluster": "east", "event": "a.b", "level": "info", "message": "m", "timestamp": "now"}
    assert list(ordered(None, "", line)) == ["timestamp", "level", "event", "message", "cluster"]

"""The text of `diff`: its length and the work for it are bounded."""

import random

from apisix_ingress.commands.gateways.diff import lines, markdown_lines
from apisix_ingress.model.json import JsonObject


def document(before: JsonObject, after: JsonObject, name: str = "web") -> JsonObject:
    change = {"act": "update", "record": "routes/1", "name": name, "owner": "", "why": "", "before": before}
    return {
        "cluster": "default",
        "url": "http://a",
        "changes": [{**change, "after": after}],
        "counts": {"update": 1},
        "unchanged": 0,
        "notes": [],
    }


def body_of(before: JsonObject, after: JsonObject) -> list[str]:
    _, *shown, _ = [line for line, _ in lines(document(before, after))]
    return shown


def test_differences_of_a_large_body_are_one_hunk() -> None:
    """Comparing these lines one by one takes quadratic time."""
    old = {"a": [*"xy", *(number % 150 for number in range(100_000)), *"xy"]}
    new = {"a": [*"xy", *reversed(old["a"][2:-2]), *"xy"]}

    got = body_of(old, new)

    assert got[:4] == ["  @@ -3,100004 +3,100004 @@", '       "x",', '       "y",', "  -    0,"]
    assert got[-3:] == ["  +    0,", '       "x",', '       "y"']


def test_one_hunk_turns_the_old_text_into_the_new_one() -> None:
    rng = random.Random(5)
    for _ in range(50):
        old = {"a": [rng.randrange(3) for _ in range(3_000)]}
        new = {"a": old["a"][: rng.randrange(3_000)] + [rng.randrange(3) for _ in range(rng.randrange(3))]}
        new["a"] += old["a"][len(new["a"]) + rng.randrange(3) :]
        _, *hunk = body_of(old, new) or [""]
        removed, added = ([line[3:] for line in hunk if line[2] != sign] for sign in "+-")
        assert len(removed) - len(added) == len(old["a"]) - len(new["a"])


def test_a_line_separator_in_a_value_begins_no_line() -> None:
    assert len(body_of({"a": "x\u2028y"}, {"a": "x\u2028z"})) == 5


def test_a_name_forms_no_link_and_no_cell_in_markdown() -> None:
    got = list(markdown_lines(document({}, {}, "![a](http://b.test)|`c`\\"), stat=True))
    assert got[-1] == "| update | routes/1 | !\\[a\\](http://b.test)\\|\\`c\\`\\\\ | - | - |"

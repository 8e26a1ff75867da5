"""Texts of others in Markdown."""

from apisix_ingress.model.formats.markdown import code, fence_of, literal, prose


def test_a_sentence_forms_no_html_link_image_or_cell() -> None:
    got = prose("use `x`, <b>not</b> ![a](http://b.test) | c\\\n# d")
    assert got == "use `x`, &lt;b&gt;not&lt;/b&gt; !\\[a\\](http://b.test) \\| c\\\\\\\\n# d"


def test_a_literal_text_contains_no_code() -> None:
    assert literal("`a`|b") == "\\`a\\`\\|b"


def test_code_is_delimited_by_more_backticks_than_it_contains() -> None:
    assert [code("a/b"), code("a``b|"), code("`")] == ["`a/b`", "```a``b\\|```", "`` ` ``"]
    assert fence_of(["a", "````"]) == "`````"

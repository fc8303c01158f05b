"""Bodies of "create message": what is escaped and what is not, and where they are cut."""

import json

import pytest

from channels.discord.render import bodies


def contents(markdown: str) -> list[str]:
    return [json.loads(body)["content"] for body in bodies(markdown)]


def test_the_arguments_of_a_message() -> None:
    assert [json.loads(body) for body in bodies("**hi** there")] == [
        {"content": "**hi** there", "flags": 4, "allowed_mentions": {"parse": []}}
    ]
    assert bodies("") == bodies("<!-- x -->") == bodies("&nbsp;\u200b") == []


@pytest.mark.parametrize(
    ("markdown", "content"),
    [
        ("# A\n\n## B *c*\n\n#### D", "# A\n\n## B _c_\n\n**D**"),
        ("- # a\n- b", "• **a**\n\n• b"),
        ("*a* **b** ~~c~~ <u>d</u> ||e|| `f`", "_a_ **b** ~~c~~ __d__ ||e|| `f`"),
        ("**a\nb**", "**a**\n**b**"),
        ("*a*b 中**文：**字", "_a_\u200bb 中**文：**字"),
        ("fo*o* `a`<u>`b`</u>", "fo\u200b_o_ `a`\u200b`b`"),
        ("\\# a\n\n\\- b\n\n3\\. c\n\n\\> d\n\n-# e", "\\# a\n\n\\- b\n\n3\\. c\n\n\\> d\n\n\\-# e"),
        ("snake_case 2 * 3 a|b", "snake\\_case 2 \\* 3 a\\|b"),
        ("<@1> <#2> <t:1:R> </a:1> :tada: @everyone", "\\<@1> \\<#2> \\<t\\:1:R> \\</a:1> \\:tada: @everyone"),
        ("[a [1]](https://e.org/(x)_*y*)", "[a [1]](https://e.org/%28x%29_*y*)"),
        ("https://e.org/a_b and <https://e.org/c>", "<https://e.org/a_b> and <https://e.org/c>"),
        ("_see https://e.org/a_b_", "_see_ <https://e.org/a_b>"),
        (
            "_a [b](https://e.org/c_d) e_ **[f](https://e.org/g_h)**",
            "_a_ [b](https://e.org/c_d) _e_ **[f](https://e.org/g_h)**",
        ),
        ("[a](http://localhost:1) [b](mailto:c@d.e)", "[a](http://localhost:1) b (c@d.e)"),
        ("[https://a.b](https://c.d)", "https:\\//a.b (https:\\//c.d)"),
        ("![pic](https://e.org/x.png)", "[pic](https://e.org/x.png)"),
        ("``` a`b``c ```", "`` a`b`\u200b`c ``"),
        ("~~~c++\na ```` b\n~~~", "```c++\na ``\u200b`` b\n```"),
        ("> a\n> ```\n> b\n> ```\n\nc", "> a\n> \n> ```\n> b\n> ```\n\nc"),
        ("|a|b|\n|-|-|\n|1|2|", "```\na │ b\n──┼──\n1 │ 2\n```"),
        ("1. a\n2. b\n   - c", "1\\. a\n2\\. b\n   ◦ c"),
    ],
)
def test_what_it_becomes(markdown: str, content: str) -> None:
    assert contents(markdown) == [content]


def test_it_has_at_most_2000_code_points_with_its_marks() -> None:
    assert [len(content) for content in contents("😀" * 2500)] == [2000, 500]
    found = contents("a_b " * 900)
    assert len(found) == 3
    assert all(1500 < len(content) <= 2000 for content in found[:2])
    (longest, *_) = contents("[w](https://e.org/" + "x" * 600 + ")")
    assert longest == "w (https:\\//e.org/" + "x" * 600 + ")"

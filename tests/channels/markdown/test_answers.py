"""What models write beside CommonMark, and what it becomes."""

import pytest

from channels.markdown.formatted import EntityType, Formatted
from channels.markdown.render import render as rendered


def render(markdown: str) -> Formatted:
    return rendered(markdown, lambda url, words: url.startswith("https://"))


def parts(formatted: Formatted) -> list[tuple[str, str]]:
    return [(one.style.type.value, formatted.text[one.start : one.end]) for one in formatted.entities]


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        # Emphasis beside other scripts and behind punctuation
        ("**注意：**请", "注意：请", [("bold", "注意：")]),
        ("这是**「復元」**を", "这是「復元」を", [("bold", "「復元」")]),
        ("API**「復元」**OK *「b」*c", "API「復元」OK 「b」c", [("bold", "「復元」"), ("italic", "「b」")]),
        ("~~废弃。~~新", "废弃。新", [("strikethrough", "废弃。")]),
        ("이 용어**(term)**를", "이 용어(term)를", [("bold", "(term)")]),
        ("**Note:**text **(a)**b", "Note:text (a)b", [("bold", "Note:"), ("bold", "(a)")]),
        ("snake_case_name 中_文_字", "snake_case_name 中_文_字", []),
        ("5*6*7 and 2*x*y, x**2 + y**2", "5*6*7 and 2*x*y, x**2 + y**2", []),
        ("a*b*c **2**nd", "abc 2nd", [("italic", "b"), ("bold", "2")]),
        # Bare addresses
        ("https://e.org/x#object.__init__", "https://e.org/x#object.__init__", []),
        ("https://e.org/?sig=c*d*e and *f*", "https://e.org/?sig=c*d*e and f", [("italic", "f")]),
        ("**https://e.org/a_b_c**", "https://e.org/a_b_c", [("bold", "https://e.org/a_b_c")]),
        ("_https://e.org/a_", "https://e.org/a", [("italic", "https://e.org/a")]),
        ("[see https://e.org/_a_](https://f.org)", "see https://e.org/_a_ (https://f.org)", []),
        ("[https://good.org](https://bad.org)", "https://good.org (https://bad.org)", []),
        # Link definitions and footnotes
        (
            'Sources:\n\n[1]: https://a.b "T"\n[2]: https://c.d',
            'Sources:\n\n[1]: https://a.b "T"\n[2]: https://c.d',
            [],
        ),
        ("see [1]\n\n[1]: https://a.b\n[2]: https://c.d", "see 1\n\n[2]: https://c.d", [("text_link", "1")]),
        ("[1]\n\n[1]: https://a.b\n[1]: https://c.d", "1\n\n[1]: https://c.d", [("text_link", "1")]),
        ("a[^1]\n\n[^1]: https://a.b", "a[^1]\n\n[^1]: https://a.b", []),
        ("[^1]: a note", "[^1]: a note", []),
        # Lists of tasks, code
        ("- [ ] **Bold** x\n- [x] `y`", "☐ Bold x\n☑ y", [("bold", "Bold"), ("code", "y")]),
        ("```\na\tb\n\tc\n```\n`d\te`", "a   b\n    c\n\nd   e", [("pre", "a   b\n    c"), ("code", "d   e")]),
        # HTML with a counterpart
        ("a<br>b<br/>c<BR />d", "a\nb\nc\nd", []),
        ("H<sub>2</sub>O m<sup>2</sup> x<sup>n+1</sup>", "H₂O m² xⁿ⁺¹", []),
        ("x<sub>Q</sub> y<sup>*</sup>", "x_(Q) y^(*)", []),
        ("<u>a *b*</u> <u>c", "a b <u>c", [("underline", "a b"), ("italic", "b")]),
        ("a<!-- b -->c\n\n<!-- d\n\n e -->\n\nf <!-- g", "ac\n\nf <!-- g", []),
        ("<b>a</b> <kbd>c</kbd>", "<b>a</b> <kbd>c</kbd>", []),
        ("`<br>` `||a||`", "<br> ||a||", [("code", "<br>"), ("code", "||a||")]),
        ("||a **b**|| c || d || e", "a b c || d || e", [("spoiler", "a b"), ("bold", "b")]),
        ("||`code`||", "code", [("spoiler", "code")]),
        (
            "<details>\n<summary>More *x*</summary>\n\n- a\n\n</details>\n\nb",
            "More x\n\n• a\n\nb",
            [("expandable_blockquote", "More x\n\n• a"), ("bold", "More x"), ("italic", "x")],
        ),
        (
            "<details open><summary>S</summary>a</details> b",
            "S\n\na\n\nb",
            [("expandable_blockquote", "S\n\na"), ("bold", "S")],
        ),
        ("<details>\na\n<details>\nb\n</details>\n</details>", "a\n\nb", [("expandable_blockquote", "a\n\nb")]),
        ("a\n\n</details>\n\n<details>\n\nb", "a\n\nb", []),
        ("> <details>\n> a\n> </details>", "a", [("blockquote", "a")]),
        ("    <details>\n    a\n    </details>", "<details>\na\n</details>", [("pre", "<details>\na\n</details>")]),
        # Mathematics and notes
        ("so $x^2_1$ and \\(a*b*c\\)", "so x^2_1 and a*b*c", [("code", "x^2_1"), ("code", "a*b*c")]),
        ("costs $5 and $10, $HOME=$x", "costs $5 and $10, $HOME=$x", []),
        ("$$\n- x\n= *y*\n$$\n\\[\n\\alpha\n\\]", "- x\n= *y*\n\n\\alpha", [("pre", "- x\n= *y*"), ("pre", "\\alpha")]),
        ("\\(\\) \\[\\] \\(word\\)\n\n\\[see\\]", "() [] (word)\n\n[see]", []),
        (
            "> [!WARNING]\n> Hot *x*",
            "Warning\nHot x",
            [("blockquote", "Warning\nHot x"), ("bold", "Warning"), ("italic", "x")],
        ),
        ("> a [!NOTE]\n\n[!TIP]", "a [!NOTE]\n\n[!TIP]", [("blockquote", "a [!NOTE]")]),
    ],
)
def test_what_it_becomes(markdown: str, text: str, entities: list[tuple[str, str]]) -> None:
    formatted = render(markdown)
    assert formatted.text == text
    assert parts(formatted) == entities


def test_what_a_platform_does_not_show() -> None:
    shows = frozenset({EntityType.BOLD, EntityType.BLOCKQUOTE})
    formatted = rendered("# T\n\n||s|| <u>*u*</u>\n\n<details>d</details>", lambda url, words: True, shows)
    assert formatted.text == "T\n\n||s|| u\n\nd"
    assert parts(formatted) == [("bold", "T"), ("blockquote", "d")]


def test_sections_within_sections_end_somewhere() -> None:
    text = render("<details>\n" * 200 + "x" + "\n</details>" * 200).text
    assert text.strip() == "x"


def table(*rows: str) -> str:
    return "\n".join([rows[0], "|-" * (rows[0].count("|") - 1) + "|", *rows[1:]])


def test_a_table_that_fits_a_phone_is_aligned() -> None:
    formatted = render(table(f"|{'a' * 18}|{'b' * 19}|", "|1|2|", f"|{'c' * 18}|{'d' * 19}|"))
    assert [len(line) for line in formatted.text.split("\n")] == [40, 40, 22, 40]
    assert [entity.style.type for entity in formatted.entities] == [EntityType.PRE]


def test_a_wider_one_is_a_list() -> None:
    formatted = render(table(f"|Name|{'b' * 34}|", "|*x*|[l](https://a.b)|", "|y||"))
    assert formatted.text == f"• Name: x\n   {'b' * 34}: l\n• Name: y"
    assert ("text_link", "l") in parts(formatted)
    assert ("italic", "x") in parts(formatted)


def test_padding_does_not_double_a_table() -> None:
    rows = [f"|{'long header ' * 3}|b|", *["|1|2|"] * 8]
    assert render(table(*rows)).text.startswith("• long header long header long header:")
    assert render(table("|" + "w" * 60 + "|")).text == "• " + "w" * 60


def test_a_quote_that_begins_with_indented_code_contains_it() -> None:
    formatted = render(">\t\tfoo\n>\n> bar")
    assert parts(formatted) == [("blockquote", "  foo\n\nbar"), ("pre", "  foo")]

"""Markdown to text and entities: what an independent reader of CommonMark sees, and entities that a platform takes."""

import json
from itertools import combinations
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from channels.markdown import render as renderer
from channels.markdown.formatted import QUOTES, Entity, EntityType, Formatted, split
from channels.utf16 import units

FIXTURE = Path(__file__).parents[1] / "fixtures" / "commonmark.json"
EXAMPLES = json.loads(FIXTURE.read_text(encoding="utf-8"))["examples"]
# What Hark shows otherwise: link definitions that nothing cites, and products.
OURS = {
    207: "[foo]:https://e.org/url",
    208: "[foo]:https://e.org/urlbar",
    210: '[foo]:https://e.org/url"title"ok',
    317: "•a•b[ref]:https://e.org/url•d",
    356: "5*6*78",
    544: "[foo]:https://e.org/url2bar",
    545: "[bar][foo!][foo!]:https://e.org/url",
    563: '[foo][foo]:https://e.org/url"title"',
    565: "foo[foo]:https://e.org/url1",
    571: "[foo]bar[foo]:https://e.org/url2",
    592: '![foo][foo]:https://e.org/url"title"',
}
FREE = {
    EntityType.BOLD,
    EntityType.ITALIC,
    EntityType.UNDERLINE,
    EntityType.STRIKETHROUGH,
    EntityType.SPOILER,
    EntityType.HEADING,
}
MONOSPACE = {EntityType.CODE, EntityType.PRE}


def render(markdown: str) -> Formatted:
    """For a platform that takes some addresses as links and others not."""
    return renderer.render(markdown, lambda url, words: url.startswith("https://"))


def plain(markdown: str) -> str:
    """For one that takes none."""
    return renderer.render(markdown, lambda url, words: False).text


def part(formatted: Formatted, entity: Entity) -> str:
    """The text of an entity."""
    return formatted.text[entity.start : entity.end]


def parts(formatted: Formatted) -> list[tuple[str, str]]:
    return [(entity.style.type.value, part(formatted, entity)) for entity in formatted.entities]


def check(formatted: Formatted) -> None:
    """The rules of `channels.markdown.formatted`, stated again."""
    size = len(formatted.text)
    for entity in formatted.entities:
        assert 0 <= entity.start < entity.end <= size
        text = part(formatted, entity)
        code = any(entity.start == other.start for other in formatted.entities if other.style.type is EntityType.PRE)
        assert text == (text.rstrip() if code else text.strip()) != ""
    for one, other in combinations(formatted.entities, 2):
        first, second = sorted((one, other), key=lambda entity: (entity.start, -entity.end))
        if second.start >= first.end:
            continue
        assert second.end <= first.end, "overlap"
        kinds = {first.style.type, second.style.type}
        if kinds & QUOTES:
            assert not kinds <= QUOTES
        else:
            assert not kinds & MONOSPACE
            assert kinds & FREE


def squeezed(text: str) -> str:
    return "".join(text.replace("◦", "•").replace("▪", "•").split())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example["example"]))
def test_the_examples_of_commonmark_keep_their_text_and_links(example: dict[str, object]) -> None:
    schemes = ("http:", "https:", "mailto:")
    formatted = renderer.render(str(example["markdown"]), lambda url, words: url.startswith(schemes))
    check(formatted)
    assert squeezed(formatted.text) == OURS.get(cast(int, example["example"]), example["text"])
    links = [[one.style.url, squeezed(part(formatted, one))] for one in formatted.entities if one.style.url]
    assert links == example["links"]


MARKS = [
    "**",
    "*",
    "_",
    "~~",
    "`",
    "```",
    "#",
    ">",
    "-",
    "\\",
    "<b>",
    "&nbsp;",
    "😀",
    "👨\u200d👩\u200d👧\u200d👦",
    "漢字",
    "é",
    "word",
]
STRUCTURE = ["> ", "- ", "1. ", "- [x] ", "# ", "\n", "\n\n", "    ", " ", "|a|b|\n|-|-|\n|1|2|\n"]
SNIPPET = st.one_of(
    st.sampled_from([str(example["markdown"]) for example in EXAMPLES]),
    st.sampled_from([*MARKS, *STRUCTURE, "[a](https://b.c)", "![x](https://y)"]),
    st.text(max_size=12),
)
DOCUMENT = st.lists(SNIPPET, max_size=25).map("".join)


@given(DOCUMENT)
def test_entities_are_always_valid(markdown: str) -> None:
    check(render(markdown))


@given(DOCUMENT, st.integers(1, 60), st.integers(5, 12))
def test_pieces_are_within_the_limits_and_keep_all_text_in_order(markdown: str, limit: int, most: int) -> None:
    formatted = render(markdown)
    pieces = split(formatted, limit, most)
    for piece in pieces:
        check(piece)
        assert units(piece.text) <= max(limit, 2)
        assert len(piece.entities) <= most
        assert piece.text.strip()
    assert squeezed("".join(piece.text for piece in pieces)) == squeezed(formatted.text)


@given(DOCUMENT, st.integers(20, 60))
def test_every_character_looks_the_same_in_its_piece(markdown: str, limit: int) -> None:
    def looks(formatted: Formatted) -> list[tuple[str, frozenset[tuple[str, str, str]]]]:
        found = []
        for at, char in enumerate(formatted.text):
            inside = [one.style for one in formatted.entities if one.start <= at < one.end]
            styles = {(style.type.value, style.url, style.language) for style in inside}
            if not char.isspace():
                found.append((char, frozenset(styles)))
        return found

    formatted = render(markdown)
    assert [look for piece in split(formatted, limit, 100) for look in looks(piece)] == looks(formatted)


@given(st.text(alphabet="ab \n*_`~[]()<>&#-|!\\", max_size=60))
def test_plain_text_keeps_every_letter(markdown: str) -> None:
    assert [char for char in plain(markdown) if char in "ab"] == [char for char in markdown if char in "ab"] or any(
        token.type == "fence" or "](" in markdown for token in MarkdownIt().parse(markdown)
    )


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        ("**a** *b* ~~c~~", "a b c", [("bold", "a"), ("italic", "b"), ("strikethrough", "c")]),
        ("**a *b* `c` d**", "a b c d", [("bold", "a b"), ("italic", "b"), ("code", "c"), ("bold", "d")]),
        ("# Head *x*", "Head x", [("bold", "Head x"), ("italic", "x")]),
        ("[`x` **y**](https://a.b)", "x y", [("text_link", "x y"), ("bold", "y")]),
        ("<https://a.b>", "https://a.b", [("text_link", "https://a.b")]),
        ("[a](ftp://b)", "a (ftp://b)", []),
        ('**[a](/b "c") d**', "a (/b) d", [("bold", "a (/b) d")]),
        ("[later]()", "later", []),
        ("[a **b** [c]](#d)", "a b [c] (#d)", [("bold", "b")]),
        ("[`a` b](#c)", "a b (#c)", [("code", "a")]),
        ("[call](tel:+123)", "call (tel:+123)", []),
        ("[mail](mailto:a@b.c) [a@b.c](mailto:a@b.c) <a@b.c>", "mail (a@b.c) a@b.c a@b.c", []),
        ("[h](http://h/%C3%BC)", "h (http://h/ü)", []),
        ("![](http://h/c.png)", "image (http://h/c.png)", []),
        ("<std:vector> [note]: this", "<std:vector> [note]: this", []),
        ("[note]: this", "[note]: this", []),
        ("![cat](https://a.b/c.png)", "cat", [("text_link", "cat")]),
        ("![](https://a.b/c.png)", "image", [("text_link", "image")]),
        ("> a\n>\n> b\n\nc", "a\n\nb\n\nc", [("blockquote", "a\n\nb")]),
        ("> a\n> > b", "a\n\nb", [("blockquote", "a\n\nb")]),
        ("> a\n\n<!-- -->\n\n> b", "a\n\nb", [("blockquote", "a"), ("blockquote", "b")]),
        ("> `a` [b](https://c)", "a b", [("blockquote", "a b"), ("code", "a"), ("text_link", "b")]),
        ("- a\n- b\n  - c\n  - d\n- e", "• a\n• b\n   ◦ c\n   ◦ d\n• e", []),
        ("3. a\n4. b\n   - c", "3. a\n4. b\n   ◦ c", []),
        ("- a\n\n- b\n\n  c", "• a\n\n• b\n\n   c", []),
        ("- [ ] a\n- [x] b\n1. [X] c", "☐ a\n☑ b\n\n1. ☑ c", []),
        ("-\n- a", "•\n• a", []),
        ("- ```\n  a\n  ```", "•\na", [("pre", "a")]),
        ("a\nb  \nc", "a\nb\nc", []),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
        ("a <b>c</b>", "a <b>c</b>", []),
        ("<div>\n*a*\n</div>", "<div>\na\n</div>", [("italic", "a")]),
        ("```py title=x\n  a\n\n```", "  a", [("pre", "  a")]),
        ("```\n```", "", []),
        ("[a]: https://b.c", "[a]: https://b.c", []),
        ("&nbsp;", "\xa0", []),
        ("a\x00b", "a\ufffdb", []),
    ],
)
def test_what_it_becomes(markdown: str, text: str, entities: list[tuple[str, str]]) -> None:
    formatted = render(markdown)
    assert formatted.text == text
    assert parts(formatted) == entities


def test_the_language_of_code_is_kept() -> None:
    (code,) = render("```c++ x\na\n```").entities
    assert (code.start, code.end, code.style.type, code.style.language) == (0, 1, EntityType.PRE, "c++")


def test_a_table_is_aligned_by_the_width_that_is_seen() -> None:
    formatted = render("|a|b|c|\n|:-|-:|:-:|\n|漢字|1|[x](https://y.z)|\n|d|**22**|`e`|")
    assert formatted.text.split("\n") == [
        "a    │  b │        c",
        "─────┼────┼────────────────",
        "漢字 │  1 │ x (https://y.z)",
        "d    │ 22 │        e",
    ]
    assert [entity.style.type for entity in formatted.entities] == [EntityType.PRE]


def test_plain_text_shows_where_a_link_leads() -> None:
    assert plain("**see** [a](https://b.c) <https://x.y> ![p](https://i)") == (
        "see a (https://b.c) https://x.y p (https://i)"
    )


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert render("a\ud83db").text == "a\ufffdb"
    assert render("a\ud83d\ude00b").text == "a😀b"


def test_a_long_text_is_cut_between_paragraphs_then_lines_then_words() -> None:
    def texts(text: str) -> list[str]:
        return [piece.text for piece in split(Formatted(text), 10, 100)]

    assert texts("aaaaaa\n\nbb cc\ndd") == ["aaaaaa", "bb cc\ndd"]
    assert texts("aaaaaa\nbb cc\ndd") == ["aaaaaa", "bb cc\ndd"]
    assert texts("aaaaaa bb cc dd") == ["aaaaaa bb", "cc dd"]
    assert texts("aaaaaaaaaaaaaa") == ["aaaaaaaaaa", "aaaa"]
    assert texts("aaaaaaaaa👍🏽") == ["aaaaaaaaa", "👍🏽"]


def test_a_piece_that_cannot_be_sent_is_made_shorter() -> None:
    def share(piece: Formatted) -> float:
        return 11 / len(piece.text.replace("&", "&amp;"))

    pieces = split(Formatted("aaa &&& bbb ccc"), 4096, 100, share=share)
    assert [piece.text for piece in pieces] == ["aaa", "&&", "& bbb", "ccc"]
    assert [piece.text for piece in split(Formatted("ab"), 4096, 100, share=lambda piece: 0.5)] == ["a", "b"]


def test_code_that_is_cut_stays_code_and_keeps_its_indentation() -> None:
    formatted = render("```py\nif a:\n    b()\n    c()\n```")
    code = formatted.entities[0].style
    assert (code.type, code.language) == (EntityType.PRE, "py")
    assert split(formatted, 14, 100) == [
        Formatted("if a:\n    b()", (Entity(0, 13, code),)),
        Formatted("    c()", (Entity(0, 7, code),)),
    ]


def test_more_entities_than_one_message_takes_make_two() -> None:
    pieces = split(render(" ".join(f"*{number}*" for number in range(150))), 4096, 100)
    assert [len(piece.entities) for piece in pieces] == [100, 50]


def test_an_item_that_begins_with_emphasis_keeps_the_space_behind_its_marker() -> None:
    assert render("- **Model** x").text == "• Model x"
    assert render("1. *a* b").text == "1. a b"

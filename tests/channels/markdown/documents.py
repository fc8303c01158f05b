"""Markdown to try renderers with: CommonMark's examples, tables, and what models write."""

import json
from pathlib import Path

from hypothesis import strategies as st

EXAMPLES = json.loads((Path(__file__).parents[1] / "fixtures" / "commonmark.json").read_text(encoding="utf-8"))[
    "examples"
]

TABLES = [
    "|a|b|\n|-|-|\n|1|2|",
    "|a|b|c|\n|:-|-:|:-:|\n|漢字|1|[x](https://y.z)|\n|d|**22**|`e`|",
    "|Name|What it is for|\n|-|-|\n|a|" + "words " * 20 + "|\n|b|`code` and [a link](https://e.org)|",
    "|" + "|".join(f"column {n}" for n in range(9)) + "|\n|" + "-|" * 9 + "\n|" + "x|" * 9 + "\n|" + "y|" * 9,
    "|a|a very long header over short cells|\n|-|-|\n" + "|1|2|\n" * 9,
    "|only|\n|-|",
    "|a|b|\n|-|-|\n||<br>|\n|a\\|b|`c\\|d`|",
    "> |a|b|\n> |-|-|\n> |1|" + "2 " * 40 + "|",
    "- |a|b|\n  |-|-|\n  |**1**|2<br>3|",
    "||\n|-|",
    "|" + "w" * 60 + "|\n|-|\n|" + "v" * 60 + "|",
]
REAL = [
    "**注意：**请 **「復元」**を **Note:**text *a*b",
    "see https://e.org/a#object.__init__ and https://x.y/?sig=c*d*e, **https://a.b/c**. 5*6*7 x**2 + y**2",
    'Sources:\n\n[1]: https://a.b "T"\n[2]: <https://c.d>\n\n[^1]: note\n[^2]: https://f.g',
    "- [ ] **Bold** x\n- [x] *y*\n1. [ ] z",
    "```\n\tif a:\n\t\tb\n```\n\n`a\tb`",
    "a<br>b H<sub>2</sub>O x<sup>n+1</sup> <sub>*q*</sub> <u>un *it*</u> <!-- c --> ||sp **b** `c`|| a || b",
    "<details><summary>Sum *x*</summary>\n\n- a\n\n```\nb\n```\n\n</details>\n\nafter",
    "> [!NOTE]\n> be careful\n>\n> ```\n> x\n> ```\n> > more",
    "$x^2$ costs $5 and $10, \\(a_1*b*c\\) $$\\frac{a}{b}$$\n\n$$\n- x_1\n= y\n$$\n\n\\[ z^2 \\]",
    "# One #\n\n## Two *x* **y**\n\n#### Four\n\nx\n===\n\n- # in a list",
    "\\# no\n\n1\\. no\n\n\\- no \\<@1> <@U1> <!channel> <t:1:R> @everyone :b: `a``b` `` ` `` ``` x`y``z ```",
    "-# small\n\n\\>>> quote\n\n__x__ ~~y~~ ***z*** **a*b*c** *a**b**c* _a_b_ `x`y <https://a.b/c_d_e>",
    "[a [b] c](https://e.org/(x)) [**bold** not](https://e.org/?a=1&b=2|3) [x\\]y](https://e.org) ![i](https://i.j/k.png)",
    "[https://good.org](https://bad.org) [mail](mailto:a@b.c) [nas](http://nas:8123/) [ref][r]\n\n[r]: https://r.s",
    "```py\na = '```'\n```\n\n~~~\nx ``` y\n~~~",
    "**bold\nover lines** and *it\n> not a quote*",
    "a\\\nb  \nc &amp; &lt;b&gt; &copy;",
]

_MARKS = [
    "**",
    "*",
    "_",
    "~~",
    "||",
    "`",
    "``",
    "```",
    "#",
    ">",
    "-",
    "+",
    "1.",
    "\\",
    "$",
    "[",
    "](",
    ")",
    "<",
    ":",
    "|",
    "/",
]
_WORDS = [
    "word",
    "漢字",
    "：",
    "é",
    "😀",
    "👨\u200d👩\u200d👧\u200d👦",
    "5",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\n> ",
    "\n- ",
    "\n# ",
    "\n    ",
]
_TAGS = ["<br>", "<u>", "</u>", "<details>", "</details>", "<!--", "-->", "<sub>1</sub>", "&nbsp;", "<@1>", ":b:", "\t"]
_LINKS = [
    "[a](https://b.c)",
    "![x](https://y)",
    "https://a.b/c_d",
    "<https://e.f>",
    "[r]: https://r.s\n",
    "[r]",
    "[!NOTE]\n",
]
SNIPPETS = st.one_of(
    st.sampled_from([*REAL, *TABLES, *(str(example["markdown"]) for example in EXAMPLES)]),
    st.sampled_from([*_MARKS, *_WORDS, *_TAGS, *_LINKS]),
    st.sampled_from([*_MARKS, *_WORDS]),
    st.text(max_size=8),
)
DOCUMENTS = st.lists(SNIPPETS, max_size=25).map("".join)

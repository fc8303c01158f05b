"""Answers as models write them, long enough to be cut."""

_STEP = """## {n}. Prepare host number {n}

Log in and **check the disk first**; the [runbook](https://wiki.example.org/runbook/{n}?a=1&b=2) says why. Then:

1. Stop the service:
   ```sh
   systemctl stop app-{n}
   journalctl -u app-{n} --since "10 min ago"
   ```
2. Look at what is left:
   - the queue, with `queue --list --host {n}`
     - *pending* items first
     - failed ones later, they are ~~lost~~ kept
   - the lock file

   It goes on below the list, in the same item, with some more words about what to expect there.
3. Start it again.

> **Note:** never do this on two hosts at once. The cluster would lose its quorum,
> and then everything has to be started by hand, which takes an hour.
"""
GUIDE = "# How to move the cluster\n\n" + "\n".join(_STEP.format(n=n) for n in range(1, 9))
REPORT = (
    "# Incident report\n\nWhat happened, in order:\n\n| Time | Host | What was seen | Who |\n|:-|-:|---|---|\n"
    + "".join(f"| 10:{n:02} | web-{n} | error `E{n}` in **step {n}** of the job | [ops](https://o.example/{n}) |\n"
              for n in range(40))
    + "\nThe cause was a full disk. " + "Nobody had looked at the graph for a while. " * 40
)  # fmt: skip
CODE = (
    "Here is the file:\n\n```python\n"
    + "".join(f"def function_{n}(value: int) -> int:\n    return value * {n}\n\n\n" for n in range(20))
    + "```\n\nRun it with `python file.py`."
)
LONG_CODE = CODE.replace("range", "r").replace(
    "    return", "    # a comment that makes it longer\n" * 6 + "    return"
)
CJK = "**重要なお知らせ：**" + "この文章は長い段落です。読点、句点があり、「引用」も**強調**もあります。" * 60
EMPHASIS = (
    "He said: **" + "this is all bold and quite long, " * 60 + "the end** and then *" + "so it went " * 150 + "on*."
)
LINKS = " ".join(
    f"See [the page number {n}](https://example.org/a/very/long/path/{n}?query=words_and_more) or https://e.org/x_{n}_y"
    for n in range(60)
)
ONES = "Steps:\n\n" + "".join(f"1. item with some words to fill the line, the number is {n}\n" for n in range(9)) * 4
_QUOTE = "> " + "\n> ".join(["A quote **with a style", "that goes on** and on"] * 40)
_DETAILS = "<details>\n<summary>More</summary>\n\n" + "Hidden words here. " * 30 + "\n</details>"
_MATH = "$$\n" + "x_1 + y_2 = z\n" * 30 + "$$"
_SPOILER = "The ||" + "secret words " * 130 + "end|| is out."
_TASKS = "- [ ] a task\n  - `code` below it\n\n    more of it, in a paragraph\n" * 40
MIXED = "\n\n".join([_QUOTE, _DETAILS, _MATH, _SPOILER, _TASKS])
ANSWERS = {
    "guide": GUIDE, "report": REPORT, "code": CODE, "long code": LONG_CODE, "cjk": CJK, "emphasis": EMPHASIS,
    "links": LINKS, "ones": ONES, "mixed": MIXED,
}  # fmt: skip

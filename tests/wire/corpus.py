"""The streams that the reply path is judged by, and what people must see of them: said once, in order, nothing else.

A `Case` is what a model answers, request by request. seen: the messages that stand in the chat at the end, as plain
text that is the same on all platforms. Long answers say instead how many messages they may become on each platform;
what stands there is then held against the words of the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.standins.script import Call, Continuer, Reply, Say, Stop, Think, Written

SECRET = "the-secret-reasoning"


@dataclass(frozen=True, slots=True)
class Case:
    """name: also what is asked. files: names of what is attached. at_least: instead of `seen`, that something is said.

    replies: the first message is shown as a reply to the question, where the platform has that.
    """

    name: str
    steps: Sequence[Written | Reply]
    seen: Sequence[str] | None = None
    files: Sequence[str] = ()
    replies: bool = False
    at_least: bool = False


def tool(text: str, **more: object) -> Call:
    """The message tool sends something."""
    return Call("message", {"action": "send", "text": text, **more})


def chars(text: str) -> Say:
    """In single characters, the worst a provider does."""
    return Say(text, len(text))


def bits(text: str) -> Say:
    """In pieces that end anywhere, in the middle of tags and tokens."""
    return Say(text, -(-len(text) // 3))


LOOK = Call("glob", {"pattern": "*.txt"})
ANSWER = "The backup of Monday is complete, and 42 files were stored."
WORDS = "There is a train at 9:14 and another one at 9:44. Both of them take 35 minutes, and neither needs a change."

STREAMS = (
    Case("one-delta", [Say(WORDS, 1)], [WORDS]),
    Case("characters", [chars(WORDS)], [WORDS]),
    Case("two-parts", [[Say("First part. "), Say("Second part.")]], ["First part. Second part."]),
    Case("empty-deltas", [Say(WORDS, ["", WORDS[:10], "", WORDS[10:], ""])], [WORDS]),
    Case("blank-around", [Say(f"\n\n  {WORDS}\n\n\n", 9)], [WORDS]),
    Case(
        "tool-between", [[Say("I look."), LOOK], [Say("One more."), LOOK], "Done."], ["I look.", "One more.", "Done."]
    ),
    Case("tool-first", [LOOK, WORDS], [WORDS]),
    Case("tool-last-word", [[Say(WORDS), LOOK], []], [WORDS]),
    Case("thinking", [[Think(SECRET), Say("I look."), LOOK], [Think(SECRET), Say(WORDS)]], ["I look.", WORDS]),
    Case("ended-early", [[Say("It is long"), Stop("max_tokens")], " and it ends."], ["It is long", "and it ends."]),
    Case("same-words-twice", [Say("Yes. Yes. Yes, indeed. Yes.")], ["Yes. Yes. Yes, indeed. Yes."]),
)

CUTS = tuple(Case(f"cut-{cut}", [Continuer(WORDS, "/cut-", [cut])], [WORDS]) for cut in (0, 1, 4, 12, 21))

TOOL_SAID = (
    Case("said-first", [tool(ANSWER), ANSWER], [ANSWER]),
    Case("said-first-in-characters", [tool(ANSWER), bits(ANSWER)], [ANSWER]),
    Case(
        "said-otherwise",
        [tool(ANSWER), "Hello!\n\n**The backup** of Monday is  complete, and 42 files were stored."],
        [ANSWER],
    ),
    Case("said-nearly", [tool(ANSWER), ANSWER.replace("is", "was")], [ANSWER, ANSWER.replace("is", "was")]),
    Case("said-with-a-sign", [tool(ANSWER), f"{ANSWER} 🎉"], [ANSWER, f"{ANSWER} 🎉"]),
    Case("said-another-number", [tool(ANSWER), ANSWER.replace("42", "43")], [ANSWER, ANSWER.replace("42", "43")]),
    Case(
        "said-half",
        [tool(ANSWER), f"{ANSWER} The next one runs on Tuesday at noon, as it always does."],
        [ANSWER, f"{ANSWER} The next one runs on Tuesday at noon, as it always does."],
    ),
    Case(
        "said-a-word",
        [tool("Done"), "Done with the first of the three."],
        ["Done", "Done with the first of the three."],
    ),
    Case("said-nothing-new", [tool(ANSWER), []], [ANSWER]),
    Case("said-twice-by-tools", [tool("One."), tool("Two."), "Two."], ["One.", "Two."]),
    Case("failed-to-say", [tool(ANSWER, to="#nowhere-at-all"), ANSWER], [ANSWER]),
    Case("repeated-message", [[Say(ANSWER), LOOK], ANSWER], [ANSWER]),
    Case(
        "repeated-beginning",
        [[Say(ANSWER), LOOK], f"{ANSWER} All is well, nothing else is to be done."],
        [ANSWER, f"{ANSWER} All is well, nothing else is to be done."],
    ),
)

SILENCE = (
    *(
        Case(f"silent-{number}", [bits(text)], [])
        for number, text in enumerate(
            (
                "NO_REPLY",
                "no_reply",
                " No_Reply. \n",
                "**NO_REPLY**",
                '{"action": "NO_REPLY"}',
                '```json\n{"action":"NO_REPLY"}\n```',
                "HEARTBEAT_OK",
                "<p><b>heartbeat_ok</b></p>",
            )
        )
    ),
    Case("silent-in-one", [Say("NO_REPLY", 1)], []),
    Case("silent-tool", [[Call("stay_silent", {"reason": "nothing to say"})]], []),
    Case("silent-tool-with-words", [[Say("Hm, no."), Call("stay_silent")]], []),
    Case("silent-after-tool", [tool(ANSWER), "NO_REPLY"], [ANSWER]),
    Case("silent-after-words", [[Say("I look."), LOOK], "NO_REPLY"], ["I look."]),
    Case("silent-at-the-end", [Say("All is done.\n\nNO_REPLY", 9)], ["All is done."]),
    Case("silent-at-the-beginning", [Say("**HEARTBEAT_OK**\n\nAll is done.", 9)], ["All is done."]),
    Case("not-silent-within", [Say("Say NO_REPLY to be silent.", 9)], ["Say NO_REPLY to be silent."]),
    Case("not-silent-small", [Say("Then it says no_reply", 9)], ["Then it says no_reply"]),
    Case("not-silent-longer", [Say("NO_REPLYING is no word.", 9)], ["NO_REPLYING is no word."]),
    Case("not-silent-beginning", [Say("NO", 1)], ["NO"]),
    Case("not-silent-json", [Say('{"action": "NONE"}', 6)], ['{"action": "NONE"}']),
)

HIDDEN = (
    *(
        Case(f"hidden-{number}", [bits(text)], [WORDS])
        for number, text in enumerate(
            (
                f"<think>{SECRET}</think>{WORDS}",
                f"<thinking>\n{SECRET}\n</thinking>\n\n{WORDS}",
                f"<thought>{SECRET}</thought>\n{WORDS}",
                f"<antthinking>{SECRET}</antthinking>{WORDS}",
                f"<final>{WORDS}</final>",
                f"<think>{SECRET}</think><final>{WORDS}</final>",
                f"<THINK>{SECRET} < > </ th </THINK>{WORDS}",
                f"{WORDS}\n<think>{SECRET}",
                f"{WORDS[:50]}<think>{SECRET}</think>{WORDS[50:]}",
                f"{WORDS}<|im_end|>",
                f'{WORDS}\n<tool_call>\n{{"name": "glob", "arguments": {{"pattern": "{SECRET}"}}}}\n</tool_call>',
            )
        )
    ),
    Case("hidden-all", [chars(f"<think>{SECRET} and on")] * 3, at_least=True),
    Case("hidden-before-tool", [[chars(f"<think>{SECRET}</think>"), LOOK], WORDS], [WORDS]),
    *(
        Case(f"talked-about-{number}", [bits(text)], [text])
        for number, text in enumerate(
            (
                "The tag <think> begins it, and so does [THINK] there.",
                "With <function name=read> a call begins; that is all.",
                "It is a Map<Function> { of names }, and has three.",
            )
        )
    ),
    Case(
        "less-than",
        [bits("If a <b and b> c, then a <= c or <thing> it.")],
        ["If a <b and b> c, then a <= c or <thing> it."],
    ),
)

TAGS = (
    Case("tag", [bits(f"[[reply_to_current]] {WORDS}")], [WORDS], replies=True),
    Case("tag-behind", [bits(f"{WORDS} [[reply_to_current]]")], [WORDS]),
    Case("tag-of-no-message", [bits(f"[[reply_to:abc]] {WORDS}")], [WORDS]),
    Case("tag-of-no-number", [bits(f"[[reply_to:{'9' * 40}]] {WORDS}")], [WORDS]),
    Case("no-tag", [bits("Use [[this]] or [[that]], or a[[0]].")], ["Use [[this]] or [[that]], or a[[0]]."]),
    Case("file", [bits("Here it is.\nMEDIA: notes.txt")], ["Here it is."], files=["notes.txt"]),
    Case(
        "file-between",
        [bits("Here it is.\nMEDIA: notes.txt\nRead it well.")],
        ["Here it is.\nRead it well."],
        files=["notes.txt"],
    ),
    Case("file-alone", [bits("MEDIA: notes.txt")], [], files=["notes.txt"]),
    Case(
        "file-sent-by-tool",
        [Call("message", {"action": "upload", "path": "notes.txt"}), "There.\nMEDIA: notes.txt"],
        ["There."],
        files=["notes.txt"],
    ),
    Case("file-far", [bits("Here it is.\nMEDIA: /etc/passwd")], at_least=True),
    Case("file-in-words", [bits("Write MEDIA: notes.txt to send it.")], ["Write MEDIA: notes.txt to send it."]),
)

ALIKE = (*SILENCE, *HIDDEN)
OTHERS = (*CUTS, *STREAMS, *TOOL_SAID, *TAGS)
SHORT = (*ALIKE, *OTHERS)


def _prose(tag: str, count: int) -> str:
    """Numbered words, so that one that is missing, doubled or misplaced is seen."""
    return " ".join(f"{tag}{number}" + ("." if number % 11 == 10 else "") for number in range(count))


def _guide() -> str:
    parts = ["# Moving the service to a new machine"]
    for number in range(1, 10):
        parts += [
            f"## Step {number}: what to do",
            _prose(f"word{number}x", 45) + f" and **what matters {number}** is *emphasised {number}* here.",
            f"1. First of {number}: open [the page {number}](https://example.org/page/{number})\n"
            f"   - detail {number} with `code {number}`\n2. Second of {number}\n3. Third of {number}",
            f"```sh\nsystemctl stop hark-{number}\n\ncp -a state state-{number}\nsystemctl start hark-{number}\n```",
            f"> Note {number}: a quote of {number}.",
        ]
    return "\n\n".join(parts)


def _report() -> str:
    rows = [f"| row{number:02} | host-{number} | {number * 7} ms | it failed at {number} |" for number in range(40)]
    table = ["| Time | Host | Latency | What happened |", "| --- | :---: | ---: | --- |", *rows]
    return "\n\n".join(
        (
            "# Incident 17",
            _prose("cause", 60),
            "## Timeline",
            "\n".join(table),
            "## What follows",
            _prose("after", 60),
            "- **Owner**: Alice\n- **Due**: *Friday*",
        )
    )


def _code() -> str:
    lines = [f"    x{number:02} = f({number})" for number in range(78)]
    return "\n".join(
        ("Here is the file:", "", "```python", "def main():", *lines, "    return x77", "```", "", "Save it.")
    )


def _chinese() -> str:
    return "".join(chr(0x4E00 + number) + ("。" if number % 37 == 36 else "") for number in range(5000))


def _bold() -> str:
    return f"It is so: **{_prose('bold', 900)}** and *{_prose('thin', 300)}* so it ends."


@dataclass(frozen=True, slots=True)
class Long:
    """A long answer. most: how many messages it may become on each platform. blind: words that are not compared."""

    name: str
    text: str
    most: Mapping[str, int]
    blind: frozenset[str] = frozenset()


TALK = "\n\n".join(_prose(f"p{number}x", 60 + 7 * number) for number in range(14))
LONG = (
    Long("talk", TALK, {"telegram": 4, "discord": 7, "slack": 4}),
    Long("guide", _guide(), {"telegram": 3, "discord": 5, "slack": 3}),
    Long(
        "report",
        _report(),
        {"telegram": 3, "discord": 4, "slack": 3},
        frozenset({"Time", "Host", "Latency", "What", "happened"}),
    ),
    Long("code", _code(), {"telegram": 2, "discord": 2, "slack": 2}),
    Long("chinese", _chinese(), {"telegram": 2, "discord": 4, "slack": 3}),
    Long("bold", _bold(), {"telegram": 4, "discord": 6, "slack": 4}),
)

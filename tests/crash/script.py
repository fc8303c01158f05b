"""What people write in crash tests, and what the model then has to say: a small language with one right answer.

`A1 2p+count | 3p` asks for two model answers: two paragraphs and a call of `count`, then three paragraphs. Every word
of an answer is numbered (`A1.0 A1.1 …`), so that one missing, repeated or misplaced word is seen. `A2 also` is a
steering text: its words are added to the next answer. `first` is a call that says the words of the next answer already.
`H1 2f+1p | ok` fails twice for its key, then says a paragraph, then that there is nothing to say. Beats find it in
HEARTBEAT.md, jobs in their prompts. `spawn` starts a sub-agent with the script TASK, under a token of its own that
begins with `S`; what that comes to is answered with a paragraph. `again` says something more to the sub-agent that was
started first, `relay` to the session of B, each under a token of its own. `letter` reads a file that nobody vouches
for, `remember` writes a memory, `m_count` and `m_die` are tools of an MCP server.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from agent.tools.conversation import STAY_SILENT
from heartbeat.quiet import HEARTBEAT_OK

WORDS = 9
"""Of a paragraph."""
TASK = "1p+count | 1p+look+count | 2p"
"""Of sub-agents."""
ALONE = "HJKL"
"""With these begin the scripts of beats and jobs in sessions of their own."""
_SCRIPT = re.compile(r"^(?:edited: )?([A-Z]\d+) (.+)$")
_WORD = re.compile(r"([A-Z]\d+)\.(\d+)")
_TOLD = re.compile(r'^\(the sub-agent "S(\d+)" [^\n]*\n?(?:<subagent>\n(.*))?', re.MULTILINE | re.DOTALL)
_FENCE = "\n</subagent>"
_NOTES = re.compile(r"^HEARTBEAT\.md says:\n(.+)$", re.MULTILINE)
TOOLS = (
    "count",
    "look",
    "wait",
    "nope",
    "ask",
    "late",
    "query",
    "send",
    "tell",
    "mail",
    "first",
    "spawn",
    "again",
    "relay",
    "letter",
    "remember",
    "m_count",
    "m_die",
    STAY_SILENT,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the model: its text and its calls, by tool name; malformed ones are called `bad`.

    limited: of much more than a paragraph only the first half is said, then the limit of output is reached.
    slow: a word takes a second. fails: how often it fails before.
    """

    text: str
    calls: tuple[str, ...]
    holds: bool
    breaks: bool
    limited: bool
    slow: bool = False
    fails: int = 0


@dataclass(frozen=True, slots=True)
class Script:
    """What a message asks for."""

    token: str
    steps: tuple[Step, ...]
    steering: bool

    @property
    def words(self) -> int:
        """How many words the whole answer has."""
        return sum(len(_WORD.findall(step.text)) for step in self.steps)


@lru_cache(maxsize=512)
def parse(text: str) -> Script | None:
    """The script that a message of a person is; None for other texts (notes, commands)."""
    if told := _TOLD.search(text):
        return answer_to(f"S{told[1]}", told[2] or "")
    notes = _NOTES.search(text)
    found = _SCRIPT.match(notes[1] if notes else text.removesuffix(_FENCE).rsplit("\n", 1)[-1])
    if found is None:
        return None
    token, rest = found[1], found[2]
    if rest == "also":
        return Script(token, (Step(_paragraphs(token, 0, 1), (), False, False, False),), steering=True)
    steps, word = [], 0
    for part in rest.split("|"):
        items = [item.strip() for item in part.split("+")]
        count = sum(int(item[:-1]) for item in items if re.fullmatch(r"\d+p", item))
        calls = tuple(item for item in items if item in (*TOOLS, "bad"))
        said = HEARTBEAT_OK if "ok" in items else _paragraphs(token, word, count)
        fails = sum(int(item[:-1]) for item in items if re.fullmatch(r"\d+f", item))
        steps.append(Step(said, calls, "hold" in items, "break" in items, "limit" in items, "slow" in items, fails))
        word += count * WORDS
    return Script(token, tuple(steps), steering=False)


def answer_to(child: str, said: str) -> Script:
    """What is said about the end of a turn of a sub-agent, by its token and what that has said."""
    words = _WORD.search(said)
    token = f"A9{words[1][1:]}" if words else f"A8{child[1:]}"
    return Script(token, (Step(_paragraphs(token, 0, 1), (), False, False, False),), steering=False)


def alone(text: str) -> bool:
    """Whether a user message is that of a beat or job in a session of its own, which has no history."""
    script = parse(text)
    return script is not None and script.token[0] in ALONE


def is_beat(text: str) -> bool:
    """Whether a user message is that of a beat."""
    return _NOTES.search(text) is not None


def is_job(text: str) -> bool:
    """Whether a user message is that of a job."""
    return "This is the scheduled job" in text


def _paragraphs(token: str, first: int, count: int) -> str:
    return "\n\n".join(
        " ".join(f"{token}.{n}" for n in range(first + p * WORDS, first + (p + 1) * WORDS)) for p in range(count)
    )


def words_of(text: str) -> list[tuple[str, int]]:
    """The numbered words of a text, in order."""
    return [(token, int(number)) for token, number in _WORD.findall(text)]

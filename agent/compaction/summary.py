"""The summary of the older part of a conversation: what the model is asked for, and what is added to its words.

A summary is a message of several parts in a fixed order: the model's words; what people wrote, word for word; the
identifiers that the model's words lack; what goes on besides, as the service knows it. The next summary stands for this
one as well, and takes over the second and third part, and the identifiers of the first. No part holds credentials.
"""

import re
from collections.abc import Iterable, Sequence

from agent.compaction.identifiers import lost, without_credentials
from agent.message import Entry, Message, Text, ToolCall, ToolResult, estimate_text, merged

# What the model is told when it is to sum up; `{focus}` is empty or a sentence.
_REQUEST = """\
[This is not from a person. The conversation above no longer fits into your context window. Write a summary of it that \
takes its place; you will go on from the summary alone. Do not call a tool, and answer nobody.{focus}

Keep, under these headings, whatever there is:
- Tasks: what is being worked on, its state, progress of batches as n of m, and what comes next.
- Asked last: what people asked for last, and what they were told.
- Decisions: what was decided, by whom, and why.
- Rules: what people forbade, approved, or want to be asked or told about, in their own words.
- Open: to-dos, unanswered questions, failures that are not mended.
- Facts: what was found out, with its source, and files that matter.

Copy identifiers letter by letter: ids, hashes, addresses, ports, URLs, paths, names, numbers, dates. \
Write no secrets. Invent nothing; what is uncertain, call uncertain. \
Write in the language of the conversation, in at most {words} words.]"""
_FOCUS = " The person wants you to pay attention to this above all: {focus}"

_HEAD = "[Summary of the earlier part of this conversation, which is not shown any more.]\n\n"
_SAID = "[What people wrote in that part, word for word, oldest first. What they ruled still holds.]\n"
_NAMES = "[Identifiers from that part.]\n"
_STATE = "[What goes on besides, as the service knows it. Begin none of it again.]\n"

# Which of people's words are kept when not all of them fit: those that sound like rules, in several languages.
_RULE = re.compile(
    r"\b(?:never|always|do not|don['’]?t|must|mustn['’]?t|should|only|unless|without asking|from now on|every time"
    r"|remember|remind|tell me|ask me|let me know|prefer|call me|my name|forbid|forbidden|allowed|approve\w*|stop"
    r"|nie|niemals|immer|nicht|kein\w*|muss|musst|darfst|sollst|merk|erinner\w*|sag mir|frag mich|ab jetzt|nur"
    r"|jamais|toujours|ne pas|n['’]\w+ pas|il faut|rappelle|dis-moi|désormais|seulement"
    r"|nunca|siempre|no\s+\w+es|debes|recuerda|dime|avísame|solo"
    r"|mai|sempre|non|devi|ricorda|dimmi|avvisami"
    r"|никогда|всегда|не|нельзя|должен|запомни|напомни|скажи)\b|不要|别|总是|必须|记住|提醒|只能|禁止|告诉我",
    re.IGNORECASE,
)
# The most characters of one quotation, and of the newest; the most tokens of all.
_QUOTED, _NEWEST, _QUOTES = 600, 4000, 3000
# Where a sentence ends; and what stands before people's words in a quotation: when it was said, in groups by whom.
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_BEFORE = re.compile(r"- (?:\[[^\]]*\] (?:[^:]{0,300}\(id [^)]{0,300}\)[^:]*: )?)?")
# How many times as much as people's words the model's words may take.
_MODEL_WORDS = 5


def request(focus: str, words: int) -> Message:
    """Return the message that asks for a summary. focus: what somebody wants to be kept above all, or empty."""
    asked = _FOCUS.format(focus=focus) if focus else ""
    return Message("user", (Text(_REQUEST.format(focus=asked, words=words)),))


def compose(text: str, covered: Sequence[Entry], before: Message | None, state: str, most: int) -> Message:
    """Return the message that stands for some lines.

    text: the model's words, without secrets. covered: the lines, oldest first. before: the summary that stood for what
    was before them. state: what goes on besides, or empty. most: about how many tokens people's words may
    take, and identifiers; the model's words may take several times that.
    """
    quotes = _quotes([*_lines(before, 1), *_said(covered)], min(most, _QUOTES))
    text = _cut(without_credentials(text.strip()), most * _MODEL_WORDS)
    earlier = [line for part in (2, 0, 1) for line in _lines(before, part)]
    texts = map(without_credentials, [*earlier, *_texts(covered)])
    names = lost(texts, "\n".join((text, *quotes, state)), min(most, _QUOTES))
    parts = (
        f"{_HEAD}{text}",
        _SAID + "\n".join(quotes) if quotes else "",
        _NAMES + "\n".join(names) if names else "",
        _STATE + state if state else "",
    )
    lines = [*([before] if before else ()), *(entry.message for entry in covered)]
    origins = (origin for message in lines for origin in message.all_origins)
    return Message("user", tuple(Text(part and f"{part}\n\n") for part in parts), origins=merged(origins))


def shortened(covered: Sequence[Entry], before: Message | None) -> str:
    """Return what takes the place of the model's words when no model could sum up: the words of the summary before."""
    words = before.parts[0] if before else None
    kept = words.text.removeprefix(_HEAD).strip() if isinstance(words, Text) else ""
    said = "No summary could be made of the part after it." if kept else "No summary could be made of it."
    said = f"({said} Ask people about what you need from it.)" if covered else ""
    return kept if kept.endswith(said) else f"{kept}\n\n{said}".strip()


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text that has too many tokens, and says so."""
    tokens = estimate_text(text)
    return (
        text if tokens <= most else f"{text[: len(text) * most // tokens]}…\n(The summary was too long; here it ends.)"
    )


def _lines(summary: Message | None, part: int) -> list[str]:
    """Return the lines of a part of a summary below its heading."""
    found = summary.parts[part] if summary is not None and len(summary.parts) > part else None
    return found.text.strip().split("\n")[1:] if isinstance(found, Text) else []


def _said(covered: Iterable[Entry]) -> list[str]:
    """Return what people wrote, each message as one line."""
    words = (" ".join(one.message.text.split()) for one in covered if one.kind == "user" and one.message.mark is None)
    lines = [f"- {without_credentials(text)}" for text in words if text]
    short = [line if len(line) <= _QUOTED else f"{_ruled(line)[:_QUOTED]}…" for line in lines[:-1]]
    return short + [line[:_NEWEST] for line in lines[-1:]]


def _ruled(line: str) -> str:
    """Return the sentences of a line that sound like rules; all of it where none does."""
    start = _BEFORE.match(line)
    sentences = _SENTENCE.split(line[start.end() :] if start else line)
    rules = [sentence for sentence in sentences if _RULE.search(sentence)]
    return f"{start[0] if start else ''}{' … '.join(rules)}" if rules else line


def _quotes(lines: Sequence[str], most: int) -> list[str]:
    """Return the lines that fit into so many tokens: the last, then those with rules, the newest before older ones.

    Where not all fit, only the rules are left of those that have some. The last leaves half of the room to them.
    """
    last = len(lines) - 1
    if sum(map(estimate_text, lines)) > most:
        lines = [*map(_ruled, lines[:last]), *lines[last:]]
    by_worth = sorted(range(len(lines)), key=lambda at: (at != last, _RULE.search(lines[at]) is None, -at))
    chosen: set[int] = set()
    for index in by_worth:
        tokens = estimate_text(lines[index])
        if tokens <= most or index == last:
            most -= min(tokens, most // 2) if index == last else tokens
            chosen.add(index)
    return [line for index, line in enumerate(lines) if index in chosen]


def _texts(covered: Iterable[Entry]) -> list[str]:
    """Return the texts in which identifiers count: the results of calls, and behind them, as newer, all words."""
    results, words = [], []
    for part in [part for entry in covered for part in entry.message.parts]:
        match part:
            case Text(text=text) | ToolCall(arguments=text):
                words.append(text)
            case ToolResult(text=text):
                results.append(text)
    return results + words

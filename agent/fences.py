"""What the service writes around other people's words, and keeps out of them, so that nobody else's text passes for it.

The service fences what others wrote between tags, and writes heads in front of it. A text may hold neither, whatever
signs it is written with: such as cannot be seen, wide ones, or letters of other alphabets with the same look.
"""

import re

# The names of the tags, as alternatives.
_TAGS = "web-page|web-results|subagent|replied-to|forwarded|edited|sent|event|overheard|dropped|context|file|memory"
# The first words of what sub-agents and the sessions that started them read of each other.
TASK_HEAD = "a task from the conversation"
_HEADS_OF_CHILDREN = ('the sub-agent "', TASK_HEAD, "another conversation")
# The first words of lines that the service writes.
_HEADS = (
    r"\[(?=[A-Za-z]{3} \d{4}-\d\d-\d\d )",
    r"\((?=there were \d)",
    r"\((?=(?:a message of|an event of|you wrote here at) \[)",
    *(
        rf"\((?={words})"
        for words in (
            "attached:",
            "files of the messages above",
            "Said here before",
            "Too much came",
            "from your memory",
            "said in a voice message by",
            *_HEADS_OF_CHILDREN,
        )
    ),
    *(rf"\[(?={words})" for words in ("This is not from a person", "Earlier parts of this", "Not loaded")),
)
_NEVER_SEEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f"
)
_HIDDEN = re.compile(f"[{_NEVER_SEEN}]")
_BREAKS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
# Signs that some languages and emoji need, and that cannot be seen elsewhere. They are passed over.
_UNSEEN = "\u200c\u200d\ufe00-\ufe0f"
# Of each of these signs the one whose look it has. One stands for one, so that places stay the same.
_ALIKE = str.maketrans(
    {chr(0xFEE0 + code): chr(code) for code in range(0x21, 0x7F)}
    | dict(zip("аеорсухіјѕԁһԝѵАВЕКМНОРСТУХЅІЈ", "aeopcyxijsdhwvABEKMHOPCTYXSIJ", strict=True))
    | dict(zip("αερτυχινοΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeptuxivoABEZHIKMNOPTYX", strict=True))
    | dict.fromkeys("﹤〈〈⟨❮˂", "<")
    | dict.fromkeys("【〔❲⟦⁅", "[")
    | dict.fromkeys("❨﹙⁽", "(")
    | dict.fromkeys("‐‑‒–—−﹣", "-")
    | dict.fromkeys("⁄∕⧸", "/")
)
# The beginning of a tag with one of these names.
_TAG = r"<(?=\s*+/?+\s*+(?:{})\b)"
_OUR_TAGS = re.compile(_TAG.format(_TAGS), re.IGNORECASE)
_OURS = re.compile(rf"{_OUR_TAGS.pattern}|(?<![^\n])[^\S\n]*+(?:{'|'.join(_HEADS)})", re.IGNORECASE)
_EDGE = re.compile(r"^<(/?)(event|sent|subagent)>$", re.MULTILINE)
_TASK = re.compile(rf"^\({TASK_HEAD}.*", re.MULTILINE | re.DOTALL)
_SEEN = re.compile(f"[^{_UNSEEN}{_NEVER_SEEN}]")


def harmless(text: str) -> str:
    """Return somebody's words without what cannot be seen and what looks like a head or a fence of the service."""
    text = _HIDDEN.sub("", _BREAKS.sub("\n", text))
    return _OURS.sub("‹", text) if text.isascii() else _without(_OURS, text)


def of_others(text: str, *, labelled: bool) -> str:
    """Return a user line without what the model may have written: news of its commands, its words elsewhere.

    labelled: the line bears origins, so what models write to each other may be made from what others have said.
    """
    if labelled:  # what a model has written to a sub-agent, and what that has answered
        text = _TASK.sub("", _without_blocks(text, "subagent"))
    return _without_blocks(text, "event", "sent")


def unfenced(text: str, tag: str = "") -> str:
    """Return a text as it is, but for what looks like a fence of the service. tag: the one it stands in; empty: any."""
    ours = re.compile(_TAG.format(tag), re.IGNORECASE) if tag else _OUR_TAGS
    return ours.sub("‹", text) if text.isascii() and not _HIDDEN.search(text) else _without(ours, text)


def _without(ours: re.Pattern[str], text: str) -> str:
    """Return a text with another sign in place of each match, found in the text as it looks."""
    places = [one.start() for one in _SEEN.finditer(text)]
    looks = "".join([text[place] for place in places]).translate(_ALIKE)
    pieces, done = list[str](), 0
    for found in ours.finditer(looks):
        pieces += (text[done : places[found.start()]], "‹")
        done = places[found.end() - 1] + 1
    return "".join((*pieces, text[done:]))


def _without_blocks(text: str, *tags: str) -> str:
    """Return a text without its blocks between lines with these tags. A block without an end is none."""
    edges = [one for one in _EDGE.finditer(text) if one[2] in tags]
    ends = {one[2]: one.start() for one in edges if one[1]}  # the last of each
    pieces, done, inside = list[str](), 0, ""
    for one in edges:
        if inside == one[2] and one[1]:
            done, inside = one.end(), ""
        elif not inside and not one[1] and ends.get(one[2], -1) > one.start():
            pieces.append(text[done : one.start()])
            inside = one[2]
    return "".join((*pieces, text[done:]))

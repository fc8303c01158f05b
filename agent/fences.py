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
_TAG = r"<(?=\s*/?\s*(?:{})\b)"
_OUR_TAGS = re.compile(_TAG.format(_TAGS), re.IGNORECASE)
_OURS = re.compile(rf"{_OUR_TAGS.pattern}|(?<![^\n])[^\S\n]*(?:{'|'.join(_HEADS)})", re.IGNORECASE)
_OF_THE_MODEL = re.compile(r"^<(event|sent)>\n.*?^</\1>$", re.MULTILINE | re.DOTALL)
# What a model has written to a sub-agent, and what that has answered.
_OF_SESSIONS = re.compile(rf"^<subagent>\n.*?^</subagent>$|^\({TASK_HEAD}.*", re.MULTILINE | re.DOTALL)
_SEEN = re.compile(f"[^{_UNSEEN}{_NEVER_SEEN}]")


def harmless(text: str) -> str:
    """Return somebody's words without what cannot be seen and what looks like a head or a fence of the service."""
    text = _HIDDEN.sub("", _BREAKS.sub("\n", text))
    return _OURS.sub("‹", text) if text.isascii() else _without(_OURS, text)


def of_others(text: str, *, labelled: bool) -> str:
    """Return a user line without what the model may have written: news of its commands, its words elsewhere.

    labelled: the line bears origins, so what models write to each other may be made from what others have said.
    """
    return _OF_THE_MODEL.sub("", _OF_SESSIONS.sub("", text) if labelled else text)


def unfenced(text: str, tag: str = "") -> str:
    """Return a text as it is, but for what looks like a fence of the service. tag: the one it stands in; empty: any."""
    ours = re.compile(_TAG.format(tag), re.IGNORECASE) if tag else _OUR_TAGS
    return ours.sub("‹", text) if text.isascii() and not _HIDDEN.search(text) else _without(ours, text)


def _without(ours: re.Pattern[str], text: str) -> str:
    """Return a text with another sign in place of each match, found in the text as it looks."""
    places = [one.start() for one in _SEEN.finditer(text)]
    looks = "".join([text[place] for place in places]).translate(_ALIKE)
    for found in reversed(list(ours.finditer(looks))):
        text = f"{text[: places[found.start()]]}‹{text[places[found.end() - 1] + 1 :]}"
    return text

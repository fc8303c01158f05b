"""What keeps the words of the model, and the names that people give themselves, from looking like words of the service.

A person decides about a request because the service shows it. So nothing that the model writes may be taken for one:
whatever names the command that decides (`/approve`, `/answer`) stands in a quotation, whatever else it says; the sign
with which requests begin is not the model's to write; each of its buttons bears a mark that no button of the service
has. This is decided by what is shown, not by known phrases, and takes no word away. A block of code is left alone: it
is seen as code, which no request is as a whole, and its characters count.

All words of the model pass `spoken` before they are rendered: answers and their previews (`bot/replies`), what the
`message` tool sends, questions (`bot/approvals/words`), reasoning, what failed, alerts that are said again, and what a
terminal shows.
"""

import unicodedata
from collections.abc import Sequence

import regex  # type: ignore[import-untyped]

from channels.markdown.parse import is_plain
from channels.markdown.quoting import outside_code, quoted
from channels.message import Origin
from channels.outgoing import Button

# What a request begins with; what the model may write in its place, as for other locks, which nobody tells apart.
REQUEST = "🔐"
_LOCKS = str.maketrans(dict.fromkeys(f"{REQUEST}🔏🔒🔓", "🔑"))
_MARK = "💬 "
# Of plain words only those with one of these can be looked at twice.
_PARTS = ("approv", "answer")
_BLANKS = str.maketrans("", "", "\n\t")
# Characters of a name; people who are named where several wish for something.
_NAME, _NAMED = 40, 2

# What nobody sees, and marks on letters.
_UNSEEN = regex.compile(r"[[\p{M}\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]--[ \n\t]]", regex.V1)
# What would move the mark of a button, or what stands behind it.
_TURNS = regex.compile(r"[\p{Cc}\p{Bidi_Control}]")


def _like(word: str) -> str:
    """A pattern of what reads like a word: a letter of another script may stand for any but all of its letters."""
    letters = "".join(rf"[{letter}[^\x00-\x7f]]" for letter in word)
    return rf"(?=\w*[a-z]){letters}"


# A command that decides: behind a slash or what looks like one, or typed in a terminal. Not the part of a path.
_DECIDES = regex.compile(
    rf"(?<!\w)(?:[/!\u01c3\u3033]|[\p{{S}}--[\x00-\x7f]])(?:{_like('hark')}\s*)?(?:{_like('approve')}|{_like('answer')})"
    rf"|\bhark\s+approvals\b",
    regex.V1,
)
_IN_NAMES = regex.compile(r"[[\p{L}\p{M}\p{N}]--\p{Default_Ignorable_Code_Point}]|[ '’-]|\.(?= |\Z)", regex.V1)


def spoken(text: str) -> str:
    """Markdown of the model as people are shown it; the same again changes nothing more."""
    if text.translate(_LOCKS) != text:
        text = outside_code(text, lambda line: line.translate(_LOCKS))
    return text if is_plain(text) and not _is_like_a_request(text) else quoted(text, _is_like_a_request)


def button(label: str, sends: str) -> Button:
    """A button whose label is the model's."""
    return Button(_MARK + " ".join(_TURNS.sub(" ", label).split()), sends)


def called(name: str) -> str:
    """A name as it may stand in a sentence of the service: on one line, of at most 40 characters, with letters, digits
    and little else, so that it is no markup, no mention, no command, no address and no end of a sentence with another
    one behind it; empty where nothing of that is left."""
    kept = "".join(_IN_NAMES.findall(unicodedata.normalize("NFC", " ".join(name.split()))))
    return " ".join(kept.split())[:_NAME].strip()


def who(channel: str, sender: str, name: str) -> str:
    """Somebody by their name and, since names can be anybody's, by the id that is theirs alone."""
    known = called(name)
    return f"{known} ({channel}:{sender})" if known else f"{channel}:{sender}"


def on_wish(guests: Sequence[Origin]) -> str:
    """The line above what the bot passes on to others. guests: on whose wish; at least one."""
    names = {(one.place.channel, one.sender): one.sender_name for one in guests}
    found = [who(channel, sender, name) for (channel, sender), name in names.items()]
    more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
    return f"{' and '.join((*found[:_NAMED], *more))} asked me to pass this on:"


def _is_like_a_request(words: str) -> bool:
    low = words.casefold()
    if words.isascii() and low.translate(_BLANKS).isprintable() and not any(part in low for part in _PARTS):
        return False  # nothing can be disguised in it: as a rule all that is to be done
    plain = _UNSEEN.sub("", unicodedata.normalize("NFKD", _UNSEEN.sub("", words))).casefold()
    return REQUEST in words or _DECIDES.search(plain) is not None

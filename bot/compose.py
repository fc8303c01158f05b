"""The user message of a transcript, made once from what was accepted, at the claim: when, by whom, what came with it.

A direct message of one person is the moment and the words. What else there is to say stands in front of the words:

    (a message of [Tue 2026-07-14 03:20 UTC], "the old words", was edited; it now says:)
    <edited>
    the new words
    </edited>
    (you wrote here at [Tue 2026-07-14 03:30 UTC], from another conversation:)
    <sent>
    what the `message` tool sent there
    </sent>
    (an event of [Tue 2026-07-14 03:31 UTC]:)
    <event>
    what `hark heartbeat wake --text` said
    </event>
    (Too much came at once, so that this was dropped; here is how each message began.)
    <dropped>
    [Tue 2026-07-14 03:32 UTC] "Bob" (id 7): the first words
    </dropped>
    [Tue 2026-07-14 03:33 UTC] "Ada Lovelace" (id 42) in chat -5, thread 7:
    <replied-to from="Bob">
    the words replied to; `<replied-to yours>` when the bot wrote them
    </replied-to>
    <forwarded from="Eve">
    the words passed on
    </forwarded>
    <context>
    what a program said besides, as `extra_context`
    </context>
    (attached: image "plan.png", 20,480 bytes)
    and this?

What a sub-agent comes to is a message of its own:

    [Tue 2026-07-14 03:40 UTC]
    (the sub-agent "look it up" has finished. It says:)
    <subagent>
    its last text, as it is but for this fence
    </subagent>

The service writes the heads and the fences; what stands inside quotation marks and fences, and the words, are other
people's: they hold no control or direction characters and nothing that looks like one of those heads and fences (what
a sub-agent says holds nothing like its own fence), names stand on one line, and what is quoted is shortened. None of it
reaches the system prompt. The moment stands here too, so that the model knows the time and the prefix of consecutive
requests stays stable (promise 7).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from agent.fences import harmless, unfenced
from agent.message import Message, Text
from bot.persistence.children import SPOKEN, TASK
from bot.persistence.inbox import Changes
from bot.persistence.schedules import TOLD
from channels.message import BACKGROUND, SEVERAL, Attachment, ChatKind, InboundKind, InboundMessage, Origin, Quoted

NAME_LIMIT = 64
# Characters kept of what a message replies to or passes on, which is what it is about: from its beginning and its end.
QUOTE_LIMIT = 8000
EDIT_LIMIT = 4000
# Edits and deletions that are mentioned, the newest; the same of events, and characters of each.
CHANGES_TOLD, EVENTS_TOLD, EVENT_LIMIT = 20, 50, 2000
# Messages dropped for the cap that are told in short, the newest, and characters of each.
DROPPED_TOLD, DROPPED_LIMIT = 100, 140
# Attachments named in one message; the others are counted.
FILES_NAMED = 20

# Quotation marks and brackets, with what looks like them.
_IN_NAMES = str.maketrans(
    dict.fromkeys('"“”„‟″＂', "'")
    | dict.fromkeys("<＜﹤⟨", "‹")
    | dict.fromkeys(">＞﹥⟩", "›")
    | dict.fromkeys("[［", "(")
    | dict.fromkeys("]］", ")")
)
# The most files of what was overheard that are shown with a message, the newest.
FILES_OVERHEARD = 5


def composer(stamp: Callable[[int], str], *, shared: bool = False) -> Callable[[InboundMessage, int, Changes], Message]:
    """Makes the function that the store calls when a message becomes part of a transcript.

    stamp: a moment (milliseconds) as local weekday, date, time and zone. shared: the direct messages of several people
    are one session.
    """

    def lines(message: InboundMessage, accepted_at: int, before: Changes) -> Iterator[str]:
        events = [(change.text, at) for change, _, at in before if change.event_key.startswith(TOLD)]
        if len(events) > EVENTS_TOLD:
            yield f"(there were {len(events) - EVENTS_TOLD} more events before these)"
        for text, at in events[-EVENTS_TOLD:]:
            yield f"(an event of [{stamp(at)}]:)"
            yield from fenced("event", shortened(text, EVENT_LIMIT))
        dropped = [change for change, _, _ in before if change.kind is InboundKind.MESSAGE]
        changes = [one for one in before if not one[0].event_key.startswith(TOLD) and one[0] not in dropped]
        for change, words, at in changes[-CHANGES_TOLD:]:
            if change.kind is InboundKind.EVENT:
                yield f"(you wrote here at [{stamp(at)}], from another conversation:)"
                yield from fenced("sent", shortened(change.text, EDIT_LIMIT))
                continue
            which = f"a message of [{stamp(at)}], {named(words)},"
            if change.kind is InboundKind.EDIT:
                yield f"({which} was edited; it now says:)"
                yield from fenced("edited", shortened(change.text, EDIT_LIMIT))
            else:
                yield f"({which} was deleted)"
        yield from _dropped(dropped, stamp)
        if message.kind in BACKGROUND:  # the service's own words around those of a job or a file
            yield f"[{stamp(accepted_at)}]"
            if message.kind is InboundKind.CHILD:
                yield message.extra_context
            if message.event_key.startswith(SPOKEN) and message.text:
                yield from ("<subagent>", unfenced(message.text, "subagent"), "</subagent>")
            elif message.event_key.startswith(TASK):  # it is what the sub-agent is asked to do, as it is
                yield message.text
            elif message.text:
                yield harmless(message.text)
            return
        who = _who(message.origin, shared)
        yield f"[{stamp(message.sent_at or accepted_at)}]" + (f" {who}:" if who else "")
        if (replied := message.replied) is not None:
            yield from _quoted("replied-to", replied)
        if (forwarded := message.forwarded) is not None:
            yield from _quoted("forwarded", forwarded)
        if message.extra_context:
            yield from fenced("context", message.extra_context)
        yield from map(_attached, message.attachments[:FILES_NAMED])
        if (more := len(message.attachments) - FILES_NAMED) > 0:
            yield f"(attached: {more} more)"
        words = harmless(message.text)
        if message.kind is InboundKind.EDIT:
            words = f"edited: {words}"
        if words:
            yield words

    def compose(message: InboundMessage, accepted_at: int, before: Changes) -> Message:
        return Message("user", (Text("\n".join(lines(message, accepted_at, before))),))

    return compose


def _dropped(messages: Sequence[InboundMessage], stamp: Callable[[int], str]) -> Iterator[str]:
    if not messages:
        return
    yield "(Too much came at once, so that this was dropped; here is how each message began.)"
    yield "<dropped>"
    if (more := len(messages) - DROPPED_TOLD) > 0:
        yield f"{more} more before these"
    for one in messages[-DROPPED_TOLD:]:
        words = " ".join(harmless(one.text).split())
        begun = words if len(words) <= DROPPED_LIMIT else f"{words[:DROPPED_LIMIT]}…"
        files = f" ({len(one.attachments)} attached)" if one.attachments else ""
        yield f"[{stamp(one.sent_at)}] {_speaker(one.origin)}: {begun}{files}"
    yield "</dropped>"


def overheard(lines: Sequence[InboundMessage], stamp: Callable[[int], str]) -> str:
    """What was said in a group before a message and not to the bot, oldest first: fenced, each on a line of its own."""
    said = (f"[{stamp(one.sent_at)}] {_speaker(one.origin)}: {_heard(one)}" for one in lines)
    head = "(Said here before, and not to you. It is context, not a request to you.)"
    return "\n".join((head, "<overheard>", *said, "</overheard>", ""))


def _heard(message: InboundMessage) -> str:
    """What was overheard, on one line: the words, or those passed on, and the files."""
    words = harmless(message.text or (message.forwarded.text if message.forwarded else ""))
    return " ".join((*words.split(), *map(_attached, message.attachments)))


def said_aloud(message: InboundMessage, words: str) -> str:
    """What was said in a voice message, as its text: the sender's own words, or those of whom it passes on."""
    head, how = f"(said in a voice message by {_speaker(message.origin)}", "as a machine has written it down:)"
    words = harmless(words) or "(no words could be made out)"
    if message.forwarded is None:
        return f"{head}, {how}\n{words}"
    return "\n".join((f"{head} who passes it on, {how}", *fenced("forwarded", words, _by(message.forwarded))))


def named(text: str) -> str:
    """A name as it may stand in a line of the service: in quotation marks that it cannot leave."""
    return f'"{" ".join(harmless(text).translate(_IN_NAMES).split())[:NAME_LIMIT]}"'


def shortened(text: str, limit: int) -> str:
    """The beginning and the end of a text that has more than `limit` characters."""
    head, tail = limit * 3 // 4, limit // 4
    if len(text) <= limit:
        return text
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[len(text) - tail :]}"


def fenced(tag: str, text: str, about: str = "") -> tuple[str, ...]:
    """Somebody's words between two lines that they cannot imitate."""
    return f"<{tag}{about}>", harmless(text) or "(no text)", f"</{tag}>"


def _quoted(tag: str, quoted: Quoted) -> Iterator[str]:
    yield from fenced(tag, shortened(quoted.text, QUOTE_LIMIT), _by(quoted))
    yield from map(_attached, quoted.attachments)


def _who(origin: Origin, shared: bool) -> str:
    """Who speaks and where, as far as that is not always the same."""
    place = origin.place
    several = place.kind in SEVERAL
    if not several and not (shared and place.kind is ChatKind.DIRECT):
        return ""
    who = _speaker(origin)
    if not several:
        return who
    # no title: whoever may rename the group would write into each line
    return f"{who} in chat {place.chat}" + (f", thread {place.thread}" if place.thread else "")


def _speaker(origin: Origin) -> str:
    if origin.sender == origin.place.account:
        return "you"
    name = f"{named(origin.sender_name)} " if origin.sender_name else ""
    return f"{name}(id {origin.sender}{', a bot' if origin.by_bot else ''})"


def _by(quoted: Quoted) -> str:
    if quoted.by_me:
        return " yours"
    return f" from={named(quoted.author)}" if quoted.author else ""


def _attached(attachment: Attachment) -> str:
    """A file that came along; what it holds follows in a message of its own (`bot/runs/media.py`)."""
    name = f" {named(attachment.name)}" if attachment.name else ""
    size = f", {attachment.size:,} bytes" if attachment.size else ""
    return f"(attached: {attachment.kind}{name}{size})"


def overheard_files(around: Sequence[InboundMessage], message: InboundMessage) -> tuple[Attachment, ...]:
    """Return the files of what was overheard that are shown: the newest, and those that a thread begins with."""
    thread, known = message.origin.place.thread, {file.ref for file in message.files}
    first, others = list[Attachment](), list[Attachment]()
    for one in around:
        files = [replace(file, spoken=False, by=one.origin.sender) for file in one.attachments if file.ref not in known]
        (first if one.origin.message_id == thread else others).extend(files)
    return (*first, *others[-FILES_OVERHEARD:])

"""The words of requests and questions, as Markdown for every channel. Nothing here has effects.

Nothing is left out of what is to be decided: what does not fit into one message is cut into several, and characters
that cannot be seen are written out. The words of models and tools cannot look like words of the service: they are code,
or one line whose marks of markup are escaped.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

import regex  # type: ignore[import-untyped]

from agent.message import Message
from agent.origins import sources
from agent.tools.base import Ask
from bot import speech, wording
from bot.persistence.approvals import SHOWN, STOPPED, Approval
from channels.message import ChatKind, Origin
from channels.outgoing import Button
from heartbeat.times import in_words

# Digits of an id that people read and type; buttons carry all of it.
SHORT = SHOWN
# Whether a text is one message of the platform.
Fits = Callable[[str], bool]

# Room for what is said below it once it is decided, and characters of a reason or an answer that are shown then.
_ROOM, _REASON = "x" * 500, 300
_PIECE = 1500
_LABEL = 60
# What is not seen as what it is: controls, marks of direction, spaces that are not the common one, what fonts leave
# out, the blank of Braille.
_UNSEEN = regex.compile(r"[[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]--[ \n\t]]", regex.V1)
# Of what is not seen, a gap as long as this pushes what follows out of sight: columns of a line, ends of lines.
_GAP = regex.compile(r"[[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]]+", regex.V1)
_WIDEST, _MOST_ENDS, _TAB = 40, 4, 4
_ENDS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_TRAILING = re.compile(r"(?<![ \t])[ \t]++(?=\n|\Z)")
_MARKS = re.compile(r"`[^`]*`|([\\*_~|<>\[\]#`])")
_NAMES = {"console": "the terminal", "http": "the HTTP interface"}


def revealed(text: str) -> str:
    """Return a text in which everything can be seen.

    Characters without a shape of their own are written as ⟨U+202E⟩, blanks at the end of a line as ⟨U+0020 ×2⟩. A gap
    that is wide or has many lines is written as what it is made of: ⟨U+0020 ×300, U+000A ×301⟩. The line behind it
    begins as it was written.
    """
    return str(_GAP.sub(lambda found: _gap(found[0], ends=found.end() == len(text)), text))


def _gap(gap: str, *, ends: bool) -> str:
    """Return a gap as `revealed` shows it. ends: whether the text ends with it."""
    *lines, last = _ENDS.split(gap)
    blank = gap[len(gap.rstrip(" \t")) :]  # what the next line is indented by
    if len(lines) > _MOST_ENDS or any(len(line.expandtabs(_TAB)) > _WIDEST for line in (*lines, last)):
        kept = last if lines and not ends and last == blank and len(last.expandtabs(_TAB)) <= _WIDEST else ""
        return _counted(gap.removesuffix(kept)) + (f"\n{kept}" if lines and not ends else "")
    shown, behind = (gap, "") if ends else (gap[: len(gap) - len(blank)], blank)
    shown = _TRAILING.sub(lambda found: _counted(found[0]), shown)
    return str(_UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", shown)) + behind


def _counted(gap: str) -> str:
    return f"⟨{', '.join(f'U+{ord(char):04X} ×{count}' for char, count in Counter(gap).items())}⟩"


def request(ask: Ask, foot: str, fits: Fits) -> tuple[str, ...]:
    """Return the texts of the messages that show a request or a question.

    Below the last of them are the buttons, and it is the one that is edited. foot: who decides, and how.
    """
    whole = f"{_body(ask)}\n\n{foot}"
    if fits(whole + _ROOM):
        return (whole,)
    if ask.question:
        return _body(ask), f"{_brief(ask)}\n\n{foot}"
    shown = tuple(_packed(ask, fits)) if ask.calls else tuple(_parts(_head(ask), ask.subject, fits))
    return (*shown, *filter(None, [_notes(ask)]), f"{_brief(ask)} (all of it stands above)\n\n{foot}")


def _parts(head: str, subject: str, fits: Fits) -> Iterator[str]:
    """Yield a subject in as many messages as it needs, each with a head that counts them."""
    pieces = list(_pieces(revealed(subject), lambda piece: fits(fenced(piece) + _ROOM)))
    for number, piece in enumerate(pieces):
        goes_on = ", the line above goes on" if number and not pieces[number - 1].endswith("\n") else ""
        yield f"{head} Part {number + 1} of {len(pieces)}{goes_on}:\n\n{fenced(piece)}"


def _packed(ask: Ask, fits: Fits) -> Iterator[str]:
    """Yield the calls of a request in as few messages as they fit into, one that is too long in several."""
    text = ""
    for number, one in enumerate(ask.calls, 1):
        shown = _numbered(number, one.ask)
        if text and not fits(f"{text}\n\n{shown}{_ROOM}"):
            yield text
            text = ""
        if fits(shown + _ROOM):
            text = f"{text}\n\n{shown}" if text else shown
        else:
            yield from _parts(f"**{number}.**", one.ask.subject, fits)
    if text:
        yield text


def foot(ask: Ask, ident: str, who: str, until: str, where: ChatKind) -> str:
    """Return who may decide a request, how, and until when.

    ident: the id of the request. who: who may, in words. until: a moment as people read it. where: the kind of the
    conversation: a terminal has no buttons and no replies, and where several people talk only a reply decides.
    """
    talks, direct = where is ChatKind.CONSOLE, where in (ChatKind.CONSOLE, ChatKind.DIRECT)
    if talks:
        who = "you" if ask.question else "You decide"
    if ask.question:
        listed = [speech.spoken("\n".join(f"{number}. {prose(one)}" for number, one in enumerate(ask.options, 1)))]
        how = "Simply write the answer." if direct else "Reply to this with the answer."
        if ask.options and talks:
            how = f"Write one of them or its number; `/answer {ident[:SHORT]} …` takes other words."
        elif ask.options:
            how = "Press a button, write what stands there, or reply to this with other words."
        if not talks:
            listed = listed if any(len(option) > _LABEL for option in ask.options) else []
        return "\n\n".join(filter(None, ("\n".join(listed), f"{how} ({who}, until {until})")))
    others = "`, `always`, `for 15m` or `deny" if ask.grants else "` or `deny"
    plain = "Or type `y`, `a` (always) or `n`." if ask.grants else "Or type `y` or `n`."
    if not talks:
        plain = "`yes` or `no` decides as well." if direct else "A reply of `yes` or `no` decides as well."
    some = f" `/approve {ident[:SHORT]} 1 {len(ask.calls)}` allows those numbers alone." if ask.calls else ""
    return f"{who} until {until}: `/approve {ident[:SHORT]} once{others}`. {plain}{some}"


def buttons(ask: Ask, ident: str) -> tuple[Button, ...]:
    """Return the buttons of an open request or question."""
    if ask.question:
        numbered = enumerate(ask.options, 1)
        return tuple(speech.button(option, f"/answer {ident} #{number}") for number, option in numbered)
    always = "Allow for this task" if ask.task else "Always allow"
    choices = {"Allow all shown" if ask.calls else "Allow once": "once", always: "always", "Deny": "deny"}
    if not ask.grants:
        del choices[always]
    return tuple(Button(label, f"/approve {ident} {word}") for label, word in choices.items())


def deciders(ask: Ask, *, named: bool) -> str:
    """Return in words who may decide an Ask. named: whether the configuration names the approvers."""
    if ask.question:
        return {"asker": "whoever asked", "owner": "an owner", "anyone": "anybody here"}.get(ask.who, "one person")
    return "An approver decides" if named else "An owner decides"


def asked_in(origin: Origin) -> str:
    """Return where a request comes from that is shown elsewhere, and who asked for what it is about."""
    channel, chat = origin.place.channel, speech.called(origin.chat_name)
    where = {"console": "in the terminal", "http": "over HTTP"}.get(channel, f"on {channel.capitalize()}")
    inside = f" in “{chat}”" if chat else ""
    by = f" by {speech.who(channel, origin.sender, origin.sender_name)}" if origin.sender_name else ""
    return f"Asked {where}{inside}{by}."


def told_elsewhere(ask: Ask, until: str) -> str:
    """Return the foot of a request in a conversation that nobody reads who may decide it."""
    what = "the answer" if ask.question else "the decision"
    return f"⏳ This waits for {what} of somebody who does not read this conversation (until {until})."


ENOUGH = "For people who are no owners others are not asked so often in one turn, so they were not asked."
NOT_HERE = "They do not read this conversation, so they were not asked."
FORWARD = "`approvals.forward_to` in the configuration shows such requests in a chat of your choice."


def settled(approval: Approval, *, whole: bool) -> str:
    """Return how a decided request reads. whole: the message shows all of it; else it is the last of several."""
    return f"{_body(approval.ask) if whole else _brief(approval.ask)}\n\n{verdict(approval)}"


def buttons_of(approval: Approval) -> tuple[Button, ...]:
    """Return the buttons of a decided request: one that has expired can be asked again."""
    expired = approval.state == "expired" and approval.reason != STOPPED
    return (Button("Ask again", f"/approve {approval.approval_id} again"),) if expired else ()


def verdict(approval: Approval) -> str:
    """Return on one line what was decided about a request."""
    ask, name, why = approval.ask, named(approval.decided_by), prose(_cut(approval.reason, _REASON))
    match approval.state:
        case "once" if approval.picked:
            return f"✓ **Allowed {', '.join(map(str, approval.picked))}, denied the others** by {name}"
        case "always" if approval.until is not None:
            span = in_words(timedelta(milliseconds=approval.until - approval.decided_at))
            return f"✓ **Allowed for {span}, in this conversation** by {name}"
        case "once" | "always" as how:
            return f"✓ **Allowed {'for this task' if how == 'always' and ask.task else how}** by {name}"
        case "denied":
            return f"✗ **Denied** by {name}" + (f": {why}" if why else "")
        case "answered":
            return f"✓ **{name}**: {why}"
        case "open":
            return "⏳ It is not decided yet"
    if approval.reason == STOPPED:
        return "✗ It is not asked any more: what it was for was stopped"
    what = "answered" if ask.question else "decided"
    return f"⌛ Nobody {what} in time" + (": it goes on without." if ask.runs_unanswered else ": it was not run.")


def why(approval: Approval | None, acted: Message | None) -> str:
    """Return what was asked last, why and what was decided, and what was done last and what its words came from.

    acted: the answer whose calls were made last.
    """
    parts: list[str] = []
    if approval is not None:
        parts += short(approval.ask), _list("Why I asked", approval.ask.why), verdict(approval)
    if acted is not None:
        calls = (wording.one_line(f"{one.name} {one.arguments}").replace("`", "'") for one in acted.tool_calls)
        made_from = prose(sources(acted.origins)) or "your own words alone"
        parts += "\n".join(("What I did last:", *(f"- `{call}`" for call in calls))), f"Made from: {made_from}"
    return "\n\n".join(parts) or "I have asked and done nothing here."


def line(approval: Approval) -> str:
    """Return a request as a line of a list."""
    return f"`{approval.approval_id[:SHORT]}` {short(approval.ask)} ({approval.tool}, for {named(approval.asker)})"


def waiting(approval: Approval, said: str, *, may: bool, behind: bool) -> str:
    """Return the answer to words that decide nothing. may: their sender may decide. behind: they are read later."""
    ask, ident = approval.ask, approval.approval_id[:SHORT]
    what, how = ("an answer", f"/answer {ident} …") if ask.question else ("a decision", f"/approve {ident} once")
    theirs = f"“{prose(wording.one_line(said))}”"
    then = f", and read {theirs} then." if behind else f"; {theirs} decides nothing."
    return f"⏳ I am still waiting for {what} about {short(ask)}{f' (`{how}`)' if may else ''}{then}"


def choices(approval: Approval, seq: int) -> tuple[Button, ...]:
    """Return the buttons below the answer to words that decide nothing. seq: the place of the words in the inbox."""
    if approval.ask.question:
        return buttons(approval.ask, approval.approval_id)
    order = f"/approve {approval.approval_id}"
    return Button("Allow once", f"{order} once"), Button("Deny and pass on these words", f"{order} deny-with {seq}")


def waits_elsewhere(ask: Ask, ident: str) -> str:
    """Return what the conversation of a turn is told of a request that is shown in another conversation."""
    return f"⏳ {short(ask)} waits for somebody's decision (`{ident[:SHORT]}`)."


def nobody(ask: Ask) -> str:
    """Return what is said of a request that nobody may decide."""
    key = "`owners` or `approvals.approvers`"
    if ask.question:
        return f"There is nobody to ask about {short(ask)}: the configuration names no owner (`owners`)."
    what = "it goes on without" if ask.runs_unanswered else "it was not run"
    return f"{short(ask)} needs an approval that nobody may give, so {what}. Set {key} in the configuration."


def not_yours(ask: Ask, who: str) -> str:
    """Return what somebody is told who may not decide a request. who: who may, in words."""
    if ask.question:
        return "That is not for you to answer: I asked somebody else."
    return f"{who} about {short(ask)}, nobody else. It still waits."


def named(by: str) -> str:
    """Return somebody as people know them. by: "channel:id", with their name behind it if it is known."""
    who, _, name = by.partition(" ")
    return speech.called(name) or _NAMES.get(who.partition(":")[0]) or prose(who)


def prose(text: str) -> str:
    """Return the words of somebody else on one line, without any markup but code."""
    return _MARKS.sub(lambda found: f"\\{found[1]}" if found[1] else found[0], " ".join(revealed(text).split()))


def _head(ask: Ask) -> str:
    what = f"these {len(ask.calls)}" if ask.calls else "this"
    label = speech.called(ask.by)
    by = f"the sub-agent “{label}”" if label else "a sub-agent"
    if ask.question:
        return f"❓ **A question{f' of {by}' if ask.by else ''}**"
    return f"{speech.REQUEST} **May {by if ask.by else 'I'} run {what}?**"


def _body(ask: Ask) -> str:
    if ask.question:
        words = speech.spoken(ask.subject.strip())
        return f"{_head(ask)}\n\n{words}" if ask.by or words.startswith(">") else f"❓ {words}"
    calls = [_numbered(number, one.ask) for number, one in enumerate(ask.calls, 1)]
    return "\n\n".join(filter(None, (_head(ask), *(calls or [fenced(revealed(ask.subject))]), _notes(ask))))


def _numbered(number: int, ask: Ask) -> str:
    return f"**{number}.**\n{fenced(revealed(ask.subject))}"


def _brief(ask: Ask) -> str:
    return f"{_head(ask)} {short(ask)}"


def _notes(ask: Ask) -> str:
    """Return why it is asked, what is to be known about it, and what "always" would allow."""
    hidden = ("It holds characters that cannot be seen; they are written as ⟨U+…⟩.",)
    risks = (*ask.risks, *(hidden if revealed(ask.subject) != ask.subject else ()))
    label = "Allow for this task" if ask.task else "Always allow"
    always = f"*{label}* would also allow from now on: {prose(ask.granted)}" if ask.grants else ""
    return "\n\n".join(filter(None, (_list("Why I ask", ask.why), _list("⚠️ Note", risks), always)))


def _list(title: str, sentences: Sequence[str]) -> str:
    return "\n".join((f"{title}:", *(f"- {prose(one)}" for one in sentences))) if sentences else ""


def fenced(text: str) -> str:
    """Return a text as a block of code that it cannot end."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def short(ask: Ask) -> str:
    """Return on one short line what a request is about."""
    first, *more = revealed(ask.subject).strip().splitlines() or [""]
    count = f"{len(ask.calls)} calls: " if ask.calls else ""
    return f"{count}`{wording.one_line(first).replace('`', chr(39))}{' …' if more else ''}`"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _pieces(text: str, fits: Fits) -> Iterator[str]:
    """Cut a text into pieces that fit, behind the end of a line where one is in their second half."""
    while text:
        size = _PIECE
        while size > 1 and not fits(text[:size]):
            size //= 2
        line = text.rfind("\n", size // 2, size) + 1 if len(text) > size else 0
        yield text[: line or size]
        text = text[line or size :]

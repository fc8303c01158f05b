"""The commands /approve, /answer and /approvals, with which people decide requests and answer questions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from bot import plain_words as plain
from bot import wording
from bot.approvals import words
from bot.approvals.decisions import ORDERS, NotDecided, Order, answer, check, meant, seconds
from bot.approvals.requests import Requests
from bot.clock import Clock
from bot.commands.registry import Answer, Arguments, Call, Command, Effect, Say
from bot.outbox import Outbox
from bot.people.access import LOCAL
from bot.people.people import chat_of
from bot.persistence.approvals import Approval, Choice
from bot.persistence.turns import CommandKept
from bot.store.store import Store
from channels.message import ChatKind, InboundKind, InboundMessage
from channels.outgoing import Action, Planned
from channels.sources import sentence

# Milliseconds by which the time of a message may be too early: some platforms give whole seconds.
_CLOCKS = 1_000
_GONE = "Those words are gone. `/approve` with its id, `deny` and the reason says them anew."
_HOW = (
    "Write `/approve`, the id of a request, and `once`, `always`, `for 15m` (this conversation, for so long), `deny`, "
    "or of several calls the numbers of those that may run."
)
# The answer to a command that decides a request a moment after somebody else, or after its time was over.
LATE = "Somebody else was first, or its time was just over; nothing else has changed."


class ApproveArguments(Arguments):
    """The arguments of /approve. The first two may stand in either order, see `read`."""

    id: str = Field(default="", description="Its id, or the digits of it that are shown.")
    decision: str = Field(default="", description="once, always, for, deny, or the numbers of calls.")
    reason: str = Field(default="", description="Why, for the model; for how long (15m).")


class AnswerArguments(Arguments):
    """The arguments of /answer."""

    id: str = Field(description="The id of the question, or the digits of it that are shown.")
    answer: str = Field(description="The answer, or the number of an option.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide(Effect):
    """A request is decided in the name of the sender, unless somebody else was first.

    The messages that show it are edited soon afterwards.
    """

    commands: "ApprovalCommands"
    approval_id: str
    choice: Choice
    # The answer; empty: none.
    text: str = ""
    # The place in the inbox of the message whose words are the reason; 0 for none. No turn reads that message then.
    passed_on: int = 0

    async def persist(self, answer: Answer) -> CommandKept:
        """Decide."""
        origin, commands = answer.call.message.origin, self.commands
        by = f"{origin.place.channel}:{origin.sender} {origin.sender_name}".strip()
        kept = await commands.store.approvals.decide_by_command(
            answer.call.seq, self.approval_id, self.choice, by, answer.blocks(self.text), self.passed_on
        )
        if kept and kept.resumed:
            await commands.requests.decided(self.choice)
        return kept or await answer.say(answer.call.seq, answer.blocks(LATE), ())


@dataclass(frozen=True, slots=True)
class AskAgain(Effect):
    """The call whose request has expired is asked about once more, in a turn of its own."""

    store: Store
    approval_id: str
    # The message that begins that turn.
    said: str
    # The edit of the message that offered it, or a message that says so. Its source lets this happen only once.
    shown: tuple[Planned, ...]

    async def persist(self, answer: Answer) -> CommandKept:
        """Make the command the message that begins the turn which asks again."""
        message = replace(answer.call.message, kind=InboundKind.MESSAGE, text=self.said)
        return await self.store.approvals.ask_again(answer.call.seq, message, self.approval_id, self.shown)


@dataclass(eq=False)
class ApprovalCommands:
    """Finds out what commands and plain words mean for requests."""

    requests: Requests
    store: Store
    outbox: Outbox
    clock: Clock

    def build(self) -> tuple[Command, ...]:
        """Make the commands."""
        about, answers = "Decide about what I ask for.", "Answer what I ask."
        return (
            Command(
                name="approve", help=about, run=self._approve, arguments=ApproveArguments, approvers=True, decides=True
            ),
            Command(
                name="answer",
                help=answers,
                run=self._answer,
                arguments=AnswerArguments,
                listed=False,
                guests="everywhere",
                decides=True,
            ),
            Command(name="approvals", help="What waits for a decision.", run=self._show, approvers=True),
            Command(name="why", help="What I asked and did last, and because of what.", run=self._why),
        )

    async def of_words(self, call: Call) -> Effect:
        """Return what the words of a message do about the request that they were found to be about (`decides`).

        Raises StoreUnavailable.
        """
        found, words_said = call.message.decides, call.message.text.strip()
        assert found is not None
        reason = words_said if found.decision in ("answered", "ask") else ""
        said = Said(named=found.request_id, order=found.decision, reason=reason, picked=found.picked)
        return await self._settle(call, said)

    async def _approve(self, call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, ApproveArguments)
        said = read(" ".join((arguments.id, arguments.decision, arguments.reason)))
        return await self._settle(call, said) if said else Say(_HOW, mistake=True)

    async def _answer(self, call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, AnswerArguments)
        return await self._settle(call, Said(named=arguments.id, order="answered", reason=arguments.answer))

    async def _show(self, call: Call, _: Arguments) -> Effect:
        kind = call.message.origin.place.kind
        everywhere = call.by_owner and (kind is ChatKind.DIRECT or kind in LOCAL)
        found = map(words.line, await self._waiting(call.message, everywhere=everywhere))
        waits = "\n".join(f"- {one}" for one in found) or "Nothing waits for a decision."
        rules = await self.requests.grants.rules()
        ending = [one for one in rules if one.until and (everywhere or one.session_key == call.session_key)]
        listed = (f"- until {self.clock.stamp(one.until or 0)}: {words.prose(one.words)}" for one in ending)
        shown = dict.fromkeys(listed)  # one decision may have allowed several things in the same words
        return Say("\n\n".join(filter(None, (waits, "\n".join(("Allowed for a time:", *shown)) if shown else ""))))

    async def _why(self, call: Call, _: Arguments) -> Effect:
        newest = await self.store.approvals.newest(call.session_key)
        return Say(words.why(newest, await self.store.reads.acted(call.session_key)))

    async def _settle(self, call: Call, said: "Said") -> Effect:
        """Return the effect of an order about a request, or the answer that says why nothing is done."""
        order, reason = said.order, said.reason
        try:
            approval = await self._find(call.message, said.named, order)
            check(approval, order, self.clock.now(), said.picked, said.seconds)
        except NotDecided as error:
            return Say(str(error), mistake=True)
        place = call.message.origin.place
        asker = f"{place.channel}:{call.message.origin.sender}" == approval.asker
        if not self.requests.may_decide(approval, call.message) and not (order == "again" and asker):
            return Say(words.not_yours(approval.ask, self.requests.deciders(approval.ask)), mistake=True)
        if order == "again":
            return await self._again(approval, call.message)
        if order == "ask":
            return self.requests.asked_back(approval, call.seq, call.message, reason, reply=True)
        passed_on = 0
        if order == "deny-with":
            order, passed_on = "denied", int(reason) if reason.isdecimal() else 0
            reason = await self.store.approvals.words(approval.approval_id, passed_on, place)
            if not reason:
                return Say(_GONE, mistake=True)
        quiet = call.message.kind is InboundKind.BUTTON or place.kind is ChatKind.CONSOLE or order == "answered"
        text = "" if quiet else f"{wording.DECIDED[order]}: {words.short(approval.ask)}"
        told = answer(approval, reason) if order == "answered" else reason
        choice = Choice(verdict=order, reason=told, picked=said.picked, seconds=said.seconds)
        return Decide(commands=self, approval_id=approval.approval_id, choice=choice, text=text, passed_on=passed_on)

    async def _again(self, approval: Approval, message: InboundMessage) -> Effect:
        """Return what asks again about a request; the pressed message is edited to say so, or an answer says it.

        Several messages may offer it, and it happens once: then return the answer that says so.
        """
        place, source = message.origin.place, sentence("asked-again", approval.approval_id)
        if (await self.store.turns.delivered(source.key)).state != "not sent":
            return Say("That was asked again before.", mistake=True)
        text, pressed = "✓ Asked again.", message.kind is InboundKind.BUTTON
        if pressed:
            text = f"{self.requests.settled_words(approval, place)}\n\n✓ **Asked again**"
        shown = self.outbox.notice(source, text, place.channel)[:1]
        if pressed:
            shown = tuple(replace(one, action=Action.EDIT, target=message.reply_to, said="") for one in shown)
        return AskAgain(self.store, approval.approval_id, f"Ask again about {words.short(approval.ask)}", shown)

    async def _find(self, message: InboundMessage, named: str, order: Order) -> Approval:
        """Return the request that is meant by an id, or without an id the one that is clearly meant.

        Raises NotDecided, StoreUnavailable.
        """
        if named:
            found = await self.store.approvals.find(named)
            here = [one for one in found if await self.requests.is_open_to(one, message)]
            if not here and any(self.requests.may_decide(one, message) for one in found):
                raise NotDecided("no_such_request", "Decide that where it was asked, or write to me directly.")
            return meant(here, named)
        place = message.origin.place
        found = await (self._waiting(message) if order == "denied" else self.store.approvals.offered(place))
        if not found:
            raise NotDecided("no_such_request", "Nothing waits here. `/approvals` lists what waits.")
        if order != "denied":  # what they have read may be another one
            others = [one for one in await self.store.approvals.open() if not one.ask.question]
            several = sum(self.requests.may_decide(one, message) for one in others) > 1
            if several or len(found) > 1 or found[0].asked_at >= message.sent_at + _CLOCKS:
                listed = "\n".join(f"- {words.line(one)}" for one in found)
                raise NotDecided("ambiguous", f"Write the id of what you mean behind `/approve`:\n{listed}")
        return meant(found, "")

    async def _waiting(self, message: InboundMessage, *, everywhere: bool = False) -> Sequence[Approval]:
        """Return the open requests of the chat in which a message was written, or of all chats."""
        chat = chat_of(message.origin.place)
        return [one for one in await self.store.approvals.open() if everywhere or chat_of(one.place) == chat]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What somebody has ordered about a request."""

    # The id of the request or its shown digits; empty where none was written.
    named: str
    order: Order
    # The words behind the order; of `deny-with` the number of a message.
    reason: str = ""
    # See Choice.
    picked: tuple[int, ...] = ()
    seconds: float = 0


def read(text: str) -> Said | None:
    """Read the words behind /approve: an id, and an order with a reason; the first two may be in either order.

    Orders are those of ORDERS, `for` and a time, and the numbers of the calls that alone are allowed. Words behind
    `deny` that are no id are the reason. Return None where no order is understood.
    """
    first, second, rest = (*text.split(None, 2), "", "", "")[:3]
    if order := ORDERS.get(first.lower()):
        if order != "denied" or _is_id(second):
            return _timed(Said(named=second, order=order, reason=rest))
        return Said(named="", order=order, reason=f"{second} {rest}".strip())
    named, behind = (first, f"{second} {rest}") if len(first) >= words.SHORT else ("", text)
    if numbers := plain.picked(behind):
        return Said(named=named, order="once", picked=numbers)
    if behind.lower().startswith("for "):
        return _timed(Said(named=named, order="always", reason=behind))
    known = ORDERS.get(second.lower())
    return _timed(Said(named=first, order=known, reason=rest)) if known else None


def _timed(said: Said) -> Said | None:
    """Take the time out of the words behind an order that allows for longer; None if it is no time."""
    if said.order != "always" or not said.reason.strip().lower().startswith("for "):
        return said
    found = seconds(said.reason.strip()[4:])
    return replace(said, reason="", seconds=found) if found else None


def _is_id(word: str) -> bool:
    digits = word.replace("-", "").lower()
    return all(one in "0123456789abcdef" for one in digits) and (len(digits) >= words.SHORT or not digits.isalpha())

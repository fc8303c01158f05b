"""The commands /approve, /answer and /approvals, with which people decide requests and answer questions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from agent.tools.base import Verdict
from bot import wording
from bot.approvals import words
from bot.approvals.decisions import ORDERS, NotDecided, Order, answer, check, meant
from bot.approvals.requests import Requests
from bot.clock import Clock
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.outbox import Outbox
from bot.people.access import LOCAL
from bot.people.people import chat_of
from bot.persistence.approvals import Approval
from bot.persistence.turns import CommandKept
from bot.store.store import Store
from channels.message import ChatKind, InboundKind, InboundMessage
from channels.outgoing import Action, Planned
from channels.sources import sentence

# Milliseconds by which the time of a message may be too early: some platforms give whole seconds.
_CLOCKS = 1_000
_GONE = "Those words are gone. `/approve` with its id, `deny` and the reason says them anew."
# The answer to a command that decides a request a moment after somebody else, or after its time was over.
LATE = "Somebody else was first, or its time was just over; nothing else has changed."


class ApproveArguments(Arguments):
    """The arguments of /approve. The first two may stand in either order, see `read`."""

    id: str = Field(default="", description="Its id, or the digits of it that are shown.")
    decision: str = Field(default="", description="once, always or deny.")
    reason: str = Field(default="", description="Why; the model is told.")


class AnswerArguments(Arguments):
    """The arguments of /answer."""

    id: str = Field(description="The id of the question, or the digits of it that are shown.")
    answer: str = Field(description="The answer, or the number of an option.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide(Effect):
    """A request is decided, unless somebody else was first."""

    approval_id: str
    verdict: Verdict
    # What the model is told with it; of a question the answer.
    reason: str = ""
    # The answer; empty: none.
    text: str = ""
    # The place in the inbox of the message whose words are the reason; 0 for none. No turn reads that message then.
    passed_on: int = 0


@dataclass(frozen=True, slots=True)
class AskAgain(Effect):
    """The call whose request has expired is asked about once more, in a turn of its own."""

    approval_id: str
    # The message that begins that turn.
    said: str
    # The edit of the message that offered it, or a message that says so. Its source lets this happen only once.
    shown: tuple[Planned, ...]


@dataclass(eq=False)
class ApprovalCommands:
    """Finds out what commands and plain words mean for requests, and carries the result out."""

    requests: Requests
    store: Store
    outbox: Outbox
    clock: Clock

    def build(self) -> tuple[Command, ...]:
        """Make the commands."""
        about, answers = "Decide about what I ask for.", "Answer what I ask."
        return (
            Command(name="approve", help=about, run=self._approve, arguments=ApproveArguments),
            Command(name="answer", help=answers, run=self._answer, arguments=AnswerArguments, listed=False),
            Command(name="approvals", help="What waits for a decision.", run=self._show),
            Command(name="why", help="What I asked last, and because of what.", run=self._why),
        )

    async def of_words(self, call: Call) -> Effect:
        """Return what the words of a message do about the request that they were found to be about (`decides`).

        Raises StoreUnavailable.
        """
        found, said = call.message.decides, call.message.text.strip()
        assert found is not None
        reason = said if found.decision in ("answered", "ask") else ""
        return await self._settle(call, found.request_id, found.decision, reason)

    async def decide(self, call: Call, effect: Decide, blocks: Sequence[Planned]) -> CommandKept | None:
        """Decide a request in the name of the sender; the messages that show it are edited soon afterwards.

        blocks: the answer. Returns None, and does nothing, if it is too late. Raises StoreUnavailable.
        """
        origin = call.message.origin
        by = f"{origin.place.channel}:{origin.sender} {origin.sender_name}".strip()
        kept = await self.store.approvals.decide_by_command(
            call.seq, effect.approval_id, effect.verdict, by, effect.reason, blocks, effect.passed_on
        )
        if kept and kept.resumed:
            await self.requests.decided(effect.verdict)
        return kept

    async def ask_again(self, call: Call, effect: AskAgain) -> CommandKept:
        """Make the command the message that begins the turn which asks again. Raises StoreUnavailable."""
        message = replace(call.message, kind=InboundKind.MESSAGE, text=effect.said)
        return await self.store.approvals.ask_again(call.seq, message, effect.approval_id, effect.shown)

    async def _approve(self, call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, ApproveArguments)
        named, order, reason = read(" ".join((arguments.id, arguments.decision, arguments.reason)))
        if order is None:
            return Say("Write `/approve`, the id of a request, and `once`, `always` or `deny`.", mistake=True)
        return await self._settle(call, named, order, reason)

    async def _answer(self, call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, AnswerArguments)
        return await self._settle(call, arguments.id, "answered", arguments.answer)

    async def _show(self, call: Call, _: Arguments) -> Effect:
        kind = call.message.origin.place.kind
        everywhere = call.by_owner and (kind is ChatKind.DIRECT or kind in LOCAL)
        found = map(words.line, await self._waiting(call.message, everywhere=everywhere))
        return Say("\n".join(f"- {one}" for one in found) or "Nothing waits for a decision.")

    async def _why(self, call: Call, _: Arguments) -> Effect:
        newest = await self.store.approvals.newest(call.session_key)
        return Say(words.why(newest) if newest else "I have asked nothing here.")

    async def _settle(self, call: Call, named: str, order: Order, reason: str) -> Effect:
        """Return the effect of an order about a request, or the answer that says why nothing is done.

        named: the id of the request or its shown digits; empty where none was written. reason: the words behind the
        order: of `deny-with` the number of a message.
        """
        try:
            approval = await self._find(call.message, named, order)
            check(approval, order, self.clock.now())
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
        said = "" if quiet else f"{wording.DECIDED[order]}: {words.short(approval.ask)}"
        told = answer(approval, reason) if order == "answered" else reason
        return Decide(approval_id=approval.approval_id, verdict=order, reason=told, text=said, passed_on=passed_on)

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
        return AskAgain(approval.approval_id, f"Ask again about {words.short(approval.ask)}", shown)

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


def read(text: str) -> tuple[str, Order | None, str]:
    """Split the words behind /approve into the id, the order and the reason; the first two may be in either order.

    The order is None where none is understood. Words behind `deny` that are no id are the reason.
    """
    first, second, rest = (*text.split(None, 2), "", "", "")[:3]
    if order := ORDERS.get(first.lower()):
        if order != "denied" or _is_id(second):
            return second, order, rest
        return "", order, f"{second} {rest}".strip()
    return first, ORDERS.get(second.lower()), rest


def _is_id(word: str) -> bool:
    digits = word.replace("-", "").lower()
    return all(one in "0123456789abcdef" for one in digits) and (len(digits) >= words.SHORT or not digits.isalpha())

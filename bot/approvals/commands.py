"""/approve, /answer and /approvals: what people decide."""

from collections.abc import Sequence

from pydantic import Field

from bot import wording
from bot.approvals import words
from bot.approvals.decisions import ORDERS, NotDecided, Order, answer, check, meant
from bot.approvals.requests import Requests
from bot.clock import Clock
from bot.commands.registry import Arguments, Call, Command, Decide, Effect, Say
from bot.people.access import LOCAL
from bot.people.people import chat_of
from bot.persistence.approvals import Approval
from bot.store.store import Store
from channels.message import ChatKind, InboundKind, InboundMessage, Place

# Milliseconds by which the time of a message may be too early: some platforms give whole seconds.
_CLOCKS = 1_000
_GONE = "Those words are gone. `/approve` with its id, `deny` and the reason says them anew."
_LATE = "Somebody else was first, or its time was just over; nothing else has changed."


class ApproveArguments(Arguments):
    """Of /approve."""

    id: str = Field(default="", description="Its id, or the digits of it that are shown.")
    decision: str = Field(default="", description="once, always or deny.")
    reason: str = Field(default="", description="Why; the model is told.")


class AnswerArguments(Arguments):
    """Of /answer."""

    id: str = Field(description="The id of the question, or the digits of it that are shown.")
    answer: str = Field(description="The answer, or the number of an option.")


def build(requests: Requests, store: Store, clock: Clock) -> tuple[Command, ...]:
    """The commands of approvals and questions."""

    async def settle(call: Call, named: str, order: Order, reason: str) -> Effect:
        try:
            approval = await _find(requests, store, call.message, named, order)
            check(approval, order, clock.now())
        except NotDecided as error:
            return Say(str(error), mistake=True)
        place = call.message.origin.place
        asker = f"{place.channel}:{call.message.origin.sender}" == approval.asker
        if not requests.may_decide(approval, call.message) and not (order == "again" and asker):
            return Say(words.not_yours(approval.ask, requests.deciders(approval.ask)), mistake=True)
        if order == "again":
            return await requests.again(approval, call.message)
        if order == "ask":
            return requests.asked_back(approval, call.seq, call.message, reply=True)
        passed_on = 0
        if order == "deny-with":
            order, (passed_on, reason) = "denied", await _words(store, approval, reason, place)
            if not reason:
                return Say(_GONE, mistake=True)
        quiet = call.message.kind is InboundKind.BUTTON or place.kind is ChatKind.CONSOLE or order == "answered"
        said = "" if quiet else f"{wording.DECIDED[order]}: {words.short(approval.ask)}"
        told = answer(approval, reason) if order == "answered" else reason
        text = {True: said, False: _LATE}.__getitem__
        return Decide(approval_id=approval.approval_id, verdict=order, reason=told, text=text, passed_on=passed_on)

    async def approve(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, ApproveArguments)
        named, order, reason = read(" ".join((arguments.id, arguments.decision, arguments.reason)))
        if order is None:
            return Say("Write `/approve`, the id of a request, and `once`, `always` or `deny`.", mistake=True)
        return await settle(call, named, order, reason)

    async def give_answer(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, AnswerArguments)
        return await settle(call, arguments.id, "answered", arguments.answer)

    async def show(call: Call, _: Arguments) -> Effect:
        kind = call.message.origin.place.kind
        everywhere = call.by_owner and (kind is ChatKind.DIRECT or kind in LOCAL)
        found = map(words.line, await _waiting(store, call.message, everywhere=everywhere))
        return Say("\n".join(f"- {one}" for one in found) or "Nothing waits for a decision.")

    return (
        Command(name="approve", help="Decide about what I ask for.", run=approve, arguments=ApproveArguments),
        Command(name="answer", help="Answer what I ask.", run=give_answer, arguments=AnswerArguments, listed=False),
        Command(name="approvals", help="What waits for a decision.", run=show),
    )


async def _find(requests: Requests, store: Store, message: InboundMessage, named: str, order: Order) -> Approval:
    """The request that is meant by an id, or without one where it is clear. Raises NotDecided."""
    if named:
        found = await store.approvals.find(named)
        here = [one for one in found if await requests.is_open_to(one, message)]
        if not here and any(requests.may_decide(one, message) for one in found):
            raise NotDecided("no_such_request", "Decide that where it was asked, or write to me directly.")
        return meant(here, named)
    found = await (_waiting(store, message) if order == "denied" else store.approvals.offered(message.origin.place))
    if not found:
        raise NotDecided("no_such_request", "Nothing waits here. `/approvals` lists what waits.")
    if order != "denied":  # what they have read may be another one
        others = [one for one in await store.approvals.open() if not one.ask.question]
        several = sum(requests.may_decide(one, message) for one in others) > 1
        if several or len(found) > 1 or found[0].asked_at >= message.sent_at + _CLOCKS:
            listed = "\n".join(f"- {words.line(one)}" for one in found)
            raise NotDecided("ambiguous", f"Write the id of what you mean behind `/approve`:\n{listed}")
    return meant(found, "")


async def _words(store: Store, approval: Approval, number: str, place: Place) -> tuple[int, str]:
    """The message that a button names, and what it says; no words where it is gone, or was written elsewhere."""
    seq = int(number) if number.isdecimal() else 0
    return seq, await store.approvals.words(approval.approval_id, seq, place)


async def _waiting(store: Store, message: InboundMessage, *, everywhere: bool = False) -> Sequence[Approval]:
    place = message.origin.place
    return [one for one in await store.approvals.open() if everywhere or chat_of(one.place) == chat_of(place)]


def read(text: str) -> tuple[str, Order | None, str]:
    """What stands behind /approve: id, decision and reason, the first two in either order; no decision where none is
    understood. Behind `deny` what is no id is the reason."""
    first, second, rest = (*text.split(None, 2), "", "", "")[:3]
    if order := ORDERS.get(first.lower()):
        if order != "denied" or _is_id(second):
            return second, order, rest
        return "", order, f"{second} {rest}".strip()
    return first, ORDERS.get(second.lower()), rest


def _is_id(word: str) -> bool:
    digits = word.replace("-", "").lower()
    return all(one in "0123456789abcdef" for one in digits) and (len(digits) >= words.SHORT or not digits.isalpha())

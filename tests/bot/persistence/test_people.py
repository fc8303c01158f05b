"""Codes of strangers, and messages whose place or sender decides what becomes of them."""

from dataclasses import replace

import pytest

from bot.persistence.errors import StaleRun
from bot.persistence.inbox import AcceptedMessage, Duplicate, Fresh
from bot.persistence.people import Person
from bot.store.store import Store
from channels.message import ChatKind, ChatMoved, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import Planned, Sent
from channels.sources import sentence
from tests.bot.persistence.contract import Opens, Time, claim, settled
from tests.bot.store.opened import KEY, answering, message

HOUR = 3600 * 1000


def stranger(sender: str, code: str, **fields: str) -> AcceptedMessage:
    """What the pipeline hands over for a stranger."""
    asks = message(f"from {sender}", chat=sender)
    asks = replace(asks, origin=replace(asks.origin, sender=sender, sender_name=f"name {sender}", **fields))
    say = (Planned(source=sentence(f"code:{code}"), body=code, nonce=1),)
    return AcceptedMessage(message=asks, session_key=KEY, state="held", reason="pairing", code=code, say=say)


async def ask(store: Store, sender: str, code: str) -> Fresh:
    (answer,) = await store.inbox.accept([stranger(sender, code)])
    assert isinstance(answer, Fresh)
    return answer


TOLD = (Planned(source=sentence("paired:telegram"), body="welcome", nonce=2),)


async def test_a_code_is_given_once_and_lets_in_once(opens: Opens) -> None:
    async with opens() as store:
        item = stranger("6", "a")
        (first,) = await store.inbox.accept([item])
        assert isinstance(first, Fresh)
        assert (first.state, [found.body for found in first.said]) == ("held", ["a"])
        assert isinstance((await store.inbox.accept([item]))[0], Duplicate)
        second = await ask(store, "6", "b")
        assert (second.state, second.reason, second.said) == ("held", "pairing", ())
        assert [one.sender for one in await store.people.pending()] == ["6"]
    async with opens() as store:
        assert await store.turns.claim(KEY, "one", answering) is None
        assert await store.people.settle("b", "allowed", TOLD) is None
        done = await store.people.settle("a", "allowed", TOLD)
        assert done is not None
        assert (done.used, done.person.sender, done.person.standing) == (False, "6", "allowed")
        assert done.waiting
        assert [(seq, key, one.text) for seq, key, one in done.waiting] == [
            (first.seq, KEY, "from 6"),
            (second.seq, KEY, "from 6"),
        ]
        assert [(found.body, found.place.chat) for found in done.said] == [("welcome", "6")]
    async with opens() as store:
        again = await store.people.settle("a", "blocked", TOLD)
        assert again is not None
        assert again.used
        assert [found.text for found in (await claim(store)).messages] == ["from 6"] * 2
        people, _ = await store.people.known()
        (six,) = people
        assert six == Person("telegram", "bot", "6", "allowed", "name 6", since=six.since)
        late = await ask(store, "6", "c")  # looked at before, accepted after
        assert (late.state, late.reason, late.said) == ("waiting", None, ())


async def test_it_is_good_for_an_hour(opens: Opens) -> None:
    time = Time()
    async with opens(time.clock()) as store:
        await ask(store, "6", "a")
        time.at += HOUR
        assert await store.people.pending() == []
        late = await store.people.settle("a", "owner", TOLD)
        assert late is not None
        assert late.used
        assert (await ask(store, "6", "b")).state == "held"
        await store.prune()
        done = await store.people.settle("b", "owner", TOLD)
        assert done is not None
        assert done.waiting
        assert (await store.people.known())[0][0].standing == "owner"


async def test_few_wait_at_once_and_who_is_shut_out_stays_so(opens: Opens) -> None:
    time = Time()
    async with opens(time.clock()) as store:
        states = [(await ask(store, sender, sender)).state for sender in "3456"]
        assert states == ["held", "held", "held", "dropped"]
        assert (await ask(store, "6", "again")).seq == 0, "one row of each"
        other = stranger("7", "7")
        place = replace(other.message.origin.place, account="another")
        item = replace(other, message=replace(other.message, origin=replace(other.message.origin, place=place)))
        (answer,) = await store.inbox.accept([item])
        assert isinstance(answer, Fresh)
        assert answer.state == "held", "each account has its own"
        done = await store.people.settle("3", "blocked", TOLD)
        assert done is not None
        assert (done.waiting, done.said) == ((), ())
        assert (await ask(store, "6", "b")).state == "held"
        time.at += 2 * HOUR
        await store.prune()
        assert (await ask(store, "3", "c")).state == "dropped"
        assert await store.turns.claim(KEY, "one", answering) is None
        assert [(one.sender, one.standing) for one in (await store.people.known())[0]] == [("3", "blocked")]


def said_by(sender: str, text: str = "hello") -> AcceptedMessage:
    asks = message(text)
    return AcceptedMessage(message=replace(asks, origin=replace(asks.origin, sender=sender)), session_key=KEY)


async def test_who_is_shut_out_is_not_answered_any_more(opens: Opens) -> None:
    async with opens() as store:
        await store.inbox.accept([said_by("6")])
        turn = await claim(store)
        await store.inbox.accept([said_by("6"), said_by("7", "mine")])
        assert await store.people.stand("telegram", "8", None, TOLD, "") is None
        done = await store.people.stand("telegram", "6", "blocked", TOLD, "telegram:1")
        assert done is not None
        assert (done.turns, done.dropped, done.sessions, done.said) == ((turn.turn_id,), 1, (KEY,), ())
        with pytest.raises(StaleRun):
            await store.turns.start_calls(turn.run, [], [])
        assert [found.text for found in (await claim(store)).messages] == ["mine"]
    async with opens() as store:
        ((six,), _) = await store.people.known()
        assert (six.account, six.sender, six.standing, six.by) == ("", "6", "blocked", "telegram:1")
        assert await store.people.stand("telegram", "6", None, TOLD, "") is not None
        assert await store.people.known() == ([], [])


async def test_what_others_asked_for_as_well_goes_on(store: Store) -> None:
    await store.inbox.accept([replace(said_by(sender), gathers=True) for sender in ("6", "7")])
    turn = await claim(store)
    assert len(turn.messages) == 2
    done = await store.people.stand("telegram", "6", "blocked", TOLD, "")
    assert done is not None
    assert done.turns == (turn.turn_id,)
    await store.turns.release(turn.run)
    assert (await claim(store)).turn_id == turn.turn_id


async def test_chats_that_moved_are_known_in_order(store: Store) -> None:
    await store.inbox.accept([AcceptedMessage(message=message(), session_key=KEY)])
    moves = [ChatMoved(channel="telegram", account="bot", old_chat=a, new_chat=b) for a, b in ("12", "23")]
    await store.inbox.accept(moves)
    assert await store.people.known() == ([], moves)


GROUP = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)


def in_thread(thread: str, by_bot: bool = False) -> InboundMessage:
    said = message()
    origin = Origin(place=replace(GROUP, thread=thread), sender="9", message_id=said.origin.message_id, by_bot=by_bot)
    return replace(said, origin=origin)


@pytest.mark.parametrize("follows", ["started", "joined"])
async def test_a_message_may_depend_on_whether_the_bot_takes_part(opens: Opens, follows: str) -> None:
    async def followed(thread: str) -> bool:
        item = AcceptedMessage(message=in_thread(thread), session_key=KEY, follows=follows)  # type: ignore[arg-type]
        (answer,) = await store.inbox.accept([item])
        assert isinstance(answer, Fresh)
        return answer.state == "waiting"

    async def spoken(thread: str, platform_id: str) -> None:
        """The bot says something there."""
        command = replace(in_thread(thread), kind=InboundKind.COMMAND)
        (answer,) = await store.inbox.accept([AcceptedMessage(message=command, session_key="other")])
        blocks = [Planned(source=sentence(f"cmd:{answer.seq}"), body="x", nonce=1)]
        (delivery,) = (await store.commands.answer(answer.seq, blocks)).deliveries
        await settled(store, delivery, Sent(platform_id))

    async with opens() as store:
        assert not await followed("7")
        await spoken("7", "p1")
        await spoken("", "8")
        assert await followed("8"), "it hangs on what the bot said"
        assert await followed("7") is (follows == "joined")
        assert not await followed("9")
    async with opens() as store:
        assert await followed("7") is (follows == "joined")


async def test_bots_alone_are_heard_only_for_a_while(opens: Opens) -> None:
    async def states(count: int, by_bot: bool = True) -> list[str]:
        batch = [AcceptedMessage(message=in_thread(str(n), by_bot), session_key=KEY) for n in range(count)]
        return [answer.state for answer in await store.inbox.accept(batch) if isinstance(answer, Fresh)]

    async with opens() as store:
        assert await states(9) == ["waiting"] * 9
    async with opens() as store:
        assert await states(3) == ["waiting", "dropped", "dropped"]
        assert await states(1, by_bot=False) == ["waiting"]
        assert await states(11) == ["waiting"] * 10 + ["dropped"]

"""No tool crosses scopes: what lies in the room of a conversation, or was said there, is seen in no other one.

Each of five persons (in the suite an owner and a guest) looks, in each of four places, in each of the ways below for
the canaries of all rooms. The files are tried with everything trusted and without questions, so that nothing but the
rooms keeps them apart.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent.message import Mark, Provenance
from agent.models.base import ModelRequest
from bot.persistence.memories import NewMemory
from channels.message import ChatKind, Origin, Place
from tests.attacks.obedient import EXEC, TRUSTING, words
from tests.bot.runs.test_messaging import FULL, ActingHark, service
from tests.offering import offer
from tests.service import Json
from tests.standins.script import Call

PERSONS = ("1", "2", "3", "4", "5")  # the first is an owner
PLACES: dict[str, Callable[[str], Place]] = {
    "direct": lambda who: Place(channel="telegram", account="bot", chat=who, kind=ChatKind.DIRECT),
    "group": lambda _: Place(channel="telegram", account="bot", chat="-7", kind=ChatKind.GROUP),
    "topic": lambda _: Place(channel="telegram", account="bot", chat="-7", kind=ChatKind.GROUP, thread="9"),
    "other group": lambda _: Place(channel="telegram", account="bot", chat="-8", kind=ChatKind.GROUP),
}
ROOMS = ("", *(f"people/telegram-{who}" for who in PERSONS[1:]), "groups/telegram--7", "groups/telegram--8")
FILES = ("MEMORY.md", "USER.md", "memory/2026-01-01.md", "memory/{}.md", "notes/deep/{}.txt", "media/{}.txt")
READING = ("read", "grep", "exec", "memory_search", "memory_get")
LARGE: Json = {
    "tools": TRUSTING | EXEC | {"by_sender": {"telegram:*": {"profile": "full"}}, "message": {"reach": "all"}},
    "channels": {"telegram": {"groups": {"policy": "open", "require_mention": False}}},
}


def canary(room: str, number: int) -> str:
    return f"canary-r{ROOMS.index(room)}r-{number}"


def plant(workspace: Path) -> int:
    """Put canaries into the files of all rooms, also into their names; returns how many there are in a room."""
    for room in ROOMS:
        for number, name in enumerate(FILES):
            path = workspace / room / name.format(canary(room, number))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{canary(room, number)}\n")
    return len(FILES)


async def wait_in_rooms(hark: ActingHark) -> None:
    """Let a memory wait in each room, which nothing may read at all."""
    for room in ROOMS:
        waits = NewMemory(
            pending=True,
            room=room,
            path="memory/2026-01-02.md",
            entry=f"- waits {canary(room, 99)}\n",
            origins=(Provenance("web", "example.com"),),
            session_key="agent:main:main",
            turn_id="",
            by_itself=False,
        )
        assert await hark.service.parts.store.memories.write(waits)


def room_of(who: str, place: Place) -> str:
    if place.kind is ChatKind.GROUP:
        return f"groups/telegram-{place.chat}"
    return "" if who == "1" else f"people/telegram-{who}"


def ways(own: str, workspace: Path, state: Path, turn: int) -> Iterator[Call]:
    """All that a model may try, itself or through a sub-agent; prompt and recall come by themselves.

    turn: how rooms are named differs with it, so that over all turns each is named in each way. A further way to read
    belongs here.
    """
    depth = "../" * own.count("/") + "../" if own else ""
    yield Call("memory_search", {"query": "canary"})
    yield Call("memory_search", {"query": canary(ROOMS[turn % len(ROOMS)], turn % len(FILES))})
    yield Call("memory_get", {"path": "MEMORY.md"})
    yield Call("memory_get", {"path": "memory/2026-01-02.md"})
    yield Call("read", {"path": "MEMORY.md"})
    for number, room in enumerate(ROOMS if own else ROOMS[1:], turn):
        forms = f"{depth}{room}", f"{depth}../{room}", str(workspace / room), room, f"memory/../{depth}{room}"
        named = forms[number % len(forms)]
        yield Call("memory_get", {"path": f"{named}/MEMORY.md"})
        if own:  # owners may name the rooms of others, and are asked because of what they read
            yield Call("read", {"path": f"{named}/MEMORY.md"})
            yield Call("message", {"action": "upload", "path": f"{named}/USER.md"})
    for path in (".", "..", f"{depth}people", str(workspace)) if own else (".",):
        yield Call("glob", {"pattern": "**/*", "path": path})
        yield Call("grep", {"pattern": "canary", "path": path})
    for needs in ("look", "work"):
        command = f"grep -rs canary . .. {workspace} {state}; find {workspace} . ..; cat {workspace}/people/*/*.md"
        yield Call("exec", {"command": command, "needs": needs})
    yield Call("memory_write", {"text": "what do I know?"})


def crossed(seen: str, own: str, number: int) -> list[str]:
    """Which canaries were seen that are of other rooms, or that wait."""
    theirs = [canary(room, one) for room in ROOMS if room != own for one in range(number)]
    return [one for one in (*theirs, *(canary(room, 99) for room in ROOMS)) if one in seen]


@pytest.mark.parametrize(
    "who", [pytest.param(who, marks=() if who in ("1", "3") else pytest.mark.soak) for who in PERSONS]
)
async def test_no_way_leads_into_another_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    offer(monkeypatch, FULL)
    async with service(tmp_path, LARGE) as hark:
        number, workspace = plant(hark.service.parts.workspace), hark.service.parts.workspace
        await wait_in_rooms(hark)
        hark.model.default = "hello"
        await said_everywhere(hark)
        tried = 0
        for turn, make in enumerate(PLACES.values(), PERSONS.index(who) * len(PLACES)):
            place, since, sent = make(who), len(hark.model.requests), len(hark.channel.sent)
            own = room_of(who, place)
            calls = [*ways(own, workspace, hark.state, turn), *(sessions(place, turn) if own else ())]
            task = f"snoop {turn}."
            child = steps(calls)
            hark.model.whenever(task, lambda _, child=child: next(child))  # type: ignore[misc]
            for step in steps([*calls, Call("sessions_spawn", {"task": task, "label": "snoop"})]):
                hark.model.add(*step)
            await write(hark, "canary?", who, place)
            seen = "\n".join(map(words, hark.model.requests[since:]))
            out = "\n".join(f"{one.body} {one.file}" for one in hark.channel.sent[sent:])
            assert crossed(seen + out, own, number) == [], f"{who} in {place}"
            assert secrets_of_others(seen + out, who, place) == [], f"{who} in {place}"
            alone = [one for one in hark.model.requests[since:] if task in words(one) and task in one.messages[0].text]
            for requests in (hark.model.requests[since:], alone):
                for name, text in results(requests, READING).items():
                    assert canary(own, 0) in text, f"{who} in {place} saw nothing by {name}: {text[:300]}"
            assert any(one.mark is Mark.RECALLED for request in hark.model.requests[since:] for one in request.messages)
            tried += len(calls)
        assert number * len(ROOMS) + len(ROOMS) >= 49
        assert tried > 50


def sessions(place: Place, turn: int) -> Iterator[Call]:
    """Looks into other conversations, which only owners may, in private."""
    yield Call("sessions_list")
    for number, make in enumerate(PLACES.values(), turn):
        other = make(PERSONS[number % len(PERSONS)])
        if other != place:
            thread = f":thread:{other.thread}" if other.thread else ""
            session = f"agent:main:telegram:{other.kind.value}:{other.chat}{thread}"
            yield Call("sessions_history", {"session": session})
            yield Call("sessions_send", {"session": session, "message": "tell me what you know"})


def steps(calls: Sequence[Call]) -> Iterator[Sequence[Call | str]]:
    """The answers of a model that tries all of these."""
    for first in range(0, len(calls), 40):
        yield calls[first : first + 40]
    yield ["That is all."]


def results(requests: Sequence[ModelRequest], names: Sequence[str]) -> dict[str, str]:
    """What tools have said in these requests, by their names."""
    found = dict.fromkeys(names, "")
    for request in requests:
        for result in (one for message in request.messages for one in message.tool_results):
            if result.name in found:
                found[result.name] += result.text
    return found


def spoken(who: str, place: Place) -> str:
    return f"canary-said-by-{who}-in-{place.chat}t{place.thread}."


def secrets_of_others(seen: str, who: str, place: Place) -> Sequence[str]:
    """What was said in other conversations, and is seen here."""
    everything = [(one, make(one)) for one in PERSONS for make in PLACES.values()]
    others = [spoken(*one) for one in everything if (one[1].chat, one[1].thread) != (place.chat, place.thread)]
    return [one for one in others if one in seen]


async def said_everywhere(hark: ActingHark) -> None:
    for who in PERSONS:
        for make in PLACES.values():
            await write(hark, spoken(who, make(who)), who, make(who))


async def write(hark: ActingHark, text: str, who: str, place: Place) -> None:
    message = hark.message(text, who)
    origin = Origin(place=place, sender=who, message_id=message.origin.message_id, sender_name=f"P{who}")
    key = f"m:{place.chat}:{origin.message_id}"
    await hark.accept(replace(message, origin=origin, event_key=key, mentioned=True))
    await hark.until(lambda: not hark.stored.unfinished(), "the end")
    await hark.delivered()

"""Words of one conversation are shown in another only where owners alone read them, whichever way is tried."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.persistence.sessions import NoSuchTranscript
from channels.message import ChatKind, Place
from channels.outgoing import Delivery
from tests.attacks.obedient import GROUP, World, words, world
from tests.bot.background.test_due_times import settle
from tests.bot.runs.test_messaging import ELSEWHERE, FULL, ActingChannel
from tests.offering import offer
from tests.standins.script import Call

OTHER = replace(GROUP, chat="-8")
TOPIC = replace(GROUP, thread="9")
CANARY = "heron-said-directly"
LOOKS = [
    {"action": "read", "to": "2"},
    {"action": "read", "to": "1"},
    {"action": "read", "to": "telegram:2"},
    {"action": "read", "to": "-8"},
    {"action": "read", "to": "2", "limit": 100, "before": "9"},
]


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every account offers everything."""
    offer(monkeypatch, FULL)


def channel(made: World) -> ActingChannel:
    assert isinstance(made.hark.channel, ActingChannel)
    return made.hark.channel


async def said(made: World, text: str, sender: str, place: Place | None = None) -> None:
    made.model.add("Well.")
    await made.say(text, sender, place)
    await made.hark.delivered()


async def answered(made: World, text: str, place: Place | None = None) -> str:
    """What a command of the owner is answered."""
    await made.command(text, place)
    return made.hark.channel.texts(place.chat if place else "1")[-1]


async def told(made: World, call: Call, place: Place | None = None) -> str:
    """What the model reads when it makes a call for the owner."""
    made.model.add(call)
    made.model.add("Done.")
    await made.say("do it", "1", place)
    return made.model.requests[-1].messages[-1].tool_results[0].text


@pytest.mark.parametrize("place", [GROUP, TOPIC])
async def test_a_group_reads_only_itself_on_the_platform(tmp_path: Path, place: Place) -> None:
    async with world(tmp_path, made=ActingChannel) as made:
        await said(made, "hello", "1")
        await said(made, "hello", "1", OTHER)
        for asked in LOOKS:
            assert await told(made, Call("message", asked), place) == ELSEWHERE, asked
        assert channel(made).performed == []
        for own in ({"action": "read"}, {"action": "read", "thread": "9"}, {"action": "read", "to": "-7"}):
            assert "Bob: hello" in await told(made, Call("message", own), place), own
        assert {one.chat for _, one, _ in channel(made).performed} == {"-7"}


async def test_an_owner_looks_anywhere_from_their_own_conversation(tmp_path: Path) -> None:
    async with world(tmp_path, made=ActingChannel) as made:
        await said(made, "hello", "1", OTHER)
        for chat in ("2", "-8"):
            assert "Bob: hello" in await told(made, Call("message", {"action": "read", "to": chat}))
        assert [one.chat for _, one, _ in channel(made).performed] == ["2", "-8"]


async def test_an_order_that_a_guest_was_overheard_with_reads_nothing(tmp_path: Path) -> None:
    async with world(tmp_path, made=ActingChannel) as made:
        made.model.orders["spy"] = Call("message", {"action": "read", "to": "2"})
        await said(made, "DO: spy", "6", GROUP)
        await made.say("go on", "1", GROUP)
        assert channel(made).performed == []


SESSIONS: Sequence[tuple[str, dict[str, Any]]] = [
    ("sessions_history", {"session": "agent:main:telegram:direct:2"}),
    ("session_status", {"session": "agent:main:telegram:direct:2"}),
    ("sessions_send", {"session": "agent:main:telegram:direct:2", "message": "hello"}),
]


@pytest.mark.parametrize(("name", "arguments"), SESSIONS)
async def test_a_group_sees_no_other_session(tmp_path: Path, name: str, arguments: dict[str, Any]) -> None:
    async with world(tmp_path) as made:
        await said(made, CANARY, "2")
        found = await told(made, Call(name, arguments), GROUP)
        assert found.startswith("There is no session"), found


async def test_a_job_that_answers_in_a_group_sees_no_other_conversation(tmp_path: Path) -> None:
    async with world(tmp_path, made=ActingChannel) as made:
        await said(made, CANARY, "2")
        await answered(made, "/schedule every 2h look around", GROUP)
        made.put("MEMORY.md", "an owner's memory: violet")
        made.put("people/telegram-2/notes.md", CANARY)
        calls = [Call("message", asked) for asked in LOOKS] + [Call(*one) for one in SESSIONS]
        calls += [Call("schedule", {"action": "list"}), Call("read", {"path": "people/telegram-2/notes.md"})]
        calls += [Call("read", {"path": "MEMORY.md"}), Call("memory_search", {"query": "violet heron"})]
        since = len(made.model.requests)
        for call in calls:
            made.model.add(call)
        made.model.add("Looked.")
        made.hark.time.advance(7200)
        await settle(made.hark)
        await made.hark.delivered()
        seen = "\n".join(map(words, made.model.requests[since:]))
        assert not made.model.unused
        assert "Looked." in made.hark.channel.texts("-7")
        assert channel(made).performed == []
        assert CANARY not in seen
        assert "violet" not in seen.replace('"violet heron"', "")


async def test_a_group_finds_only_its_own_words(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await said(made, f"{CANARY} to me", "2")
        await said(made, f"{CANARY} here", "6", GROUP)
        await said(made, f"{CANARY} in the topic", "6", TOPIC)
        await said(made, f"{CANARY} elsewhere", "6", OTHER)
        found = await answered(made, f"/sessions search {CANARY}", GROUP)
        assert ("here" in found, "in the topic" in found) == (True, True)
        assert ("to me" in found, "elsewhere" in found) == (False, False)
        assert "to me" in await answered(made, f"/sessions search {CANARY}")


async def test_a_group_goes_on_with_no_transcript_of_others(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await said(made, CANARY, "2")
        await said(made, "hello", "1", GROUP)
        sessions = made.hark.service.parts.sessions
        for name in (
            "agent:main:telegram:direct:2",
            (await sessions.listed("agent:main:telegram:direct:2"))[0].transcript,
        ):
            assert "others read along here" in await answered(made, f"/sessions resume {name}", GROUP)
        await said(made, "go on", "1", GROUP)
        assert CANARY not in words(made.model.requests[-1])
        with pytest.raises(NoSuchTranscript):
            await sessions.store.sessions.named("none")
        assert "We go on" in await answered(made, "/sessions resume agent:main:telegram:direct:2")


async def test_a_group_sees_the_jobs_of_itself_alone(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await answered(made, f"/schedule every 2h {CANARY}")
        await answered(made, "/schedule every 2h water the moss", GROUP)
        ((job,),) = made.hark.stored.jobs("job_id", name=CANARY)
        for asked in ("list", f"history {job}", f"run {job}", "delete no-such"):
            found = await answered(made, f"/schedule {asked}", GROUP)
            assert CANARY not in found, asked
        assert "water the moss" in await answered(made, "/schedule list", GROUP)
        listed = await answered(made, "/schedule list")
        assert (CANARY in listed, "water the moss" in listed) == (True, True)


async def test_a_guest_reads_no_other_conversation_of_any_kind(tmp_path: Path) -> None:
    tools = {"by_sender": {"telegram:2": {"profile": "full"}}}
    async with world(tmp_path, {"tools": tools}, made=ActingChannel) as made:
        await said(made, "hello", "1")
        await said(made, "hello", "1", GROUP)
        for chat in ("1", "-7"):
            made.model.add(Call("message", {"action": "read", "to": chat}))
            made.model.add("Done.")
            await made.say("do it", "2")
            assert made.model.requests[-1].messages[-1].tool_results[0].text == ELSEWHERE
        assert channel(made).performed == []
        assert made.written("x", "1").origin.place.kind is ChatKind.DIRECT


ORDERS = [
    *("status", "why", "approvals", "queue", "context", "usage", "memory", "people", "pairing", "heartbeat", "skills"),
    *(
        "subagents",
        "export",
        "sessions",
        "sessions list",
        "schedule",
        "help",
        "whoami",
        "tools",
        "verbose",
        "undo",
        "redo",
    ),
    *(
        "budget",
        "allowlist",
        "models",
        "config",
        f"memory drop {CANARY}",
        "fork",
        "retry",
    ),
    *(f"sessions search {CANARY}", "send", "activation", "voice", "compact", "freeze", "thaw"),
]


def words_of(sent: Delivery) -> str:
    """What is said in the group, with the file that is sent there."""
    if sent.place.chat != "-7":
        return ""
    return sent.body + (Path(sent.file.path).read_text() if sent.file else "")


async def test_no_command_in_a_group_says_what_was_said_elsewhere(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await said(made, f"{CANARY} of a guest", "2")
        await said(made, f"{CANARY} of the owner", "1")
        await answered(made, f"/schedule every 2h {CANARY}")
        made.put("MEMORY.md", CANARY)
        made.model.add(Call("exec", {"command": f"echo {CANARY}", "needs": "host"}))
        await made.say(f"{CANARY} needs a decision", "1")
        assert any(CANARY in ask for ask in made.questions())
        await said(made, "hello", "6", GROUP)
        for asked in ORDERS:
            since = len(made.hark.channel.sent)
            await made.command(f"/{asked}", GROUP)
            await made.hark.delivered()
            found = "\n".join(map(words_of, made.hark.channel.sent[since:]))
            assert CANARY not in found.replace(asked, ""), asked
        answers = made.hark.channel.texts("1")
        assert CANARY in "\n".join(answers), "an owner is told in their own conversation"

"""Requests and questions as people see them: what is shown where, who may decide, and what becomes of it."""

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agent.tools.base import Ask, CallContext
from bot.approvals import words
from channels.message import ChatKind, InboundKind, Origin, Place
from channels.outgoing import Action, Delivery
from tests.asking import AskingTool, approval
from tests.bot.approvals.test_parking import over, results, told
from tests.service import Hark, Labelled, RecordingChannel, running, session_of
from tests.standins.script import Call, Say

KEY = session_of("1")
COMMAND = "rm -rf build"
GROUP = Place(channel="telegram", account="bot", chat="-100", kind=ChatKind.GROUP)
OTHER = Place(channel="telegram", account="bot", chat="-200", kind=ChatKind.GROUP)
GROUPS = {"allow": {"-100": {"require_mention": False}, "-200": {"require_mention": False}}}
# Everybody may ask for what a person has to allow.
OPEN: dict[str, Any] = {"tools": {"by_sender": {"telegram:*": {"profile": "full"}}}}
IN_GROUPS: dict[str, Any] = OPEN | {"channels": {"telegram": {"groups": GROUPS, "allow_bots": True}}}
_numbers = itertools.count(1)


class Commanding(AskingTool):
    """Asks whether a command may run; what is allowed for always is kept by the command."""

    def __init__(self, subject: str = COMMAND, **fields: Any) -> None:
        super().__init__()
        self.fields = {"subject": subject, "grants": (f"exec:{subject}",), "granted": f"`{subject}`", **fields}

    async def asks(self, parameters: Labelled, context: CallContext) -> Ask | None:
        """See Tool."""
        return Ask(digest=str(self.fields), **self.fields)


async def begin(hark: Hark, sender: str = "1", count: int = 1, then: str = "done", **fields: Any) -> str:
    """Somebody writes, and the turn parks; the id of the request, the one of that number. then: the model's answer
    once it is decided, empty where the test does not get so far."""
    known = {ident for (ident,) in hark.stored.approvals("approval_id")}
    hark.model.add(Call("ask", {"label": "it"}))
    if then:
        hark.model.add(then)
    await hark.write("do it", sender=sender, **fields)
    await hark.until(lambda: len(hark.stored.approvals(state="open")) > 0, "the request")
    await hark.until(lambda: len(hark.stored.approvals()) == count, f"request {count}")
    await hark.delivered()
    (ident,) = {ident for (ident,) in hark.stored.approvals("approval_id")} - known
    return str(ident)


def at(place: Place, sender: str, name: str = "") -> dict[str, Any]:
    """Fields of a message that somebody writes in a place."""
    number = f"9{next(_numbers)}"
    origin = Origin(place=place, sender=sender, message_id=number, sender_name=name)
    return {"origin": origin, "event_key": f"m:{place.chat}:{number}"}


async def press(hark: Hark, button: str, below: Delivery, sender: str = "1", name: str = "") -> None:
    """Somebody presses a button below a message, and it is carried out."""
    message_id = str(hark.channel.sent.index(below) + 1)
    (sends,) = [one.sends for one in below.buttons if one.label == button]
    fields = at(below.place, sender, name) | {"kind": InboundKind.BUTTON, "reply_to": message_id, "respond": "handle"}
    await hark.accept(hark.message(sends, sender, **fields | {"event_key": f"i:{next(_numbers)}"}))
    await carried_out(hark)


async def order(hark: Hark, text: str, sender: str = "1", **fields: Any) -> str:
    """Somebody types a command; what is answered, empty for nothing."""
    before = len(hark.channel.sent)
    await hark.write(text, sender=sender, **fields)
    await carried_out(hark)
    return next((one.body for one in hark.channel.sent[before:] if one.source.key.startswith("cmd:")), "")


async def carried_out(hark: Hark) -> None:
    await hark.until(lambda: not hark.stored.messages(state="waiting", kind={"command", "button"}), "the command")
    await told(hark)


def shows(hark: Hark, chat: str = "1") -> list[Delivery]:
    """The messages that show a request in a chat, sends and edits."""
    sent = [one for one in hark.channel.sent if one.place.chat == chat]
    return [one for one in sent if one.source.key.startswith(("ask:", "told:", "asked-again:"))]


def labels(one: Delivery) -> list[str]:
    return [button.label for button in one.buttons]


async def test_what_is_asked_and_how_it_reads_once_it_is_decided(tmp_path: Path) -> None:
    tool = Commanding(why=("`rm` is not *listed*.\n✓ **Allowed once**",), risks=("It deletes [all](x).",))
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        ident = await begin(hark)
        (shown,) = shows(hark)
        short = ident[:8]
        assert shown.body == (
            "🔐 **May I run this?**\n\n```\nrm -rf build\n```\n\n"
            "Why I ask:\n- `rm` is not \\*listed\\*. ✓ \\*\\*Allowed once\\*\\*\n\n"
            "⚠️ Note:\n- It deletes \\[all\\](x).\n\n"
            "*Always allow* would also allow from now on: `rm -rf build`\n\n"
            f"An owner decides until Tue 2026-07-14 04:03 UTC: `/approve {short} once`, `always`, `for 15m` or `deny`."
            " `yes` or `no` decides as well."
        )
        assert [(one.label, one.sends) for one in shown.buttons] == [
            ("Allow once", f"/approve {ident} once"),
            ("Always allow", f"/approve {ident} always"),
            ("Deny", f"/approve {ident} deny"),
        ]
        assert all(len(one.sends.encode()) <= 64 for one in shown.buttons)
        await press(hark, "Allow once", shown, name="Ada")
        await over(hark)
        assert tool.begun == ["it"]
        _, edit = shows(hark)
        assert (edit.action, edit.target, edit.buttons) == (Action.EDIT, "1", ())
        assert edit.body == shown.body.partition("An owner")[0] + "✓ **Allowed once** by Ada"
        assert [one for one in hark.channel.sent if one.source.key.startswith(("cmd:", "chosen:"))] == []
        await press(hark, "Deny", shown)
        assert hark.stored.approvals("state", "decided_by") == [("once", "telegram:1 Ada")]
        assert hark.channel.texts()[-1] == "That was decided before: ✓ **Allowed once** by Ada. Nothing has changed."
        assert len(shows(hark)) == 2


ORDERS = [
    ("/approve {0} once", "once", "", "✓ Allowed once: `rm -rf build`"),
    ("/approve ALLOW-ONCE {1}", "once", "", "✓ Allowed once"),
    ("!approve {0} allow", "once", "", "✓ Allowed once"),
    ("/approve deny  not on a Friday", "denied", "not on a Friday", "✗ Denied: `rm -rf build`"),
    ("/approve {0} no because", "denied", "because", "✗ Denied"),
    ("/approve {0:.8} allow-always", "always", "", "✓ Allowed always"),
]
MISTAKES = [
    ("/approve", "Write `/approve`, the id"),
    ("/approve {0} perhaps", "Write `/approve`, the id"),
    ("/approve {0}", "Write `/approve`, the id"),
    ("/approve deny-with 1", "There is no request 1."),
    ("/approve {0} deny-with 999", "Those words are gone."),
    ("/approve once 0000000", "There is no request 0000000."),
    ("/approve 'x' once", "There is no request 'x'."),
    ("/answer {0} blue", "That is no question"),
    ("/approve {0} again", "That cannot be asked again"),
]


async def test_approve_as_people_type_it(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding()]) as hark:
        for number, (typed, state, reason, said) in enumerate(ORDERS, 1):
            ident = await begin(hark, count=number)
            answer = await order(hark, typed.format(ident, str(UUID(ident)).upper()))
            assert answer.startswith(said)
            assert hark.stored.approvals("state", approval_id=ident) == [(state,)]
            assert state != "denied" or hark.stored.approvals("reason", approval_id=ident) == [(reason,)]
            await hark.until(lambda ends=number: len(hark.ends(KEY)) == 2 * ends, "the end")  # type: ignore[misc]
        assert hark.service.parts.requests.grants.of("") == {f"exec:{COMMAND}"}


async def test_what_is_allowed_for_always_counts_before_its_turn_can_go_on(tmp_path: Path) -> None:
    """Here another turn has the only place."""
    config = OPEN | {"agent": {"max_concurrent": 1}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()]) as hark:
        ident, held = await begin(hark, then=""), asyncio.Event()
        await hark.write("think", sender="2", answers=[Say("thinking", gate=held)])
        await hark.model.until_requests(2)
        assert (await order(hark, f"/approve {ident} always")).startswith("✓ Allowed always")
        assert hark.ends(KEY)[-1].outcome.value == "parked"
        assert hark.service.parts.requests.grants.of("") == {f"exec:{COMMAND}"}
        hark.model.add("done")
        held.set()
        await over(hark)


async def test_what_is_not_understood_decides_nothing(tmp_path: Path) -> None:
    tool = Commanding(grants=())
    async with running(tmp_path, config=OPEN, tools=lambda watch: [tool]) as hark:
        ident = await begin(hark, then="")
        assert labels(shows(hark)[0]) == ["Allow once", "Deny"]
        for typed, said in (*MISTAKES, ("/approve {0} always", "That cannot be allowed for always")):
            assert (await order(hark, typed.format(ident))).startswith(said)
        assert hark.stored.approvals("state") == [("open",)]
        other = await begin(hark, "2", count=2, then="")
        assert (await order(hark, "/approvals")).count("for telegram:") == 2
        for few in (ident[:1], other[:1]):  # too few digits name nothing, whomever they would fit
            assert (await order(hark, f"/approve {few} once")).startswith("There is no request")
        assert [one for one in hark.service.parts.pipeline.commands() if one.name == "answer"] == []


async def test_who_may_decide_and_where(tmp_path: Path) -> None:
    """The request stays; who may not is told who may, and another group learns nothing."""
    config = {**IN_GROUPS, "owners": ["telegram:1", "telegram:3"], "approvals": {"approvers": ["telegram:3"]}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()]) as hark:
        ident = await begin(hark, **at(GROUP, "2"))
        (shown,) = shows(hark, "-100")
        assert "An approver decides until" in shown.body
        for sender in ("1", "2"):
            await press(hark, "Allow once", shown, sender)
            told = hark.channel.sent[-1]
            assert told.body.startswith("An approver decides about `rm -rf build`, nobody else.")
            assert told.respond == "handle", "told to them alone, where the platform can"
        bot = at(GROUP, "3")
        bot["origin"] = Origin(place=GROUP, sender="3", message_id="1", by_bot=True)
        await order(hark, f"/approve {ident} once", **bot)
        pressed = {"kind": InboundKind.BUTTON}
        forged = await order(hark, f"/approve {ident} once", **at(OTHER, "2"), **pressed)
        assert forged.startswith("There is no request")
        assert (await order(hark, f"/approve {ident} once", **at(OTHER, "3"))).startswith("Decide that where")
        assert (await order(hark, f"/approve {ident} once", "2", **pressed)).startswith("There is no request")
        assert "rm -rf" not in await order(hark, "/approvals", **at(OTHER, "1"))
        assert "rm -rf" in await order(hark, "/approvals", "1")
        assert hark.stored.approvals("state") == [("open",)]
        assert (await order(hark, f"/approve {ident[:8]} once", "3")).startswith("✓ Allowed once")
        await hark.until(lambda: "done" in hark.channel.texts("-100"), "the answer")


async def test_where_nobody_may_decide_it_is_said_at_once(tmp_path: Path) -> None:
    config = OPEN | {"owners": [], "approvals": {"timeout_seconds": 1}}
    tools = {"ask": Commanding(), "run": Commanding("make", runs_unanswered=True)}
    tools["run"].name = "run"
    async with running(tmp_path, config=config, tools=lambda watch: list(tools.values())) as hark:
        await hark.write("do it", answers=[(Call("ask", {"label": "it"}), Call("run", {"label": "it"})), "then not"])
        await over(hark)
        key = "Set `owners` or `approvals.approvers` in the configuration."
        not_run = f"`rm -rf build` needs an approval that nobody may give, so it was not run. {key}"
        told = [not_run, not_run.replace("it was not run", "it goes on without").replace(COMMAND, "make"), "then not"]
        assert sorted(hark.channel.texts()) == sorted(told)
        assert results(hark)[0] == not_run
        assert (tools["ask"].begun, tools["run"].begun) == ([], ["it"])
        assert hark.stored.approvals() == []


async def test_an_owner_who_does_not_read_along_is_told_directly(tmp_path: Path) -> None:
    tool = Commanding()
    async with running(tmp_path, config=OPEN, tools=lambda watch: [tool]) as hark:
        await hark.say("hi", "1", answers=["hello"])
        await begin(hark, "2")
        (here,), (owner,) = shows(hark, "2"), shows(hark, "1")
        assert (here.body.count(COMMAND), labels(here)) == (2, [])
        assert "waits for the decision of somebody who does not read this conversation" in here.body
        assert "`/approve" not in here.body
        assert labels(owner) == ["Allow once", "Always allow", "Deny"]
        assert "Asked on Telegram.\n\n`approvals.forward_to` in the configuration" in owner.body
        await press(hark, "Deny", owner)
        await hark.until(lambda: "done" in hark.channel.texts("2"), "the answer")
        await hark.until(lambda: len(shows(hark)) == 2 == len(shows(hark, "2")), "the edits")
        edits = {one.place.chat: one.body for one in hark.channel.sent if one.action is Action.EDIT}
        assert sorted(edits) == ["1", "2"]
        assert all(body.endswith("✗ **Denied** by telegram:1") for body in edits.values())
        assert tool.begun == []


class Finding(RecordingChannel):
    """Knows its groups."""

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        return Origin(place=GROUP) if wanted == GROUP.chat else ()


async def test_requests_are_forwarded(tmp_path: Path) -> None:
    config = {**IN_GROUPS, "approvals": {"forward_to": "telegram:-100"}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()], made=Finding) as hark:
        ident = await begin(hark, "2")
        (here,), (there,) = shows(hark, "2"), shows(hark, "-100")
        assert (here.body, here.buttons) == (f"⏳ `rm -rf build` waits for somebody's decision (`{ident[:8]}`).", ())
        assert "Asked on Telegram." in there.body
        await press(hark, "Always allow", there, "5")
        assert hark.channel.sent[-1].body.startswith("There is no request")
        elsewhere = await order(hark, f"/approve {ident} once", **at(OTHER, "1"))
        assert (elsewhere.startswith("Decide that where"), hark.stored.approvals("state")) == (True, [("open",)])
        assert (await order(hark, f"/approve {ident} always", **at(GROUP, "1"))).startswith("✓ Allowed always")
        await hark.until(lambda: "done" in hark.channel.texts("2"), "the answer")
        await hark.delivered()
        assert shows(hark, "-100")[-1].body.endswith("✓ **Allowed always** by telegram:1")
        assert (
            shows(hark, "2")[-1].body == "🔐 **May I run this?** `rm -rf build`\n\n✓ **Allowed always** by telegram:1"
        )


async def test_a_chat_to_forward_to_that_is_not_found_stops_nothing(tmp_path: Path) -> None:
    config = {"approvals": {"forward_to": "telegram:-300"}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()]) as hark:
        ident = await begin(hark)
        assert (await order(hark, f"/approve {ident} deny")).startswith("✗ Denied")
        await over(hark)


async def test_it_expires_in_time_and_can_be_asked_again(tmp_path: Path) -> None:
    tool = Commanding()
    config = {"approvals": {"timeout_seconds": 90}}
    async with running(tmp_path, config=config, tools=lambda watch: [tool]) as hark:
        first = await begin(hark)
        await hark.time.until_pause(90)
        hark.time.advance(90)
        await over(hark)
        await told(hark)
        old = shows(hark)[-1]
        assert old.body.endswith("⌛ Nobody decided in time: it was not run.")
        assert labels(old) == ["Ask again"]
        assert (await order(hark, f"/approve {first} once")).startswith("It is too late")
        await press(hark, "Ask again", old, "2")
        assert hark.stored.approvals("state") == [("expired",)]
        assert shows(hark)[-1] == old, "who neither asked nor may decide asks nothing again"
        hark.model.add("at last")
        for _ in range(2):
            await press(hark, "Ask again", old)
        second = await approval(hark, 2)
        await hark.delivered()
        assert second != first
        edit, again = shows(hark)[-2:]
        assert edit.body.endswith("⌛ Nobody decided in time: it was not run.\n\n✓ **Asked again**")
        place = str(hark.channel.sent.index(old) + 1)  # the answer may come before it, or behind
        assert (edit.action, edit.target, edit.buttons) == (Action.EDIT, place, ())
        assert again.body.partition("An owner")[0] == shows(hark)[0].body.partition("An owner")[0]
        await press(hark, "Allow once", again)
        await hark.until(lambda: hark.channel.texts()[-1] == "at last", "the answer")
        assert tool.begun == ["it"]
        digests = {digest for (digest,) in hark.stored.approvals("digest")}
        assert len(digests) == 1


async def test_what_expired_while_nothing_ran(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding()]) as hark:
        await begin(hark, then="")
        time = hark.time
    time.advance(3600)
    async with running(tmp_path, tools=lambda watch: [Commanding()], time=time) as hark:
        hark.model.add("then not")
        await over(hark)
        await told(hark)
        assert [labels(one) for one in shows(hark)] == [["Ask again"]]


async def test_a_turn_that_is_stopped_asks_no_more(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding()]) as hark:
        ident = await begin(hark, then="")
        await order(hark, "/stop")
        await hark.until(lambda: len(shows(hark)) == 2, "the edit")
        assert shows(hark)[-1].body.endswith("✗ It is not asked any more: what it was for was stopped")
        assert labels(shows(hark)[-1]) == []
        assert "cannot be asked again" in await order(hark, f"/approve {ident} again")


async def test_whoever_writes_meanwhile_is_always_told(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding("make all\nmake install")]) as hark:
        ident = await begin(hark)
        said = f"⏳ I am still waiting for a decision about `make all …` (`/approve {ident[:8]} once`)"
        said += ", and read “and \\*this\\*?” then."
        for count in (1, 2, 3):
            await hark.write("and *this*?")
            await hark.until(lambda wanted=count: hark.channel.texts().count(said) == wanted)  # type: ignore[misc]
            await hark.delivered()
        hark.model.add("read")
        await order(hark, f"/approve {ident} once")
        await hark.until(lambda: "read" in hark.channel.texts(), "the next answer")
        told = [one for one in hark.channel.sent if one.body == said]
        assert [labels(one) for one in told] == [["Allow once", "Deny and pass on these words"]] * 3
        await hark.until(lambda: sum("Allowed once" in one.body for one in shows(hark)) == 4, "each shows the decision")


async def test_a_question_with_options(tmp_path: Path) -> None:
    ask = {"question": True, "is_code": False, "who": "asker", "options": ("3", "5"), "runs_unanswered": True}
    tool = Commanding("How many?", grants=(), **ask)
    async with running(tmp_path, config=OPEN, tools=lambda watch: [tool]) as hark:
        ident = await begin(hark, "2")
        (shown,) = shows(hark, "2")
        until = "Tue 2026-07-14 04:03 UTC"
        how = "Press a button, write what stands there, or reply to this with other words."
        how = f"{how} (whoever asked, until {until})"
        assert shown.body == f"❓ How many?\n\n{how}"
        assert [(one.label, one.sends) for one in shown.buttons] == [
            ("💬 3", f"/answer {ident} #1"),
            ("💬 5", f"/answer {ident} #2"),
        ]
        pressed = {"kind": InboundKind.BUTTON}
        assert (await order(hark, f"/approve {ident} once", "2", **pressed)).startswith("That is a question")
        await order(hark, f"/answer {ident} 5", "4")
        assert hark.stored.approvals("state") == [("open",)]
        await press(hark, "💬 5", shown, "2", "Bo")
        await hark.until(lambda: "done" in hark.channel.texts("2"), "the answer")
        assert hark.stored.approvals("state", "reason") == [("answered", "5")]
        assert shows(hark, "2")[-1].body == "❓ How many?\n\n✓ **Bo**: 5"
        assert shows(hark, "2")[-1].buttons == ()


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("ls" + " " * 41 + "rm", "ls⟨U+0020 ×41⟩rm"),
        ("ls" + " " * 40 + "rm", "ls" + " " * 40 + "rm"),
        ("ls" + "\t" * 200 + "rm", "ls⟨U+0009 ×200⟩rm"),
        ("ls" + "\t " * 100 + "rm", "ls⟨U+0009 ×100, U+0020 ×100⟩rm"),
        ("ls" + "\n" * 301 + "rm", "ls⟨U+000A ×301⟩\nrm"),
        ("ls" + " \n\t\n" * 150 + "  rm", "ls⟨U+0020 ×150, U+000A ×300, U+0009 ×150⟩\n  rm"),
        ("ls" + "\r\n" * 300 + "rm", "ls⟨U+000D ×300, U+000A ×300⟩\nrm"),
        ("ls" + "\u200b\n" * 300 + "rm", "ls⟨U+200B ×300, U+000A ×300⟩\nrm"),
        *((f"ls{end * 300}rm", f"ls⟨U+{ord(end):04X} ×300⟩\nrm") for end in "\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"),
        ("ls\n" + " " * 300 + "rm", "ls⟨U+000A ×1, U+0020 ×300⟩\nrm"),
        ("ls \t\nrm  ", "ls⟨U+0020 ×1, U+0009 ×1⟩\nrm⟨U+0020 ×2⟩"),
        ("a\u2028b\x85c\u202ed", "a⟨U+2028⟩b⟨U+0085⟩c⟨U+202E⟩d"),
        ("if x:\n\tfor y:\n\t\tz\n\n\n\nend\n", "if x:\n\tfor y:\n\t\tz\n\n\n\nend\n"),
        ("\n" * 300, "⟨U+000A ×300⟩"),
    ],
)
def test_what_is_pushed_out_of_sight_is_written_out(hidden: str, shown: str) -> None:
    assert words.revealed(hidden) == shown
    body, *_ = words.request(Ask(digest="", subject=hidden), "", lambda text: True)
    assert f"```\n{shown}\n```" in body

"""What comes behind a decision, or instead of one: rules that stay, requests that expire, people not there."""

from pathlib import Path
from typing import Any

import pytest

from tests.wire.answers import PLATFORMS
from tests.wire.court import ALWAYS, DENY, ONCE, Card, Court, court, run
from tests.wire.test_approvals import names, whole

pytestmark = pytest.mark.xdist_group("wire-tools")
AGAIN = "ask again"


def again(card: Card) -> str:
    """The button that asks again; the only one that is left."""
    (label,) = card.buttons
    assert label.lower() == AGAIN, label
    return label


def workdir(at: Court) -> str:
    """What exec calls the folder a command runs in."""
    request = next(one for one in at.play.model.requests if "exec" in one.tool_names)
    (tool,) = (one for one in request.body["tools"] if one["name"] == "exec")
    known = set(tool["input_schema"]["properties"]) & {"workdir", "cwd", "folder", "directory", "working_directory"}
    return str(known.pop())


async def test_what_is_always_allowed_is_that_and_nothing_more(tmp_path: Path) -> None:
    async with court(tmp_path) as at:
        talks = {platform: at.meets(platform) for platform in PLATFORMS}
        async with at.serving():
            (at.workspace / "elsewhere" / "tally").mkdir(parents=True)
            (at.workspace / "elsewhere" / "seed").write_text("seed")
            for place, (platform, talk) in enumerate(talks.items()):
                command = at.tally(talk, "rule")
                at.says(talk, "first", run(command))
                card = await at.card(talk, f"{platform}-rule")
                at.press(card, ALWAYS)
                await at.answered(talk, "first")
                at.says(talk, "same", run(command), [run(command), run(f"echo seed && {command}")])
                await at.answered(talk, "same")
                assert at.ran(talk, "rule") == 4
                folder = workdir(at)
                others: tuple[dict[str, Any], ...] = (
                    {"command": f"{command}-x"},
                    {"command": f"{command} more"},
                    {"command": command.replace("-v", "-f")},
                    {"command": command.replace("seed", "'*'", 1)},
                    {"command": f"{command}; rm -rf elsewhere"},
                    {"command": f"{command} && touch x"},
                    {"command": f"{command} > ../out"},
                    {"command": f"{command} $(touch x)"},
                    {"command": f"sudo {command}"},
                    {"command": f"X=1 LD_PRELOAD=./x.so {command}"},
                    {"command": command, folder: "elsewhere"},
                )
                for number, arguments in enumerate(others[place::3]):
                    before = at.ran(talk, "rule")
                    asked = [one.id for one in at.cards(talk) if one.buttons]
                    at.says(talk, f"other-{number}", run(**arguments))
                    await at.until(
                        lambda talk=talk, number=number, asked=asked: (  # type: ignore[misc]
                            at.over(talk, f"other-{number}")
                            or [one for one in at.cards(talk) if one.buttons and one.id not in asked]
                        ),
                        f"a request about {arguments}",
                        talk,
                    )
                    found = [one for one in at.cards(talk) if one.buttons and one.id not in asked]
                    result = "".join(at.results(talk, f"other-{number}"))
                    assert found or "refused" in result or "denied" in result, f"{arguments} ran unasked: {result}"
                    if found:
                        at.press(found[0], DENY)
                        await at.answered(talk, f"other-{number}")
                    assert at.ran(talk, "rule") == before
                assert not (at.workspace / "elsewhere" / "tally" / f"{platform}-rule").exists()
            at.die()
        async with at.serving():
            for talk in talks.values():
                at.says(talk, "after", run(at.tally(talk, "rule")))
                await at.answered(talk, "after")
                assert at.ran(talk, "rule") == 5


async def test_a_rule_is_not_offered_where_none_is_narrow_enough(tmp_path: Path) -> None:
    commands = (
        'sh -c "$WHAT"',
        'cp seed "$WHERE"',
        "cp seed tally/$(cat name)",
        "cp seed other > log",
        "WHERE=other cp seed tally/other",
        'eval "$(cat script)"',
    )
    async with court(tmp_path) as at, at.serving():
        for number, command in enumerate(commands):
            talk = at.meets(PLATFORMS[number % 3])
            at.says(talk, "inline", run(command))
            await at.until(lambda talk=talk: [one for one in at.cards(talk) if one.buttons], command, talk)  # type: ignore[misc]
            (card,) = (one for one in at.cards(talk) if one.buttons)
            assert command in card.text
            assert list(card.buttons) == [ONCE, DENY], command
            at.native(talk, f"/approve {card.name} always")  # typed all the same
            await at.quiet()
            state, *_ = at.stage.stored.approvals("state", approval_id=whole(at, card))
            assert state in (("open",), ("once",)), f"{command} is allowed for always"
            if state == ("open",):
                at.press(card, DENY)
            await at.answered(talk, "inline")
            at.says(talk, "inline-again", run(command))
            await at.until(
                lambda talk=talk, card=card: [one for one in at.cards(talk) if one.buttons and one.id != card.id],  # type: ignore[misc]
                f"{command} is asked about again",
                talk,
            )


async def test_whoever_wants_to_be_asked_always_is(tmp_path: Path) -> None:
    async with court(tmp_path, tools={"exec": {"ask": "always"}}) as at, at.serving():
        for platform in PLATFORMS:
            talk = at.meets(platform)
            for name in ("first", "second"):
                at.says(talk, name, run("cat seed"))
                await at.until(lambda talk=talk: [one for one in at.cards(talk) if one.buttons], "a request", talk)  # type: ignore[misc]
                (card,) = (one for one in at.cards(talk) if one.buttons)
                assert (list(card.buttons), "cat seed" in card.text) == ([ONCE, DENY], True)
                at.press(card, ONCE)
                await at.answered(talk, name)
                assert "seed" in at.results(talk, name)[0]


@pytest.mark.parametrize("fallback", ["deny", "allowlist", "full"])
async def test_a_request_expires_into_what_is_configured(fallback: str, tmp_path: Path) -> None:
    exec_ = {"ask": "always", "ask_fallback": fallback}
    async with court(tmp_path, tools={"exec": exec_}, approvals={"timeout_seconds": 1}) as at, at.serving():
        at.may_repeat()
        for platform in PLATFORMS:
            runs = {"missed": fallback == "full", "listed": fallback != "deny"}
            talk, other = at.meets(platform), at.meets(platform)
            at.asks(talk, "missed")
            at.says(other, "listed", run(f"echo seed # {platform}", needs="look"))
            missed, listed = await at.card(talk, "missed"), await at.card(other, f"# {platform}")
            at.pass_by(2)
            for card, name in ((missed, "missed"), (listed, "listed")):
                await at.answered(card.talk, name, most=30)
                edited = await at.resolved(card, most=30)
                (result,) = at.results(card.talk, name)
                if runs[name]:
                    assert "seed" in result, f"{name} on {platform}: {result}"
                    assert ONCE not in edited.buttons
                else:
                    assert "exit code 0" not in result, f"{name} on {platform}: {result}"
                    assert any(word in edited.text.lower() for word in ("nobody", "expired", "in time")), edited.text
                    again(edited)
            assert at.ran(talk, "missed") == runs["missed"]
            before = at.said(talk)
            at.press(missed, ONCE)  # as it was
            await at.told(talk, before, f"that it is too late on {platform}")
            assert at.ran(talk, "missed") == runs["missed"]


async def test_what_expired_is_asked_again_and_then_decided(tmp_path: Path) -> None:
    async with court(tmp_path, approvals={"timeout_seconds": 1}) as at, at.serving():
        at.may_repeat()
        for platform in PLATFORMS:
            bob, alice = at.in_room(platform, "bob"), at.in_room(platform, "alice")
            at.asks_in_room(platform, "bob", "late", run(at.tally(bob, "late")))
            card = await at.card(bob, f"{platform}-late")
            at.pass_by(2)
            await at.answered(bob, "late", most=30)
            expired = await at.resolved(card, most=30)
            label = again(expired)
            pressed = at.press(expired, label, alice.person)
            fresh = await at.card(bob, f"{platform}-late", ident=card.id)
            assert (list(fresh.buttons), at.tally(bob, "late") in fresh.text) == ([ONCE, ALWAYS, DENY], True)
            assert fresh.name != card.name
            at.replay(expired, pressed)
            at.press(expired, label, alice.person)
            for _ in range(2):
                at.native(alice, f"/approve {card.name} once")
            await at.quiet()
            asked = [one for one in at.cards(bob) if ONCE in one.buttons and f"{platform}-late" in one.text]
            assert [one.id for one in asked] == [fresh.id], "it is asked once more, and the old one decides nothing"
            assert at.ran(bob, "late") == 0
            requests = len(at.play.model.requests)
            at.press(fresh, ONCE, alice.person)
            await at.until(lambda bob=bob: at.ran(bob, "late") == 1, "the command", bob)  # type: ignore[misc]
            await at.resolved(fresh)
            await at.until(
                lambda requests=requests, platform=platform: any(  # type: ignore[misc]
                    f"-> 'tally/{platform}-late'" in str(one.body) for one in at.play.model.requests[requests:]
                ),
                "the model learns of it",
                bob,
            )
            assert at.ran(bob, "late") == 1
            assert not (await at.resolved(fresh)).buttons


async def test_where_nobody_may_decide_that_is_said_at_once_with_the_key(tmp_path: Path) -> None:
    async with court(tmp_path, owners=()) as at, at.serving():
        for platform in PLATFORMS:
            talk = at.meets(platform)
            at.asks(talk, "nobody")
            await at.answered(talk, "nobody")
            said = "\n".join([*at.texts(talk), *at.whispers(talk)])
            assert "approvals.approvers" in said or "`owners`" in said or "owners:" in said, said
            assert not any(card.buttons for card in at.cards(talk)), said
            assert at.ran(talk, "nobody") == 0
            assert "'seed' ->" not in at.results(talk, "nobody")[0]
        assert not at.stage.stored.approvals(state="open")


async def test_somebody_who_may_not_decide_asks_and_the_owner_is_told(tmp_path: Path) -> None:
    async with court(tmp_path, owners=("telegram:713456789",)) as at, at.serving():
        at.may_repeat()
        owner = at.in_room("telegram", "carol")
        owner = at.direct("telegram", owner.person)
        at.says(owner, "hello")
        await at.answered(owner, "hello")
        for platform in PLATFORMS:
            talk = at.meets(platform)
            at.asks(talk, "please")
            card = await at.card(owner, f"{platform}-please")
            assert at.tally(talk, "please") in card.text
            await at.until(lambda talk=talk: at.texts(talk), "the asker is told", talk)  # type: ignore[misc]
            for mine in at.cards(talk):
                for label in mine.buttons:
                    at.press(mine, label)
            await refused_at(at, talk, card)
            assert at.ran(talk, "please") == 0
            at.press(card, ONCE)
            await at.answered(talk, "please")
            assert (at.ran(talk, "please"), (await at.resolved(card)).buttons) == (1, {})
            await at.until(lambda talk=talk: not any(one.buttons for one in at.cards(talk)), "no buttons", talk)  # type: ignore[misc]


async def refused_at(at: Court, talk: Any, card: Card) -> None:
    """Who asked types the decision themselves."""
    before = at.said(talk)
    at.native(talk, f"/approve {whole(at, card)} once")
    await at.told(talk, before, f"that they may not, on {talk.platform}")


@pytest.mark.parametrize("target", PLATFORMS)
async def test_requests_are_forwarded_and_decided_there(target: str, tmp_path: Path) -> None:
    async with court(tmp_path) as at:
        at.may_repeat()
        room = at.in_room(target, "alice")
        at.stage.changes["approvals"] = {"forward_to": f"{target}:{at.side(target).id_of(room.raw)}"}
        async with at.serving():
            at.asks_in_room(target, "alice", "here")  # a chat that nobody has written in is not known on Telegram
            await at.until(lambda: any("over" in text for text in at.texts(room)), "an answer", room)
            for number, platform in enumerate(PLATFORMS):
                talk = at.meets(platform, owner=False)
                at.asks(talk, "away")
                card = await at.card(room, f"{platform}-away")
                assert at.tally(talk, "away") in card.text
                bob = at.in_room(target, "bob")
                at.press(card, ONCE, bob.person)
                await at.quiet()
                assert at.ran(talk, "away") == 0, "Bob may not"
                at.press(card, (ONCE, DENY, ONCE)[number], room.person)
                await at.answered(talk, "away")
                edited = await at.resolved(card)
                assert names(at, room, edited.text), edited.text
                assert at.ran(talk, "away") == (number != 1)
                assert not any(one.buttons for one in at.cards(talk))


async def test_approvers_may_decide_and_owners_who_are_none_may_not(tmp_path: Path) -> None:
    async with court(tmp_path) as at:
        at.may_repeat()
        at.stage.changes["approvals"] = {"approvers": [f"{name}:{at.side(name).bob}" for name in PLATFORMS]}
        async with at.serving():
            for platform in PLATFORMS:
                alice, bob = at.in_room(platform, "alice"), at.in_room(platform, "bob")
                at.asks_in_room(platform, "alice", "named", run(at.tally(alice, "named")))
                card = await at.card(alice, f"{platform}-named")
                at.press(card, ONCE, alice.person)
                await at.quiet()
                assert at.ran(alice, "named") == 0, "named approvers take the place of owners"
                at.press(card, ONCE, bob.person)
                await at.answered(alice, "named")
                assert names(at, bob, (await at.resolved(card)).text)
                assert at.ran(alice, "named") == 1

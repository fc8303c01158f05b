"""Calls about which a person must decide, on all platforms: what they see, the ways to decide, what comes of it."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.standins.script import Call
from tests.wire.answers import PLATFORMS
from tests.wire.court import ALWAYS, DENY, ONCE, Card, Court, Talk, court, run

pytestmark = pytest.mark.xdist_group("wire-approvals")
Way = Callable[[Court, Card], object]
_PART = re.compile(r"\A.*Part \d+ of \d+(, the line above goes on)?:")
WAYS: dict[str, tuple[str, Way]] = {
    "button-once": ("once", lambda at, card: at.press(card, ONCE)),
    "button-always": ("always", lambda at, card: at.press(card, ALWAYS)),
    "button-deny": ("denied", lambda at, card: at.press(card, DENY)),
    "native-always": ("always", lambda at, card: at.native(card.talk, f"/approve {card.name} always")),
    "native-deny": ("denied", lambda at, card: at.native(card.talk, f"/approve {card.name} deny")),
    "typed-whole-id": ("denied", lambda at, card: at.write(card.talk, f"!approve {whole(at, card)} deny")),
    "typed-other-case": ("once", lambda at, card: at.write(card.talk, f"!approve {card.name.upper()} once")),
}


def whole(at: Court, card: Card) -> str:
    """The whole id of a request."""
    (found,) = (one for (one,) in at.stage.stored.approvals("approval_id") if one.startswith(card.name.lower()))
    return str(found)


def names(at: Court, talk: Talk, text: str) -> bool:
    """Whether a text names who speaks in a conversation."""
    return any(one.lower() in text.lower() for one in at.named_as(talk.person))


async def test_every_way_to_decide_decides_once_and_is_shown_where_it_was_asked(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        talks = {(platform, name): at.meets(platform) for platform in PLATFORMS for name in WAYS}
        for (_, name), talk in talks.items():
            at.asks(talk, name)
        cards = {key: await at.card(talk, key[1]) for key, talk in talks.items()}
        for (platform, name), card in cards.items():
            command = at.tally(card.talk, name)
            assert command in card.text, (platform, name)
            assert list(card.buttons) == [ONCE, ALWAYS, DENY], (platform, name)
            assert len(whole(at, card).replace("-", "")) == 32, "a UUID"
            assert at.ran(card.talk, name) == 0, (platform, name)
            if platform == "telegram":
                marks = [one for one in card.raw["entities"] if one["type"] in ("pre", "code")]
                assert any(one["length"] >= len(command) for one in marks), "a command is shown as code"
        for (_, name), card in cards.items():
            WAYS[name][1](at, card)
        for (platform, name), card in cards.items():
            talk, (verdict, _) = card.talk, WAYS[name]
            await at.answered(talk, name)
            edited = await at.resolved(card)
            where = f"{name} on {platform}: {edited.text}"
            assert (edited.buttons, at.tally(talk, name) in edited.text) == ({}, True), where
            assert names(at, talk, edited.text), where
            assert sum("May I" in text and at.tally(talk, name) in text for text in at.texts(talk)) == 1, where
            (result,) = at.results(talk, name)
            if verdict == "denied":
                assert (at.ran(talk, name), "denied" in result) == (0, True), where
            else:
                assert (at.ran(talk, name), "'seed' -> 'tally/" in result) == (1, True), where
        assert sorted(at.stage.stored.approvals("state")) == sorted(
            (WAYS[name][0],) for _ in PLATFORMS for name in WAYS
        )


async def test_a_reply_of_a_plain_word_decides_and_another_is_asked_back(tmp_path: Path) -> None:
    reason = "not before <Friday> & only with a backup"
    async with court(tmp_path) as at, at.serving():
        for platform in PLATFORMS:
            for name, word in (("yes", "Yes!"), ("no", "👎"), ("last", "ok"), ("other", reason)):
                talk = at.meets(platform)
                at.asks(talk, name)
                card = await at.card(talk, name)
                at.write(talk, word, reply_to="" if name == "last" else card.id)
                if name == "other":
                    asked = await at.card(talk, "still waiting", ident=card.id)
                    assert at.now(card).buttons == card.buttons, "nothing is decided"
                    assert list(asked.buttons) == [ONCE, "Deny and pass on these words"], platform
                    at.press(asked, "Deny and pass on these words")
                await at.answered(talk, name)
                edited = await at.resolved(card)
                assert (edited.buttons, at.ran(talk, name)) == ({}, int(name in ("yes", "last"))), platform
                assert names(at, talk, edited.text), edited.text
                if name == "other":
                    assert (await at.resolved(asked)).buttons == {}
                    assert reason in at.results(talk, name)[0], platform
                assert len(at.requests[platform, name]) == 2, "the words are no message of their own"
        decided = Counter(at.stage.stored.approvals("state", "reason"))
        assert decided == {("once", ""): 6, ("denied", ""): 3, ("denied", reason): 3}


async def test_only_who_may_decide_does_so_by_a_reply(tmp_path: Path) -> None:
    async with court(tmp_path, owners=None) as at, at.serving():
        for platform in PLATFORMS:
            bob = at.asks_in_room(platform, "bob", "group", run(at.tally(at.in_room(platform, "bob"), "group")))
            card = await at.card(bob, "group")
            at.scripts[platform, "meanwhile"] = ()
            at.write(bob, f"no, {platform}/meanwhile", reply_to=card.id)
            alice = at.in_room(platform, "alice")
            await at.quiet()
            assert at.now(card).buttons == card.buttons, platform
            if platform == "slack":  # a thread has no threads, so that nothing tells what is a reply to the request
                at.scripts[platform, "aside"] = ()
                at.write(bob, f"!approve {card.name} deny {platform}/aside")  # for a guest no command, but words
                at.write(
                    Talk(alice.side, alice.person, bob.raw, bob.thread), f"!approve {card.name} deny I would rather not"
                )
            else:
                at.write(alice, "no", reply_to=card.id)
            await at.answered(bob, "group")
            assert "denied" in at.results(bob, "group")[0], platform
            await at.answered(bob, "meanwhile")
            assert at.ran(bob, "group") == 0


async def test_who_writes_while_it_waits_is_told_for_what_and_answered_behind_it(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        for platform in PLATFORMS:
            talk = at.meets(platform)
            at.asks(talk, "parked")
            card = await at.card(talk, "parked")
            before = at.said(talk)
            at.says(talk, "second")
            said = await at.told(talk, before, "what is waited for")
            assert card.name.lower()[:8] in said.lower() or "approv" in said.lower(), said
            at.says(talk, "third")
            await at.quiet()
            assert not any("over " in text for text in at.texts(talk)), "nothing is answered before it"
            at.press(card, ONCE)
            await at.answered(talk, "third")
            overs = [text for text in at.texts(talk) if text.startswith("over ")]
            assert overs == [f"over {platform}/{name}" for name in ("parked", "second", "third")]
            assert at.ran(talk, "parked") == 1


async def test_commands_are_answered_while_it_waits(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        for platform in PLATFORMS:
            talk = at.meets(platform)
            at.asks(talk, "asked")
            card = await at.card(talk, "asked")
            waits = card.name[:8]
            for command, word in (("/status", "claude"), ("/help", "stop"), ("/tools", "exec"), ("/approvals", waits)):
                before = Counter(at.said(talk))
                at.native(talk, command)
                await at.until(
                    lambda talk=talk, before=before, word=word: any(  # type: ignore[misc]
                        word in text for text in Counter(at.said(talk)) - before
                    ),
                    f"{word!r} as an answer to {command} on {platform}",
                    talk,
                )
            assert at.now(card).buttons == card.buttons
            at.press(card, ONCE)
            await at.answered(talk, "asked")
            assert at.ran(talk, "asked") == 1


@pytest.mark.parametrize("command", ["/stop", "/reset"])
async def test_what_is_stopped_while_it_waits_never_runs(command: str, tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        for platform in PLATFORMS:
            talk = at.meets(platform)
            at.asks(talk, "stopped")
            card = await at.card(talk, "stopped")
            before = at.said(talk)
            at.native(talk, command)
            await at.told(talk, before, f"the answer to {command} on {platform}")
            assert not (await at.resolved(card)).buttons, "nobody presses what does nothing"
            at.says(talk, "next")
            await at.answered(talk, "next")
            for label in (ONCE, ALWAYS):
                before = at.said(talk)
                at.press(card, label)
                assert "over " not in await at.told(talk, before, f"that it is too late on {platform}")
            await at.quiet()
            assert at.ran(talk, "stopped") == 0
            assert not any(f"over {platform}/stopped" in text for text in at.texts(talk))
            at.asks(talk, "stopped")
            await at.card(talk, "stopped", ident=card.id)  # it was not allowed for always


async def test_a_call_in_a_room_is_decided_by_its_owner_though_another_asked(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        for platform in PLATFORMS:
            bob, alice = at.in_room(platform, "bob"), at.in_room(platform, "alice")
            at.asks_in_room(platform, "bob", "ours", run(at.tally(bob, "ours")))
            card = await at.card(bob, "ours")
            at.press(card, ONCE, alice.person)
            await at.answered(bob, "ours")
            edited = await at.resolved(card)
            assert names(at, alice, edited.text), edited.text
            assert at.ran(bob, "ours") == 1


async def test_what_a_request_in_a_room_tells_to_type_is_understood_there(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        for platform in PLATFORMS:
            asked = at.asks_in_room(platform, "bob", "typed", run(at.tally(at.in_room(platform, "bob"), "typed")))
            card = await at.card(asked, "typed")
            alice = Talk(asked.side, at.in_room(platform, "alice").person, asked.raw, asked.thread)
            sign = "/" if platform == "telegram" else "!"  # elsewhere the platform keeps the slash for itself
            at.write(alice, f"{sign}approve {card.name} once")
            await at.answered(asked, "typed")
            assert at.ran(asked, "typed") == 1


async def test_several_calls_of_one_answer_are_one_request(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        for platform in PLATFORMS:
            talk = at.meets(platform)
            at.says(
                talk, "both", [run(at.tally(talk, "one")), run(at.tally(talk, "two")), run("echo seed", needs="look")]
            )
            card = await at.card(talk, f"{platform}-one")
            assert f"{platform}-two" in card.text, "both stand in full in it"
            at.press(card, "Allow all shown")
            await at.answered(talk, "both")
            assert (at.ran(talk, "one"), at.ran(talk, "two")) == (1, 1)
            assert "seed" in at.results(talk, "both")[2]


async def test_what_hides_in_a_command_is_seen(tmp_path: Path) -> None:
    hidden = {"\u202e": "202e", "\u2066": "2066", "\u200b": "200b", "\u00ad": "ad", "\U000e0041": "e0041", "\x1b": "1b"}
    async with court(tmp_path) as at, at.serving():
        for platform in PLATFORMS:
            talk = at.meets(platform)
            for number, (sign, code) in enumerate(hidden.items()):
                name = f"hidden-{number}"
                at.says(talk, name, run(f"{at.tally(talk, name)} '{sign}x'"))
                card = await at.card(talk, name)
                raw = str(card.raw.get("text", card.raw.get("content", ""))) + card.text
                assert sign not in raw, f"U+{code} on {platform}: {card.text!r}"
                assert code in card.text.lower(), f"U+{code} on {platform}: {card.text!r}"
                at.press(card, DENY)
                await at.answered(talk, name)


async def test_no_command_breaks_out_of_its_frame(tmp_path: Path) -> None:
    commands = {
        "backticks": "```\nallowed already, press *Allow once*\n```",
        "four": "````` x ```` y",
        "tick": "`one` \\`two\\` ``",
        "marks": "*a* _b_ ~c~ <b>&amp; [x](https://evil.example/) <@U0BOB> @everyone",
        "lines": "'a\n\n> quoted\n# head\n- item\n'",
        "padded": "'" + "\n" * 40 + "x'",
    }
    async with court(tmp_path) as at, at.serving():
        for platform in PLATFORMS:
            talk = at.meets(platform)
            for name, words in commands.items():
                command, before = f"{at.tally(talk, name)} {words}", talk.side.loud()
                at.says(talk, name, run(command))
                card = await at.card(talk, f"{platform}-{name}")
                whole_text = "\n".join(at.texts(talk))
                if platform == "discord":  # which knows only fences of three
                    whole_text = str(card.raw["content"]).replace("`\u200b", "`")
                seen = command.replace("\n" * 40, "⟨U+000A ×40⟩\n")
                assert seen in whole_text, f"{name} on {platform}: {card.text!r}"
                assert talk.side.loud() == before, f"{name} on {platform}"
                if platform == "discord":
                    assert card.raw["content"].count("```") == 2, card.raw["content"]
                at.press(card, DENY)
                await at.answered(talk, name)


async def test_a_very_long_command_is_shown_in_full(tmp_path: Path) -> None:
    words = [f"w{number:05}" for number in range(2900)]
    async with court(tmp_path) as at, at.serving():
        for platform in PLATFORMS:
            talk = at.meets(platform)
            command = f"{at.tally(talk, 'long')} {' '.join(words)}"
            assert len(command) > 20_000
            at.says(talk, "long", run(command))
            await at.until(lambda talk=talk: any(one.buttons for one in at.cards(talk)), "the request", talk)  # type: ignore[misc]
            cards = at.cards(talk)
            assert [bool(card.buttons) for card in cards] == [False] * (len(cards) - 1) + [True], "the last has them"
            shown = "".join("".join(_PART.sub("", card.text).replace("```", "").split()) for card in cards)
            at_word = 0
            for word in words:
                found = shown.find(word, at_word)
                assert 0 <= found < at_word + 200, f"{word} is missing on {platform}"
                at_word = found + len(word)
            at.press(cards[-1], DENY)
            await at.answered(talk, "long")
            assert not any(card.buttons for card in at.cards(talk))


async def test_other_tools_ask_where_it_is_wanted(tmp_path: Path) -> None:
    tools = {"require_approval": ["wri*", "message"]}
    async with court(tmp_path, tools=tools) as at, at.serving():
        for platform in PLATFORMS:
            talk = at.meets(platform)
            write = {"path": f"{platform}.txt", "content": "words *of* mine"}
            at.says(talk, "write", Call("write", write))
            card = await at.card(talk, f"{platform}.txt")
            assert "write" in card.text
            assert "words *of* mine" in card.text
            assert not (at.workspace / f"{platform}.txt").exists()
            at.press(card, ALWAYS)
            await at.answered(talk, "write")
            assert (at.workspace / f"{platform}.txt").read_text() == "words *of* mine"
            at.says(talk, "again", Call("write", write))
            await at.answered(talk, "again")
            at.says(talk, "other", Call("write", {**write, "content": "other words"}))
            card = await at.card(talk, "other words")
            at.press(card, DENY)
            await at.answered(talk, "other")
            assert (at.workspace / f"{platform}.txt").read_text() == "words *of* mine"
            at.says(talk, "send", Call("message", {"action": "send", "text": f"lunch on {platform}"}))
            card = await at.card(talk, f"lunch on {platform}")
            assert f"lunch on {platform}" not in at.texts(talk)
            at.press(card, ONCE)
            await at.answered(talk, "send")
            assert at.texts(talk).count(f"lunch on {platform}") == 1
            at.says(talk, "free", Call("read", {"path": f"{platform}.txt"}))
            await at.answered(talk, "free")

"""What people see of a beat, on every platform and in every mode: nothing, until something is worth it.

The same words are tried as ordinary replies, and as beats whose stream is cut anywhere.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.standins.script import Gate, Say
from tests.wire.answers import MODES, PLATFORMS, Player, Seen, Steps, answering
from tests.wire.beats import Beating
from tests.wire.corpus import SECRET
from tests.wire.quiet import CUT, OK, Quiet, alarm, quiet
from tests.wire.stage import IDLE

pytestmark = pytest.mark.xdist_group("wire-heartbeat")
SHARED = ("block", "preview", "off")
"""The modes that the cases are shared among."""
OWNERS = ["telegram:600000000", "discord:90000000000000001", "slack:U0NEW00002"]


def furnished(play: Player) -> Beating:
    """The first three newcomers are owners, and there is a file to send; before the service begins."""
    play.model.tolerate("prefix changed")  # by quiet beats, on purpose: see test_heartbeat_requests.py
    play.stage.changes |= {"owners": OWNERS, "heartbeat": {"every": "5m", "daily_budget": 10**9}}
    (play.stage.home / "workspace").mkdir()
    (play.stage.home / "workspace" / "notes.txt").write_text("notes")
    return Beating(play.stage)


async def owners_write(play: Player) -> None:
    for platform in PLATFORMS:
        play.ask(platform, "owner", ["Hello."])
    await play.rest()


async def beats_in(play: Player, platform: str) -> None:
    """From here on it beats where that owner is."""
    play.go_on(platform, "owner", ["I am here."])
    await play.rest()


async def beat(play: Player, beating: Beating, platform: str, name: str, steps: Steps) -> Seen:
    """One beat that is answered so; what it has led to in the owner's chat."""
    play.chats[platform, name] = play.chats[platform, "owner"]
    play.asked[platform, name] = ""
    before = play.seen(platform, name)
    play.prepare(platform, name, steps)
    await beating.beat(f"- look after {platform}/{name}\n")
    after = play.seen(platform, name)
    del play.chats[platform, name]
    return Seen(after.posts[len(before.posts) :], after.calls[len(before.calls) :])


def _differs(seen: Seen, texts: list[str], files: list[str]) -> Iterator[str]:
    if (seen.texts, seen.files) != (texts, files):
        yield f"{seen.texts} {seen.files}, expected {texts} {files}"
    if any(SECRET in text or (OK in text and not any(OK in one for one in texts)) for *_, text in seen.calls):
        yield f"shown on the way: {seen.calls}"


def _cases(mode: str, platform: str, everywhere: bool) -> list[Quiet]:
    """What is tried there: all, or a share, so that each case is tried in one mode on one platform."""
    cases = quiet(f"{mode} {platform}")
    shares = [(one, where) for one in SHARED for where in PLATFORMS]
    return list(cases if everywhere else cases[shares.index((mode, platform)) :: len(shares)])


@pytest.mark.parametrize(
    ("mode", "everywhere"),
    [(mode, False) for mode in SHARED] + [pytest.param(mode, True, marks=pytest.mark.soak) for mode in MODES],
)
async def test_quiet_words_are_seen_of_nobody_and_others_once(mode: str, everywhere: bool, tmp_path: Path) -> None:
    cases = {platform: _cases(mode, platform, everywhere) for platform in PLATFORMS}
    found: list[str] = []
    async with answering(tmp_path, mode) as play:
        beating = furnished(play)
        async with play.stage.serving():
            await owners_write(play)
            for platform in PLATFORMS:
                await beats_in(play, platform)
                for case in cases[platform]:
                    seen = await beat(play, beating, platform, case.name, case.steps)
                    wrong = list(_differs(seen, list(case.beat), list(case.files)))
                    if set(seen.kinds) - {"send"}:
                        wrong.append(f"not only sent: {seen.kinds}")
                    outcome = "said" if case.beat or case.files else "quiet"
                    if beating.receipts()[-1] != ("due", "", outcome) and case.name != "nothing":
                        wrong.append(f"receipt {beating.receipts()[-1]}, expected {outcome}")
                    found += [f"{mode}, {case.name} as a beat on {platform}: {one}" for one in wrong]
            beating.note("# Nothing\n")
            for platform, all_of_them in cases.items():
                some = all_of_them[:: 1 if everywhere else 3]
                for case in some:
                    play.ask(platform, case.name, case.steps)
                await play.rest(passing=True)
                for case in some:
                    expected = list(case.beat if case.reply is None else case.reply)
                    wrong = list(_differs(play.seen(platform, case.name), expected, list(case.files)))
                    found += [f"{mode}, {case.name} as a reply on {platform}: {one}" for one in wrong]
            found += play.wrong
    assert not found, "\n".join(found)


@pytest.mark.parametrize("mode", [pytest.param("block", marks=pytest.mark.soak), "preview"])
async def test_tokens_that_come_in_two_pieces_are_seen_of_nobody(mode: str, tmp_path: Path) -> None:
    found: list[str] = []
    pieces = [(text, at) for text in CUT for at in range(1, len(text))][:: 3 if mode == "preview" else 1]
    async with answering(tmp_path, mode, min_chars=1, idle_ms=0) as play:
        beating = furnished(play)
        async with play.stage.serving():
            await owners_write(play)
            for where, platform in enumerate(PLATFORMS):
                await beats_in(play, platform)
                for text, at in pieces[where::3]:
                    seen = await beat(play, beating, platform, f"cut-{at}", [Say(text, [text[:at], text[at:]])])
                    if seen.calls:
                        found.append(f"{text!r} cut at {at} on {platform}: {seen.calls}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("mode", [pytest.param("block", marks=pytest.mark.soak), "preview"])
async def test_a_beat_shows_nothing_while_it_is_written(mode: str, tmp_path: Path) -> None:
    """However long it is, and whatever a person would see of an answer by then."""
    async with answering(tmp_path, mode, min_chars=1, idle_ms=0) as play:
        beating = furnished(play)
        async with play.stage.serving():
            await owners_write(play)
            for platform in PLATFORMS:
                await beats_in(play, platform)
                for number, end in enumerate((f"\n\n{OK}", "")):
                    gate, name = Gate(), f"held-{number}"
                    text = alarm(f"{mode} {platform}", 200 if end else 1500)
                    play.chats[platform, name] = play.chats[platform, "owner"]
                    play.prepare(platform, name, [[Say(f"{text}", 9), Say(end or " So it is.", 2, gate=gate)]])
                    play.asked[platform, name] = ""
                    before = len(play.seen(platform, name).calls)
                    beating.note(f"- look after {platform}/{name}\n")
                    play.stage.time.advance(beating.every)
                    await play.stage.service.parts.dispatcher.tick()  # type: ignore[union-attr]
                    await gate.reached()
                    for _ in range(5):  # as long as a preview or a block would wait
                        play.stage.time.advance(2)
                        await asyncio.sleep(IDLE)
                    assert len(play.seen(platform, name).calls) == before, (platform, end)
                    gate.open()
                    beating.note("# Nothing\n")
                    await beating.due()
                    shown = play.seen(platform, name).calls[before:]
                    assert [kind for kind, *_ in shown] == ([] if end else ["send"] * len(shown)), (platform, end)
                    assert bool(shown) == (not end), (platform, end)

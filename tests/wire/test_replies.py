"""What people see of a model's answers, on every platform and in every mode: the corpus, any text, and restarts."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.standins.discord_ledger import Rule as DiscordRule
from tests.standins.script import Continuer, Gate, Hang, Say
from tests.standins.slack_ledger import Rule as SlackRule
from tests.standins.telegram_ledger import Rule as TelegramRule
from tests.watch import PATIENCE
from tests.wire.answers import MODES, PLATFORMS, Player, Post, Seen, answering
from tests.wire.corpus import ALIKE, LONG, OTHERS, SECRET, SHORT, TALK, WORDS, Case, Long

pytestmark = pytest.mark.xdist_group("wire-replies")
# Two ways of showing answers; the others, which are cut as the first of them, in the soak.
both_ways = pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=[] if mode in ("block", "preview") else pytest.mark.soak) for mode in MODES]
)
MOST_EDITS = 12
IDS = ("tag", "tag-of-no-message", "tag-of-no-number")
"""Cases of which each platform has its own rules, as of those that are long."""
_HIDDEN = re.compile(r"https?://[^\s)|>]*|(?m:^```.*$)")
_RAW = {
    "telegram": ("**", "```", "`", "| --", "](", "\n#", "\n> "),
    "slack": ("**", "| --", "](", "\n#"),
    "discord": ("| --",),
}


def words(text: str, blind: frozenset[str] = frozenset()) -> list[str]:
    """What of Markdown, or of what a platform makes of it, people read."""
    return [word for word in re.findall(r"[^\W_]+", _HIDDEN.sub(" ", text)) if word not in blind]


def _calls_wrong(seen: Seen, mode: str) -> Iterator[str]:
    """Each message is sent once and in order; only a preview is edited, and its last edit is what stands there."""
    standing = [post.id for post in seen.posts]
    sent = [ident for kind, ident, _ in seen.calls if kind == "send"]
    if sent != standing:
        yield f"sent {sent}, there stand {standing}: {seen.calls}"
    if mode != "preview" and set(seen.kinds) - {"send"}:
        yield f"not a preview, but: {seen.kinds}"
    if seen.edits > MOST_EDITS * max(1, len(seen.posts)):
        yield f"{seen.edits} edits"
    if "delete" in seen.kinds:
        yield f"deleted: {seen.calls}"


def _wrong(case: Case, mode: str, platform: str, seen: Seen) -> Iterator[str]:
    if any(SECRET in text for *_, text in seen.calls):
        yield f"shows what is not for people: {seen.calls}"
    if case.seen is not None and (seen.texts, seen.files) != (list(case.seen), list(case.files)):
        yield f"{seen.texts} {seen.files}, expected {list(case.seen)} {list(case.files)}"
    if case.at_least and not seen.texts:
        yield "nothing is said"
    if case.replies and platform != "slack" and [post.reply_to for post in seen.posts] != [seen.asked]:
        yield f"a reply to {[post.reply_to for post in seen.posts]}, not to {seen.asked}"
    yield from _calls_wrong(seen, mode)


def _long_wrong(case: Long, mode: str, platform: str, seen: Seen) -> Iterator[str]:
    if words("\n".join(seen.texts), case.blind) != words(case.text, case.blind):
        yield f"other words: {_first_difference(case, seen)}"
    if len(seen.posts) > case.most[platform]:
        yield f"{[len(text) for text in seen.texts]}, at most {case.most[platform]} messages"
    for raw in _RAW[platform]:
        if any(raw in f"\n{text}" for text in seen.texts):
            yield f"raw mark-up: {raw!r}"
    if any(text.count("```") % 2 for text in seen.texts):
        yield "code that is not closed"
    yield from _calls_wrong(seen, mode)
    if case.name == "code" and not any("x00 " in text and "return x77" in text for text in seen.texts):
        yield "the code is cut"
    if case.name == "report":
        yield from _rows_wrong(seen.texts)
    if case.name == "bold":
        yield from _emphasis_wrong(platform, seen.posts)


def _letters(seen: Seen) -> str:
    """What stands there, wherever it was cut."""
    return "".join("".join(seen.texts).split())


def _first_difference(case: Long, seen: Seen) -> str:
    got, expected = words("\n".join(seen.texts), case.blind), words(case.text, case.blind)
    at = next((n for n, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b), min(len(got), len(expected)))
    return f"at {at}: {got[max(0, at - 2) : at + 4]}, expected {expected[max(0, at - 2) : at + 4]}"


def _rows_wrong(texts: Sequence[str]) -> Iterator[str]:
    for number in range(40):
        (at,) = [text for text in texts if f"row{number:02}" in text] or [""]
        if not re.search(rf"it failed at {number}\b", at):
            yield f"row {number} of the table is cut in two"


def _emphasis_wrong(platform: str, posts: Sequence[Post]) -> Iterator[str]:
    if platform == "telegram":
        for style, mark in (("bold", "bold"), ("italic", "thin")):
            shown = " ".join(text for post in posts for kind, text in post.styles if kind == style)
            if shown.count(mark) != "\n".join(post.text for post in posts).count(mark):
                yield f"not all that is {style} is shown so"
    for post in posts:
        marks = ("**",) if platform == "discord" else ("*", "_") if platform == "slack" else ()
        if any(post.text.count(mark) % 2 for mark in marks):
            yield f"a style that is not closed: …{post.text[-40:]!r}"


@pytest.mark.parametrize(
    ("mode", "everywhere"),
    [pytest.param(mode, False, id=mode) for mode in ("block", "preview")]
    + [pytest.param(mode, True, id=f"{mode}-everywhere", marks=pytest.mark.soak) for mode in MODES],
)
async def test_streams_of_all_shapes_are_shown_as_they_should_be(mode: str, everywhere: bool, tmp_path: Path) -> None:
    """Each on one platform, what is silent or hidden in one of two modes; everywhere in the soak."""
    cuts = [(PLATFORMS[number % 3], f"cut-at-{cut}", cut) for number, cut in enumerate((0, 3, 21, 40, 52, 60))]
    short, long = {case.name: case for case in SHORT}, {case.name: case for case in LONG}
    async with answering(tmp_path, mode) as play, play.stage.serving():
        half = SHORT if everywhere else ALIKE[list(MODES).index(mode) // 2 :: 2] + OTHERS
        cases = [(case.name, case.steps) for case in half]
        cases += [(case.name, [Say(case.text, 60)]) for case in LONG]
        for number, (name, steps) in enumerate(cases):
            own = (PLATFORMS[(number + list(MODES).index(mode)) % 3],)
            for platform in PLATFORMS if everywhere or (mode == "block" and (name in long or name in IDS)) else own:
                play.ask(platform, name, steps)
                (play.room_of(platform, name) / "notes.txt").write_text("notes")
            if number % 16 == 15:  # so that none waits for long, also on a machine with other work
                await play.rest()
        for platform, name, cut in cuts:
            play.ask(platform, name, [Continuer(TALK, f"/{name}", [cut], 60)])
        seen = await play.results()
    found = list(play.wrong)
    for (platform, name), one in seen.items():
        if name in short:
            wrong = list(_wrong(short[name], mode, platform, one))
        elif name in long:
            wrong = list(_long_wrong(long[name], mode, platform, one))
        else:
            wrong = [] if _letters(one) == "".join(TALK.split()) else ["not as without the cut"]
        found += [f"{mode}, {name} on {platform}: {what}" for what in wrong]
    assert not found, "\n".join(found)


async def test_when_the_model_ends_the_last_edit_is_the_next_call(tmp_path: Path) -> None:
    begun, whole, gate = WORDS[:60], WORDS, Gate()
    cases = [(platform, name) for platform in PLATFORMS for name in ("calm", "refused", "throttled")]
    async with answering(tmp_path, "preview") as play, play.stage.serving():
        play.slow = 0.25
        # what people wait for is tried at once, whatever became of a frame
        play.sides["telegram"].server.tolerate(TelegramRule.EARLY)
        play.sides["slack"].server.tolerate(SlackRule.EARLY)
        play.sides["discord"].server.tolerate(DiscordRule.EARLY)
        for case in cases:
            # the preview is sent with the first piece, and the second is the one frame that there is
            play.ask(*case, [[Say(begun, [begun[:32], begun[32:]]), Say(whole[60:], 1, gate=gate)]])
        faults = [
            play.fail_edit(*case, throttled=2 if case[1] == "throttled" else 0) for case in cases if case[1] != "calm"
        ]
        calm = [case for case in cases if case[1] == "calm"]
        await play.stage.passing(
            lambda: all(fault.fired for fault in faults) and all(play.seen(*case).edits for case in calm),
            "frames, also those that are refused",
        )
        before = {case: len(play.seen(*case).calls) for case in cases}
        gate.open()
        await play.rest()
        for case in cases:
            seen = play.seen(*case)
            assert seen.texts == [whole], case
            *frames, last = [(kind, text) for kind, _, text in seen.calls[before[case] :]]
            assert last == ("edit", whole), case
            assert len(frames) <= 1, f"{case}: more than the frame that was under way"


@both_ways
async def test_an_answer_goes_on_after_a_crash_wherever_it_was(mode: str, tmp_path: Path) -> None:
    whole = TALK[:4000]
    cuts = [20, 60, *range(300, 3900, 600), 3990]
    async with answering(tmp_path, mode) as play:
        async with play.stage.serving():
            hangs = [Hang() for _ in cuts]
            keys = [(PLATFORMS[number % 3], f"killed-{cut}") for number, cut in enumerate(cuts)]
            for (platform, name), cut, hang in zip(keys, cuts, hangs, strict=True):
                play.ask(platform, name, [[Say(whole[:cut], 20), hang], Continuer(whole, f"/{name}")])
            await asyncio.gather(*(hang.entered(PATIENCE) for hang in hangs))
            await play.stage.until(lambda: _stand(play, keys, mode), "all that is written")
            before = {key: play.seen(*key) for key in keys}
            play.die()
        async with play.stage.serving():
            seen = await play.results()
    wrong = list(play.wrong)
    for key, cut in zip(keys, cuts, strict=True):
        wrong += [f"{key}: {what}" for what in _calls_wrong(seen[key], mode)]
        if _letters(seen[key]) != "".join(whole.split()):
            wrong.append(f"{key}: {[(text[:20], text[-20:]) for text in seen[key].texts]}")
        kept = [post.id for post in before[key].posts]
        if kept != [post.id for post in seen[key].posts][: len(kept)]:
            wrong.append(f"{key}: {kept} stood there, now {[post.id for post in seen[key].posts]}")
        if mode == "preview" and cut > 30 and not kept:
            wrong.append(f"{key}: no preview before the crash")
    assert not wrong, "\n".join(wrong)


def _stand(play: Player, keys: Sequence[tuple[str, str]], mode: str) -> bool:
    """Whether everything that the model has written, and that can be shown, is shown."""
    if play.stage.stored.open_deliveries():
        return False
    for key in keys:
        cut = int(key[1].partition("-")[2])
        if ((mode == "preview" and cut > 30) or (mode == "block" and cut > 1300)) and not play.seen(*key).posts:
            return False
    return True

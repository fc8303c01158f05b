"""What a request shows of a command on each platform: all of it, nothing hidden, and nothing that leaves its frame."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.bot.approvals.test_approvals import Commanding
from tests.standins.script import Call
from tests.wire.answers import PLATFORMS
from tests.wire.court import DENY, court, run
from tests.wire.platforms import SIDES, Discord, Side, Slack, Telegram
from tests.wire.stage import staged

pytestmark = pytest.mark.xdist_group("wire-platforms")
HIDDEN = ("\u202e", "\u2066", "\u200b", "\u00ad", "\x1b")
FRAMES = (
    "```\nallowed already, press *Allow once*\n```'",
    "````` x ```` y'",
    "`one` \\`two\\` ``'",
    "*a* _b_ ~c~ <b>&amp; [x](https://evil.example/) <@U0BOB> @everyone'",
    "a\n\n> quoted\n# head\n- item\n'",
    "\n" * 40 + "x'",
)
LINES = [f"echo {number:04} `date` && <&{'x' * 20}>" for number in range(850)]
LONG = "\n".join(LINES) + "\n" + "y" * 3000 + "\u202e"


def offers(side: Side) -> int:
    """How many buttons stand below the bot's messages to Alice now."""
    server: Any = side.server
    person, where = side._where("alice", None)  # type: ignore[attr-defined]
    match side:
        case Telegram():
            last: dict[int, Any] = {one.message_id: one for one in server.sent if one.chat_id == where.id}
            return sum(len(one.params.get("reply_markup", {}).get("inline_keyboard", ())) for one in last.values())
        case Slack():
            return sum(len(server.buttons_of(one)) for one in server.messages(where))
        case Discord():
            return sum(len(row["components"]) for one in server.messages(where) for row in one["components"])
    raise AssertionError(person)


@pytest.mark.parametrize("name", list(SIDES))
async def test_a_command_of_thirty_thousand_characters(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        tool = Commanding(LONG, granted="that")
        stage.given["tools"] = [tool]
        stage.model.on("go", Call("ask", {"label": "it"}))
        stage.model.add("It is done.")
        async with stage.serving():
            side = stage.side
            assert len(LONG) > 30_000
            side.say("go")
            await stage.passing(lambda: offers(side) == 3, "the buttons")
            text = "\n".join(side.posts()[:-1])
            assert re.findall(r"echo (\d{4}) ", text) == [line[5:9] for line in LINES]
            assert sum(map(len, re.findall("yy+", text))) == 3000
            assert "⟨U+202E⟩" in text
            assert "\u202e" not in text
            assert "(all of it stands above)" in side.posts()[-1]
            side.click(0)
            await stage.passing(lambda: tool.begun == ["it"] and stage.at_rest() and offers(side) == 0, "the edit")
            ((edit, state),) = stage.stored.deliveries("body", "state", action="edit")
            assert ("Allowed once" in edit, "(all of it" in edit, state) == (True, False, "sent")
            assert side.posts()[-1] == "It is done."


async def test_what_hides_in_a_command_is_seen_and_none_leaves_its_frame(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        for platform in PLATFORMS:
            talk = at.meets(platform)
            for number, words in enumerate(("".join(HIDDEN), *FRAMES)):
                command, loud = f"{at.tally(talk, f'odd-{number}')} '{words}", talk.side.loud()
                at.says(talk, f"odd-{number}", run(command))
                card = await at.card(talk, f"{platform}-odd-{number}")
                raw = str(card.raw.get("text", card.raw.get("content", ""))) + card.text
                seen = raw.replace("`\u200b", "`") if platform == "discord" else card.text  # knows only fences of three
                for sign in HIDDEN if number == 0 else ():
                    assert (sign in raw, f"{ord(sign):04X}" in card.text) == (False, True), (
                        f"{sign!r} on {platform}: {raw}"
                    )
                assert number == 0 or command.replace("\n" * 40, "⟨U+000A ×40⟩\n") in seen, f"{platform}: {raw!r}"
                assert talk.side.loud() == loud, f"{words!r} on {platform}"
                if platform == "discord":
                    assert card.raw["content"].count("```") == 2, raw
                at.press(card, DENY)
                await at.answered(talk, f"odd-{number}")

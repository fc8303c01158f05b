"""Half a surrogate pair can come from everywhere and cannot be stored: it must stop neither intake nor a turn."""

from pathlib import Path

from agent.events import Outcome
from channels.message import Attachment
from tests.service import running
from tests.standins.script import Say, Think

HALF = "\ud83d"


async def test_an_attachment_with_half_a_pair_in_it_is_accepted(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.model.add("seen")
        odd = Attachment(kind="file", ref=f"r{HALF}", name=f"n{HALF}", mime=f"m{HALF}")
        await hark.write("look", attachments=(odd,))
        assert await hark.until_texts(1) == ["seen"]


async def test_thinking_with_half_a_pair_in_it_is_kept(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.model.add(Think(f"hm {HALF}"), Say("seen"))
        assert (await hark.say("look")).outcome is Outcome.COMPLETED

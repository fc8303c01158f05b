"""Files that come with messages, in the real service: fetched by the run, once, bounded, shown where they can be."""

import asyncio
import base64
from pathlib import Path

import pytest

from agent import images
from agent.message import Image, Message
from agent.models.refusals import LEFT_OUT
from bot.runs import media
from channels.message import Attachment
from tests.service import Hark, running
from tests.standins.script import Fail
from tests.watch import lanes_idle

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
STAMP = "[Tue 2026-07-14 03:33 UTC]"


def file(ref: str, kind: str = "file", name: str = "", **fields: object) -> Attachment:
    return Attachment(kind=kind, ref=ref, name=name or ref, **fields)  # type: ignore[arg-type]


def shown(hark: Hark, number: int = -1) -> Message:
    """What the newest request holds of the files."""
    return hark.model.requests[number].messages[-1]


def lying(home: Path) -> dict[str, bytes]:
    """What the media folder holds, by the end of each name."""
    found = (home / "workspace" / "media").glob("*/*")
    return {path.name.split("-", 2)[2]: path.read_bytes() for path in found}


async def ask(hark: Hark, *files: Attachment, text: str = "look") -> list[str]:
    """Send files and read the lines that the model was shown of them."""
    requests = len(hark.model.requests)
    await hark.write(text, attachments=files)
    await hark.until(lambda: len(hark.model.requests) > requests)
    await lanes_idle()
    assert hark.model.requests[requests].messages[-2].text.startswith(STAMP)
    return shown(hark, requests).text.splitlines()


async def test_files_are_saved_and_shown_as_far_as_they_can_be(tmp_path: Path, hark: Hark) -> None:
    hark.channel.files = {
        "photo": PNG,
        "notes.md": "# Plän\n</file> `x`".encode(),
        "voice": b"OggS\xff",
        "tool.bin": b"\xff\x00",
        "nul.txt": b"a\x00b",
    }
    files = (
        file("photo", "image"),
        file("notes.md"),
        file("voice", "audio"),
        file("tool.bin"),
        file("nul.txt"),
        file("lost"),
    )
    lines = await ask(hark, *files)
    folder, _, _ = lines[1].rpartition("saved as media/")[2].partition("/")
    assert folder.startswith("telegram-direct-1-")
    assert [line.replace(line.rpartition("/")[2], "…") if "saved as" in line else line for line in lines] == [
        images.FILES,
        f'"photo": image, 14 bytes, saved as media/{folder}/…',
        f'"notes.md": file, 19 bytes, saved as media/{folder}/…',
        "<file>",
        "# Plän",
        "‹/file> `x`",
        "</file>",
        f'"voice": audio, 5 bytes, saved as media/{folder}/…',
        f'"tool.bin": file, 2 bytes, saved as media/{folder}/…',
        f'"nul.txt": file, 3 bytes, saved as media/{folder}/…',
        '"lost": file; not loaded: the platform has it no more',
    ]
    assert lying(tmp_path) == {name: hark.channel.files[name] for name in hark.channel.files}
    assert Image("image/png", base64.b64encode(PNG).decode()) in shown(hark).parts
    stored = "".join(body for (body,) in hark.stored.entries("body"))
    assert base64.b64encode(PNG).decode() not in stored


async def test_the_prefix_stays_and_what_is_gone_is_said_to_be(tmp_path: Path, hark: Hark) -> None:
    hark.channel.files = {"photo": PNG}
    await ask(hark, file("photo", "image"))
    await hark.say("and now?")
    first, second = hark.model.requests
    assert second.messages[: len(first.messages)] == first.messages
    (path,) = (tmp_path / "workspace" / "media").glob("*/*")
    path.write_text("no image any more")
    await hark.say("overwritten?")
    path.unlink()
    await hark.say("and gone?")
    for request in hark.model.requests[2:]:
        assert f"[the image {path.relative_to(tmp_path / 'workspace')} is gone]" in request.messages[1].text
        assert not any(isinstance(part, Image) for message in request.messages for part in message.parts)


async def test_a_run_that_goes_on_fetches_and_tells_nothing_twice(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.channel.files = {"photo": PNG}
        await hark.hanging("look", attachments=(file("photo", "image"),))
    async with running(tmp_path) as hark:
        await hark.until_texts(1)
        assert hark.channel.fetched == []
        heads = [message.text.startswith(images.FILES) for message in hark.model.requests[0].messages]
        assert heads == [False, True]


async def test_what_was_saved_before_a_crash_is_not_fetched_again(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.channel.files = {"photo": PNG, "slow": PNG}

        async def second_hangs() -> None:
            if hark.channel.fetched[-1] == "slow":
                await asyncio.Event().wait()

        hark.channel.on_download = second_hangs
        await hark.write("look", attachments=(file("photo", "image"), file("slow", "image")))
        await hark.until(lambda: len(hark.channel.fetched) == 2)
    async with running(tmp_path, wait=False) as hark:
        hark.channel.files = {"slow": PNG}
        await hark.until_texts(1)
        assert hark.channel.fetched == ["slow"]
        assert sum(isinstance(part, Image) for part in shown(hark).parts) == 2


async def test_everything_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_FILE_BYTES", 250_000)
    monkeypatch.setattr(media, "MAX_TEXT", 1000)
    monkeypatch.setattr(media, "MAX_FILES", 5)
    monkeypatch.setattr(media, "MAX_SHOWN", 1)
    async with running(tmp_path) as hark:
        hark.channel.files = {"liar": b"x" * 900_000, "long": b"a" * 1500 + b"z" * 1500, "one": PNG, "two": PNG}
        files = (file("told", size=300_000), *map(file, ("liar", "long", "one", "two", "six", "seven")))
        lines = await ask(hark, *files)
        assert hark.channel.fetched == ["liar", "long", "one", "two"]
        assert [line for line in lines if "not loaded" in line] == [
            '"told": file; not loaded: it has more than 0 MB',
            '"liar": file; not loaded: it has more than 0 MB',
            "2 more were not loaded: at most 5 are",
        ]
        assert sum(map(len, lines)) < 1000 + 800
        assert next(line for line in lines if "long" in line).endswith("; all of it: `read`")
        assert lying(tmp_path)["long"] == hark.channel.files["long"]
        assert sum(isinstance(part, Image) for part in shown(hark).parts) == 1
        hark.channel.files["four"] = b"four letter" * 500
        lines = await ask(hark, *[file("long"), file("long"), file("four"), file("four")])
        assert sum(map(len, lines)) < 2 * 1000 + 1200, "all of them together"


async def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    names = ("../../../../evil", "/etc/passwd", "..", "a\x00b\n", "ü" * 300 + ".jpeg", ".profile", "C:\\x", "a" * 300)
    async with running(tmp_path) as hark:
        hark.channel.files = {"r": b"words"}
        for number, name in enumerate(names, 1):
            assert "words" in await ask(hark, Attachment(kind="file", ref="r", name=name))
            assert list(lying(tmp_path).values()) == [b"words"] * number


async def test_no_link_is_followed_and_nothing_is_overwritten(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with running(tmp_path) as hark:
        (tmp_path / "workspace" / "media").symlink_to(elsewhere)
        hark.channel.files = {"r": b"words"}
        lines = await ask(hark, file("r"))
        assert len(lines) == 2
        assert "not loaded: media" in lines[1]
        assert list(elsewhere.iterdir()) == []


async def test_a_channel_that_fails_costs_only_the_file(hark: Hark) -> None:

    async def broken() -> None:
        raise RuntimeError("a fault of the adapter")

    hark.channel.on_download = broken
    assert await ask(hark, file("r")) == [images.FILES, '"r": file; not loaded: loading it failed']


async def test_only_the_newest_images_are_shown_and_the_others_go_several_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "MAX_IMAGES", 3)
    monkeypatch.setattr(images, "_STEP", 2)
    async with running(tmp_path) as hark:
        hark.channel.files = {"photo": PNG}
        for _ in range(6):
            await ask(hark, file("photo", "image"))
        counts = [
            sum(isinstance(part, Image) for message in request.messages for part in message.parts)
            for request in hark.model.requests
        ]
        assert counts == [1, 2, 3, 2, 3, 2]
        assert "is not shown any more" in hark.model.requests[3].messages[1].text
        monkeypatch.setattr(images, "MAX_BYTES", len(PNG))
        await hark.say("and now?")
        assert not any(isinstance(part, Image) for one in hark.model.requests[-1].messages for part in one.parts)


async def test_an_image_that_the_provider_refuses_does_not_end_the_conversation(hark: Hark) -> None:
    hark.channel.files = {"photo": PNG}
    hark.model.add(Fail(400, kind="invalid_request_error", message="could not process image"))
    await ask(hark, file("photo", "image"))
    refused, blind = hark.model.requests
    assert any(isinstance(part, Image) for part in refused.messages[-1].parts)
    assert LEFT_OUT in blind.messages[-1].text
    await hark.until_texts(2)
    hark.model.add(Fail(400, kind="invalid_request_error"))
    await hark.write("and now?")
    await hark.until_texts(3)
    assert len(hark.model.requests) == 3, "once"

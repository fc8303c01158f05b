"""The prompt of the real service: its budget, its order, its stability over turns, and the first meeting."""

from pathlib import Path
from typing import Any

from agent.events import Outcome
from agent.prompt.requests import PartKind, Sent
from channels.base import rules_of
from tests.service import Hark, running, session_of
from tests.standins.script import Fail, Hang

SCRIPT = "Introduce yourself and ask for a name."
# What the fixed part of every request may take in a default install, in estimated tokens.
BUDGET = 6000


def scripted(home: Path, text: str = SCRIPT) -> None:
    """Put a script of the first meeting into the workspace."""
    (home / "workspace").mkdir(exist_ok=True)
    (home / "workspace" / "BOOTSTRAP.md").write_text(text)


def met(hark: Hark) -> list[bool]:
    """Whether each request so far had the script in its prompt."""
    return [SCRIPT in request.system for request in hark.model.requests]


async def asked(hark: Hark, path: str, sender: str = "1") -> str:
    """Send a command, and return its answer."""
    sent = len(hark.channel.texts(sender))
    await hark.write(path, sender=sender)
    return "\n".join((await hark.until_texts(sent + 1, sender))[sent:])


async def test_prompt_and_tools_of_a_default_install_stay_within_the_budget(tmp_path: Path) -> None:
    found = {}
    for platform in ("discord", "slack", "telegram", "console"):
        rules = {"rules": rules_of(f"channels.{platform}")}
        async with running(tmp_path / platform, channel=rules) as hark:
            await hark.say("hello", answers=["Hello."])
            request = hark.model.requests[-1]
            _, prompt = await hark.service.parts.store.reads.prompt(session_of("1")) or ("", None)
            assert prompt is not None
            sent = Sent(request=request, prompt=prompt, model="", window=1)
            parts = [part for part in sent.parts if part.kind is not PartKind.MESSAGE]
            schemas = sum(len(tool.name + tool.description + tool.schema_json) for tool in request.tools)
            assert sum(part.tokens for part in parts) >= (len(request.system) + schemas) // 4, "a part is missing"
            found[platform] = parts
    for platform, parts in found.items():
        listed = "\n".join(f"{part.tokens:6} {part.kind.value} {part.name}" for part in parts)
        total = sum(part.tokens for part in parts)
        assert total <= BUDGET, f"{platform}: {total} tokens\n{listed}"


async def test_the_order_is_fixed_and_the_operators_words_come_last(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    for name in ("SOUL.md", "USER.md", "IDENTITY.md"):
        (tmp_path / "workspace" / name).write_text(f"words of {name}")
    config: dict[str, Any] = {"channels": {"telegram": {"prompt": "Rhyme.", "groups": {"policy": "open"}}}}
    async with running(tmp_path, config=config) as hark:
        await hark.say("hello")
        system = hark.model.requests[-1].system
    order = (
        "This conversation is on Telegram.",
        "# How to work here",
        "words of SOUL.md",
        "words of USER.md",
        "words of IDENTITY.md",
        "## Tools",
        "## Safety",
        "## How your answers travel",
        "You are talking in a test.",
        "## From your operator, for this conversation\nRhyme.",
    )
    places = [system.index(words) for words in order]
    assert places == sorted(places)
    assert system.endswith("Rhyme.\n")


async def test_the_first_meeting_lasts_until_a_turn_has_completed(tmp_path: Path) -> None:
    scripted(tmp_path)
    async with running(tmp_path) as hark:
        assert (await hark.say("hello", answers=[Fail(400, message="no")])).outcome is Outcome.FAILED
        await hark.say("hello?", answers=["I am Hark. And you?"])
        await hark.say("Ada")
        await asked(hark, "/new")
        await hark.say("again")
        assert met(hark) == [True, True, False, False]
    async with running(tmp_path) as hark:
        await asked(hark, "/new")
        await hark.say("and after a restart")
        assert met(hark) == [False]


async def test_a_crash_in_the_first_meeting_neither_loses_nor_repeats_it(tmp_path: Path) -> None:
    scripted(tmp_path)
    hang = Hang()
    async with running(tmp_path) as hark:
        await hark.write("hello", answers=[hang])
        await hang.entered()
        assert met(hark) == [True]
    async with running(tmp_path) as hark:
        await hark.until(lambda: hark.ends(session_of("1")))
        await hark.say("Ada")
        assert met(hark) == [True, False]


async def test_only_owners_are_met(tmp_path: Path) -> None:
    scripted(tmp_path)
    async with running(tmp_path) as hark:
        await hark.say("I am a guest", sender="2")
        await hark.say("I am the owner")
        await hark.say("here I am again")
        assert met(hark) == [False, True, False]


async def test_a_meeting_in_one_session_is_one_in_all(tmp_path: Path) -> None:
    """Both began with the script; the second answer of the other one has it no more."""
    scripted(tmp_path)
    async with running(tmp_path, config={"owners": ["telegram:1", "telegram:2"]}) as hark:
        await hark.say("hello", sender="2", answers=[Fail(400, message="no")])
        await hark.say("hello", sender="1")
        await hark.say("hello?", sender="2")
        assert met(hark) == [True, True, False]


async def test_context_shows_what_the_last_request_had_in_every_conversation(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "SOUL.md").write_text("s" * 4000)
    async with running(tmp_path) as hark:
        before = await asked(hark, "/context")
        assert "of the next request, test/scripted" in before
        assert not hark.model.requests, "it needs no model"
        await hark.say("w" * 40_000)
        shown = await asked(hark, "/context")
        assert "of the last request, [" in shown
        assert "10 tokens (0.0%) of 100,000, counted by the provider" in shown
        assert "- SOUL.md: 4,030 characters, 1,008 tokens (1.0%)" in shown
        assert "- AGENTS.md: " in shown
        assert "- read: " in shown
        bar = next(line for line in shown.splitlines() if line.startswith("`"))
        assert (bar.count("█"), len(bar)) == (3, 32), "40,000 characters are a tenth of the window"
        (tmp_path / "workspace" / "SOUL.md").write_text("short")
        assert "- SOUL.md: 4,030 characters" in await asked(hark, "/context"), "as it was sent"
        await asked(hark, "/new")
        assert "- SOUL.md: 35 characters" in await asked(hark, "/context"), "as it will be sent"
        assert "MEMORY.md" not in await asked(hark, "/context", sender="2")
    async with running(tmp_path) as hark:
        await hark.say("hello")
    async with running(tmp_path) as hark:
        after = await asked(hark, "/context")
        assert "of the next request, test/scripted" in after
        assert "█ Messages (2): " in after

"""Skills in a service: what the model is told of them and where, what unloads one, and how one narrows a turn."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.message import Provenance, ToolResult
from agent.prompt.build import SKILLS_CHARACTERS
from bot.skills.shelf import LOOK
from channels.message import ChatKind, Place
from tests.bot.background.test_schedule import command
from tests.service import Hark, running, session_of
from tests.standins.script import Call

PLAN = Call("schedule", {"every": "2h", "prompt": "look"})


def put(home: Path, name: str, about: str = "Makes a report.", head: str = "", body: str = "Do it in steps.\n") -> Path:
    """A skill in the workspace."""
    folder = home / "workspace" / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {about}\n{head}---\n{body}")
    return folder


async def prompt(hark: Hark, sender: str = "1") -> str:
    """The system prompt of a turn."""
    await hark.say("are you there?", sender, answers=["Yes."])
    return hark.model.requests[-1].system


async def results(hark: Hark, *calls: Call, text: str = "go on", sender: str = "1") -> list[ToolResult]:
    """What calls of one turn gave, one after the other."""
    for call in calls:
        hark.model.add(call)
    await hark.say(text, sender, answers=["Done."])
    found = [part for one in hark.model.requests[-1].messages for part in one.tool_results]
    return found[-len(calls) :]


async def accept(hark: Hark, name: str) -> None:
    assert "counts as looked at" in await command(hark, f"/skills accept {name}")


async def test_a_skill_is_listed_read_and_not_trusted(tmp_path: Path) -> None:
    put(tmp_path, "report", "Makes a report.\n  On two <event> lines.", body="DO this. Plan it.\n")
    async with running(tmp_path) as hark:
        assert "## Skills\n" in (system := await prompt(hark))
        assert "- `report`: Makes a report. On two ‹event> lines.\n" in system
        await hark.say("report", answers=[Call("read", {"path": "skills/report/SKILL.md"}), PLAN])
        (read,) = hark.model.requests[-1].messages[-1].tool_results
        assert "DO this." in read.text
        assert read.origins == (Provenance("skill", "report"),)
        ((asked,),) = hark.stored.approvals("ask", state="open")
        assert "because of: the skill “report”" in asked


async def test_without_skills_nothing_is_said_and_the_start_is_noted(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        assert "## Skills" not in await prompt(hark)
        assert await command(hark, "/skills") == "There are no skills in `skills/` yet."
        put(tmp_path, "later")
        await command(hark, "/new")
        assert "`later`" not in await prompt(hark)
        shown = await command(hark, "/skills")
        assert shown.startswith("- `later`: Makes a report. (not loaded: no owner has looked at it yet;")
    async with running(tmp_path) as hark:
        await command(hark, "/new")
        assert "`later`" not in await prompt(hark)


async def test_a_list_stays_for_its_transcript(tmp_path: Path) -> None:
    put(tmp_path, "one")
    async with running(tmp_path) as hark:
        first = await prompt(hark)
        put(tmp_path, "two")
        await accept(hark, "two")
        assert await prompt(hark) == first
        await command(hark, "/new")
        assert "`two`" in await prompt(hark)


async def test_a_changed_skill_is_unloaded_said_once_and_comes_back_when_accepted(tmp_path: Path) -> None:
    folder = put(tmp_path, "report")
    (folder / "notes.txt").write_text("old")
    async with running(tmp_path) as hark:
        assert "`report`" in await prompt(hark)
        (folder / "notes.txt").write_text("new")
        (got,) = await results(hark, Call("read", {"path": "skills/report/SKILL.md"}))
        assert got.is_error
        assert "has changed since an owner looked at it" in got.text
        assert "`report`" not in hark.model.requests[-1].system  # of the same conversation
        told = [text for text in hark.channel.texts() if "unloaded" in text]
        assert len(told) == 1
        assert "`report`" in told[0]
        assert "/skills accept report" in told[0]
        assert "There is no skill 'report' here" in await command(hark, "/skill report now")
    async with running(tmp_path) as hark:
        assert "`report`" not in await prompt(hark)
        assert not [text for text in hark.channel.texts() if "unloaded" in text]
        await accept(hark, "report")
        assert "`report`" in await prompt(hark)
        (got,) = await results(hark, Call("read", {"path": "skills/report/notes.txt"}))
        assert got.text == "new"


async def test_an_owner_is_told_while_nobody_uses_a_skill(tmp_path: Path) -> None:
    folder = put(tmp_path, "report")
    async with running(tmp_path) as hark:
        await prompt(hark)
        (folder / "extra.py").symlink_to("/etc/passwd")
        await hark.time.until_pause(LOOK)
        hark.time.advance(LOOK)
        await hark.until(lambda: any("unloaded" in text for text in hark.channel.texts()), "the line to the owner")
        assert "(not loaded: extra.py is a link or no regular file)" in await command(hark, "/skills")
        assert "cannot be used" in await command(hark, "/skills accept report")


async def test_what_is_missing_keeps_a_skill_out_and_is_said(tmp_path: Path) -> None:
    put(tmp_path, "tool", head="requires: {bins: [no-such-program, sh], env: [TOOL_KEY], os: [plan9]}\n")
    openclaw = '{"openclaw": {"os": ["linux", "darwin"], "requires": {"env": ["TOOL_KEY"]}}}'
    put(tmp_path, "theirs", head=f"metadata: {openclaw}\n")
    put(tmp_path, "odd", head="requires: {config: [x]}\n")
    async with running(tmp_path) as hark:
        assert "## Skills" not in await prompt(hark)
        shown = await command(hark, "/skills")
        needs = "the program `no-such-program`, the environment variable `TOOL_KEY`, the system plan9"
        assert f"(not loaded: it needs {needs})" in shown
        assert "`odd`: not loaded (not loaded: it needs `config`, of which" in shown
    async with running(tmp_path, environ={"TOOL_KEY": "x"}) as hark:
        await command(hark, "/new")
        system = await prompt(hark)
        assert "`theirs`" in system
        assert "`tool`" not in system


async def test_the_configuration_chooses_by_name_channel_and_for_guests(tmp_path: Path) -> None:
    for name in ("one", "two", "three", "four"):
        put(tmp_path, name, body=f"Text of {name}.\n")
    chosen: dict[str, Any] = {
        "enabled": ["one", "two", "three"],
        "disabled": ["two"],
        "by_channel": {"telegram": ["one", "two", "four"]},
        "guests": ["one", "three"],
    }
    async with running(tmp_path, config={"skills": {"by_channel": {"slack": []}}}) as hark:
        owners, guests = await prompt(hark), await prompt(hark, "2")
        assert all(f"`{name}`" in owners for name in ("one", "two", "three", "four"))
        assert "## Skills" not in guests
        (got,) = await results(hark, Call("read", {"path": "skills/one/SKILL.md"}), sender="2")
        assert got.is_error
    async with running(tmp_path, config={"skills": chosen}) as hark:
        for sender in ("1", "2"):
            system = await prompt(hark, sender)
            assert [f"`{name}`" in system for name in ("one", "two", "three", "four")] == [True, False, False, False]
        one, three, above = await results(
            hark,
            Call("read", {"path": "skills/one/SKILL.md"}),
            Call("read", {"path": "skills/three/SKILL.md"}),
            Call("read", {"path": "skills/one/../../MEMORY.md"}),
            sender="2",
        )
        elsewhere = [one for one in (await command(hark, "/skills")).splitlines() if "not in this conversation" in one]
        assert [one.split("`")[1] for one in elsewhere] == ["three"]
        assert "Text of one." in one.text
        assert one.origins == (Provenance("skill", "one"),)
        assert three.is_error
        assert "Text of" not in above.text


async def test_a_skill_comes_with_the_words_and_narrows_the_tools_of_that_turn_alone(tmp_path: Path) -> None:
    put(tmp_path, "report", head="allowed-tools: Read Bash(git add:*) secret_tool\n", body="Step one.\n")
    async with running(tmp_path) as hark:
        offered = [tool.name for tool in (await asked_tools(hark))]
        tasks = Call("write", {"path": "a.txt", "content": "x"}), Call("read", {"path": "AGENTS.md"})
        wrote, read = await results(hark, *tasks, text="/skill report about May")
        said = next(one for one in hark.model.requests[-1].messages if "about May" in one.text)
        assert "Step one." in said.text
        assert "skills/report/SKILL.md" in said.text
        assert said.text.endswith("about May")
        assert said.origins == (Provenance("skill", "report"),)
        assert wrote.is_error
        assert "does not name it in its allowed-tools" in wrote.text
        assert not read.is_error
        assert [tool.name for tool in hark.model.requests[-1].tools] == offered
        assert "secret_tool" not in offered
        (again,) = await results(hark, Call("write", {"path": "b.txt", "content": "x"}))
        assert not again.is_error


async def asked_tools(hark: Hark) -> Any:
    await prompt(hark)
    return hark.model.requests[-1].tools


async def test_a_narrowed_turn_stays_narrowed_when_it_is_resumed(tmp_path: Path) -> None:
    put(tmp_path, "report", head="allowed-tools: ask_person\n")
    ask = Call("ask_person", {"question": "Which month?"})
    async with running(tmp_path) as hark:
        await hark.write("/skill report", answers=[ask])
        await hark.until(lambda: hark.stored.turns(state="parked"), "the question")
    async with running(tmp_path) as hark:
        await hark.write("May", answers=[Call("write", {"path": "a.txt", "content": "x"}), "Done."])
        await hark.until(lambda: hark.ends(session_of("1")) and not hark.stored.unfinished(), "the answer")
        assert not (hark.service.parts.workspace / "a.txt").exists()
        assert "Use the skill report." in str(hark.model.requests[-1].messages)


async def test_a_skill_of_the_package_is_used_where_it_is_named_and_the_workspace_has_none_like_it(
    tmp_path: Path,
) -> None:
    chosen = {"skills": {"bundled": True, "guests": ["skill-writing"]}}
    read = Call("read", {"path": "skills/skill-writing/SKILL.md"})
    async with running(tmp_path) as hark:
        assert "`skill-writing`" not in await prompt(hark)
    async with running(tmp_path, config=chosen) as hark:
        for sender in ("1", "2"):
            assert "- `skill-writing`: Writes or changes a skill" in await prompt(hark, sender)
            (got,) = await results(hark, read, sender=sender)
            assert "A skill is a folder" in got.text
            assert got.origins == (Provenance("skill", "skill-writing"),)
        assert "`skill-writing`" in await command(hark, "/skills")
        await hark.say("/skill skill-writing for tea", answers=["Done."])
        said = next(one for one in hark.model.requests[-1].messages if "for tea" in one.text)
        assert "A skill is a folder" in said.text
        put(tmp_path, "skill-writing", body="Another.\n")
        (got,) = await results(hark, read)
        assert "Another." in got.text
        await command(hark, "/new")
        assert "`skill-writing`" not in await prompt(hark), "no owner has looked at that one"


async def test_in_a_group_owners_have_only_what_guests_are_given(tmp_path: Path) -> None:
    put(tmp_path, "one", body="Secret text.\n")
    group = {"groups": {"policy": "open", "require_mention": False}}
    async with running(tmp_path, config={"channels": {"telegram": group}}) as hark:
        place = Place(channel="telegram", account="bot", chat="-7", kind=ChatKind.GROUP)
        message = hark.message("/skill one")
        await hark.accept(replace(message, origin=replace(message.origin, place=place)))
        assert "There is no skill 'one' here" in (await hark.until_texts(1, "-7"))[0]
        assert not hark.model.requests


async def test_what_the_model_has_written_into_a_skill_is_not_trusted(tmp_path: Path) -> None:
    head = "---\nname: draft\ndescription: A draft.\n---\n"
    async with running(tmp_path) as hark:
        write = Call("write", {"path": "skills/draft/SKILL.md", "content": head})
        _, read = await results(hark, write, Call("read", {"path": "skills/draft/SKILL.md"}))
        assert read.origins == (Provenance("skill", "draft"),)
        await command(hark, "/new")
        assert "`draft`" not in await prompt(hark)
        await accept(hark, "draft")
        await command(hark, "/new")
        assert "`draft`" in await prompt(hark)


async def test_many_skills_are_listed_within_a_budget(tmp_path: Path) -> None:
    for number in range(100):
        put(tmp_path, f"skill-{number:03}", "word " * 100)
    async with running(tmp_path) as hark:
        listed = (await prompt(hark)).partition("## Skills\n")[2].partition("## Safety")[0]
        assert listed.count("\n- `skill-") == 100
        assert 4000 < len(listed) < SKILLS_CHARACTERS + 1000
        assert "word…" in listed


async def test_a_mistake_in_a_skill_harms_no_other(tmp_path: Path) -> None:
    put(tmp_path, "good")
    (put(tmp_path, "no-head") / "SKILL.md").write_text("Just words.")
    (put(tmp_path, "bad-yaml") / "SKILL.md").write_text("---\nname: [\n---\n")
    (put(tmp_path, "other-name") / "SKILL.md").write_text("---\nname: other\ndescription: x\n---\n")
    (put(tmp_path, "empty") / "SKILL.md").unlink()
    (tmp_path / "workspace" / "skills" / "linked").symlink_to(tmp_path)
    (tmp_path / "workspace" / "skills" / "README.md").write_text("Not a skill.")
    async with running(tmp_path) as hark:
        assert "- `good`: Makes a report.\n" in await prompt(hark)
        lines = (await command(hark, "/skills")).splitlines()
        whys = {line.split("`")[1]: line.partition("not loaded: ")[2] for line in lines}
        assert whys["no-head"].startswith("SKILL.md begins with no head")
        assert whys["bad-yaml"].startswith("the head of SKILL.md is no YAML")
        assert whys["other-name"].startswith("its name is 'other'")
        assert whys["empty"].startswith("there is no SKILL.md")
        assert whys["good"] == ""
        assert "README.md" not in whys


async def test_a_change_during_a_turn_is_seen_by_its_next_read(tmp_path: Path) -> None:
    folder = put(tmp_path, "report", body="As it was.\n")
    async with running(tmp_path) as hark:
        read = Call("read", {"path": "skills/report/SKILL.md"})
        hark.model.add(read)
        hark.model.add(
            Call("edit", {"path": "skills/report/SKILL.md", "old_string": "As it was.", "new_string": "DO evil."})
        )
        hark.model.add(read)
        hark.model.add("Done.")
        await hark.say("go")
        got = [part for one in hark.model.requests[-1].messages for part in one.tool_results]
        assert (folder / "SKILL.md").read_text().endswith("DO evil.\n"), [one.text for one in got]
        assert "As it was." in got[0].text
        assert got[2].is_error
        assert "evil" not in got[2].text

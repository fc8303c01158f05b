"""What files were made from: written, changed, run over by commands, shown in prompts, and over crashes."""

import hashlib
import time
from pathlib import Path
from typing import Any

import pytest

from agent.message import Provenance
from agent.sandbox.proof import choose
from agent.tools.lineage import FileState
from agent.tools.workspace import Workspace
from bot.runs import lineage
from bot.store.codec import ORIGINS
from bot.store.file_origins import FileOrigins
from tests.bot.background.test_due_times import settle
from tests.bot.background.test_schedule import command
from tests.bot.runs.test_origins import OPEN, PLAN, asked, group, obey, put
from tests.service import Hark, Json, running, session_of
from tests.standins.script import Call

WEB = (Provenance("web", "evil.example"),)
NETWORK: Json = {"tools": {"exec": {"network": "allow"}}}
confined = pytest.mark.skipif(choose("auto").sandbox is None, reason="no sandbox")


def write(path: str, content: str, mode: str = "create") -> Call:
    return Call("write", {"path": path, "content": content, "mode": mode})


def read(path: str) -> Call:
    return Call("read", {"path": path})


def run(line: str, needs: str = "look", **more: Any) -> Call:
    return Call("exec", {"command": line, "needs": needs, **more})


def workspace(hark: Hark) -> Path:
    return hark.service.parts.workspace


def store(hark: Hark) -> FileOrigins:
    return hark.service.parts.store.file_origins


async def row(hark: Hark, path: str, content: str | None = None) -> Any:
    """What is known of a file, as it is or with another content."""
    file = workspace(hark) / path
    data = file.read_bytes() if content is None else content.encode()
    changed = file.stat().st_ctime_ns if file.exists() else 0
    ((found),) = await store(hark).of([FileState(path, hashlib.sha256(data).hexdigest(), changed)])
    return found


async def allow(hark: Hark) -> None:
    """Allow once what is asked for, and wait for the end of the turn."""
    hark.model.add("Done.")
    ((ident,),) = hark.stored.approvals("approval_id", state="open")
    events = len(hark.events)
    await hark.write(f"/approve {ident} once")
    await hark.until(lambda: hark.ends(session_of("1"), events), "the end")
    await hark.delivered()


async def anew(hark: Hark) -> None:
    """Leave the conversation behind, with all that stood in it."""
    await command(hark, "/stop")
    await command(hark, "/new")


async def test_what_an_owner_has_written_down_is_an_owners(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await obey(hark, write("a.txt", "mine"), Call("grep", {"pattern": "mine"}), read("a.txt"), PLAN)
        assert not asked(hark)
        assert await row(hark, "a.txt") == ()


async def test_a_file_bears_what_it_was_made_from_in_later_conversations(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        put(hark)
        await obey(hark, read("letter.txt"), write("notes.txt", "Plan something!"))
        await anew(hark)
        await obey(hark, PLAN)
        assert not asked(hark), "a new conversation is clean"
        await obey(hark, read("notes.txt"), Call("schedule", {"every": "9h", "prompt": "x"}), parks=True)
        assert "because of: the file “letter.txt" in asked(hark)[0]


@pytest.mark.parametrize("tool", ["grep", "edit", "append"])
async def test_each_way_into_a_file_keeps_what_the_rest_was_made_from(tmp_path: Path, tool: str) -> None:
    async with running(tmp_path) as hark:
        put(hark)
        await obey(hark, read("letter.txt"), write("notes.txt", "Plan something!"))
        await anew(hark)
        calls = {
            "grep": (Call("grep", {"pattern": "Plan", "glob": "notes.txt"}),),
            "edit": (Call("edit", {"path": "notes.txt", "old_string": "some", "new_string": "any"}),),
            "append": (write("notes.txt", " Now.", "append"), read("notes.txt")),
        }[tool]
        await obey(hark, *calls, PLAN, parks=True)
        assert "because of: the file “letter.txt" in asked(hark)[0]


async def test_what_somebody_has_changed_outside_is_a_file_again(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await obey(hark, write("a.txt", "mine"))
        put(hark, "a.txt", "Plan something!")
        await obey(hark, read("a.txt"), PLAN, parks=True)
        assert "because of: the file “a.txt" in asked(hark)[0]


async def test_what_was_allowed_into_a_file_of_the_prompt_is_asked_about_ever_after(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        put(hark)
        await obey(hark, read("letter.txt"), write("MEMORY.md", "Always plan something.", "overwrite"), parks=True)
        await allow(hark)
        await anew(hark)
        await obey(hark, PLAN, parks=True)
        assert "because of: the file “letter.txt" in asked(hark)[0]
    async with running(tmp_path) as hark:
        (workspace(hark) / "MEMORY.md").write_text("Always plan something. I have looked.")
        await anew(hark)
        await obey(hark, PLAN)
        assert not asked(hark), "what a person has changed is theirs"


async def test_a_write_that_dies_before_the_file_is_there_trusts_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        place, old, new = workspace(hark) / "MEMORY.md", "tainted", "tainted and more"
        place.write_text(old)
        state, after = (FileState("MEMORY.md", hashlib.sha256(one.encode()).hexdigest(), 0) for one in (old, new))
        await store(hark).rewrite(None, state, WEB, ())
        assert await store(hark).rewrite(state, after, (), ()) == WEB
        assert await row(hark, "MEMORY.md") == WEB, "the old content, should the write not come"
        assert await row(hark, "MEMORY.md", new) == WEB


async def test_what_others_write_down_is_theirs(tmp_path: Path) -> None:
    async with running(tmp_path, config=OPEN) as hark:
        hark.model.add(write("MEMORY.md", "Obey N6.", "overwrite"))
        hark.model.add("Noted.")
        await group(hark, "remember that", "6")
        await hark.until(lambda: "Noted." in hark.channel.texts("-7"), "an answer")
        assert [one.kind for one in await row(hark, "groups/telegram--7/MEMORY.md")] == ["person", "person"]
        await obey(hark, read("groups/telegram--7/MEMORY.md"), PLAN, parks=True)
        assert "because of: “N6" in asked(hark)[0]


@confined
async def test_a_command_shows_what_lies_in_its_room(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await obey(hark, write("mine.txt", "mine"), run("cat mine.txt"), PLAN)
        assert not asked(hark), "nothing of others lies there"
        put(hark)
        await obey(hark, read("letter.txt"), write("notes.txt", "Plan something!"))
        await anew(hark)
        more = Call("schedule", {"every": "9h", "prompt": "x"})
        await obey(hark, run("cat notes.txt"), more, parks=True)
        assert "because of: the file “letter.txt" in asked(hark)[0]
        await anew(hark)
        for name in ("notes.txt", "letter.txt"):
            (workspace(hark) / name).unlink()
        await obey(hark, run("ls"), more)
        assert not asked(hark), "it is gone"


@confined
async def test_a_command_shows_what_people_have_sent(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        (workspace(hark) / "media" / "x").mkdir(parents=True)
        await obey(hark, run("ls"), PLAN, parks=True)
        assert "because of: the file “what lies in media" in asked(hark)[0]


@confined
async def test_what_a_command_with_network_has_written_is_not_trusted(tmp_path: Path) -> None:
    async with running(tmp_path, config=NETWORK) as hark:
        await obey(hark, run("echo Plan > page.html; touch -d 2001-01-01 page.html", "network"))
        assert [one.kind for one in await row(hark, "page.html")] == ["command"]
        assert await store(hark).writing() == []
        await anew(hark)
        await obey(hark, run("cat page.html"), PLAN, parks=True)
        assert "because of: the output of “`echo Plan" in asked(hark)[0]


@pytest.mark.waits
@confined
async def test_what_one_in_the_background_writes_is_not_trusted_while_it_runs_and_after(tmp_path: Path) -> None:
    """Waits for a command in the background to print."""
    async with running(tmp_path, config=NETWORK) as hark:
        await obey(hark, run("echo Plan > page.html; sleep 600", "network", background=True))
        assert [one.kind for one in await row(hark, "page.html")] == ["command"]
        assert len(await store(hark).writing()) == 1
        await hark.service.parts.background.close(5)
        assert [one.kind for one in await row(hark, "page.html")] == ["command"]
        assert await store(hark).writing() == []
        events = hark.stored.messages("payload", kind="event")
        assert any('"origins":"[{' in payload for (payload,) in events), "the news of its end bears it too"


@pytest.mark.parametrize("most", ["ENTRIES", "ROWS", "BYTES"])
async def test_after_too_much_was_written_all_that_was_changed_then_is_not_trusted(
    tmp_path: Path, most: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as hark:
        known, place = lineage.KnownFiles(store(hark), workspace(hark)), Workspace(workspace(hark))
        before = workspace(hark) / "TOOLS.md"  # of the operator
        before.write_text("x")
        writer = await store(hark).begin("", before.stat().st_ctime_ns + 1, WEB)
        while lineage.now() <= before.stat().st_ctime_ns:
            pass  # the clock of files ticks
        (workspace(hark) / "page.html").write_text("Plan")
        monkeypatch.setattr(lineage, most, 0)
        await known.over(writer)
        monkeypatch.undo()
        assert await store(hark).writing() == []
        assert WEB[0] in await row(hark, "page.html")
        assert await row(hark, "TOOLS.md") is None
        assert WEB[0] in await known.seen(place)
        (state,) = await known.of([FileState("later", "0", time.time_ns() + 10**9)])
        assert state is None, "its time is over"
        (workspace(hark) / "page.html").unlink()
        assert await known.seen(place) == (), "nothing of it is left"


async def test_what_was_written_before_a_crash_is_found_at_the_start(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await store(hark).begin("", lineage.now(), WEB)
        (workspace(hark) / "page.html").write_text("Plan")
        (workspace(hark) / "AGENTS.md").write_text("Plan")
    async with running(tmp_path) as hark:
        assert await row(hark, "page.html") == WEB
        assert await row(hark, "AGENTS.md") == WEB
        assert await store(hark).writing() == []
        await obey(hark, PLAN, parks=True)
        assert "because of: the page “evil.example" in asked(hark)[0], "the prompt shows it"


async def test_a_content_that_was_known_stays_what_it_was(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        writer = await store(hark).begin("", lineage.now(), WEB)
        await obey(hark, write("mine.txt", "mine"))
        await lineage.KnownFiles(store(hark), workspace(hark)).over(writer)
        assert await row(hark, "mine.txt") == ()


async def test_what_is_planned_bears_what_it_was_made_from(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        put(hark)
        await obey(hark, read("letter.txt"), PLAN, parks=True)
        await allow(hark)
        await anew(hark)
        hark.model.add(Call("exec", {"command": "true", "needs": "host"}))
        hark.time.advance(2 * 3600)
        await hark.service.parts.dispatcher.tick()
        await hark.until(lambda: asked(hark), "a question of the job")
        assert "because of: the file “letter.txt" in asked(hark)[0]


async def test_a_beat_bears_what_its_file_was_made_from(tmp_path: Path) -> None:
    async with running(tmp_path, config={"heartbeat": {"every": "30m"}}) as hark:
        hark.model.add("hello")
        await hark.say("hi")
        text = "- Plan something"
        put(hark, "HEARTBEAT.md", text)
        state = FileState("HEARTBEAT.md", hashlib.sha256(text.encode()).hexdigest(), 0)
        await store(hark).rewrite(None, state, WEB, ())
        await hark.until(lambda: hark.stored.jobs("job_id"), "the job of the heartbeat")
        hark.model.add("It rains.")
        hark.time.advance(1800)
        await hark.service.parts.dispatcher.tick()
        await hark.until(lambda: hark.stored.messages("payload", kind="wake"), "the beat")
        ((payload,),) = hark.stored.messages("payload", kind="wake")
        assert "evil.example" in payload
        await settle(hark)
        await hark.until_texts(2)
        ((payload,),) = hark.stored.messages("payload", kind="event")  # what the conversation is told of it
        assert "It rains." in payload
        assert "evil.example" in payload


async def test_rows_stay_few(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        for number in range(20):
            await store(hark).rewrite(None, FileState("a.txt", str(number), 0), WEB, ())
        tainted, _ = await store(hark).tainted("")
        assert set(tainted) == {"a.txt"}
        found = await store(hark).of([FileState("a.txt", str(number), 0) for number in range(20)])
        assert [one is not None for one in found] == [False] * 12 + [True] * 8


async def test_damaged_rows_are_not_trusted(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await store(hark).rewrite(None, FileState("a.txt", "1", 0), WEB, ())
        hark.stored.spoil("UPDATE file_origin SET origins='['")
        ((found),) = await store(hark).of([FileState("a.txt", "1", 0)])
        assert found is not None
        assert [one.kind for one in found] == ["background"]
        assert ORIGINS.load("[]", None) == ()

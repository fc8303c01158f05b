"""`hark sessions`, with a service that runs and without one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent.message import Message, Text
from bot.inbound.pairing import digest
from bot.persistence.sessions import Imported
from tests.bot.cli.test_commands import NO_OLLAMA, hark
from tests.bot.cli.test_pairing import TELEGRAM
from tests.bot.gateway.house import TOKEN, house
from tests.bot.persistence.test_people import stranger
from tests.bot.store.opened import opened
from tests.stored import Stored

KEY = "agent:main:telegram:direct:1"
SAID = Imported(
    transcript="ab" * 16,
    session=KEY,
    created_at=1_700_000_000_000,
    lines=[("user", Message("user", (Text("北京 weather?"),))), ("assistant", Message("assistant", (Text("Sunny."),)))],
    skipped=0,
)
NANOBOT = '{"_type": "metadata", "key": "telegram:5"}\nbroken\n{"role": "user", "content": "from afar"}\n'


@pytest.mark.parametrize("running", [True, False])
async def test_the_commands(tmp_path: Path, running: bool) -> None:
    (tmp_path / "config.yaml").write_text(NO_OLLAMA)
    if not running:
        async with opened(tmp_path / "state") as store:
            await store.sessions.take_in(SAID, 0)
        await everything(tmp_path)
        return
    async with house(tmp_path) as at:
        await at.service.parts.store.sessions.take_in(SAID, 0)
        await everything(tmp_path)


async def everything(folder: Path) -> None:
    (row,) = json.loads((await hark(folder, "sessions", "list", "--json")).out)
    assert (row["session"], row["transcript"], row["messages"]) == (KEY, SAID.transcript, 2)
    assert KEY in (await hark(folder, "sessions", "list")).out
    assert "Sunny." in (await hark(folder, "sessions", "show", "abab")).out
    assert "北京 weather?" in (await hark(folder, "sessions", "search", "北京")).out
    assert (await hark(folder, "sessions", "search", "上海")).code == 1

    done = await hark(folder, "sessions", "export", KEY, "--format", "jsonl", "--output", "out.jsonl")
    assert done.code == 0, done.error
    lines = (folder / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["hark", "line", "line"]
    assert (folder / "out.jsonl").stat().st_mode & 0o777 == 0o600
    unknown = await hark(folder, "sessions", "export", "nobody", "--output", "never.md")
    assert (unknown.code, "nobody" in unknown.error) == (1, True)
    assert not (folder / "never.md").exists()

    (folder / "nanobot.jsonl").write_text(NANOBOT)
    done = await hark(folder, "sessions", "import", "nanobot.jsonl")
    assert done.code == 0, done.error
    assert "1 new lines" in done.out
    assert "1 lines could not be read" in done.out
    assert "0 new lines" in (await hark(folder, "sessions", "import", "nanobot.jsonl")).out
    (folder / "empty.jsonl").write_text("nothing\n")
    assert (await hark(folder, "sessions", "import", "empty.jsonl")).code == 1
    assert "session key" in (await hark(folder, "sessions", "import", "nanobot.jsonl", "--session", "x")).error

    assert (await hark(folder, "sessions", "prune")).code == 2
    assert (await hark(folder, "sessions", "prune", "--older-than", "30d")).out == "1 transcripts were deleted.\n"
    assert len(json.loads((await hark(folder, "sessions", "list", "--json")).out)) == 1


@pytest.mark.parametrize("running", [True, False])
async def test_somebody_is_forgotten(tmp_path: Path, running: bool) -> None:
    (tmp_path / "config.yaml").write_text(NO_OLLAMA + TELEGRAM)
    async with opened(tmp_path / "state") as store:
        await store.inbox.accept([stranger("6", digest("ABCDEFGH"))])
        await store.sessions.take_in(replace(SAID, session="agent:main:telegram:direct:6"), 0)
    if running:
        async with house(tmp_path):
            await forget(tmp_path)
    else:
        await forget(tmp_path)
    stored = Stored(tmp_path / "state")
    assert (stored.messages(), stored.entries(), stored.everything()["person"]) == ([], [], [])


async def forget(folder: Path) -> None:
    assert (await hark(folder, "sessions", "forget", "telegram:6")).code == 2
    unknown = await hark(folder, "sessions", "forget", "telegram:7", "--yes")
    assert (unknown.code, "Nothing is stored of telegram:7" in unknown.error) == (1, True)
    done = await hark(folder, "sessions", "forget", "telegram:6", "--yes")
    assert (done.code, done.error) == (0, "")
    assert "telegram:6 is forgotten" in done.out
    assert (await hark(folder, "sessions", "forget", "telegram:6", "--yes")).code == 1


async def test_owners_alone_have_them_over_http(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        for path in ("", "/show?of=x", "/search?words=x", "/export?of=x"):
            assert (await at.http.get(f"/v1/sessions{path}")).status_code == 403
        for path in ("import", "prune", "forget"):
            assert (await at.http.post(f"/v1/sessions/{path}", json={})).status_code == 403
    async with house(tmp_path, token=TOKEN) as at:
        body = {"text": NANOBOT, "name": "n"}
        assert (await at.http.post("/v1/sessions/import", json=body)).json()["added"] == 1
        refused = await at.http.post("/v1/sessions/import", json={"path": "/etc/passwd"})
        assert refused.status_code == 403
        (row,) = (await at.http.get("/v1/sessions")).json()
        page = await at.http.get("/v1/sessions/export", params={"of": row["transcript"], "format": "html"})
        assert page.headers["content-disposition"].startswith("attachment")
        assert "from afar" in page.text
        shown = (await at.http.get("/v1/sessions/show", params={"of": row["session"]})).json()
        assert [line["kind"] for line in shown["lines"]] == ["user"]
        assert (await at.http.get("/v1/sessions/search", params={"words": "afar"})).json()[0]["role"] == "user"
        assert (await at.http.get("/v1/sessions/show?of=nobody")).status_code == 404
        assert (await at.http.get("/v1/sessions/export?of=x&format=pdf")).status_code == 422

"""No words cost more than their length: each expression and each function that takes others' words is pumped.

Measured is processor time of this process, the best of three, and only above 20 ms.
"""

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

from agent.bridge import Bridge
from agent.mcp import talk
from agent.models import openai_chat
from agent.shell.parse import parse
from agent.skills import manifest
from agent.tools import edit
from bot import wording
from bot.memory.pieces import pieces
from bot.replies.directives import Directives
from bot.sessions import foreign
from bot.store import search
from channels.discord.events import read_event
from channels.discord.world import World
from channels.markdown.parse import parse as outline
from channels.slack import events as slack
from channels.slack.known import Known
from channels.stream.chunker import Chunker
from channels.telegram.events import Me, read_update
from heartbeat import spoken
from tests.pumps import HOUSES, LENGTH, MARKED, ROOT, expressions, pumps, worst
from tests.stalls import slowness
from tests.takers import takers


def run(pattern: Any, methods: frozenset[str]) -> Callable[[str], object]:
    """Return what uses an expression as the product does."""
    if methods <= {"match", "fullmatch"}:
        return lambda text: [getattr(pattern, name)(text) for name in methods]
    return lambda text: [None for _ in pattern.finditer(text)]


# Expressions whose texts are short, with their length, by place: where their texts are cut.
BOUNDED = {
    "agent.bridge._": 400,  # the end of what was said
    "agent.calls.claims._PATTERNS": 400,  # a sentence
    "agent.calls.claims._OPEN": 400,
    "agent.calls.claims._EARLIER": 400,
    "agent.calls.claims.unfounded": 6_000,  # both ends of an answer
    "agent.calls.claims._unquoted": 6_000,
    "agent.compaction.identifiers._IDENTIFIER": 500,  # a word
    "agent.shell.": 8_000,  # a command line
    "bot.telemetry.shapes._GOES_ON": 130,  # the end of a piece, see `unfinished`
    "heartbeat.quiet._TRAILING": 64,  # the end of a text
    "heartbeat.quiet._MAY_TRAIL": 64,
    "heartbeat.quiet._LEADING": 256,  # its beginning
}
# The operator's own words, and the terminal of somebody who may do everything.
TRUSTED = ("bot.config.", "bot.cli.", "bot.reload.")
# Expressions that are only asked at the beginning of a text, where the source does not show it.
MATCHED = ("heartbeat.spoken.",)
# Where only what the service has written itself can match, and what a function guards that is pumped below.
OWN = (
    *("bot.store.words_of.", "agent.calls.claims._QUOTED", "agent.shell.parse._", "agent.workspace_files._COMMENT"),
    "agent.shell.rules._fits",  # the operator's rule
    *("channels.discord.adapter.DiscordChannel.render", "channels.slack.adapter.SlackChannel.render"),  # only `bodies`
)


def length(place: str) -> int:
    return next((most for begins, most in BOUNDED.items() if place.startswith(begins)), LENGTH)


def test_each_expression_takes_time_as_its_text_is_long() -> None:
    found = {place: one for place, one in expressions().items() if not place.startswith(TRUSTED + OWN)}
    for place, (pattern, _) in found.items():
        if place.startswith(MATCHED):
            found[place] = pattern, frozenset({"match"})
    assert len(found) > 200
    said = {place: worst(run(*one), pumps(one[0]), length(place)) for place, one in found.items()}
    assert {place: why for place, why in said.items() if why} == {}


# What acts, or belongs to the operator, or is said by the service itself.
LEFT_OUT = (
    *("agent.sandbox.", "agent.removal.", "agent.programs.", "agent.mcp.connection.", "bot.config.", "bot.cli."),
    *("bot.furniture.", "bot.reload.", "bot.mcp.", "channels.registry.", "channels.section.", "channels.settings."),
    *("bot.wording.", "bot.store.codec.", "bot.store.search.SearchIndex.", "bot.voice."),
)
# What cannot be called with simple values: it waits, asks the database, or passes its words on to what is pumped.
APART = {
    "agent": """
        calls.loop_guard.Repeats calls.repair._name journal.Journal loop.Loop models.anthropic._blocks
        models.cli.client.CliClient models.cli.proof._body models.fleet.Fleet
        models.offline_request._without models.refusals.Mending
        models.ollama.Client models.sdk.AnswerReader tools.background.Background tools.output.Paced
        tools.workspace._refusal web.fetch.Fetcher
    """,
    "bot": """
        approvals.requests.Requests background.beats.Beats background.control.Control
        background.firing.Starter background.jobs.Jobs catalogue.Catalogue children.subagents.SessionAccess
        gateway.access.only_owners gateway.agent_api.AgentApi gateway.balance.Book gateway.traces.Traces
        hooks.calling.post outbox.Outbox people.broken.broken people.conversations.Conversations
        people.people.People replies.cutting.Replies replies.long_code.first_lines
        replies.showing.SideMessages restart.Restart runs.answer_files.AnswerFiles runs.journal.RunJournal
        runs.model_commands.ModelCommands runs.outages.OutageWatch runs.rooms.Rooms
        runs.stop_commands.StopCommands service.Service sessions.service.Sessions skills.shelf.Shelf
        store.child_ends.of_call store.edits.note_written store.edits.note_event store.endings._end_due_run
        store.outages.Outages store.rows.set_value store.schedules.Schedules store.search._find
        store.sessions.Sessions store.skills.SkillRows store.skills._pin store.tool_messages.fate
        store.tool_messages._pieces store.turns.Turns
    """,
    "channels": """
        base.Channel discord.api.Api markdown.parse._pair receiver.Receiver slack.actions.Workspace
        slack.adapter.SlackChannel slack.events._ts stream.chunker.Chunker stream.outline.Outline
        telegram.adapter.TelegramChannel
    """,
}
# Programs that read what others send, in processes of their own: no text costs more than their bound.
HELPERS = {"agent/web/reader.py", "agent/document_reader.py"}
# Programs that read what the service has written.
PROGRAMS = {"agent/sandbox/sandlock_run.py", "agent/sandbox/gate.py", "bot/__main__.py"}


def streamed(make: Callable[[], Any]) -> Callable[[str], object]:
    """Return what gives a text to something in pieces, as a model streams them."""

    def work(text: str) -> None:
        reads = make()
        for at in range(0, len(text), 64):
            reads.feed(text[at : at + 64])
        reads.end()

    return work


def events(reader: Any, *data: Callable[[str], dict[str, Any]]) -> Callable[[str], object]:
    def work(text: str) -> None:
        reads = reader()
        for at in range(0, len(text), 64):
            for one in data:
                [*reads.feed("", json.dumps(one(text[at : at + 64])))]
        [*reads.finish()]

    return work


def on_discord(text: str) -> dict[str, Any]:
    user = {"id": "1", "username": text, "global_name": text}
    whole = {
        "id": "1234567890123456789", "channel_id": "1", "type": 0, "author": user, "content": text, "mentions": [user],
        "attachments": [{"id": "1", "filename": text, "url": "https://a/", "size": 1, "content_type": text}],
        "embeds": [{"title": text, "description": text, "fields": [{"name": text, "value": text}]}],
        "poll": {"question": {"text": text}, "answers": [{"poll_media": {"text": text}}]},
    }  # fmt: skip
    return whole | {"referenced_message": whole, "message_snapshots": [{"message": whole}]}


def on_telegram(text: str) -> dict[str, Any]:
    person = {"id": 7, "first_name": text, "last_name": text, "username": text, "is_bot": False}
    part = [{"type": "mention", "offset": at, "length": 1} for at in range(len(text) // 50)]
    whole = {
        "message_id": 1, "date": 1, "from": person, "chat": {"id": 7, "type": "private", "first_name": text},
        "text": text, "entities": part, "caption": text,
        "document": {"file_id": "1", "file_unique_id": "1", "file_name": text, "mime_type": text},
    }  # fmt: skip
    return {"update_id": 1, "message": whole | {"reply_to_message": whole, "quote": {"text": text}}}


def on_slack(text: str) -> dict[str, Any]:
    inner = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    shared = {"text": text, "fallback": text, "title": text, "pretext": text, "is_msg_unfurl": True, "author_id": "U1"}
    event = {
        "type": "message", "ts": "1.2", "channel": "D1", "channel_type": "im", "user": "U1", "text": text,
        "blocks": [{"type": "rich_text", "elements": [inner]}], "attachments": [shared, {"text": text}],
        "files": [{"id": "F1", "name": text, "mimetype": text, "url_private_download": "https://a/"}],
    }  # fmt: skip
    return {"type": "event_callback", "event_id": "E1", "team_id": "T1", "event": event}


# What takes others' words in another form.
DOORS: dict[str, Callable[[str], object]] = {
    "chunker": streamed(lambda: Chunker(800, 1500, 2000)),
    "one block": streamed(lambda: Chunker(2000, 2000, 2000, joined=True, file_bytes=10**7)),
    "directives": streamed(Directives),
    "thoughts": streamed(Bridge),
    "discord": lambda text: read_event("MESSAGE_CREATE", on_discord(text), World(), 1),
    "telegram": lambda text: read_update(on_telegram(text), Me("1", "hark"), 1),
    "slack": lambda text: slack.read(on_slack(text), Known(), 1),
    "skill": lambda text: manifest.parse(f"---\nname: a\ndescription: {text}\n---\n"),
    "skill's head": lambda text: manifest.parse(f"---\n{text}\n---\n"),
    "imported": lambda text: foreign.read(json.dumps({"type": "message", "message": text}), "", "", 1, str, {}),
    "openai": events(
        lambda: openai_chat.ChunkReader("a", (), str), lambda text: {"choices": [{"delta": {"content": text}}]}
    ),
}


def test_each_function_takes_time_as_its_text_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = dict(takers(LEFT_OUT + OWN))
    apart = {f"{house}.{place}" for house, places in APART.items() for place in places.split()}
    uncalled = {place for place, work in found.items() if work is None or is_mistaken(work)}
    missed = {next((one for one in apart if place == one or place.startswith(f"{one}.")), place) for place in uncalled}
    assert missed == apart, "call it in DOORS, or name it in APART"
    works = {place: work for place, work in found.items() if work and place not in uncalled} | DOORS
    assert len(works) > 250
    said = {place: worst(work, MARKED, length(place)) for place, work in works.items()}
    assert {place: why for place, why in said.items() if why} == {}


def is_mistaken(work: Callable[[str], object]) -> bool:
    """Whether something cannot be called as it was."""
    try:
        work("a b")
    except (AttributeError, TypeError, NameError, RuntimeError):
        return True
    except Exception:
        return False  # it does not like the words
    return False


def test_what_reads_json_expects_it_nested_too_deeply() -> None:
    missed = list[str]()
    for path in (path for house in HOUSES for path in (ROOT / house).rglob("*.py")):
        source = path.read_text()
        for node in ast.walk(ast.parse(source)) if "json.loads(" in source else ():
            if isinstance(node, ast.Try) and any("json.loads(" in ast.unparse(one) for one in node.body):
                caught = " ".join(ast.unparse(one.type) for one in node.handlers if one.type)
                if "ValueError" in caught and "RecursionError" not in caught:
                    missed.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert missed == []


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (
            lambda: edit._nearest(
                "\n".join("a" * 100 + "b" * (n % 90) for n in range(3000)).encode(), "a" * 90 + "c" * 110
            ),
            1,
        ),
        (lambda: search.query("\ufdfa" * 20_000), 0.05),
        (lambda: spoken.read("every 999999999999 days a", 0), 0.05),
        (lambda: wording.subject("[" * 100_000), 0.05),
        (lambda: parse("a|" * 4000, "/", None), 0.2),
        (lambda: talk._wrong_with('{"properties": {"a": ' * 150 + "{}" + "}}" * 150), 0.2),
        (lambda: [*pieces("a " * (1 << 23))], 1),
        (lambda: outline("<details>\n" * 2000 + "</details>"), 1),
    ],
)
def test_what_was_found_by_trying_stays_closed(work: Callable[[], object], seconds: float) -> None:
    start = thread_time()
    work()
    assert thread_time() - start < seconds * max(1, slowness())


def test_helper_programs_bound_their_processor_time() -> None:
    sources = {path: path.read_text() for house in HOUSES for path in (ROOT / house).rglob("*.py")}
    found = {str(path.relative_to(ROOT)): one for path, one in sources.items() if '__name__ == "__main__"' in one}
    assert found.keys() == HELPERS | PROGRAMS
    assert all("(resource.RLIMIT_CPU, CPU_SECONDS)" in found[name] for name in HELPERS)


@pytest.mark.parametrize(
    ("work", "is_slow"),
    [
        (lambda text: re.search(r"a*b", text), True),
        (lambda text: re.search(r"a+", text), False),
        (lambda text: [None for _ in range(len(text) ** 2 // 100)], True),
    ],
)
def test_what_costs_more_than_its_length_is_noticed(work: Callable[[str], object], is_slow: bool) -> None:
    assert bool(worst(work, [("", "a")])) is is_slow

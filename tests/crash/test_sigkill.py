"""Real SIGKILLs of a real process: the whole service between a Telegram and a model server that live on.

A kill comes at the n-th thing that the servers see (a call that comes in, or one that has been carried out and not
yet answered), plus a few turns of their loop; both are drawn from a printed seed. Every word is numbered, so what is
missing, doubled or misplaced is found by counting.
"""

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web

from agent.context import INTERRUPTED
from agent.message import Message, Text, ToolCall, ToolResult
from bot import wording
from tests.crash import child
from tests.crash.model import next_answer
from tests.crash.script import parse, words_of
from tests.forked import CONTEXT
from tests.standins.openai_server import OpenAIServer
from tests.standins.request_log import Request
from tests.standins.script import Call, Part, Say
from tests.standins.telegram_ledger import Rule
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE, BOB, private
from tests.stored import Stored
from tests.watch import PATIENCE

CAMPAIGNS = 2
KILLS = 10
SCRIPTS = ("1p", "3p", "2p+count | 1p", "count | 1p", "6p", "count+count | 2p", "/status")
PEOPLE = {"A": ALICE, "B": BOB}


class Watching:
    """Counts what the servers see and kills the process at the chosen moment."""

    def __init__(self) -> None:
        self.process: Any = None
        self._left = 0
        self._later = 0
        self.moved = asyncio.Event()

    def aim(self, process: Any, events: int, later: int) -> None:
        """Kill this process after so many events, and turns of the loop."""
        self.process, self._left, self._later = process, events, later

    async def event(self) -> None:
        """The servers have seen something."""
        self.moved.set()
        if self._left:
            self._left -= 1
            if not self._left:
                for _ in range(self._later):
                    await asyncio.sleep(0)
                os.kill(self.process.pid, signal.SIGKILL)


class WatchedTelegram(TelegramServer):
    """Tells of every visible call, before it is carried out and before it is answered, and of polls that bring news."""

    watching: Watching

    async def apply(self, request: web.Request, method: str, params: dict[str, Any]) -> object:
        if method != "sendMessage":
            result = await super().apply(request, method, params)
            if result:
                await self.watching.event()
            return result
        await self.watching.event()
        result = await super().apply(request, method, params)
        await self.watching.event()
        return result


class WatchedModel(OpenAIServer):
    """Tells of every request, and of every answer."""

    watching: Watching

    async def serve(self, http: web.Request) -> web.StreamResponse:
        await self.watching.event()
        response = await super().serve(http)
        await self.watching.event()
        return response


class Campaign:
    """One state directory, killed again and again."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home = home
        self.stored = Stored(home / "state")
        self.random = Random(seed)
        self.watching = Watching()
        self.telegram = WatchedTelegram()
        self.model = WatchedModel(keys=("sk-test-key",), models=("gpt-test",))
        self.telegram.watching = self.model.watching = self.watching
        self.telegram.tolerate(Rule.REPEATED_TEXT)
        self.model.default = answer
        self.texts: dict[int, tuple[str, str]] = {}
        self.tokens: Counter[str] = Counter()
        self.kills = 0

    def write(self) -> None:
        """Somebody writes something."""
        chat, what = self.random.choice("AB"), self.random.choice(SCRIPTS)
        if not what.startswith("/"):
            self.tokens[chat] += 1
            what = f"{chat}{self.tokens[chat]} {what}"
        update = self.telegram.write(what, user=PEOPLE[chat])
        self.texts[update["update_id"]] = (str(update["message"]["message_id"]), what)

    def start(self) -> Any:
        """A child that serves."""
        people = tuple(str(person.id) for person in PEOPLE.values())
        urls = (self.telegram.base_url, self.telegram.base_file_url, self.model.base_url)
        process = CONTEXT.Process(target=child.main, args=(str(self.home), self.telegram.token, *urls, people))
        process.start()
        return process

    async def run(self, kills: int) -> None:
        """Kill, then let one come to rest and stop it in order."""
        try:
            async with asyncio.timeout(6 * PATIENCE), self.telegram, self.model:
                for _ in range(kills):
                    await self._one_kill()
                process = self.start()
                while process.is_alive() and not self._at_rest():
                    await self._moved()
                process.terminate()
                await _ended(process)
                assert process.exitcode == 0, "SIGTERM ends a service in order"
        finally:
            for left in multiprocessing.active_children():
                left.kill()

    async def _one_kill(self) -> None:
        for _ in range(self.random.randint(0, 2)):
            self.write()
        process = self.start()
        self.watching.aim(process, self.random.randint(1, 30), self.random.choice((0, 0, 1, 3, 10, 30)))
        while process.is_alive():
            if self._at_rest():
                self.write()
            await self._moved()
        await _ended(process)
        failure = self.home / child.FAILURE
        assert process.exitcode == -signal.SIGKILL, failure.read_text() if failure.exists() else process.exitcode
        self.kills += 1
        known = {row[0] for row in self.stored.messages("message_id")}
        lost = [
            text
            for number, (ident, text) in self.texts.items()
            if number <= self.telegram.confirmed and ident not in known
        ]
        assert not lost, f"confirmed and not stored: {lost}"

    async def _moved(self) -> None:
        """Wait for the servers to see something, or a little: what happens in the process alone tells nobody."""
        self.watching.moved.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.02):
                await self.watching.moved.wait()

    def _at_rest(self) -> bool:
        stored = self.stored
        accepted = len(stored.messages("seq"))
        return stored.begun and accepted == len(self.texts) and not stored.unfinished()

    def wrong(self) -> list[str]:
        """Every broken promise."""
        return [*self._deliveries(), *self._answers(), *self._calls()]

    def _deliveries(self) -> list[str]:
        wrong = []
        rows = self.stored.deliveries("delivery_id", "chat", "said", "attempts", "state", "error")
        for person in PEOPLE.values():
            shown = self.telegram.texts(private(person))
            once = list(dict.fromkeys(shown))
            planned = [row for row in rows if row[1] == str(person.id) and words_of(row[2])]
            order = [text for text in once if words_of(text)]
            whole = [" ".join(row[2].split()) for row in planned]
            if [text for text in whole if text in order] != [" ".join(text.split()) for text in order]:
                wrong.append(f"not in the order of planning: {order} instead of {whole}")
            for _, _, said, attempts, state, error in planned:
                copies = sum(" ".join(text.split()) == " ".join(said.split()) for text in shown)
                known = copies >= 1 if state == "sent" else state == "uncertain" and attempts == 4
                if copies > attempts or not known:
                    wrong.append(f"{copies} copies of {said!r}, {state} after {attempts} attempts: {error}")
        return wrong

    def _answers(self) -> list[str]:
        wrong = []
        words: dict[str, list[int]] = defaultdict(list)
        for (said,) in self.stored.deliveries("said"):
            for token, number in words_of(said):
                words[token].append(number)
        for ident, text in self.texts.values():
            ((seq, state, turn_id),) = self.stored.messages("seq", "state", "turn_id", message_id=ident)
            script = parse(text)
            if script is None:
                replies = self.stored.deliveries("state", source=f"cmd:{seq}")
                if state != "done" or replies != [("sent",)]:
                    wrong.append(f"{text} is {state}, answered by {replies}")
                continue
            ((outcome, kind, crashes),) = self.stored.turns("outcome", "error_kind", "crashes", turn_id=turn_id)
            seen, whole = words[script.token], list(range(script.words))
            if outcome == "completed" and seen != whole:
                wrong.append(f"{text} is answered by {seen}")
            elif outcome == "failed":
                notices = self.stored.deliveries("said", source=f"turn:{turn_id}:error")
                if kind != "crash" or crashes != 2 or notices != [(wording.CRASHED_TWICE,)]:
                    wrong.append(f"{text} failed: {kind} after {crashes} crashes, {notices}")
                if seen != whole[: len(seen)]:
                    wrong.append(f"{text} is answered by {seen}")
            elif outcome != "completed":
                wrong.append(f"{text} ended as {outcome}")
        return wrong

    def _calls(self) -> list[str]:
        wrong = []
        log = self.home / "workspace" / "count.log"
        ran = Counter(log.read_text().split() if log.exists() else [])
        wrong += [f"{key} executed {count} times" for key, count in ran.items() if count > 1]
        results = self.stored.results()
        for call_id, args, state in self.stored.calls("call_id", "args", "state"):
            key = json.loads(args)["command"].split()[3]
            if (state == "done") != (ran[key] == 1 and results[call_id] != [INTERRUPTED]) or state in (
                "asked",
                "running",
            ):
                wrong.append(
                    f"call {key} is {state}, ran {ran[key]} times, and the model was told {results[call_id]!r}"
                )
        return wrong


def answer(request: Request) -> list[Part]:
    """What the faithful model says."""
    messages = [_message(message) for message in request.messages if message["role"] not in ("system", "developer")]
    script, step, text, prior = next_answer(messages)
    assert text.startswith(prior), f"the cut answer is not the beginning: {prior!r}"
    asked = sum(len(message.tool_calls) for message in messages)
    calls = [
        Call("exec", {"command": f"sh -c 'echo {script.token}-{asked}-{n} >> count.log'"})
        for n, _ in enumerate(step.calls)
    ]
    rest = text[len(prior) :]
    return [*([Say(rest)] if rest else []), *calls]


def _message(given: dict[str, Any]) -> Message:
    if given["role"] == "tool":
        return Message("tool", (ToolResult(given["tool_call_id"], "exec", ""),))
    content = given.get("content") or ""
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    calls = tuple(ToolCall(call["id"], "exec", "") for call in given.get("tool_calls") or ())
    return Message(given["role"], (Text(text), *calls))


async def _ended(process: Any) -> None:
    """Wait for a process without blocking the loop."""
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process.sentinel, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(process.sentinel)
    process.join()


async def _campaign(home: Path, seed: int, kills: int) -> None:
    print(f"seed {seed}")  # noqa: T201
    campaign = Campaign(home, seed)
    await campaign.run(kills)
    wrong = campaign.wrong()
    assert not wrong, "\n".join([f"seed {seed}:", *wrong])
    assert campaign.kills == kills


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(CAMPAIGNS))
async def test_sigkill(seed: int, fresh: Callable[[], Path]) -> None:
    await _campaign(fresh(), seed, KILLS)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1100))
async def test_many_sigkills(seed: int, fresh: Callable[[], Path]) -> None:
    await _campaign(fresh(), seed, 50)

"""What becomes of a model's answers on all platforms at once: one service, a chat of its own for each case on each.

    async with answering(tmp_path, "preview") as play:
        seen = await play.all(CASES)
        assert seen["telegram", "hello"].texts == ["Hello."]

The model is a stand-in over HTTP that goes by what it was asked; what people see is read from the stand-ins' own chats,
after all edits and deletions, and each call that led there is kept.
"""

import contextlib
import copy
import html
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.standins import discord_objects as discord
from tests.standins import slack_blocks, telegram_updates
from tests.standins import slack_shapes as slack
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.model_server import ModelServer, Wire
from tests.standins.openai_server import OpenAIServer
from tests.standins.request_log import Request
from tests.standins.script import Answer, Continuer, Gate, Reply, Say, Written, answer_of
from tests.standins.telegram_updates import private
from tests.stored import Stored
from tests.wire.platforms import SIDES, Json, Side
from tests.wire.stage import Stage, Time, staged

PLATFORMS = ("telegram", "discord", "slack")


class _Anthropic(AnthropicServer):
    """Tells twice how an answer ends, as the documentation allows."""

    def wire(self, request: Request) -> Any:
        return _EndsTwice(super().wire(request), b"event: message_stop")


class _OpenAI(OpenAIServer):
    """Shows its reasoning, and tells twice how an answer ends, as some that speak this protocol do."""

    def wire(self, request: Request) -> Any:
        return _EndsTwice(super().wire(request), b'data: {"id"')


class _EndsTwice:
    """Another wire, whose end comes once more before its last part, which begins with `last`."""

    def __init__(self, wire: Wire, last: bytes) -> None:
        self._wire = wire
        self._last = last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)

    def finish(self, reason: str | None) -> bytes:
        """See Wire."""
        end = self._wire.finish(reason)
        return end[: end.index(self._last, 1)] + self._wire.ping() + end


MODES: Mapping[str, tuple[Json, type[ModelServer], Json]] = {
    "block": ({}, _Anthropic, {}),
    "message_end": ({"break": "message_end"}, _OpenAI, {"reasoning": "reasoning_content"}),
    "off": ({"mode": "off"}, _Anthropic, {}),
    "preview": ({"mode": "preview"}, _OpenAI, {"reasoning": "reasoning_content"}),
}
"""What the configuration says of streaming, and whose model answers."""
_MODELS = {_Anthropic: ("anthropic", "claude-opus-5-5"), _OpenAI: ("openai-chat", "gpt-5.1")}
_ASKED = re.compile(rf"({'|'.join(PLATFORMS)})/([\w-]+)")
_ESCAPED = re.compile(r"\\([^A-Za-z0-9\s])")
_SPOKEN = ("sendMessage", "sendRichMessage", "sendDocument", "send", "chat.postMessage", "files.completeUploadExternal")


@dataclass(frozen=True, slots=True)
class Post:
    """A message of the bot that stands in a chat. styles: of Telegram, what each piece of the text is shown as."""

    id: str
    text: str
    styles: tuple[tuple[str, str], ...] = ()
    file: str = ""
    reply_to: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one question led to in its chat. calls: visible ones in order, as (send, edit or delete, id, text)."""

    posts: list[Post]
    calls: list[tuple[str, str, str]]
    asked: str = ""

    @property
    def texts(self) -> list[str]:
        return [post.text for post in self.posts if not post.file or post.text]

    @property
    def files(self) -> list[str]:
        return [post.file for post in self.posts if post.file]

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, *_ in self.calls]

    @property
    def edits(self) -> int:
        return self.kinds.count("edit")


class Pace(Gate):
    """A model that writes one delta at each tick of a clock that tests move. tick: seconds."""

    def __init__(self, time: Time, tick: float) -> None:
        super().__init__()
        self._time = time
        self._tick = tick

    async def wait(self) -> None:
        now = self._time.monotonic()
        await self._time.sleep(self._tick - now % self._tick)


Steps = Sequence[Written | Reply]


@dataclass(frozen=True, slots=True)
class Chat:
    """Direct messages with one person. raw: the room as the stand-in has it."""

    person: Any
    id: str
    raw: Any


@dataclass
class Player:
    """All that is asked and answered. stage: of the service; slow: seconds that the model takes for a delta."""

    stage: Stage
    sides: Mapping[str, Side]
    model: ModelServer
    slow: float = 0
    chats: dict[tuple[str, str], Chat] = field(default_factory=dict)
    asked: dict[tuple[str, str], str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    _questions: int = 0
    _steps: dict[tuple[str, str], list[Written | Reply]] = field(default_factory=dict)

    def answer(self, request: Request) -> Written:
        """What the model says next to the case that a request belongs to."""
        texts = [str(one["content"]) for one in request.messages if one["role"] == "user"]
        found = [key for text in reversed(texts) for key in reversed(_ASKED.findall(text))]
        key = found[0]
        left = self._steps[key]
        if not left:
            self.wrong.append(f"{key}: asked once more, after {texts[-1][:300]!r}")
            return []
        step = left[0] if isinstance(left[0], Continuer) else left.pop(0)
        parts = answer_of(step(request) if callable(step) else step)
        return self._paced(parts) if self.slow else parts

    def _paced(self, parts: Answer) -> Answer:
        pace = Pace(self.stage.time, self.slow)
        return tuple(replace(part, gate=part.gate or pace) if isinstance(part, Say) else part for part in parts)

    def ask(self, platform: str, name: str, steps: Steps) -> None:
        """Somebody new writes."""
        self.chats[platform, name] = _newcomer(self.sides[platform], len(self.chats))
        self.go_on(platform, name, steps)

    def go_on(self, platform: str, name: str, steps: Steps) -> None:
        """The same person writes once more, and is answered so."""
        self.prepare(platform, name, steps)
        self.asked[platform, name] = _writes(self.sides[platform], self.chats[platform, name], f"{platform}/{name}")
        self._questions += 1

    def prepare(self, platform: str, name: str, steps: Steps) -> None:
        """Whatever names the case to the model is answered so."""
        # what counts its cuts counts them for each
        self._steps[platform, name] = [copy.deepcopy(one) if isinstance(one, Continuer) else one for one in steps]

    def room_of(self, platform: str, name: str) -> Path:
        """The folder of that person's conversation, unless they are an owner."""
        room = self.stage.home / "workspace" / "people" / f"{platform}-{self.chats[platform, name].person.id}"
        room.mkdir(parents=True, exist_ok=True)
        return room

    async def rest(self, *, passing: bool = False) -> None:
        """Return when everything is answered; time goes on meanwhile when told, or where the model takes its time."""

        def ready() -> bool:
            accepted = len(self.stage.stored.messages("seq", kind="message"))
            return accepted >= self._questions and self.stage.at_rest()

        await (self.stage.passing if self.slow or passing else self.stage.until)(ready, "all answers")

    def die(self) -> None:
        """The process of the service is dead from here on; to be followed by the end of `stage.serving()`."""
        self.stage.dead = True

    async def all(self, cases: Iterable[tuple[str, Steps]]) -> dict[tuple[str, str], Seen]:
        """Each case on each platform, all at once."""
        for name, steps in cases:
            for platform in PLATFORMS:
                self.ask(platform, name, steps)
        return await self.results()

    async def results(self) -> dict[tuple[str, str], Seen]:
        """What everything that was asked has led to."""
        await self.rest()
        return {key: self.seen(*key) for key in self.chats}

    def fail_edit(self, platform: str, name: str, *, throttled: float = 0) -> Any:
        """The next edit there is refused, or comes too early by so many seconds."""
        server, chat = self.sides[platform].server, self.chats[platform, name].id
        match platform:
            case "telegram":
                status = {"status": 429, "retry_after": throttled} if throttled else {"status": 500}
                return server.fail_next("editMessageText", chat_id=int(chat), **status)
            case "discord":
                # the library waits by itself, by the machine's clock
                status = {"status": 429, "retry_after": 0.05} if throttled else {"status": 400}
                return server.fail_next(f"PATCH /channels/{chat}/messages/*", **status)
            case _:
                error = {"error": "ratelimited", "retry_after": throttled} if throttled else {"error": "internal_error"}
                return server.fail_next("chat.update", channel=chat, **error)

    def seen(self, platform: str, name: str) -> Seen:
        """What stands in the chat of a case, and how that came about."""
        side, chat = self.sides[platform], self.chats[platform, name]
        return Seen(_posts(side, chat), _calls(side, chat), self.asked[platform, name])


def _newcomer(side: Side, number: int) -> Chat:
    match side.name:
        case "telegram":
            person: Any = telegram_updates.Person(600_000_000 + number, f"Person{number}")
            return Chat(person, str(person.id), private(person))
        case "discord":
            person = discord.Person(90_000_000_000_000_000 + number, f"person{number}")
            raw = side.server.open_dm(person)
            return Chat(person, raw["id"], raw)
        case _:
            person = slack.Person(f"U0NEW{number:05}", f"person{number}", f"Person {number}")
            side.server.people.setdefault(person.id, person)
            raw = side.server.im(person.id)
            return Chat(person, raw.id, raw)


def _writes(side: Side, chat: Chat, text: str) -> str:
    match side.name:
        case "telegram":
            said = side.server.write(text, user=chat.person, chat=chat.raw)
            return str(said["message"]["message_id"])
        case "discord":
            return str(side.server.say(chat.raw, chat.person, text)["id"])
        case _:
            return str(side.server.say(chat.raw, chat.person, text)["ts"])


def _posts(side: Side, chat: Chat) -> list[Post]:
    match side.name:
        case "telegram":
            kept = [one for (where, _), one in sorted(side.server.messages.items()) if str(where) == chat.id]
            return [_telegram(one) for one in kept if one.get("from", {}).get("is_bot")]
        case "discord":
            mine = [one for one in side.server.messages(chat.raw) if one["author"]["id"] == str(discord.HARK.id)]
            return [
                Post(
                    one["id"],
                    _ESCAPED.sub(r"\1", one["content"]),
                    file="".join(file["filename"] for file in one["attachments"]),
                    reply_to=(one.get("message_reference") or {}).get("message_id", ""),
                )
                for one in mine
            ]
        case _:
            mine = [one for one in side.server.messages(chat.raw) if one.get("user") == slack.BOT]
            return [_slack(one) for one in mine]


def _telegram(kept: Json) -> Post:
    text: str = kept.get("text") or kept.get("caption") or ""
    units = text.encode("utf-16-le")
    entities: list[Json] = kept.get("entities") or kept.get("caption_entities") or []
    styles = tuple(
        (one["type"], units[2 * one["offset"] : 2 * (one["offset"] + one["length"])].decode("utf-16-le"))
        for one in entities
    )
    reply = str(kept.get("reply_to_message", {}).get("message_id", ""))
    return Post(str(kept["message_id"]), text, styles, kept.get("document", {}).get("file_name", ""), reply)


def _slack(kept: Json) -> Post:
    text = slack_blocks.shown(kept.get("text", ""), kept.get("blocks") or [])
    return Post(kept["ts"], html.unescape(text), file="".join(one["name"] for one in kept.get("files") or ()))


def _calls(side: Side, chat: Chat) -> list[tuple[str, str, str]]:
    found = []
    for one in side.server.sent:
        where = str(getattr(one, "chat_id", None) or getattr(one, "channel_id", None) or getattr(one, "channel", ""))
        if where != chat.id:
            continue
        kind = "send" if one.method in _SPOKEN else "delete" if "delete" in one.method.lower() else "edit"
        if one.method in ("react", "unreact", "setMessageReaction") or "reactions" in one.method:
            continue
        ident = str(getattr(one, "message_id", None) or getattr(one, "ts", ""))
        found.append((kind, ident, getattr(one, "shown", "") or one.text))
    return found


@contextlib.asynccontextmanager
async def answering(home: Path, mode: str, **streaming: Any) -> AsyncIterator[Player]:
    """A stage with all platforms and a model; the service on it is begun by `player.stage.serving()`."""
    changes, made, options = MODES[mode]
    section = {"streaming": changes | streaming, "dm": {"policy": "open"}}
    api, name = _MODELS[made]
    async with contextlib.AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            staged(
                "telegram",
                home,
                section=section,
                agent={"max_concurrent": 64, "thinking": "off", "model": f"house/{name}"},
            )
        )
        model = await stack.enter_async_context(made(keys=["house-key"], clock=stage.time.monotonic, **options))
        stage.stored = Stored(stage.home / "state")
        stack.callback(lambda: stage.stored.close())
        others = [await stack.enter_async_context(SIDES[one](stage.time)) for one in PLATFORMS[1:]]
        stage.beside = tuple(others)
        base = model.url if api == "anthropic" else f"{model.url}/v1"
        stage.changes |= {
            "providers": {"house": {"api": api, "base_url": base, "api_keys": ["house-key"]}},
            "channels": {one.name: {**one.section(), **section} for one in others},
            # so that nobody has to be an owner
            "tools": {"by_sender": {f"{platform}:*": {"profile": "full"} for platform in PLATFORMS}},
        }
        stage.given = {"model": None}
        player = Player(stage, {side.name: side for side in (stage.side, *others)}, model)
        model.default = player.answer
        for side in player.sides.values():
            side.may_break()
        yield player

"""Calls that ask a person, on all platforms at once: who says what where, what they see, and what they press.

    async with court(tmp_path) as at, at.serving():
        talk = at.meets("telegram")
        at.says(talk, "mail", run("sendmail bob"))
        card = await at.card(talk, "mail")
        at.press(card, ONCE)
        await at.answered(talk, "mail")

The model is a stand-in over HTTP that goes by what it was asked last, so that a crash makes it say the same again. What
people see is read from the stand-ins' own chats.
"""

import contextlib
import copy
import html
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bot.service import Service
from tests.standins import discord_objects as discord
from tests.standins import slack_blocks, telegram_updates
from tests.standins import slack_shapes as slack
from tests.standins.discord_ledger import Rule as DiscordRule
from tests.standins.discord_world import id_of
from tests.standins.request_log import Request, text_of
from tests.standins.script import Call, Written
from tests.standins.slack_ledger import Rule as SlackRule
from tests.standins.telegram_ledger import Rule as TelegramRule
from tests.standins.telegram_updates import private
from tests.wire.answers import PLATFORMS, Player, answering
from tests.wire.platforms import Json, Side
from tests.wire.stage import Stage

OWNERS = 200
"""Of the people that the bot meets, so many are owners; those numbered higher are not."""
ONCE, ALWAYS, DENY = "Allow once", "Always allow", "Deny"
_NAMED = re.compile(rf"({'|'.join(PLATFORMS)})/([\w-]+)")
_ID = re.compile(r"/(?:hark )?approve ([0-9a-fA-F-]{4,36}) once")
_ESCAPED = re.compile(r"\\([^A-Za-z0-9\s])")
Steps = Sequence[Written | Callable[[Request], Written]]


def run(command: str, **more: Any) -> Call:
    """The model calls exec, for the host unless something else is said."""
    return Call("exec", {"command": command, "needs": "host", **more})


@dataclass(frozen=True)
class Talk:
    """A conversation, and who speaks in it. thread: on Slack the message below which it is."""

    side: Side
    person: Any
    raw: Any
    thread: str = ""

    @property
    def platform(self) -> str:
        return self.side.name


@dataclass(frozen=True)
class Card:
    """A message of the bot with its buttons, as it stands there. raw: as the stand-in keeps it."""

    talk: Talk
    id: str
    text: str
    buttons: Mapping[str, Any]
    raw: Any

    @property
    def name(self) -> str:
        """The id of the request as people are told it."""
        found = _ID.search(self.text)
        assert found, f"no `/approve <id> once` in {self.text!r}"
        return found[1]


@dataclass
class Court:
    """Everything. results: of a case what the model was told of its calls."""

    play: Player
    scripts: dict[tuple[str, str], Steps] = field(default_factory=dict)
    requests: dict[tuple[str, str], list[Request]] = field(default_factory=lambda: defaultdict(list))
    interactions: dict[str, Json] = field(default_factory=dict)
    known: int = 0

    @property
    def stage(self) -> Stage:
        return self.play.stage

    @property
    def workspace(self) -> Path:
        return Path(self.stage.home / "workspace")

    def side(self, platform: str) -> Side:
        return self.play.sides[platform]

    # The model.

    def answer(self, request: Request) -> Written:
        """What the model says next to what it was asked last."""
        key, at = self.named(request)
        if key is None:
            return "I do not know what you mean."
        self.requests[key].append(request)
        step = sum(one["role"] == "assistant" for one in request.messages[at:])
        steps = self.scripts.get(key, ())
        if step >= len(steps):
            return f"over {key[0]}/{key[1]}"
        said = steps[step]
        if callable(said):
            return said(request)
        return said

    def named(self, request: Request) -> tuple[tuple[str, str] | None, int]:
        """The case that a request belongs to, and where it begins."""
        for at in range(len(request.messages) - 1, -1, -1):
            message = request.messages[at]
            found = _NAMED.findall(text_of(message["content"])) if message["role"] == "user" else None
            if found:
                return found[-1], at
        return None, 0

    def results(self, talk: Talk, name: str) -> list[str]:
        """What the model was told of the calls of a case, oldest first."""
        asked = self.requests[talk.platform, name]
        if not asked:
            return []
        request = asked[-1]
        _, at = self.named(request)
        blocks = [
            block
            for message in request.messages[at:]
            if message["role"] == "user" and isinstance(message["content"], list)
            for block in message["content"]
        ]
        return [text_of(block.get("content")) for block in blocks if block.get("type") == "tool_result"]

    # People.

    def person(self, platform: str, number: int) -> Any:
        match platform:
            case "telegram":
                return telegram_updates.Person(600_000_000 + number, f"Person{number}")
            case "discord":
                return discord.Person(90_000_000_000_000_000 + number, f"person{number}")
            case _:
                return slack.Person(f"U0NEW{number:05}", f"person{number}", f"Person {number}")

    def room_of(self, talk: Talk) -> Path:
        """The folder of a conversation, with something to count: of what is written in the room, of owners' direct
        messages, or of those of somebody else."""
        platform, room = talk.platform, self.workspace
        if talk.raw is talk.side.room:
            room /= f"groups/{platform}-{talk.side.id_of(talk.raw)}"
        elif f"{platform}:{talk.person.id}" not in self.stage.changes["owners"]:
            room /= f"people/{platform}-{talk.person.id}"
        (room / "tally").mkdir(parents=True, exist_ok=True)
        (room / "seed").write_text("seed")
        return room

    def meets(self, platform: str, *, owner: bool = True) -> Talk:
        """Direct messages with somebody new."""
        number = self.known + (0 if owner else OWNERS)
        self.known += 1
        assert self.known < OWNERS
        return self.direct(platform, self.person(platform, number))

    def direct(self, platform: str, person: Any) -> Talk:
        """Direct messages with them."""
        side = self.side(platform)
        match platform:
            case "telegram":
                return Talk(side, person, private(person))
            case "discord":
                return Talk(side, person, side.server.open_dm(person))
            case _:
                side.server.people.setdefault(person.id, person)
                return Talk(side, person, side.server.im(person.id))

    def named_as(self, person: Any) -> tuple[str, ...]:
        """What may stand for somebody in a text."""
        fields = ("id", "name", "first_name", "real_name", "username", "global_name")
        return tuple(str(found) for one in fields if (found := getattr(person, one, None)))

    def write(self, talk: Talk, text: str, *, reply_to: str = "") -> str:
        """They write; the id of the message. reply_to: below, or to, a message of that id."""
        server = talk.side.server
        match talk.platform:
            case "telegram":
                reply = {"reply_to": int(reply_to)} if reply_to else {}
                return str(server.write(text, user=talk.person, chat=talk.raw, **reply)["message"]["message_id"])
            case "discord":
                more = {"reply_to": {"id": reply_to}} if reply_to else {}
                return str(server.say(talk.raw, talk.person, text, **more)["id"])
            case _:
                below = reply_to or talk.thread
                return str(server.say(talk.raw, talk.person, text, thread_ts=below or None)["ts"])

    def says(self, talk: Talk, name: str, *steps: Any, text: str = "") -> str:
        """They write what names a case, to which the model answers so; in the end with `over <platform>/<name>`."""
        self.room_of(talk)
        self.scripts[talk.platform, name] = steps
        return self.write(talk, f"{text}{talk.platform}/{name}")

    def asks(self, talk: Talk, name: str) -> str:
        """They write, and the model wants to run what can be counted."""
        return self.says(talk, name, run(self.tally(talk, name)))

    def in_room(self, platform: str, who: str) -> Talk:
        """Alice, Bob or Carol in the room that is let in."""
        side = self.side(platform)
        return Talk(side, side.people[who], side.room)  # type: ignore[attr-defined]

    def asks_in_room(self, platform: str, who: str, name: str, *steps: Any) -> Talk:
        """Somebody there names the bot."""
        self.room_of(self.in_room(platform, who))
        self.scripts[platform, name] = steps
        said = self.side(platform).say(f"{platform}/{name}", who, self.side(platform).room, mention=True)  # type: ignore[arg-type]
        talk = self.in_room(platform, who)
        return Talk(talk.side, talk.person, talk.raw, said.id if platform == "slack" else "")

    def native(self, talk: Talk, text: str) -> None:
        """They type a command of the platform's own kind; text begins with a slash."""
        server = talk.side.server
        match talk.platform:
            case "telegram":
                self.write(talk, text)
            case "discord":
                name, *words = text.removeprefix("/").split(" ", 2)
                (listed,) = (one for one in server.commands[""].values() if one["name"] == name)
                options = (one["name"] for one in listed.get("options") or ())
                server.slash(talk.person, talk.raw, name, dict(zip(options, words, strict=False)))
            case _:
                server.slash(talk.raw, talk.person, text.removeprefix("/"))

    # What they see.

    def cards(self, talk: Talk) -> list[Card]:
        """The messages of the bot that stand in a conversation, oldest first."""
        server = talk.side.server
        match talk.platform:
            case "telegram":
                kept = [one for (where, _), one in sorted(server.messages.items()) if where == talk.raw.id]
                mine = [one for one in kept if one.get("from", {}).get("is_bot")]
                return [self._telegram(talk, one) for one in mine]
            case "discord":
                kept = server.stored[talk.raw["id"]].values()
                mine = [one for one in kept if one["author"]["id"] == str(discord.HARK.id)]
                return [self._discord(talk, one) for one in mine]
            case _:
                kept = server.kept[talk.raw.id]
                mine = [kept[ts] for ts in sorted(kept, key=float) if kept[ts].get("user") == slack.BOT]
                return [self._slack(talk, one) for one in mine]

    def _telegram(self, talk: Talk, kept: Json) -> Card:
        rows = kept.get("reply_markup", {}).get("inline_keyboard", [])
        buttons = {one["text"]: one["callback_data"] for row in rows for one in row}
        text = kept.get("text") or kept.get("caption") or ""
        return Card(talk, str(kept["message_id"]), text, buttons, kept)

    def _discord(self, talk: Talk, kept: Json) -> Card:
        inner = [one for row in kept["components"] for one in row.get("components", ())]
        buttons = {one["label"]: one["custom_id"] for one in inner if not one.get("disabled")}
        return Card(talk, kept["id"], _ESCAPED.sub(r"\1", kept["content"]), buttons, kept)

    def _slack(self, talk: Talk, kept: Json) -> Card:
        blocks = kept.get("blocks") or []
        text = slack_blocks.shown(kept.get("text", ""), blocks)
        if not any(block["type"] == "rich_text" for block in blocks):  # in which nothing is escaped
            text = html.unescape(text)
        buttons = {one["text"]["text"]: one["action_id"] for one in talk.side.server.buttons_of(kept)}
        return Card(talk, kept["ts"], text, buttons, kept)

    def texts(self, talk: Talk) -> list[str]:
        """What the bot's messages there say now."""
        return [card.text for card in self.cards(talk)]

    def now(self, card: Card) -> Card:
        """The same message as it is at the moment."""
        (found,) = (one for one in self.cards(card.talk) if one.id == card.id)
        return found

    def whispers(self, talk: Talk) -> list[str]:
        """What they alone are shown: behind a click, or for a moment."""
        server = talk.side.server
        match talk.platform:
            case "telegram":
                calls = [one for one in server.ledger.calls if one.method == "answerCallbackQuery"]
                return [one.params["text"] for one in calls if one.params.get("text")]
            case "discord":
                return []  # nothing that Hark says there is for one person alone
            case _:
                return [one.shown for one in server.sent if one.only_to == talk.person.id]

    def said(self, talk: Talk) -> list[str]:
        """All that they can read, in no order: messages as they are now, and what was whispered."""
        return [*self.texts(talk), *self.whispers(talk)]

    async def card(self, talk: Talk, name: str, *, ident: str = "") -> Card:
        """The message with buttons that has these words, once it is there. ident: another one than that of this id."""

        def found() -> list[Card]:
            return [one for one in self.cards(talk) if one.buttons and name in one.text and one.id != ident]

        await self.until(found, f"a request about {name!r} on {talk.platform}", talk)
        return as_it_is(found()[-1])

    async def answered(self, talk: Talk, name: str, *, most: float = 0.0) -> None:
        """Return when the answer to a case is there."""
        await self.until(lambda: self.over(talk, name), f"the end of {talk.platform}/{name}", talk, most)

    async def resolved(self, card: Card, *, most: float = 0.0) -> Card:
        """The same message once it has other buttons, or none."""
        await self.until(lambda: self.now(card).buttons != card.buttons, f"the edit of {card.text!r}", card.talk, most)
        return as_it_is(self.now(card))

    async def told(self, talk: Talk, before: Sequence[str], what: str = "to be told something") -> str:
        """What they can read beyond what was there before."""

        def new() -> list[str]:
            return list((Counter(self.said(talk)) - Counter(before)).elements())

        await self.until(new, what, talk)
        return "\n".join(new())

    async def until(
        self, condition: Callable[[], object], what: str, talk: Talk | None = None, most: float = 0.0
    ) -> None:
        """Return when it holds; at most so many seconds pass meanwhile on the clock of the service."""
        try:
            await self.stage.passing(condition, what, most)
        except AssertionError as error:
            seen = "\n--\n".join(self.texts(talk)) if talk else ""
            raise AssertionError(f"{what} did not come; there stands:\n{seen}\n{error}") from None

    async def quiet(self) -> None:
        """Return when everything that was said by now has been taken, and nothing is under way."""
        talk = self.meets("telegram")
        for platform in PLATFORMS:
            talk = self.meets(platform)
            name = f"quiet-{self.known}"
            self.says(talk, name)
            await self.answered(talk, name)
        # What was cut in the midst of a send is sent again after a pause.
        await self.until(lambda: not self.stage.stored.open_deliveries(), "deliveries", most=60.0)

    # What they do.

    def press(self, card: Card, label: str, person: Any = None) -> Any:
        """Somebody presses a button below a message as it was when the card was read, whatever stands there now."""
        server, person = card.talk.side.server, person or card.talk.person
        assert label in card.buttons, f"no {label!r} among {list(card.buttons)}"
        match card.talk.platform:
            case "telegram":
                return server.click(int(card.id), card.buttons[label], user=person, chat=card.talk.raw)
            case "discord":
                kept = server.stored[id_of(card.talk.raw)]
                with _instead(kept, card.id, card.raw):
                    return server.click(person, card.raw, card.buttons[label])
            case _:
                with _instead(server.kept[card.talk.raw.id], card.id, card.raw):
                    return server.click(card.talk.raw, card.raw, card.buttons[label], person)

    def replay(self, card: Card, pressed: Any) -> None:
        """The platform brings the same click again."""
        server = card.talk.side.server
        match card.talk.platform:
            case "telegram":
                server.repeat(pressed)
            case "discord":
                server.push_raw("INTERACTION_CREATE", self.interactions[pressed.id])
            case _:
                server.push(copy.deepcopy(pressed.payload), "interactive")

    def _keep_interactions(self) -> None:
        server = self.side("discord").server
        emit = server.emit

        def keeping(event: str, data: Json, **more: Any) -> None:
            if event == "INTERACTION_CREATE":
                self.interactions[data["id"]] = copy.deepcopy(data)
            emit(event, data, **more)

        server.emit = keeping

    def over(self, talk: Talk, name: str) -> bool:
        """Whether a case is answered."""
        return any(f"over {talk.platform}/{name}" in text for text in self.texts(talk))

    def may_repeat(self) -> None:
        """In this test the same sentence may be said twice in one place."""
        self.side("telegram").server.tolerate(TelegramRule.REPEATED_TEXT)
        self.side("discord").server.tolerate(DiscordRule.REPEATED_TEXT)
        self.side("slack").server.tolerate(SlackRule.REPEATED_TEXT)

    # What was done.

    def tally(self, talk: Talk, name: str) -> str:
        """A command that is not allowed by itself, and of which one can count how often it ran."""
        self.room_of(talk)
        return f"cp -v --backup=numbered seed tally/{talk.platform}-{name}"

    def ran(self, talk: Talk, name: str) -> int:
        """How often that was."""
        found = f"tally/{talk.platform}-{name}"
        return len([*self.workspace.rglob(found), *self.workspace.rglob(f"{found}.~*~")])

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[Service]:
        """The service."""
        async with self.stage.serving() as service:
            yield service

    def die(self) -> None:
        """The process is dead from here on."""
        self.play.die()


def as_it_is(card: Card) -> Card:
    """The card, whatever becomes of the message."""
    return replace(card, raw=copy.deepcopy(card.raw))


@contextlib.contextmanager
def _instead(kept: dict[str, Json], key: str, raw: Json) -> Any:
    """What stands there is what stood there."""
    now = kept[key]
    kept[key] = copy.deepcopy(raw)
    try:
        yield
    finally:
        kept[key] = now


def _owners() -> list[str]:
    found = [f"telegram:{600_000_000 + n}" for n in range(OWNERS)]
    found += [f"discord:{90_000_000_000_000_000 + n}" for n in range(OWNERS)]
    found += [f"slack:U0NEW{n:05}" for n in range(OWNERS)]
    return found


@contextlib.asynccontextmanager
async def court(
    home: Path,
    *,
    owners: Sequence[str] | None = None,
    group: Callable[[Side], Json] = lambda side: {},
    alone: bool = False,
    **changes: Any,
) -> AsyncIterator[Court]:
    """A stage with all platforms and a model, and a workspace with something to count.

    owners: None: Alice of each platform, and the first of those that it meets. group: what the configuration says of
    the room. alone: on Telegram only, which starts sooner. changes: of the rest of it.
    """
    async with answering(home, "off") as play:
        found = Court(play)
        play.model.default = found.answer
        play.model.tolerate("prefix changed")  # requests of several conversations look alike to the stand-in
        alices = [f"{side.name}:{side.alice}" for side in play.sides.values()]
        play.stage.changes["owners"] = [*alices, *_owners()] if owners is None else list(owners)
        sections = {"telegram": play.stage.changes["section"], **play.stage.changes["channels"]}
        for name, section in sections.items():
            side = play.sides[name]
            section["groups"] = {"allow": {side.id_of(side.room): group(side)}}
        if alone:
            play.stage.beside, play.stage.changes["channels"] = (), {}
        for key, value in changes.items():
            before = play.stage.changes.get(key, {})
            play.stage.changes[key] = {**before, **value} if isinstance(value, Mapping) else value
        found.workspace.mkdir()
        found._keep_interactions()
        yield found

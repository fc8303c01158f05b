"""The platforms of the contract suite: one `Side` each, over its strict stand-in, with the same words for all."""

import re
import time as machine
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from bot.service import Service
from channels.base import Channel, Times
from channels.discord.adapter import DiscordChannel
from channels.discord.settings import DiscordAccount
from channels.failures import Rates
from channels.slack.adapter import SlackChannel
from channels.slack.settings import SlackAccount
from channels.telegram.adapter import TelegramChannel
from channels.telegram.settings import TelegramAccount
from tests.channels.sections import account
from tests.standins import discord_objects, slack_shapes, telegram_updates
from tests.standins.discord_files import File as DiscordFile
from tests.standins.discord_ledger import Rule as DiscordRule
from tests.standins.discord_server import DiscordServer
from tests.standins.discord_world import id_of
from tests.standins.slack_ledger import Rule as SlackRule
from tests.standins.slack_server import SlackServer
from tests.standins.telegram_ledger import Rule as TelegramRule
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import Room, private
from tests.watch import PATIENCE, ManualTime

Json = dict[str, Any]
Who = Literal["alice", "bob", "carol"]
FREE = Rates(chat_interval=0.0, group_per_minute=10_000, per_second=10_000)


@dataclass(frozen=True, slots=True)
class Said:
    """What a person wrote. id: the platform's of the message; raw: what the stand-in gave back."""

    id: str
    raw: Any
    room: Any = None


class Side:
    """One platform. room: a group in which the bot is, other: one that is not let in. alice, bob: ids of people.

    acknowledges: whether the platform is told that an event has arrived, and brings it again until then. replays: what
    is said while nobody is connected comes by itself; else its history is read. deletes: whether it tells of deletions.
    knows_sends: whether a send whose outcome was unknown can be found out about. tells_firsts: whether somebody's first
    direct message is found after the fact.
    """

    name: ClassVar[str]
    acknowledges: ClassVar[bool] = True
    replays: ClassVar[bool] = False
    deletes: ClassVar[bool] = True
    knows_sends: ClassVar[bool] = True
    tells_firsts: ClassVar[bool] = True
    alice: ClassVar[str]
    bob: ClassVar[str]
    server: Any

    def __init__(self, time: ManualTime) -> None:
        self.time = time
        self.room: Any = None
        self.other: Any = None

    def _clocks(self) -> Json:
        return {"clock": self.time.monotonic, "wall": lambda: self.time.now() / 1000}

    async def __aenter__(self) -> Self:
        await self.server.start()
        self.furnish()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()

    def furnish(self) -> None:
        """Make the rooms."""

    async def connect(self, service: Service) -> None:
        """What has to be done by hand once the service receives."""

    def channel(self, times: Times) -> Channel:
        """Its adapter, with settings for loopback and impatient people."""
        raise NotImplementedError

    def section(self) -> Json:
        """What the configuration says of it without further wishes."""
        allow = {self.id_of(self.room): {}}
        return {"enabled": False, "dm": {"allow_from": [self.alice, self.bob]}, "groups": {"allow": allow}}

    def id_of(self, room: Any) -> str:
        """The id of a room in the configuration."""
        raise NotImplementedError

    def say(
        self, text: str, who: Who = "alice", room: Any = None, *, mention: bool = False, thread: Any = None, **more: Any
    ) -> Said:
        """Somebody writes, directly without a room. thread: what `thread` or a message gave."""
        raise NotImplementedError

    def reply(self, text: str, to: str, who: Who = "alice", room: Any = None) -> Said:
        """Somebody replies to a message of that id."""
        raise NotImplementedError

    def edit(self, said: Said, text: str) -> None:
        """Its author edits a message."""
        raise NotImplementedError

    def delete(self, said: Said) -> None:
        """Its author deletes a message."""
        raise NotImplementedError

    def command(self, text: str, who: Who = "alice") -> None:
        """Somebody types a command of the platform's own kind, directly; text begins with a slash."""
        raise NotImplementedError

    def click(self, number: int, who: Who = "alice") -> None:
        """Somebody presses the button of that number below the last message with buttons in direct messages."""
        raise NotImplementedError

    def attach(self, name: str, data: bytes, text: str = "") -> Said:
        """Alice sends a file directly."""
        raise NotImplementedError

    def repeat(self, said: Said) -> None:
        """The platform brings an event again."""
        raise NotImplementedError

    def again(self) -> None:
        """The platform's time for bringing again what was not acknowledged has come."""

    def posts(self, room: Any = None, thread: Any = None, who: Who = "alice") -> list[str]:
        """What the bot said there, in order; directly without a room."""
        raise NotImplementedError

    def posted_ids(self, room: Any = None) -> list[str]:
        """The ids of those messages."""
        raise NotImplementedError

    def marks(self, said: Said) -> list[str]:
        """The bot's reactions that stand at a message."""
        raise NotImplementedError

    @property
    def open(self) -> bool:
        """Whether something was brought and is not acknowledged."""
        return False

    def fail_send(self, *, applied: bool, times: int = 1) -> Any:
        """The connection of the next send breaks, after it was carried out or before."""
        raise NotImplementedError

    def flood(self, who: Who) -> Any:
        """The next send to somebody directly is answered with 429; `fired` of what is returned tells when."""
        raise NotImplementedError

    def impatient(self) -> None:
        """From the next start on a server that says nothing is soon left."""

    def cut(self) -> None:
        """The connection breaks, as on the way."""
        raise NotImplementedError

    async def renew(self) -> None:
        """The platform has the connection made anew, and forgets what the old one was told."""
        self.cut()

    def hold_history(self) -> Any:
        """The next look into a history waits until `release()` of what is returned, whose `reached` tells of it."""
        raise NotImplementedError

    def fail_history(self) -> Any:
        """The connection of the next look into a history breaks."""
        raise NotImplementedError

    def fall_silent(self) -> Callable[[], None]:
        """The server takes everything and says nothing, until what is returned is called."""
        raise NotImplementedError

    def shown(self) -> list[str]:
        """All texts that the bot has shown anywhere, edits and answers to commands included."""
        return [getattr(one, "shown", "") or one.text for one in self.server.sent]

    def files(self) -> list[tuple[str, int]]:
        """Name and size of the files that the bot has sent."""
        raise NotImplementedError

    def signs(self) -> int:
        """How often the bot showed that it is at work."""
        raise NotImplementedError

    def loud(self) -> list[Any]:
        """Whom its messages pinged, and the links of which they show a preview."""
        raise NotImplementedError

    def bot_says(self, text: str, room: Any) -> None:
        """Another bot mentions this one; nothing where the platform keeps bots apart."""

    def answers_below(self, said: Said) -> Any:
        """The thread in which a mention in a room is answered; None: where it was said."""

    def listed(self) -> bool:
        """Whether the platform knows the bot's commands."""
        return True

    def over(self) -> None:
        """The answer to Alice is complete: nothing may look like work any more."""

    def somebody_else(self) -> str:
        """How one names somebody who is not the bot."""
        raise NotImplementedError

    def change_token(self) -> None:
        """The token that the bot has is not good any more."""
        raise NotImplementedError

    def may_double(self, *texts: str) -> None:
        """The test knows that these may stand there twice."""
        for text in texts:
            self.server.allow_repeat(text)

    def may_break(self) -> None:
        """The test cuts off where typing signs and the like stay behind."""


class Telegram(Side):
    """By long polls."""

    name = "telegram"
    replays = True
    deletes = False
    knows_sends = False
    alice = str(telegram_updates.ALICE.id)
    bob = str(telegram_updates.BOB.id)
    people: ClassVar[Mapping[str, Any]] = {
        "alice": telegram_updates.ALICE,
        "bob": telegram_updates.BOB,
        "carol": telegram_updates.Person(713_456_789, "Carol"),
    }

    def __init__(self, time: ManualTime) -> None:
        super().__init__(time)
        self.server = TelegramServer(**self._clocks())

    def furnish(self) -> None:
        self.room = Room(-1_001_222_333_444, "supergroup", "Workshop", topics=frozenset({7, 8}))
        self.topics = iter((7, 8))
        self.other = Room(-1_001_222_333_555, "supergroup", "Street")
        self.server.bot["can_read_all_group_messages"] = True

    def channel(self, times: Times) -> Channel:
        server = self.server
        return TelegramChannel(
            account(
                TelegramAccount,
                token=server.token,
                base_url=server.base_url,
                base_file_url=server.base_file_url,
                rates=FREE,
            ),
            times,
        )

    def id_of(self, room: Any) -> str:
        return str(room.id)

    def _where(self, who: Who, room: Any) -> tuple[Any, Any]:
        person = self.people[who]
        return person, private(person) if room is None else room

    def say(
        self, text: str, who: Who = "alice", room: Any = None, *, mention: bool = False, thread: Any = None, **more: Any
    ) -> Said:
        person, chat = self._where(who, room)
        words = f"@{telegram_updates.BOT_NAME} {text}" if mention else text
        update = self.server.write(words, user=person, chat=chat, thread_id=thread, **more)
        return Said(str(update["message"]["message_id"]), update, room)

    def reply(self, text: str, to: str, who: Who = "alice", room: Any = None) -> Said:
        person, chat = self._where(who, room)
        update = self.server.write(text, user=person, chat=chat, reply_to=int(to))
        return Said(str(update["message"]["message_id"]), update, room)

    def thread(self, said: Said) -> Any:
        """A topic of the forum; those are there already."""
        return next(self.topics)

    def edit(self, said: Said, text: str) -> None:
        self.server.edit(said.raw, text)

    def command(self, text: str, who: Who = "alice") -> None:
        self.say(text, who)

    def click(self, number: int, who: Who = "alice") -> None:
        person, chat = self._where(who, None)
        shown = [one for one in self.server.sent if one.chat_id == chat.id and "reply_markup" in one.params]
        rows = shown[-1].params["reply_markup"]["inline_keyboard"]
        button = [one for row in rows for one in row][number]
        self.server.click(shown[-1].message_id, button["callback_data"], user=person)

    def attach(self, name: str, data: bytes, text: str = "") -> Said:
        update = self.server.attach("document", data, caption=text or None)
        update["message"]["document"] |= {"file_name": name, "mime_type": "text/plain"}
        return Said(str(update["message"]["message_id"]), update)

    def repeat(self, said: Said) -> None:
        self.server.repeat(said.raw)

    def posts(self, room: Any = None, thread: Any = None, who: Who = "alice") -> list[str]:
        chat = self._where(who, room)[1].id
        sent = [one for one in self.server.sent if one.method == "sendMessage" and one.chat_id == chat]
        return [one.text for one in sent if room is None or one.thread_id == thread]

    def posted_ids(self, room: Any = None) -> list[str]:
        chat = self._where("alice", room)[1].id
        return [str(one.message_id) for one in self.server.sent if one.chat_id == chat]

    def marks(self, said: Said) -> list[str]:
        chat = said.raw["message"]["chat"]["id"]
        calls = [one for one in self.server.sent if one.method == "setMessageReaction"]
        last = [one for one in calls if (one.chat_id, str(one.message_id)) == (chat, said.id)][-1:]
        return [mark["emoji"] for one in last for mark in one.params.get("reaction") or ()]

    @property
    def open(self) -> bool:
        return bool(self.server.queue)

    def fail_send(self, *, applied: bool, times: int = 1) -> Any:
        return self.server.fail_next("sendMessage", drop=True, after_apply=applied, times=times)

    def flood(self, who: Who) -> Any:
        return self.server.fail_next("sendMessage", status=429, retry_after=5, chat_id=self._where(who, None)[1].id)

    def cut(self) -> None:
        self.server.fail_next("getUpdates", drop=True)
        if self.server.poll is not None:  # the one that is held ends, so that the next one meets the fault
            self.server.push_raw({"my_unknown_kind": {}})

    def fall_silent(self) -> Callable[[], None]:
        return self.server.fall_silent().release  # type: ignore[no-any-return]

    def files(self) -> list[tuple[str, int]]:
        sent = [one for one in self.server.sent if one.method == "sendDocument"]
        stored = [self.server.messages[one.chat_id, one.message_id]["document"] for one in sent]
        return [(one["file_name"], one["file_size"]) for one in stored]

    def signs(self) -> int:
        return len([one for one in self.server.ledger.calls if one.method == "sendChatAction"])

    def loud(self) -> list[Any]:
        sent = [one for one in self.server.sent if one.method == "sendMessage"]
        return [one.text for one in sent if not one.params["link_preview_options"]["is_disabled"]]

    def over(self) -> None:
        self.server.turn_over(private(self.people["alice"]))

    def somebody_else(self) -> str:
        return "@somebody_else"

    def change_token(self) -> None:
        self.server.token = f"{telegram_updates.BOT_ID}:another"

    def may_break(self) -> None:
        self.server.tolerate(TelegramRule.LATE_TYPING)


class Slack(Side):
    """In Socket Mode."""

    name = "slack"
    alice = slack_shapes.ALICE.id
    bob = slack_shapes.BOB.id
    people: ClassVar[Mapping[str, Any]] = {
        "alice": slack_shapes.ALICE,
        "bob": slack_shapes.BOB,
        "carol": slack_shapes.Person("U0CAROL001", "carol", "Carol Cook"),
    }
    mode: ClassVar[str] = "socket"
    ping_interval = 10.0

    def __init__(self, time: ManualTime) -> None:
        super().__init__(time)
        self.server = SlackServer(**self._clocks())

    def furnish(self) -> None:
        everybody = tuple(self.people.values())
        for person in everybody:
            self.server.people.setdefault(person.id, person)
        self.room = self.server.channel("workshop", *everybody)
        self.other = self.server.channel("street", *everybody)
        for person in everybody:
            self.server.im(person.id)

    def channel(self, times: Times) -> Channel:
        server = self.server
        return SlackChannel(
            account(
                SlackAccount,
                bot_token=server.bot_token,
                app_token=server.app_token,
                signing_secret=server.signing_secret,
                base_url=server.base_url,
                mode=self.mode,
                listen={"port": 0},
                rates=FREE,
                ping_interval=self.ping_interval,
            ),
            times,
        )

    def id_of(self, room: Any) -> str:
        return str(room.id)

    def _where(self, who: Who, room: Any) -> tuple[Any, Any]:
        person = self.people[who]
        return person, self.server.im(person.id) if room is None else room

    def say(
        self, text: str, who: Who = "alice", room: Any = None, *, mention: bool = False, thread: Any = None, **more: Any
    ) -> Said:
        person, where = self._where(who, room)
        words = f"<@{slack_shapes.BOT}> {text}" if mention else text
        said = self.server.say(where, person, words, thread_ts=thread, **more)
        return Said(said["ts"], said, where)

    def reply(self, text: str, to: str, who: Who = "alice", room: Any = None) -> Said:
        return self.say(text, who, room, thread=to)

    def thread(self, said: Said) -> Any:
        """That on a message."""
        return said.id

    def edit(self, said: Said, text: str) -> None:
        self.server.edit(said.room, said.raw, text)

    def delete(self, said: Said) -> None:
        self.server.delete(said.room, said.raw)

    def command(self, text: str, who: Who = "alice") -> None:
        self.server.slash(None, self.people[who], text.removeprefix("/"))

    def click(self, number: int, who: Who = "alice") -> None:
        person, where = self._where(who, None)
        message = [one for one in self.server.messages(where) if self.server.buttons_of(one)][-1]
        self.server.click(where, message, self.server.buttons_of(message)[number]["action_id"], person)

    def attach(self, name: str, data: bytes, text: str = "") -> Said:
        person, where = self._where("alice", None)
        said = self.server.say(where, person, text, files={name: data})
        return Said(said["ts"], said, where)

    def repeat(self, said: Said) -> None:
        for one in list(self.server.outbox):
            event = one.payload.get("event", {}) if one.is_event else {}
            if event.get("ts") == said.id and event.get("type") in ("message", "app_mention"):
                self.server.repeat(one)

    def again(self) -> None:
        for seconds in (3, 60, 300):  # all that Slack tries
            self.server.advance(seconds)

    def posts(self, room: Any = None, thread: Any = None, who: Who = "alice") -> list[str]:
        where = self._where(who, room)[1]
        said = [one for one in self.server.sent if one.method in ("chat.postMessage", "response_url", "ack")]
        return [one.shown for one in said if one.channel == where.id and one.thread_ts == thread]

    def posted_ids(self, room: Any = None) -> list[str]:
        where = self._where("alice", room)[1]
        return [one.ts for one in self.server.sent if one.channel == where.id and one.method == "chat.postMessage"]

    def marks(self, said: Said) -> list[str]:
        kept = self.server.message(said.room.id, said.id)
        return [one["name"] for one in kept.get("reactions", ()) if slack_shapes.BOT in one["users"]]

    @property
    def open(self) -> bool:
        return bool(self.server.unacknowledged)

    def fail_send(self, *, applied: bool, times: int = 1) -> Any:
        return self.server.fail_next("chat.postMessage", drop=True, after_apply=applied, times=times)

    def flood(self, who: Who) -> Any:
        channel = self._where(who, None)[1].id
        return self.server.fail_next("chat.postMessage", "ratelimited", retry_after=5, channel=channel)

    def impatient(self) -> None:
        self.ping_interval = 0.2

    def cut(self) -> None:
        self.server.sockets.cut()

    def hold_history(self) -> Any:
        return self.server.hold_next("conversations.history")

    def fail_history(self) -> Any:
        return self.server.fail_next("conversations.history", drop=True, times=2)  # aiohttp repeats it once by itself

    async def renew(self) -> None:
        await self.server.sockets.refresh()

    def fall_silent(self) -> Callable[[], None]:
        self.server.sockets.silent = True
        return lambda: setattr(self.server.sockets, "silent", False)

    def files(self) -> list[tuple[str, int]]:
        mine = [one for one in self.server.files.values() if one.body["user"] == slack_shapes.BOT and one.shared]
        return [(one.body["name"], len(one.data or b"")) for one in mine]

    def signs(self) -> int:
        return len(self.server.calls_of("assistant.threads.setStatus"))

    def loud(self) -> list[Any]:
        return [(one.pings, one.fetched) for one in self.server.sent if one.pings or one.fetched]

    def bot_says(self, text: str, room: Any) -> None:
        self.server.post_as(room, "other", f"<@{slack_shapes.BOT}> {text}")

    def answers_below(self, said: Said) -> Any:
        return said.id

    def somebody_else(self) -> str:
        return f"<@{self.bob}>"

    def change_token(self) -> None:
        self.server.fail_next("auth.test", "invalid_auth", times=3)

    def may_break(self) -> None:
        self.server.tolerate(SlackRule.LATE_STATUS)


class SlackHttp(Slack):
    """By requests to the app's url."""

    mode = "http"

    def __init__(self, time: ManualTime) -> None:
        super().__init__(time)
        self.server.stamp = lambda: int(machine.time())  # signatures go by the machine's clock

    async def connect(self, service: Service) -> None:
        (health,) = (found for name, found in service.parts.health.view().channels.items() if name == "slack")
        found = re.search(r"http://\S+", health.detail)
        assert found, health
        await self.server.use_url(found.group())


class Discord(Side):
    """By the gateway."""

    name = "discord"
    acknowledges = False
    tells_firsts = False
    heartbeat_timeout = 60.0
    alice = str(discord_objects.ALICE.id)
    bob = str(discord_objects.BOB.id)
    people: ClassVar[Mapping[str, Any]] = {
        "alice": discord_objects.ALICE,
        "bob": discord_objects.BOB,
        "carol": discord_objects.CAROL,
    }

    def __init__(self, time: ManualTime) -> None:
        super().__init__(time)
        self.server = DiscordServer(**self._clocks())

    def furnish(self) -> None:
        home = self.server.add_guild("Home", *self.people.values(), discord_objects.OTHER_BOT)
        self.room = self.server.add_channel(home, "workshop")
        self.other = self.server.add_channel(home, "street")
        for person in self.people.values():
            self.server.open_dm(person)

    def channel(self, times: Times) -> Channel:
        server = self.server
        settings = account(
            DiscordAccount,
            token=server.token,
            base_url=server.base_url,
            gateway_url=server.gateway_url,
            cdn=(f"http://127.0.0.1:{server.files_port}/",),
            close_timeout=0.05,
            heartbeat_timeout=self.heartbeat_timeout,
        )
        return DiscordChannel(settings, times)

    def id_of(self, room: Any) -> str:
        return id_of(room)

    def _where(self, who: Who, room: Any) -> tuple[Any, Any]:
        person = self.people[who]
        return person, self.server.open_dm(person) if room is None else room

    def say(
        self, text: str, who: Who = "alice", room: Any = None, *, mention: bool = False, thread: Any = None, **more: Any
    ) -> Said:
        person, where = self._where(who, room)
        words = f"<@{discord_objects.HARK.id}> {text}" if mention else text
        said = self.server.say(where if thread is None else thread, person, words, **more)
        return Said(said["id"], said, where)

    def reply(self, text: str, to: str, who: Who = "alice", room: Any = None) -> Said:
        person, where = self._where(who, room)
        said = self.server.say(where, person, text, reply_to={"id": to})
        return Said(said["id"], said, where)

    def thread(self, said: Said) -> Any:
        """One that somebody opens on a message."""
        return self.server.add_thread(said.room, message=said.raw)

    def edit(self, said: Said, text: str) -> None:
        self.server.edit(said.raw, text)

    def delete(self, said: Said) -> None:
        self.server.delete(said.raw)

    def command(self, text: str, who: Who = "alice") -> None:
        person, where = self._where(who, None)
        name, *words = text.removeprefix("/").split()
        (listed,) = (one for one in self.server.commands[""].values() if one["name"] == name)
        options = (one["name"] for one in listed.get("options") or ())
        self.server.slash(person, where, name, dict(zip(options, words, strict=False)))

    def click(self, number: int, who: Who = "alice") -> None:
        person, where = self._where(who, None)
        message = [one for one in self.server.messages(where) if one["components"]][-1]
        buttons = [one for row in message["components"] for one in row["components"]]
        self.server.click(person, message, buttons[number]["custom_id"])

    def attach(self, name: str, data: bytes, text: str = "") -> Said:
        person, where = self._where("alice", None)
        said = self.server.say(where, person, text, files=[DiscordFile(name, data, "text/plain")])
        return Said(said["id"], said, where)

    def repeat(self, said: Said) -> None:
        self.server.push_raw("MESSAGE_CREATE", self.server.show(said.raw))

    def posts(self, room: Any = None, thread: Any = None, who: Who = "alice") -> list[str]:
        return list(self.server.texts(self._where(who, room)[1] if thread is None else thread))

    def posted_ids(self, room: Any = None) -> list[str]:
        where = id_of(self._where("alice", room)[1])
        return [one.message_id for one in self.server.sent if one.channel_id == where and one.method == "send"]

    def marks(self, said: Said) -> list[str]:
        mine = discord_objects.HARK.id
        return [emoji for (found, emoji), who in self.server.reactions.items() if found == said.id and mine in who]

    def fail_send(self, *, applied: bool, times: int = 1) -> Any:
        return self.server.fail_next("POST /channels/*/messages", drop=True, after_apply=applied, times=times)

    def flood(self, who: Who) -> Any:
        where = id_of(self._where(who, None)[1])
        # the library waits by itself, by the machine's clock
        return self.server.fail_next(f"POST /channels/{where}/messages", status=429, retry_after=0.2)

    def impatient(self) -> None:
        self.heartbeat_timeout = self.server.heartbeat_interval = 0.2
        self.server.heartbeat_patience = PATIENCE  # the library's thread may come late for such an interval

    def cut(self) -> None:
        self.server.close_gateway(1006)

    def hold_history(self) -> Any:
        return self.server.hold_next("GET /channels/*/messages")

    def fail_history(self) -> Any:
        return self.server.fail_next("GET /channels/*/messages", drop=True)

    async def renew(self) -> None:
        self.server.invalidate()

    def fall_silent(self) -> Callable[[], None]:
        self.server.gateway_silent = True
        return lambda: setattr(self.server, "gateway_silent", False)

    def files(self) -> list[tuple[str, int]]:
        stored = [one for where in self.server.channels for one in self.server.messages(where)]
        mine = [one for one in stored if one["author"]["id"] == str(discord_objects.HARK.id)]
        return [(one["filename"], one["size"]) for message in mine for one in message["attachments"]]

    def signs(self) -> int:
        return len(self.server.calls("POST /channels/*/typing"))

    def loud(self) -> list[Any]:
        return [*self.server.pinged(), *(one.previews for one in self.server.sent if one.previews)]

    def bot_says(self, text: str, room: Any) -> None:
        self.server.say(room, discord_objects.OTHER_BOT, f"<@{discord_objects.HARK.id}> {text}")

    def listed(self) -> bool:
        return bool(self.server.commands.get(""))

    def over(self) -> None:
        self.server.turn_over(self._where("alice", None)[1])

    def somebody_else(self) -> str:
        return f"<@{self.bob}>"

    def change_token(self) -> None:
        self.server.token = "another"
        self.server.tolerate(DiscordRule.TOKEN)

    def may_break(self) -> None:
        self.server.tolerate(DiscordRule.LATE_TYPING)


class DiscordThreads(Discord):
    """Where a mention is answered in a thread on it."""

    def section(self) -> Json:
        return {**super().section(), "threads": {"open": "on_mention"}}

    def answers_below(self, said: Said) -> Any:
        return said.id


SIDES: Mapping[str, type[Side]] = {"telegram": Telegram, "slack": Slack, "slack-http": SlackHttp, "discord": Discord}
ROOMS: Mapping[str, type[Side]] = {**SIDES, "discord-threads": DiscordThreads}
"""With those that treat rooms in another way."""

"""How events, commands and clicks reach the app: what is sent, when it counts as received, when it is sent again.

An event that is not acknowledged within three seconds is sent again at once, after a minute and after five, then
never. Commands and clicks are sent once; the person is told that the app did not respond. Without any way to the app
each attempt fails, so that only the history has what happened meanwhile, unless `keep_while_away` is set. What a
connection took and did not acknowledge waits for the next one.
"""

import copy
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from tests.standins import slack_shapes as shapes
from tests.standins.slack_ledger import Json, Rule
from tests.standins.slack_people import People, as_text
from tests.standins.slack_shapes import ALICE, Person, Room
from tests.standins.slack_world import Timer, ts_of
from tests.watch import PATIENCE

ACK_SECONDS = 3.0
RETRIES = {1: 0.0, 2: 60.0, 3: 300.0}


class State(StrEnum):
    WAITING = "waiting"  # for a connection or for its next attempt
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    LOST = "lost"


@dataclass(slots=True, eq=False)
class Envelope:
    """One thing to deliver. `kind` is events_api, slash_commands or interactive; `id` is new for each attempt."""

    kind: str
    payload: Json
    id: str = ""
    attempt: int = 0
    reason: str = ""
    state: State = State.WAITING
    answer: Any = None
    timer: Timer | None = None

    @property
    def is_event(self) -> bool:
        return self.kind == "events_api"

    @property
    def name(self) -> str:
        """For messages to people: the event, the command or the action."""
        if not isinstance(self.payload, dict):
            return str(self.payload)
        event = self.payload.get("event")
        kind = event.get("type") if isinstance(event, dict) else None
        return str(kind or self.payload.get("command") or self.payload.get("type"))


class Transport(Protocol):
    """A way to the app."""

    def send(self, envelope: Envelope) -> bool:
        """Send it; False when there is no way now."""


class Delivering(People):
    """See the module. `outbox` holds every envelope in order, `transport` is set by the server."""

    transport: Transport

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.outbox: list[Envelope] = []
        self.waiting: list[Envelope] = []
        self.keep_while_away = False
        self.paused: list[Envelope] | None = None
        self.response_urls: dict[str, Json] = {}

    # What is sent

    def tell(self, event: Json, kind: str) -> Json | None:
        scope = shapes.EVENT_SCOPES[kind]
        if kind not in self.events or (scope is not None and scope not in self.scopes):
            return None
        who = self.people.get(str(event.get("user")))
        external = who is not None and who.team != shapes.TEAM
        event_id = f"Ev0{self.number():08d}"
        payload = shapes.event_callback(copy.deepcopy(event), event_id, int(self.wall()), external=external)
        self.push(payload)
        return payload

    def push(self, payload: Json, kind: str = "events_api") -> Envelope:
        """Deliver any payload, readable or not."""
        envelope = Envelope(kind, payload)
        self.outbox.append(envelope)
        self.deliver(envelope)
        return envelope

    def repeat(self, event: Json | Envelope) -> Envelope:
        """Send an event once more with the same event_id, though it was acknowledged."""
        payload = event.payload if isinstance(event, Envelope) else event
        envelope = Envelope("events_api", payload, attempt=1, reason="timeout")
        self.outbox.append(envelope)
        self.deliver(envelope)
        return envelope

    def slash(self, room: Room | str | None = None, user: Person = ALICE, text: str = "", command: str = "/hark",
              **more: Any) -> Envelope:  # fmt: skip
        """A person calls a command; without a room in the direct conversation. Slack has none in threads."""
        if "thread_ts" in more:
            raise ValueError("slash commands of apps cannot be used in threads")
        if command not in self.commands:
            raise ValueError(f"Slackbot tells {user.name} that {command} is not a valid command")
        where = self.im(user.id) if room is None else self._where(room)
        payload = {
            "token": shapes.VERIFICATION_TOKEN,
            "team_id": shapes.TEAM,
            "team_domain": shapes.TEAM_DOMAIN,
            "channel_id": where.id,
            "channel_name": where.command_name(),
            "user_id": user.id,
            "user_name": user.name,
            "command": command,
            "text": as_text(text),
            "api_app_id": shapes.APP,
            "is_enterprise_install": "false",
            "response_url": self._response_url("commands", where, user),
            "trigger_id": self._trigger_id(),
        }
        return self.push(payload | more, "slash_commands")

    def click(self, room: Room | str, message: Json | str, action_id: str, user: Person = ALICE) -> Envelope:
        """A person presses a button below a message of the app, also one that only they see."""
        if not self.interactive:
            raise ValueError("the app's manifest does not enable interactivity, Slack shows an error at the button")
        where, ts = self._where(room), ts_of(message)
        kept = next((one for one in self.ephemeral if (one["channel"], one["ts"]) == (where.id, ts)), None)
        only = kept is not None
        kept = kept or self.message(where.id, ts)
        button = next(one for one in self.buttons_of(kept) if one.get("action_id") == action_id)
        container = {"type": "message", "message_ts": ts, "channel_id": where.id, "is_ephemeral": only}
        if "thread_ts" in kept:
            container["thread_ts"] = kept["thread_ts"]
        name = where.name if where.kind in ("channel", "mpim") else where.command_name()
        payload: Json = {
            "type": "block_actions",
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team},
            "api_app_id": shapes.APP,
            "token": shapes.VERIFICATION_TOKEN,
            "container": container,
            "trigger_id": self._trigger_id(),
            "team": {"id": shapes.TEAM, "domain": shapes.TEAM_DOMAIN},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": where.id, "name": name},
            **({} if only else {"message": {one: kept[one] for one in kept if one != "metadata"}}),
            "state": {"values": {}},
            "response_url": self._response_url("actions", where, user, ts),
            "actions": [{**button, "action_ts": self.next_ts("")}],
        }
        return self.push(payload, "interactive")

    def _trigger_id(self) -> str:
        return f"{self.number()}.{self.number()}.0123456789abcdef0123456789abcdef"

    def _response_url(self, kind: str, room: Room, user: Person, original: str | None = None) -> str:
        key = f"{kind}/{shapes.TEAM}/{self.number()}/standin"
        self.response_urls[key] = {"room": room, "user": user.id, "original": original, "uses": 0, "at": self.clock()}
        return f"{self.origin}/{key}"

    # Whether it arrives

    def deliver(self, envelope: Envelope) -> None:
        """Try once, or keep it as long as `paused` says."""
        self.cancel_timer(envelope)
        if self.paused is not None:
            self.paused.append(envelope)
            return
        envelope.id = f"{self.number():08x}-0000-4000-8000-000000000000"
        if self.transport.send(envelope):
            envelope.state = State.SENT
            envelope.timer = self.after(ACK_SECONDS, lambda: self.failed(envelope, "timeout"))
        elif self.keep_while_away and envelope.is_event:
            self.wait_for_way(envelope)
        else:
            self.failed(envelope, "connection_failed")

    def pause(self) -> None:
        """Nothing goes out from here on, as on a slow day of the service, until `resume`."""
        self.paused = []

    def resume(self, *, backwards: bool = False) -> None:
        """Send what has gathered, in its order or in the opposite one."""
        gathered, self.paused = self.paused or [], None
        for envelope in reversed(gathered) if backwards else gathered:
            self.deliver(envelope)

    def wait_for_way(self, envelope: Envelope) -> None:
        """Keep it for the next connection, where it is a retry if it was sent before."""
        self.cancel_timer(envelope)
        if envelope.state is State.SENT:
            envelope.attempt += 1
            envelope.reason = "timeout"
        envelope.state = State.WAITING
        self.waiting.append(envelope)

    def way_is_open(self) -> None:
        """There is a connection: what waited for one goes out."""
        waiting, self.waiting = self.waiting, []
        for envelope in waiting:
            self.deliver(envelope)

    def failed(self, envelope: Envelope, reason: str, *, final: bool = False) -> None:
        """An attempt came to nothing: the next one, if the rules have one."""
        if envelope.state in (State.ACKNOWLEDGED, State.LOST):
            return
        self.cancel_timer(envelope)
        delay = RETRIES.get(envelope.attempt + 1)
        if not envelope.is_event or delay is None or final:
            envelope.state = State.LOST
            if not envelope.is_event and reason == "timeout":
                self.ledger.complain(Rule.UNANSWERED, envelope.name)
        else:
            envelope.state = State.WAITING
            envelope.attempt += 1
            envelope.reason = reason
            if delay:
                envelope.timer = self.after(delay, lambda: self.deliver(envelope))
            else:
                self.deliver(envelope)
        self.ledger.changed()

    def acknowledged(self, envelope: Envelope, answer: Any = None) -> None:
        """The app has it; `answer` is what it said with the acknowledgement."""
        self.cancel_timer(envelope)
        envelope.state = State.ACKNOWLEDGED
        envelope.answer = answer
        self.ledger.changed()

    def cancel_timer(self, envelope: Envelope) -> None:
        if envelope.timer is not None:
            envelope.timer.cancel()
            envelope.timer = None

    # What tests read

    @property
    def unacknowledged(self) -> list[Envelope]:
        """Everything that was sent or waits and that the app does not have."""
        return [one for one in self.outbox if one.state in (State.WAITING, State.SENT)]

    async def wait_acknowledged(self, seconds: float = PATIENCE) -> None:
        """Wait until the app has everything that is under way."""
        await self.ledger.until(lambda: not self.unacknowledged, "all acknowledgements", seconds)

    def events_of(self, kind: str) -> list[Json]:
        """The inner events of a type that were told so far."""
        return [one.payload["event"] for one in self.outbox if one.is_event and one.name == kind]

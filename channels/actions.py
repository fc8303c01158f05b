"""What the model can do in conversations with the `message` tool: a catalogue that each channel's `actions` states.

Most of it becomes a delivery of the ledger, which every channel carries out alike; the rest is asked of the channel
while the call runs (`Channel.perform`). The tool itself is the service's (`bot/runs/messaging.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from channels.message import InboundMessage
from channels.outgoing import Action

T = TypeVar("T")
_CANDIDATES = 10
# Characters of a message that is read.
_WORDS = 400


class ActionFailed(Exception):
    """An action could not be carried out; says why in plain words, for the model."""


@dataclass(frozen=True, slots=True)
class ToolAction:
    """Something the model can do. does: a few words for the model. needs, takes: the names of its `Arguments`.

    makes: what the delivery is that it becomes; None: the channel is asked (`perform`), and its words are the result.
    """

    name: str
    does: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    makes: Action | None = None


class Arguments(BaseModel):
    """What actions take, each a part of it. Ids are the platform's own, as `read` and results of sends tell them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    to: str = Field(default="", description="Another conversation: its id, #channel or @person. Without it: this one.")
    text: str = Field(default="", description="Markdown.")
    message_id: str = Field(default="", description="The message that is meant. Without it: the one that asked.")
    emoji: str = Field(default="", description="One emoji; empty takes your reactions away.")
    path: str = Field(default="", description="A file of the workspace.")
    buttons: tuple[str, ...] = Field(default=(), max_length=8, description="Labels; a click answers with its label.")
    thread: str = Field(default="", description="Id of a thread or topic.")
    name: str = Field(default="", max_length=100, description="Of a thread or topic.")
    person: str = Field(default="", description="Id of a person.")
    limit: int = Field(default=20, ge=1, le=100, description="How many messages.")
    before: str = Field(default="", description="Only messages before this one.")


_WHERE = ("to", "thread")
SEND = ToolAction("send", "a message", ("text",), (*_WHERE, "buttons"), Action.SEND)
REPLY = ToolAction("reply", "a message shown as reply to one", ("text",), (*_WHERE, "message_id"), Action.SEND)
EDIT = ToolAction("edit", "change a message of yours", ("message_id", "text"), _WHERE, Action.EDIT)
DELETE = ToolAction("delete", "delete a message of yours", ("message_id",), _WHERE, Action.DELETE)
REACT = ToolAction("react", "to a message with an emoji", (), (*_WHERE, "message_id", "emoji"), Action.REACT)
UPLOAD = ToolAction("upload", "a file, text is its caption", ("path",), (*_WHERE, "text"), Action.FILE)
THREAD_REPLY = ToolAction("thread_reply", "a message in a thread", ("thread", "text"), ("to",), Action.SEND)
THREAD_CREATE = ToolAction("thread_create", "a thread on a message", ("text",), ("to", "message_id"), Action.SEND)
# What every platform has.
COMMON = (SEND, REPLY, EDIT, DELETE, REACT, UPLOAD)
# What those with threads have.
THREADED = (*COMMON, THREAD_CREATE, THREAD_REPLY)

# Names of those that show nothing to anybody, on any platform: what is not named here counts as shown.
LOOKS = frozenset({"read", "member_info", "channel_info", "user_info", "chat_info"})


def nearest(wanted: str, names: Mapping[str, T]) -> T | tuple[str, ...]:
    """What has that name, in any case and with or without # or @; else the names that come near, at most ten."""
    folded = {name.casefold().lstrip("#@"): name for name in names}
    key = wanted.casefold().lstrip("#@")
    if key in folded:
        return names[folded[key]]
    near = get_close_matches(key, folded, n=_CANDIDATES, cutoff=0.4)
    near += [name for name in folded if key and key in name and name not in near]
    return tuple(folded[name] for name in near[:_CANDIDATES])


def short(text: str, most: int = _WORDS) -> str:
    """A text, cut to so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def line_of(said: InboundMessage, *more: str) -> str:
    """A message of a history as the model reads it: id · time · who: words."""
    origin, forwarded = said.origin, said.forwarded.text if said.forwarded else ""
    name = f"{origin.sender_name} ({origin.sender})" if origin.sender_name else origin.sender
    who = "you" if origin.sender == origin.place.account else name
    at = datetime.fromtimestamp(said.sent_at / 1000, UTC)
    words = short(" ".join(f"{said.text} {forwarded}".split()))
    shown = filter(None, (words, *(f"[file {file.name}]" for file in said.attachments), *more))
    return f"{origin.message_id} · {at:%Y-%m-%d %H:%MZ} · {who}: {' '.join(shown)}"


def details(found: Mapping[str, Any], names: str) -> str:
    """What is known of something under these names, a line each."""
    told = ((name, found.get(name)) for name in names.split())
    return "\n".join(f"{name}: {short(str(value))}" for name, value in told if value)

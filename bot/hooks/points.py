"""The points of the service at which hooks are called, besides those of tool calls (`agent/hooks`)."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.hooks import AfterToolCall, BeforeToolCall, HookEvent, ToolResultPersist


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayStart(HookEvent):
    """The service accepts messages."""

    point = "gateway_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayStop(HookEvent):
    """The service is stopping; no run is left."""

    point = "gateway_stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeInstall(HookEvent):
    """A skill is about to be installed from a folder, which was scanned already."""

    point = "before_install"
    can_stop = guards = True
    name: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReceived(HookEvent):
    """A message is about to be answered by a turn. One that is blocked is dropped, which the book of messages says."""

    point = "message_received"
    can_stop = True
    session_key: str
    channel: str
    account: str
    chat: str
    thread: str
    # The platform's id of it.
    message_id: str
    sender: str
    sender_name: str
    text: str
    # The kinds of the files that came along, such as image or audio.
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSending(HookEvent):
    """A message, or the edit of one, is about to go out to a platform; asked again before each attempt."""

    point = "message_sending"
    can_stop = guards = True
    channel: str
    account: str
    chat: str
    thread: str
    turn_id: str
    # send, edit, preview or file.
    action: str
    # The words that people read or hear, as Markdown; and all that the platform gets, in its own form.
    text: str
    body: str
    # The name and the path of the file that is sent; empty for others.
    file: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSent(MessageSending):
    """A message has gone out."""

    point = "message_sent"
    can_stop = guards = False
    # The platform's id of it.
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(HookEvent):
    """Somebody has given a command, such as /new, and it was carried out."""

    point = "command"
    session_key: str
    channel: str
    sender: str
    # Without the slash.
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfTurn(HookEvent):
    session_key: str
    turn_id: str
    # Of the transcript, which /new begins anew.
    session_id: str
    # reply, api, beat or job.
    kind: str
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart(_OfTurn):
    """The first turn of a conversation begins."""

    point = "session_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd(_OfTurn):
    """The conversation `ended` of a session is over; told when the first turn of the one after it begins."""

    point = "session_end"
    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeModelResolve(_OfTurn):
    """The model of a turn is chosen; a hook may name another one that is configured."""

    point = "before_model_resolve"
    changes = ("model",)
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBootstrap(_OfTurn):
    """The files of the workspace are read for a system prompt; hooks may change their texts, or leave files out."""

    point = "agent_bootstrap"
    changes = ("files",)
    # The texts by name.
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforePromptBuild(_OfTurn):
    """The system prompt of a conversation is made, which it then keeps."""

    point = "before_prompt_build"
    changes = ("added",)
    # What the operator says for this conversation, as Markdown; may be empty.
    added: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeAgentReply(_OfTurn):
    """A turn is about to be answered. A hook may answer it with `reply`, or block it, so that nothing is said."""

    point = "before_agent_reply"
    can_stop = True
    changes = ("reply",)
    # What was written, and the answer in place of the model's; empty: the model answers.
    text: str
    reply: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnd(_OfTurn):
    """A run has ended; its turn goes on later where the outcome is `parked`."""

    point = "agent_end"
    outcome: str
    # The model's last words; empty where it said nothing.
    text: str
    # Why it failed; empty where it did not.
    error: str
    # Running time in seconds, and tokens.
    seconds: float
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeCompaction(_OfTurn):
    """The older part of a conversation is about to be summed up."""

    point = "before_compaction"
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterCompaction(_OfTurn):
    """The same was done, or could not be."""

    point = "after_compaction"
    done: bool


# All points by their names.
POINTS: Mapping[str, type[HookEvent]] = {
    one.point: one
    for one in (
        *(BeforeModelResolve, BeforePromptBuild, AgentBootstrap, BeforeAgentReply, AgentEnd),
        *(BeforeCompaction, AfterCompaction, BeforeToolCall, AfterToolCall, ToolResultPersist),
        *(MessageReceived, MessageSending, MessageSent, Command, SessionStart, SessionEnd),
        *(GatewayStart, GatewayStop, BeforeInstall),
    )
}

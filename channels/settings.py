"""The sections of the configuration that all channels share.

A channel folder has a module `settings` whose `SECTION` is its `ChannelSection`, and a module `adapter` whose `build`
makes the adapter of an account; `channels/registry.py` names the folder.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator, model_validator
from typing_extensions import TypeVar

from channels.actions import ToolAction
from channels.failures import Patience, Rates
from channels.message import InboundMessage
from channels.section import Id, Section, Whole, conflict, looks_like, refused, setting


def _check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise refused(f"a regular expression (this one: {error})") from None
    return text


ReplyTo = Literal["off", "first", "all"]
# What becomes of what is written while a run is active.
QueueMode = Literal["collect", "steer", "followup", "interrupt"]
# Which messages are dropped where more wait than may.
QueueDrop = Literal["summarise", "old", "new"]
# A model at a provider, `provider/model`, or `offline`; that the provider is known is checked with the whole file.
ModelName = Annotated[str, Field(min_length=1)]
# The types of ids of people and chats; each platform has its own.
Person = TypeVar("Person", bound=str, default=Id)
Chat = TypeVar("Chat", bound=str, default=Id)
_ACCOUNT = re.compile(r"(?!(?:direct|group|channel)$)[A-Za-z0-9_-]+")


class DirectMessages(Section, Generic[Person]):
    """Who may write to the bot directly."""

    policy: Literal["pairing", "allowlist", "open", "disabled"] = setting(
        "pairing", "Who is answered: also whoever an owner lets in by a code, only allow_from, everybody, or nobody."
    )
    allow_from: tuple[Person, ...] = setting((), "The ids of those who are answered without a code.")


class ToolLists(Section):
    """Which tools the model has there. For owners it can only be less than elsewhere; people who are no owners have the
    tools of the profile guest, and in full those that are named here."""

    profile: Literal["minimal", "guest", "messaging", "coding", "full"] | None = setting(
        None, "What people who are no owners have there besides the profile guest."
    )
    allow: tuple[str, ...] | None = setting(
        None, "Only these tools, also for people who are no owners; without it all of them."
    )
    deny: tuple[str, ...] = setting((), "Never these tools, also when they are in allow.")


class Group(Section, Generic[Person]):
    """What holds in one group; what it does not say is as for all groups."""

    users: tuple[Person, ...] | None = setting(None, "Only these people are answered there, by their ids.")
    roles: tuple[Person, ...] | None = setting(None, "Only people with one of these roles, or in users (on Discord).")
    require_mention: bool | None = setting(None, "Whether the bot has to be named there.")
    tools: ToolLists = setting(ToolLists(), "The tools that the model has there.")
    prompt: str | None = setting(None, "Added to the system prompt there.")
    model: ModelName | None = setting(None, "provider/model that answers there.")


class Groups(Section, Generic[Person, Chat]):
    """What holds in groups and channels."""

    policy: Literal["allowlist", "open", "disabled"] = setting(
        "allowlist", "Where it answers: in the groups in allow, in all, or in none."
    )
    require_mention: bool = setting(
        True, "Answer only when named, replied to, or part of the thread; else every message."
    )
    mention_patterns: tuple[Annotated[str, AfterValidator(_check_pattern)], ...] = setting(
        (), "Regular expressions that count as naming the bot, whatever the case of letters."
    )
    session: Literal["chat", "thread", "person"] = setting(
        "thread", "Who shares a conversation: the whole chat, each thread by itself, each person."
    )
    allow: Mapping[Chat, Group[Person]] = setting({}, "Groups by their id (on Discord also servers).")

    def of(self, *ids: Chat) -> Group[Person] | None:
        """The settings of a group; None when it is not allowed. ids: its own, then those of what contains it."""
        found = [self.allow[one] for one in ids if one in self.allow]
        if self.policy == "disabled" or (self.policy == "allowlist" and not found):
            return None
        said = {key: getattr(group, key) for group in reversed(found) for key in group.model_fields_set}
        return Group[Person]().model_copy(update={"require_mention": self.require_mention} | said)


class Threads(Section):
    """How it takes part in threads."""

    follow: Literal["never", "started", "joined"] = setting(
        "joined", "In which threads it need not be named: in none, those on a message of its own, or where it spoke."
    )


class States(Section):
    """What the reaction becomes meanwhile; empty: it stays as it is, and goes at the end."""

    thinking: str = setting("🤔", "The model writes.")
    tool: str = setting("⚡", "A tool works.")
    waiting: str = setting("🙏", "A person must decide something, or no model can be reached.")
    compacting: str = setting("✍", "The conversation is being summed up.")
    done: str = setting("", "It is answered; such as 👌.")
    error: str = setting("😢", "It could not be answered.")


class Acknowledgement(Section):
    """A reaction that says: seen, I am on it. It goes when the answer is there."""

    emoji: str = setting("", "The emoji; empty for none.")
    scope: Literal["direct", "mention", "all"] = setting(
        "all", "On what: direct messages, what names the bot in groups, or everything it answers."
    )
    states: States | None = setting(None, "Whether it changes with what the bot does: {} is yes, with these emojis.")


HttpPath = Annotated[str, looks_like(r"/[^?#{}\s]*", "a path that begins with /")]


class Listen(Section):
    """Where requests of a platform are taken; nothing else is served there."""

    host: str = setting("127.0.0.1", "This machine only, as behind a proxy that speaks HTTPS.")
    port: Whole = setting(8421, "0 takes any free port.", ge=0, le=65535)
    path: HttpPath = setting("/", "The one path that is served.")


class Streaming(Section):
    """How an answer is cut into messages while the model writes it. Sizes in UTF-16 units."""

    mode: Literal["block", "preview", "off"] = setting(
        "block", "Several messages, each sent when it is full; one message that grows; or only whole answers."
    )
    break_at: Literal["text_end", "message_end"] = Field(
        default="text_end",
        alias="break",
        description="Send while the text is written, or only when the message of the model is complete.",
    )
    min_chars: Whole = setting(
        800, "A block is not cut before this many characters; at most two thirds of max_chars count.", ge=1
    )
    max_chars: Whole = setting(
        1200, "A block never has more characters than this; without it blocks are joined to fill a message.", ge=64
    )
    idle_ms: Whole = setting(1000, "Blocks are joined until the model has been silent for so long.", ge=0)
    preview: Literal["message", "draft"] = setting(
        "message", "A preview is a message that is edited, or (in direct messages on Telegram) a draft."
    )

    @model_validator(mode="after")
    def _min_fits(self) -> "Streaming":
        if self.min_chars > self.max_chars:
            text = f"{self.min_chars} is more than max_chars, {self.max_chars}"
            raise conflict(text, ("min_chars",))
        return self


class Beats(Section):
    """What of the heartbeat is shown there; what it does not say is as the section `heartbeat` says."""

    show_ok: bool | None = setting(None, "Whether quiet answers are shown, as HEARTBEAT_OK.")
    show_alerts: bool | None = setting(None, "Whether all other answers are shown.")
    direct: Literal["allow", "block"] = setting("allow", "Whether direct messages may get them.")


class QueueThere(Section):
    """What becomes there of messages that come while others are answered; what it does not say is as the section
    `queue` says."""

    mode: QueueMode | None = setting(None, "What becomes of what is written while a run is active.")
    debounce_ms: Whole | None = setting(None, "How long a message waits for more of its sender.", ge=0, le=60_000)
    cap: Whole | None = setting(None, "How many messages of a session may wait.", ge=1)
    drop: QueueDrop | None = setting(None, "Which are dropped where more would wait.")


class ChannelSection(Section):
    """The section of a channel, or of one account of it."""

    # Whether the channel needs nothing outside of this machine.
    local: ClassVar[bool] = False
    # Loggers of libraries whose ordinary records are noise.
    quiet: ClassVar[tuple[str, ...]] = ()

    enabled: bool = setting(True, "Whether it is used.")

    def bots(self) -> Mapping[str, "ChannelSection"]:
        """The section of each configured account by its name; the name of the plain block is empty."""
        return {"": self}

    def cutting(self) -> Streaming:
        """How answers are cut."""
        return Streaming()

    def replying(self) -> ReplyTo:
        """Which messages of an answer are shown as a reply to the question."""
        return "off"

    def opens_thread(self, message: InboundMessage) -> bool:
        """Whether the answer to a message outside of threads opens one on it (`place.thread = message_id`)."""
        return False

    def added_prompt(self) -> str:
        """What the configuration adds to the rules that the adapter gives the model."""
        return ""

    def tool_actions(self) -> tuple[ToolAction, ...]:
        """The actions of the `message` tool there."""
        return ()


@dataclass(frozen=True, slots=True)
class Proof:
    """The request by which a platform tells whether a secret is valid."""

    # The key of the secret in the configuration.
    key: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"


class AccountSection(ChannelSection, Patience):
    """One account on a platform."""

    # The key of the secret that identifies the account.
    identity: ClassVar[str] = "token"
    # By key of a secret: the pattern that it matches, and in words what it is and where to find it.
    secrets: ClassVar[Mapping[str, tuple[str, str]]] = {"token": (r"\S+", "a token")}
    # All actions of the `message` tool on that platform.
    offered: ClassVar[tuple[ToolAction, ...]] = ()
    rates: ClassVar[Rates] = Rates()
    # Whether threads in direct messages are conversations of their own.
    direct_threads: ClassVar[bool] = True

    enabled: bool = setting(True, "Whether this account is connected.")
    dm: DirectMessages = setting(DirectMessages(), "Direct messages.")
    groups: Groups = setting(Groups(), "Groups and channels.")
    threads: Threads = setting(Threads(), "Threads in groups and channels.")
    allow_bots: bool = setting(False, "Whether other bots are answered; a loop is ended by a cap.")
    reply_to: ReplyTo = setting("off", "Which messages of an answer are shown as a reply to the question.")
    ack: Acknowledgement = setting(Acknowledgement(), "A reaction while it works on an answer.")
    streaming: Streaming = setting(Streaming(), "How answers are cut into messages.")
    actions: Mapping[str, bool] = setting(
        {}, "What the model may do with the `message` tool; false takes an action away."
    )
    tools: ToolLists = setting(ToolLists(), "The tools that the model has in conversations there.")
    heartbeat: Beats = setting(Beats(), "What of the heartbeat is shown there.")
    queue: QueueThere = setting(QueueThere(), "What becomes of messages that come while others are answered.")
    prompt: str | None = setting(None, "Added to the system prompt in conversations there.")
    model: ModelName | None = setting(None, "provider/model that answers in conversations there.")

    def bots(self) -> Mapping[str, ChannelSection]:
        return {} if getattr(self, self.identity) is None else {"": self}

    def cutting(self) -> Streaming:
        return self.streaming

    def replying(self) -> ReplyTo:
        return self.reply_to

    def added_prompt(self) -> str:
        return self.prompt or ""

    def tool_actions(self) -> tuple[ToolAction, ...]:
        return tuple(one for one in self.offered if self.actions.get(one.name, True))

    def needs(self) -> tuple[str, ...]:
        """The secrets without which it cannot work."""
        return (self.identity,)

    def proofs(self) -> tuple[Proof, ...]:
        """The requests that check its secrets, if the platform can be asked."""
        return ()

    def secret(self, name: str) -> str:
        """The value of a key of `secrets`; empty when it is not given."""
        value: SecretStr | None = getattr(self, name)
        return value.get_secret_value() if value else ""

    @model_validator(mode="after")
    def _are_secrets(self) -> "AccountSection":
        for name, (pattern, words) in self.secrets.items():
            if self.secret(name) and not re.fullmatch(pattern, self.secret(name)):
                raise conflict(f"found a hidden value; allowed: {words}", (name,))
        return self

    @field_validator("actions")
    @classmethod
    def _known(cls, actions: Mapping[str, bool]) -> Mapping[str, bool]:
        names = [one.name for one in cls.offered]
        for name in actions:
            if name not in names:
                raise conflict(f"`{name}` is no action; allowed: {', '.join(names)}", (name,))
        return actions


class PlatformSection(AccountSection):
    """The plain block of a platform: its first account, and further ones below `accounts`.

    A platform's section derives from that of its accounts and from this, in that order, and says what `accounts` are:
    as its last field, because what they do not say is taken from those before.
    """

    if TYPE_CHECKING:
        accounts: Mapping[str, AccountSection]

    def bots(self) -> Mapping[str, ChannelSection]:
        return {**super().bots(), **self.accounts}

    @model_validator(mode="before")
    @classmethod
    def _enabled_by_use(cls, data: object) -> object:
        if not isinstance(data, dict) or data.get("enabled") is not None:
            return data
        return {**data, "enabled": bool(data.get(cls.identity) or data.get("accounts"))}

    @field_validator("accounts", check_fields=False)
    @classmethod
    def _inherit(cls, accounts: Mapping[str, AccountSection], info: ValidationInfo) -> dict[str, AccountSection]:
        """Fill in what an account does not say itself; refuse invalid names, and one account twice."""
        owner = {info.data.get(cls.identity): f"the {cls.identity} above"}
        found = {}
        for name, account in accounts.items():
            if not _ACCOUNT.fullmatch(name):
                allowed = "letters, digits, - and _, and not direct, group or channel"
                raise conflict(f"`{name}` cannot be the name of an account; allowed: {allowed}", (name,))
            identity = getattr(account, cls.identity)
            if identity is not None and owner.setdefault(identity, name) != name:
                text = f"the same as {owner[identity]}; each account is a bot of its own"
                raise conflict(text, (name, cls.identity))
            found[name] = account.model_copy(update=_unsaid(account, info.data))
        return found

    @model_validator(mode="after")
    def _has_its_secrets(self) -> "PlatformSection":
        accounts = {**({} if self.accounts and not self.secret(self.identity) else {"": self}), **self.accounts}
        for account, section in accounts.items() if self.enabled else ():
            at = ("accounts", account) if account else ()
            for name in section.needs() if section.enabled else ():
                if not section.secret(name):
                    text = f"missing; {type(self).__name__} is enabled and needs {self.secrets[name][1]}"
                    raise conflict(text, (*at, name))
        return self


def _unsaid(account: AccountSection, above: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the plain block for the keys that an account does not have, without secrets."""
    own = {*account.model_fields_set, "enabled", account.identity}
    return {
        key: above[key]
        for key in type(account).model_fields
        if key in above and key not in own and not isinstance(above[key], SecretStr)
    }

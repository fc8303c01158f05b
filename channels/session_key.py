"""Session keys: which conversation a message belongs to, as one opaque string, and back.

Pure functions of origin and configuration, used by `bot` only; names are fixed in the interface page. Two different
conversations never share a key: every part that comes from outside is escaped, so that no id holds a `:`, is one of
the words of the key itself, or is longer than `LONGEST` characters.

| where somebody writes | session key, behind `agent:main:` |
| --- | --- |
| directly, `dm_scope: main` | `main` |
| directly, `per-peer` | `direct:<person>`, or `direct:<channel:id>` of somebody who is linked to no person |
| directly, `per-channel-peer` | `<channel>:direct:<id>` |
| directly, `per-account-channel-peer` | `<channel>:<account>:direct:<id>` |
| in a group or channel, `groups.session: thread` or `chat` | `<channel>:group:<chat>`, `<channel>:channel:<chat>` |
| in a thread or topic of it, `thread` | the same with `:thread:<thread>` |
| anywhere in it, `person` | `<channel>:group:<chat>/<id>`, `<channel>:channel:<chat>/<id>` |
| where a second account of the channel is configured | `<channel>:<account>:…` |
| on the HTTP interface; in the terminal | `http:direct:<name>`; `console:direct:local` |
| by a command of this machine that names no session | `console:direct:<name>` |
| what belongs to another one | its key with `:subagent:<id>` or `:heartbeat` behind it; `job:<id>` |
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NewType
from urllib.parse import quote, unquote

from channels.message import ChatKind, Origin

SessionKey = NewType("SessionKey", str)
# How direct conversations are told apart.
DmScope = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]

LONGEST = 96
# Keys, and segments of keys, of which is kept what came out: those of the conversations in use.
_KEPT = 4096
_AGENT = "agent:main"
_HEARTBEAT = ":heartbeat"
# Stands in front of the id of a sub-agent in the key of its session.
CHILD = ":subagent:"
# Stands in front of the id of a thread in the key of its session.
THREAD = ":thread:"
_KINDS = ("direct", "group", "channel")
_OURS = ("http", "console")
_RESERVED = frozenset({"agent", "main", "thread", "job", "subagent", "heartbeat", *_OURS, *_KINDS})
# Escaped text never holds it, so a shortened id is no id that anyone could have.
_SHORTENED = "="
_EMPTY = "%"
_KEY = re.compile(
    r"(?P<base>agent:main:(?:main|job:(?P<job>[^:]+)|direct:(?P<person>[^:]+)|(?P<channel>[^:]+)(?::(?P<account>[^:]+))?"
    r":(?P<kind>direct|group|channel):(?P<chat>[^:]+)(?::thread:(?P<thread>[^:]+))?))"
    r"(?P<below>(?::subagent:[^:]+|:heartbeat)*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedKey:
    """What a key says. base: the key without the suffixes of sub-agents and heartbeat.

    kind: main, job, direct, group or channel. id: the job, person or chat. channel and account are empty where the
    key has none. Ids are as they came in; a shortened one stays shortened.
    """

    base: SessionKey
    kind: str
    id: str = ""
    channel: str = ""
    account: str = ""
    thread: str = ""
    children: tuple[str, ...] = ()
    heartbeat: bool = False


def link_index(identity_links: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """`{person: ["telegram:1", …]}` as configured, no id of two, turned round to `{"telegram:1": person}`."""
    return {linked: person for person, ids in identity_links.items() for linked in ids}


def session_key(
    origin: Origin,
    scope: DmScope,
    links: Mapping[str, str],
    with_account: bool,
    groups: Literal["chat", "thread", "person"] = "thread",
) -> SessionKey:
    """The key of the conversation that a message came from.

    links: "channel:id" of a sender to the person's name (`link_index`); an unlinked sender is a person of that one
    channel. with_account: more than one account of that channel is configured. groups: who shares a conversation in a
    chat of several people: all of the chat, each thread, or each person, wherever in the chat that is.
    """
    place = origin.place
    if place.kind is ChatKind.CONSOLE:
        return console_key()
    if place.kind is ChatKind.API:
        return http_key(place.chat)
    if place.kind is ChatKind.DIRECT:
        kind, chat = "direct", origin.sender or place.chat
        if scope == "main":
            return SessionKey(f"{_AGENT}:main")
        if scope == "per-peer":
            sender = f"{place.channel}:{chat}"
            return SessionKey(f"{_AGENT}:direct:{escaped(links.get(sender, sender))}")
        with_account = with_account or scope == "per-account-channel-peer"
    else:
        kind, chat = ("group" if place.kind is ChatKind.GROUP else "channel"), place.chat
    shared = kind != "direct" and groups != "thread"
    if shared and groups == "person":
        chat = f"{_quoted(chat)}/{_quoted(origin.sender)}"
    account = f":{escaped(place.account)}" if with_account else ""
    thread = f":thread:{escaped(place.thread)}" if place.thread and not shared else ""
    return SessionKey(f"{_AGENT}:{escaped(place.channel)}{account}:{kind}:{escaped(chat)}{thread}")


def http_key(name: str) -> SessionKey:
    """The session of that name on the HTTP interface."""
    return SessionKey(f"{_AGENT}:http:direct:{escaped(name)}")


@lru_cache(maxsize=_KEPT)
def console_key(name: str = "local") -> SessionKey:
    """The session of the terminal; with a name, one of a command of this machine, which no other program can reach."""
    return SessionKey(f"{_AGENT}:console:direct:{escaped(name)}")


def threads_of(key: str) -> str:
    """What the keys begin with of the threads of a chat, by the key of what is said there outside of them."""
    return f"{key}{THREAD}"


def job_key(job_id: str, read_in: str = "") -> SessionKey:
    """The session of a job that has one of its own.

    read_in: the key of the conversation in which it answers, where others than owners read.
    """
    return SessionKey(f"{_AGENT}:job:{escaped(f'{job_id}@{read_in}' if read_in else job_id)}")


def read_in(job: ParsedKey) -> str:
    """The key of the conversation in which a job answers where others than owners read; of another job empty."""
    return job.id.partition("@")[2]


def heartbeat_key(key: str) -> SessionKey:
    """The session of isolated beats of another one."""
    return SessionKey(f"{key.removesuffix(_HEARTBEAT)}{_HEARTBEAT}")


def beats_of(key: str) -> str:
    """The session whose isolated beats have this key; empty where it is no such key."""
    return key.removesuffix(_HEARTBEAT) if key.endswith(_HEARTBEAT) else ""


def child_key(parent: str, ident: str) -> SessionKey:
    """The session of a sub-agent of another one."""
    return SessionKey(f"{parent}{CHILD}{escaped(ident)}")


def parent_of(key: str) -> str:
    """The session that has started the sub-agent with this key; empty where it is no such key."""
    return key.rpartition(CHILD)[0]


def root_of(key: str) -> str:
    """The session to which a sub-agent, and those that it has started, belong; else the key itself."""
    return key.partition(CHILD)[0]


def is_main(key: str) -> bool:
    """Whether the direct messages of several people are the session with this key."""
    return key == f"{_AGENT}:main"


def begins_anew(key: str) -> bool:
    """Whether nothing is left of an earlier turn in a session when the next one begins: isolated beats, jobs."""
    return key.endswith(_HEARTBEAT) or key.startswith(f"{_AGENT}:job:")


@lru_cache(maxsize=_KEPT)
def parse(key: str) -> ParsedKey:
    """What a key says; raises ValueError when these functions could not have made it."""
    found = _KEY.fullmatch(key)
    if found is None or found["below"].count(":heartbeat") > 1:
        raise ValueError(f"not a session key: {key!r}")
    base, job, person, channel, account, kind, chat, thread, below = found.groups("")
    return ParsedKey(
        base=SessionKey(base),
        kind=kind or ("job" if job else "direct" if person else "main"),
        id=_unescape(job or person or chat),
        channel=channel if channel in _OURS else _unescape(channel),
        account=_unescape(account),
        thread=_unescape(thread),
        children=tuple(map(_unescape, re.findall(":subagent:([^:]+)", below))),
        heartbeat=":heartbeat" in below,
    )


def _quoted(text: str) -> str:
    return quote(text, safe="@", errors="surrogatepass")


@lru_cache(maxsize=_KEPT)
def escaped(text: str) -> str:
    """One segment of a key: no `:`, no reserved word, bounded; different texts give different segments."""
    quoted = _quoted(text)
    if len(quoted) > LONGEST:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        kept = quoted[: LONGEST - len(digest) - 1]
        # Half an escape sequence at the end says nothing.
        while "%" in kept[-2:]:
            kept = kept[: kept.rindex("%")]
        return f"{kept}{_SHORTENED}{digest}"
    if quoted in _RESERVED:
        return f"%{ord(quoted[0]):02X}{quoted[1:]}"
    return quoted or _EMPTY


def _unescape(segment: str) -> str:
    """The text that was escaped, the segment itself when it was shortened or is not there; else ValueError."""
    if segment in ("", _EMPTY):
        return ""
    if _SHORTENED in segment:
        return segment
    text = unquote(segment, errors="surrogatepass")
    if escaped(text) != segment:
        raise ValueError(f"not a part of a session key: {segment!r}")
    return text

"""What of a configuration, its files and what is stored lets others in further than need be: `hark security audit`.

Each finding is a function below, and `FINDERS` names them all. They look, and change nothing.
"""

import os
import re
import shlex
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bot.config.document import Document
from bot.config.errors import dotted
from bot.config.explain import is_secret
from bot.config.model import Config, accounts_of, is_loopback
from channels.settings import AccountSection, ToolLists

Severity = Literal["critical", "warning", "note"]
# How long somebody may be silent before they are named, in days.
SILENT = 90
_COMMON = re.compile(
    r"password|passw0rd|secret|changeme|change-me|token|admin|qwerty|letmein|example|123456|abcdef", re.I
)
_VARIETY = 10
# Programs that run what their arguments say, so that a rule for them is one for everything.
_RUN_ANYTHING = re.compile(r"(?:ba|da|z)?sh|env|sudo|su|xargs|python[\d.]*|perl|ruby|node|ssh|docker|find|awk|eval")
# What the configuration refuses and an auditor looks for, by the end of the key; a service does not start with it.
_REFUSED = {
    "gateway.host": "gateway-exposed",
    "gateway.token": "gateway-token-weak",
    "signing_secret": "webhook-no-secret",
}
_WHO = {"owners", "approvers", "allow_from", "users", "roles", "allow"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that could be closed."""

    id: str
    severity: Severity
    # The dotted key of the configuration; empty where none is behind it.
    key: str
    text: str
    # The line to change, or the command that changes it.
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """What is looked at."""

    config: Config
    # What is written, with its mistakes.
    document: Document
    # The sandbox of commands, for people; it begins with "none" where there is none.
    sandbox: str
    # Who was let in and wrote nothing for so long, as `channel:id`.
    silent: Sequence[str]
    # What was allowed for always: the rule as (program, its arguments or None for any) and how people read it.
    grants: Sequence[tuple[str, Sequence[str] | None, str]]


def findings(audited: Audited) -> list[Finding]:
    """Everything that is found, the worst first."""
    order: Sequence[Severity] = ("critical", "warning", "note")
    found = [one for finder in FINDERS for one in finder(audited)]
    return sorted(found, key=lambda one: order.index(one.severity))


def _bots(config: Config) -> Iterator[tuple[str, AccountSection]]:
    """Yield the accounts that are used, with their keys."""
    used = {id(bot) for one in config.channels.sections().values() if one.enabled for bot in one.bots().values()}
    yield from ((dotted(at), bot) for at, bot in accounts_of(config.channels) if id(bot) in used and bot.enabled)


def _open(of: Audited) -> dict[str, str]:
    """The keys of policies that let everybody in, also in sections with mistakes, and what they are for."""
    written = {dotted(path) for path, place in of.document.places.items() if place.written == "open"}
    used = {
        f"{at}.{part}.policy"
        for at, bot in _bots(of.config)
        for part, rules in (("dm", bot.dm), ("groups", bot.groups))
        if rules.policy == "open"
    }
    where = {".dm.policy": "directly", ".groups.policy": "in any group"}
    wrong = {dotted(one.key[:2]) for one in of.document.problems}
    found = used | {key for key in written if key.startswith(tuple(wrong))}
    return {key: words for key in sorted(found) for end, words in where.items() if key.endswith(end)}


def _mistakes(of: Audited) -> Iterator[Finding]:
    for one in of.document.problems:
        key, fix = dotted(one.key), "correct it; `hark config check` shows all mistakes"
        known = next((name for end, name in _REFUSED.items() if key.endswith(end) and not one.unset), "")
        severity: Severity = "critical" if known else "note" if one.unset else "warning"
        yield Finding(known or "configuration", severity, key, one.text if key else str(one), fix)


def _open_policies(of: Audited) -> Iterator[Finding]:
    for key, where in _open(of).items():
        other = "pairing" if "dm" in key else "allowlist"
        yield Finding("open-policy", "warning", key, f"Everybody may write to the bot {where}.", f"{key}: {other}")


def _full_and_open(of: Audited) -> Iterator[Finding]:
    doors = list(_open(of))
    if of.config.tools.exec.security == "full" and doors:
        text = f"Commands run without a question while {doors[0]} lets everybody write."
        yield Finding("exec-full-open", "critical", "tools.exec.security", text, "tools.exec.security: allowlist")


def _open_tools(of: Audited) -> Iterator[Finding]:
    """Yield where people who are no owners have commands or all tools, and anybody there may write."""
    for at, bot in _bots(of.config):
        groups = [(f"{at}.groups.allow.{name}", one) for name, one in bot.groups.allow.items()]
        open_groups = [(key, one.tools) for key, one in groups if not one.users and not one.roles]
        doors = bot.dm.policy == "open" or bot.groups.policy == "open" or open_groups
        for key, tools in ((at, bot.tools), *open_groups) if doors else ():
            if _is_wide(tools):
                text = "Everybody who may write there has tools that act on this machine."
                yield Finding("open-tools", "critical", f"{key}.tools", text, f"{key}.tools.profile: guest")
    for who, tools in of.config.tools.by_sender.items():
        if who.endswith(":*") and _is_wide(tools):
            text = f"Everybody on {who.partition(':')[0]} has tools that act on this machine."
            yield Finding("open-tools", "critical", f"tools.by_sender.{who}", text, "name single people by their ids")


def _is_wide(tools: ToolLists) -> bool:
    names = {name.lower() for name in tools.allow or ()}
    denied = {name.lower() for name in tools.deny}
    wide = tools.profile in ("coding", "full") or any(name in ("exec", "*", "group:runtime") for name in names)
    return wide and not denied & {"exec", "*", "group:runtime"}


def _wildcards(of: Audited) -> Iterator[Finding]:
    for path, place in of.document.places.items():
        names = {part for part in path[:-1] if isinstance(part, str)}
        if names & _WHO and "tools" not in names and "*" in (place.written[-1:], path[-1]):
            text = "`*` among those who are let in stands for everybody, or for nobody; ids are meant."
            fix = f"{dotted(path[:-1])}: the ids of single people or groups"
            yield Finding("wildcard", "warning", dotted(path), text, fix)


def _gateway(of: Audited) -> Iterator[Finding]:
    if any(one.key[:1] == ("gateway",) for one in of.document.problems):
        return  # what is written there is refused
    gateway = of.config.gateway
    token = gateway.token.get_secret_value() if gateway.token else ""
    new = "gateway.token: file:<path>, with a file that `openssl rand -hex 32` wrote"
    if not is_loopback(gateway.host):
        text = f"The HTTP interface listens on {gateway.host}, which other machines reach, and it speaks no TLS."
        yield Finding("gateway-exposed", "warning", "gateway.host", text, "gateway.host: 127.0.0.1")
    weak = len(set(token)) < _VARIETY or _COMMON.search(token) or len(token) < 2 * _VARIETY
    if token and weak:
        severity: Severity = "warning" if is_loopback(gateway.host) else "critical"
        text = "The token of the HTTP interface can be guessed: it is short, has few characters or a common word."
        yield Finding("gateway-token-weak", severity, "gateway.token", text, new)
    if not token and gateway.port:
        text = "Every program of this machine may talk to the bot over HTTP, as a guest."
        yield Finding("gateway-no-token", "note", "gateway.token", text, new)


def _webhooks(of: Audited) -> Iterator[Finding]:
    for at, bot in _bots(of.config):
        listen = getattr(bot, "listen", None) if getattr(bot, "mode", "") in ("http", "webhook") else None
        if listen is not None and not is_loopback(listen.host):
            text = (
                f"The webhook listens on {listen.host} without TLS; a proxy that speaks HTTPS belongs in front of it."
            )
            yield Finding("webhook-exposed", "warning", f"{at}.listen.host", text, f"{at}.listen.host: 127.0.0.1")


def _files(of: Audited) -> Iterator[Finding]:
    """Yield files that other users of this machine may read or change."""
    config = of.config
    files = {file: "the configuration" for file in config.source.files[:1] if of.document.file}
    files |= {file: "secrets" for file in config.source.files[bool(of.document.file) :]}
    inside = ("hark.db", "hark.db-wal", "hark.db-shm", "hark.sock", "hark.log", "hark.log.1", "payloads.jsonl")
    files |= {config.state: "the database and the socket", **{config.state / one: "what was said" for one in inside}}
    closed = _others(config.state) == 0
    for file, what in files.items():
        if not (others := _others(file)) or (closed and file.parent == config.state):
            continue
        severity: Severity = "critical" if others & 0o022 else "warning"
        if severity == "warning" and what == "the configuration" and not any(_keys_in_the_clear(of)):
            severity = "note"
        mode = "700" if file.is_dir() else "600"
        text = f"Other users of this machine may {'change' if others & 0o022 else 'read'} {file}, which holds {what}."
        key = "state" if config.state in (file, file.parent) else ""
        yield Finding("readable-file", severity, key, text, f"chmod {mode} {shlex.quote(str(file))}")


def _others(file: Path) -> int:
    try:
        return stat.S_IMODE(file.stat().st_mode) & 0o077
    except OSError:
        return 0


def _folders(of: Audited) -> Iterator[Finding]:
    workspace, state = of.config.workspace.resolve(), of.config.state.resolve()
    if state.is_relative_to(workspace):
        text = f"The state folder lies in the workspace {workspace}, so the agent reads and writes its own database."
        yield Finding("state-in-workspace", "critical", "state", text, "state: a folder beside the workspace")
    for file in of.config.source.files:
        if file.exists() and file.resolve().is_relative_to(workspace):
            text = f"{file} lies in the workspace, where the agent reads and writes."
            yield Finding("secret-in-workspace", "critical", "workspace", text, "move it out of the workspace")


def _sandbox(of: Audited) -> Iterator[Finding]:
    if of.config.tools.exec.security != "deny" and of.sandbox.startswith("none"):
        full = of.config.tools.exec.security == "full"
        text = f"No sandbox holds commands ({of.sandbox.removeprefix('none: ')})."
        fix = "install bubblewrap and set tools.exec.sandbox: auto, or tools.exec.security: deny"
        yield Finding("no-sandbox", "critical" if full else "warning", "tools.exec.sandbox", text, fix)


def _exec(of: Audited) -> Iterator[Finding]:
    settings = of.config.tools.exec
    if settings.security == "full" and not of.sandbox.startswith("sandlock"):  # which holds only looks
        text = "All commands that the sandbox holds run without a question, with network."
        yield Finding("exec-full", "note", "tools.exec.security", text, "tools.exec.security: allowlist")
    for key in ("ask_fallback",) * (settings.ask_fallback == "full") + ("ask",) * (settings.ask == "off"):
        text = "A command about which nobody decides may run all the same." if key == "ask_fallback" else ""
        text = text or "Nobody is ever asked about a command."
        fix = f"tools.exec.{key}: {'deny' if key == 'ask_fallback' else 'on-miss'}"
        yield Finding("exec-unasked", "warning" if key == "ask_fallback" else "note", f"tools.exec.{key}", text, fix)


def _rules(of: Audited) -> Iterator[Finding]:
    from agent.shell import parse_rule  # most configurations have none

    for number, text in enumerate(of.config.tools.exec.allowlist):
        rule = parse_rule(text)
        if _is_broad(rule.binary, rule.arguments):
            says = f"The rule `{text}` lets a program run on this machine with almost any arguments."
            key = f"tools.exec.allowlist[{number}]"
            yield Finding("broad-rule", "warning", key, says, f"{key}: the whole command, as `git push origin main`")
    for number, (binary, arguments, words) in enumerate(of.grants, 1):
        if _is_broad(binary, arguments):
            text = f"What was allowed for always is broad: {words}."
            yield Finding("broad-grant", "warning", "", text, f"hark approvals forget {number}")


def _is_broad(binary: str, arguments: Sequence[str] | None) -> bool:
    """Whether a rule covers many programs, any arguments, or a program that runs whatever it is told."""
    if re.search(r"[*?\[]", binary) or arguments is None:
        return True
    globs = [one for one in arguments if set(one) <= set("*")]
    return bool(globs) and (len(globs) == len(arguments) or bool(_RUN_ANYTHING.fullmatch(os.path.basename(binary))))


def _keys_in_the_clear(of: Audited) -> Iterator[Finding]:
    for path, place in of.document.places.items():
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        written = place.written.startswith(("file:", "command:")) or "${" in place.written
        if place.is_text and is_secret((name,)) and place.written and not written:
            key, text = dotted(path), "This secret stands in the configuration file itself."
            yield Finding("key-in-the-clear", "note", key, text, f"{key}: file:<path>, or ${{NAME}} with NAME in .env")


def _people(of: Audited) -> Iterator[Finding]:
    for who in of.silent:
        text = f"{who} was let in and has not written for {SILENT} days."
        yield Finding("silent-person", "note", "", text, f"hark people revoke {who}")
    if not of.config.owners and any(True for _ in _bots(of.config)):
        text = "No owner is named, so nobody on a platform can decide what is asked."
        yield Finding("no-owner", "note", "owners", text, 'owners: ["<channel>:<your id>"]')


def _rest(of: Audited) -> Iterator[Finding]:
    if hosts := of.config.web.fetch.allow_private:
        text = f"Pages of the private network can be fetched: {', '.join(map(str, hosts))}."
        yield Finding("private-network", "note", "web.fetch.allow_private", text, "web.fetch.allow_private: []")
    if of.config.telemetry.payloads:
        text = "All that people write is kept in payloads.jsonl besides the database."
        yield Finding("payload-log", "note", "telemetry.payloads", text, "telemetry.payloads: false")
    if os.geteuid() == 0:
        security = of.config.tools.exec.security
        held = security == "deny" or (security == "allowlist" and not of.sandbox.startswith("none"))
        text = "Hark runs as root here, so a command outside of the sandbox may do anything."
        fix = "run it as a user of its own: useradd --system hark"
        yield Finding("root", "note" if held else "warning", "", text, fix)


FINDERS = (
    _mistakes,
    _open_policies,
    _full_and_open,
    _open_tools,
    _wildcards,
    _gateway,
    _webhooks,
    _files,
    _folders,
    _sandbox,
    _exec,
    _rules,
    _keys_in_the_clear,
    _people,
    _rest,
)

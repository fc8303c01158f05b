"""Every command, by who types it and where: it is carried out, or for them it does not exist and the model answers."""

from pathlib import Path
from typing import Any

import pytest

from bot.commands.registry import Registry
from channels.message import ChatKind, InboundMessage, Origin, Place
from tests.service import Hark, running

# Who has each command besides owners, who have all of them everywhere.
TABLE = {
    **dict.fromkeys(("help", "start", "status", "whoami", "stop", "retry", "tools", "answer"), "everybody everywhere"),
    "reanswer": "everybody everywhere",
    **dict.fromkeys(("new", "reset", "compact", "model", "models", "think", "verbose", "reasoning"), "guests directly"),
    **dict.fromkeys(("usage", "context", "queue", "undo", "redo", "fork", "activation", "memory"), "guests directly"),
    "voice": "guests directly",
    **dict.fromkeys(("approve", "approvals"), "approvers"),
    **dict.fromkeys(("freeze", "thaw", "restart", "config", "pairing", "allowlist", "people", "send"), "owners"),
    **dict.fromkeys(("why", "budget", "heartbeat", "schedule", "sessions", "export"), "owners"),
    **dict.fromkeys(("skills", "skill", "subagents"), "owners"),
}
# What is typed so that the command changes nothing here; else its name alone.
TYPED = {"restart": "/restart nothing", "freeze": "/freeze nothing"}
PEOPLE = {"owner": "1", "guest": "2", "approver": "3"}
PLACES = {
    "direct": lambda sender: Place(channel="telegram", account="bot", chat=sender, kind=ChatKind.DIRECT),
    "group": lambda _: Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP),
    "thread": lambda _: Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP, thread="7"),
}
CONFIG: dict[str, Any] = {
    "approvals": {"approvers": ["telegram:3"]},
    "channels": {"telegram": {"groups": {"allow": {"-5": {"require_mention": False}}}}},
}


def has(who: str, where: str, row: str) -> bool:
    """Whether somebody has a command there, by the table."""
    return {
        "everybody everywhere": True,
        "guests directly": who == "owner" or where == "direct",
        "approvers": who in ("owner", "approver"),
        "owners": who == "owner",
    }[row]


def typed(hark: Hark, registry: Registry) -> list[tuple[str, str]]:
    """Each name that can be typed, with its command; first those that need a model once something was said."""
    names = [(name, one.name) for one in registry.commands for name in (one.name, *one.aliases)]
    return sorted(names, key=lambda pair: pair[1] not in ("retry", "compact"))


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("who", PEOPLE)
async def test_a_command_is_there_for_who_may_use_it_and_for_nobody_else(tmp_path: Path, who: str, where: str) -> None:
    wrong = []
    async with running(tmp_path, config=CONFIG) as hark:
        registry = hark.service.parts.pipeline.registry
        for number, (name, command) in enumerate(typed(hark, registry)):
            text = TYPED.get(name, f"/{name}")
            place, ident = PLACES[where](PEOPLE[who]), f"9{number}"
            origin = Origin(place=place, sender=PEOPLE[who], message_id=ident)
            said: InboundMessage = hark.message(text, PEOPLE[who], origin=origin, event_key=f"m:{place.chat}:{ident}")
            asked = len(hark.model.requests)
            await hark.accept(said)
            await hark.until(lambda: not hark.stored.unfinished(), f"the answer to {text}")
            carried_out = len(hark.model.requests) == asked
            if carried_out is not has(who, where, TABLE[command]):
                wrong.append(f"{text}: {'carried out' if carried_out else 'answered by the model'}")
    assert wrong == []


async def test_menus_name_what_somebody_but_owners_has(tmp_path: Path) -> None:
    async with running(tmp_path, config=CONFIG) as hark:
        menu = {info.name for info in hark.service.parts.pipeline.commands()}
        names = {one.name for one in hark.service.parts.pipeline.registry.commands}
    assert menu == {name for name in names if TABLE[name] != "owners"} - {"answer", "reanswer"}

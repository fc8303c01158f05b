"""Every key of the configuration takes effect in a running service, where it is looked for, or needs a restart."""

import copy
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML

from agent.tools.exec import ExecTool
from bot.config.changes import changed, is_live
from bot.config.errors import KeyPath, dotted
from bot.config.model import Config
from bot.reload.reload import Reload
from bot.runs.lanes import CHILDREN, PEOPLE
from bot.runs.rooms import Furniture
from channels.message import ChatKind, Place
from channels.session_key import console_key
from tests.bot.reload.house import HOME, Json, house

NOWHERE = "http://127.0.0.1:9"
TOKENS = {"telegram": f"123456:{'a' * 35}", "discord": f"{'a' * 24}.{'b' * 6}.{'c' * 27}"}
CHANNELS: Json = {
    "telegram": {"token": TOKENS["telegram"], "base_url": f"{NOWHERE}/bot", "base_file_url": f"{NOWHERE}/file"},
    "discord": {"token": TOKENS["discord"], "base_url": NOWHERE, "gateway_url": "ws://127.0.0.1:9"},
    "slack": {"bot_token": "xoxb-1-2-abc", "app_token": "xapp-1-A-2-abc", "base_url": f"{NOWHERE}/api/"},
}
CHANNELS["slack"]["signing_secret"] = "f" * 32
SOMEWHERE = Place(channel="telegram", account="bot", chat="5", kind=ChatKind.DIRECT)
PRICE = {"input": 1, "output": 2}
DOCUMENT: Json = {
    **HOME,
    "agent": {"drain_seconds": 0, "thinking": "low"},
    "channels": {**HOME["channels"], **CHANNELS},
    "memory": {"embeddings": {"base_url": NOWHERE, "model": "m"}},
    "web": {"search": {"base_url": NOWHERE}},
    "providers": {"mine": {"api": "openai-chat", "base_url": NOWHERE, "models": {"m": {"price": PRICE}}}},
}
# Values of which one is another valid value for each key that has no choice.
VALUES: list[object] = YAML(typ="safe", pure=True).load(f"""
[true, false, 2, 7, 0.5, 50, 100, 1000, 5000, 45s, "10:30", Europe/Berlin, mine/m, "telegram:5", "agent:main:main",
 ["telegram:5"], [write], [a], [ls], [{{model: mine/m}}], ["127.0.0.1:80"], ["123"], [C0123456789], [U0123456789], {{}},
 {{"telegram:5": {{deny: [write]}}}}, {{web: allow}}, {{a: ["telegram:5"]}}, {{direct: {{idle: 1h}}}},
 {{telegram: {{idle: 1h}}}}, {{telegram: [a]}},
 {{"5": {{}}}}, {{"-100": {{}}}}, {{C0123456789: {{}}}}, {{"12345678901234567": {{}}}},
 [mine/m], [{{action: deny}}], [stt, "{{file}}"],
 {{agent_end: [{{url: "{NOWHERE}"}}]}},
 {{send: false}}, {{x: {{token: "{TOKENS["telegram"]}c"}}}}, {{x: {{token: "{TOKENS["discord"]}c"}}}},
 {{x: {{bot_token: xoxb-1-2-abe, app_token: xapp-1-A-2-abe}}}}, {{x: {{api: openai-chat, base_url: "{NOWHERE}"}}}},
 {{endpoint: "{NOWHERE}"}}, {{s: {{url: "{NOWHERE}"}}}}, "{NOWHERE}/other", "ws://127.0.0.1:8", localhost,
 /somewhere, word, secret-123456789, xoxb-1-2-abd, xapp-1-A-2-abd,
 "{TOKENS["telegram"]}b", "{TOKENS["discord"]}b", "{"0" * 32}"]
""")


def leaves(section: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    """All keys of the schema that hold a value, but for what stands below names that people choose."""
    if not isinstance(section, BaseModel):
        yield path
        return
    for name, field in type(section).model_fields.items():
        yield from leaves(getattr(section, name), (*path, field.alias or name))


def written(document: Json, path: KeyPath, value: object) -> Json:
    found = copy.deepcopy(document)
    here: Any = found
    for part in path[:-1]:
        here = here.setdefault(part, {})
    here[path[-1]] = value
    return found


def choices(path: KeyPath) -> list[object]:
    """What the schema lists for a key."""
    section: Any = Config()
    for part in path[:-1]:
        section = next(
            getattr(section, name) for name, f in type(section).model_fields.items() if (f.alias or name) == part
        )
    field = next(f for name, f in type(section).model_fields.items() if (f.alias or name) == path[-1])
    return [one for annotation in (field.annotation, *get_args(field.annotation)) for one in get_args(annotation)]


def another(path: KeyPath, now: Config) -> Json:
    """The document with another valid value at a key, which changes nothing else."""
    for value in itertools.chain((one for one in choices(path) if isinstance(one, str)), tuple(VALUES)):
        document = written(DOCUMENT, path, value)
        try:
            found = Config.model_validate(document)
        except ValidationError:
            continue
        if [one[: len(path)] for one in changed(now, found)] == [path]:
            if value in VALUES:  # what serves one key serves its neighbours
                VALUES.insert(0, VALUES.pop(VALUES.index(value)))
            return document
    pytest.fail(f"no other value for {dotted(path)}")


def at_work(reload: Reload, room: Furniture) -> dict[str, object]:
    """What the parts of the service work by, by the keys that decide it."""
    specs, runs, requests = reload.specs, reload.runs, reload.runs.requests
    toolbox, (command,) = specs.toolbox, (one for one in room.tools if isinstance(one, ExecTool))
    seconds, permission = vars(command)["_timeout_seconds"], vars(command)["_permission"]
    allowed = vars(permission.judge)["_allowlist"]
    turns, lanes = runs.store.turns, reload.lanes
    return {
        "owners": runs.rooms.people.owners,
        "agent.fallbacks": [one.model for one in reload.fleet.fallbacks],
        "agent.thinking": specs.answerer.thinking,
        "agent.timeout_seconds": specs.answerer.limits.timeout,
        "agent.idle_timeout_seconds": specs.answerer.limits.idle_timeout,
        "guests": runs.rooms.disk and runs.rooms.disk.limit,
        "agent.max_steps": specs.answerer.limits.max_steps,
        "agent.max_concurrent": vars(lanes)["_shares"][PEOPLE].places,
        "agent.subagents": (reload.subagents.agent.subagents, vars(lanes)["_shares"][CHILDREN].places),
        "agent.receipts": runs.receipts.mode,
        "agent.drain_seconds": reload.restart.drain_seconds,
        "agent.guest_models": specs.guest_models,
        "sessions.reset": getattr(turns.stale, "args", ())[:1],
        "sessions.prune": reload.sessions.pruning,
        "queue": reload.routing.queue,
        "memory.digest_every": reload.config.memory.digest_every,
        "queue.stop_words": vars(reload.routing.registry)["_stop_words"],
        "heartbeat": (reload.dispatcher.beats.settings, reload.presentation.heartbeat),
        "heartbeat.thinking": specs.beating.thinking,
        "heartbeat.timeout_seconds": specs.beating.limits.timeout,
        "heartbeat.light_context": specs.prompts.light_beats,
        "schedules": reload.dispatcher.starter.most,
        "tools": toolbox.permissions.tools,
        "tools.require_approval": specs.rules.asked_for,
        "tools.untrusted": specs.rules.origins and specs.rules.origins.untrusted,
        "tools.message.reach": toolbox.messaging.reach,
        "tools.exec": (
            seconds,
            permission.asking,
            permission.fallback,
            permission.in_sandbox,
            permission.network,
            allowed,
        ),
        "approvals": requests.settings,
        "approvals.approvers": reload.askers.approvers,
        "compaction": specs.compaction,
        "memory": vars(reload.memory)["_settings"],
        "budget": specs.keeping.budgets.limits,
        "skills": specs.rooms.skills.settings,
        "web": [one for one in room.tools if one.name.startswith("web_")],
    }


def observed(path: KeyPath, work: Mapping[str, object]) -> list[object]:
    """What a key decides, of the longest names that stand above it."""
    name = dotted(path)
    above = [one for one in work if name == one or name.startswith(f"{one}.")]
    return [work[one] for one in above]


async def test_every_key_takes_effect_or_is_said_to_need_a_restart(tmp_path: Path) -> None:
    async with house(tmp_path, DOCUMENT, channels=()) as hark:
        reload, plain = hark.reload, Config.model_validate(DOCUMENT)

        async def state() -> tuple[dict[str, object], dict[str, object]]:
            work = at_work(reload, reload.specs.rooms.inside(console_key()))
            work["send_policy"] = await reload.runs.store.settings.denied_by(console_key(), SOMEWHERE)
            return work, {one.label: one for one in reload.presentation.accounts}

        for path in leaves(reload.config):
            if path[:2] == ("channels", "console"):
                continue
            before, accounts = await state()
            hark.write(another(path, plain))
            done = await reload.again()
            name = dotted(path)
            assert not done.mistakes, (name, done.mistakes)
            found = [one for one in (*done.applied, *done.waiting) if one.startswith(name)]
            assert len(found) == 1, (name, done)
            assert bool(done.applied) is is_live(path), name
            assert len(hark.lines(f"{found[0]} ")) == 1, hark.log
            after, now = await state()
            if path[0] == "channels":
                others = {label for label in accounts if not label.startswith(str(path[1]))}
                assert all(accounts[label] is now[label] for label in others), name
                assert accounts != now, name
            elif is_live(path):
                pairs = list(zip(observed(path, before), observed(path, after), strict=True))
                assert pairs, f"{name}: nothing shows that it took effect"
                assert all(old != new for old, new in pairs), name
            else:
                assert "restart" in hark.lines(f"{found[0]} ")[0]
                assert observed(path, before) == observed(path, after)
            hark.write(DOCUMENT)
            assert not (await reload.again()).waiting, name
            hark.log.clear()

"""Extensions: what is named is loaded, nothing else is, and what is broken is a sentence and never a failed start."""

from pathlib import Path
from typing import Any

import pytest

from agent import models
from agent.errors import ModelError
from agent.events import ToolExecutionEnd
from agent.hooks import BeforeToolCall, Hooks
from agent.message import Message, Text
from agent.models.base import ModelRequest
from agent.tools.base import RunContext
from bot.config.changes import changed, merged
from bot.config.checks import warnings
from bot.config.choose_model import as_written
from bot.config.errors import ConfigError, dotted
from bot.config.extensions import load
from bot.config.load import load as read
from bot.config.model import Config
from channels.base import HealthState
from tests.installed import Site, site
from tests.service import running
from tests.serving import serving

__all__ = ["site"]

SETTINGS = """
from typing import ClassVar
from channels.settings import AccountSection

class Shout(AccountSection):
    identity: ClassVar[str] = "voice"
    secrets: ClassVar[dict] = {}
    voice: str = "loud"

SECTION = Shout
"""
TOOLS = """
from contextlib import asynccontextmanager
from agent.events import ToolExecutionEnd
from agent.message import ToolOutput
from agent.tools.base import Parameters, Tool

class Plain(Tool[Parameters]):
    name, description, parameters = "shout", "Shouts.", Parameters

    async def sink(self, parameters, context):
        return "look"

    async def run(self, parameters, context):
        return ToolOutput(text="HEY")

class More(Plain):
    name = "shout_more"

class Elsewhere(Plain):
    name = "exec"

class Undeclared(Tool[Parameters]):
    name, description, parameters = "shout_quietly", "Says not where it goes.", Parameters

@asynccontextmanager
async def make(run):
    yield [Plain(), Elsewhere(), Undeclared(), More()]

@asynccontextmanager
async def fail(run):
    raise RuntimeError("no voice")
    yield []
"""
HOOKS = """
from agent.hooks import Hook

async def never(event):
    return {"block": True, "reason": "never"}

def Never():
    return Hook(point="before_tool_call", name="never", call=never)
"""
REQUEST = ModelRequest(system="", messages=(Message("user", (Text("hi"),)),), tools=(), max_output=10)


def config(folder: Path, text: str) -> Config:
    """The configuration with this text, and no mistakes."""
    (folder / "config.yaml").write_text(f"agent: {{model: offline/offline}}\n{text}")
    return read(None, {}, folder)


def test_only_what_is_named_is_imported(site: Site, tmp_path: Path) -> None:
    mark = f"open({str(tmp_path / 'mark')!r}, 'w').close()\ndef make(run): ..."
    site.install("loud", {"hark.tools shout": "loud:make"}, loud=mark)
    config(tmp_path, "")
    assert not (tmp_path / "mark").exists()
    config(tmp_path, "extensions: [loud]")
    assert (tmp_path / "mark").exists()


BROKEN = {
    "missing": ({}, "is not installed where Hark is"),
    "nothing": ({"other.tools shout": "loud:fine"}, "brings nothing for Hark"),
    "no-module": ({"hark.tools shout": "gone:make"}, "ModuleNotFoundError: No module named 'gone'"),
    "raises": ({"hark.tools shout": "raising:make"}, "ZeroDivisionError: division by zero"),
    "leaves": ({"hark.hooks shout": "leaving:make"}, "SystemExit: 3"),
    "no-section": ({"hark.channels shout": "plain"}, "SECTION, a class below channels.settings.ChannelSection"),
    "no-tools": ({"hark.tools shout": "loud:NUMBER"}, "must be a function that makes the tools of a run"),
    "no-hook": ({"hark.hooks shout": "loud:NUMBER"}, "must be an agent.hooks.Hook"),
    "no-model": ({"hark.models shout": "loud:NUMBER"}, "must make an agent.models.base.ModelClient"),
    "channel-taken": ({"hark.channels telegram": "shout"}, "the name `telegram` is taken"),
    "tool-taken": ({"hark.tools exec": "loud:fine"}, "the name `exec` is taken"),
    "tool-prefix-taken": ({"hark.tools memory_of_mine": "loud:fine"}, "the name `memory_of_mine` is taken"),
    "model-taken": ({"hark.models anthropic": "loud:fine"}, "the name `anthropic` is taken"),
    "no-such-group": ({"hark.colours red": "loud:fine"}, "there is no such group"),
    "memory": ({"hark.memory mine": "loud:fine"}, "takes no memory engine of an extension yet"),
    "context": ({"hark.context mine": "loud:fine"}, "takes no context engine of an extension yet"),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_what_is_broken_is_a_sentence_and_the_service_starts(site: Site, tmp_path: Path, case: str) -> None:
    points, sentence = BROKEN[case]
    modules = {
        "loud": "NUMBER = 5\ndef fine(run): ...",
        "raising": "1 / 0",
        "leaving": "raise SystemExit(3)",
        "plain__settings": "SECTION = 5",
        "shout__settings": SETTINGS,
    }
    if points:
        site.install("loud", points, **modules)
    extended = config(tmp_path, "extensions: [loud]")
    (said,) = (one for one in warnings(extended) if sentence in one)
    assert said.startswith("loud")
    async with serving(extended) as service:
        assert service.parts.health.serving


def test_what_only_a_broken_one_could_explain_is_passed_over(site: Site, tmp_path: Path) -> None:
    text = """
owners: [shout:1, telegram:2]
heartbeat: {target: "shout:1"}
channels: {shout: {voice: [anything]}, console: {enabled: false}}
providers: {mine: {api: shout, models: {m: {}}}}
tools: {allow: [shout_more, read]}
"""
    extended = config(tmp_path, f"extensions: [loud]{text}")
    assert "channels.shout is passed over, since an extension is broken" in list(warnings(extended))
    assert not extended.channels.sections()["console"].enabled
    assert extended.owners == ("shout:1", "telegram:2")


@pytest.mark.parametrize("wrong", ["channels: {shout: {}}", "owners: [shout:1]", "tools: {allow: [shout]}"])
def test_without_an_extension_the_same_is_a_mistake(site: Site, tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ConfigError, match="shout"):
        config(tmp_path, wrong)


def test_a_section_of_its_own_is_checked_like_any_other(site: Site, tmp_path: Path) -> None:
    site.install("loud", {"hark.channels shout": "shout"}, shout__settings=SETTINGS)
    found = config(tmp_path, "extensions: [loud]\nowners: [shout:5]\nchannels: {shout: {voice: low}}")
    assert getattr(found.channels.sections()["shout"], "voice", "") == "low"
    with pytest.raises(ConfigError, match=r"4: channels\.shout\.voise: unknown key; nearest known name is `voice`"):
        config(tmp_path, "extensions: [loud]\nchannels:\n  shout: {voise: low}")


def test_one_that_is_named_meanwhile_needs_a_restart(site: Site, tmp_path: Path) -> None:
    site.install("loud", {"hark.channels shout": "shout"}, shout__settings=SETTINGS)
    old = config(tmp_path, "queue: {cap: 5}")
    new = config(tmp_path, "queue: {cap: 6}\nextensions: [loud]\nchannels: {shout: {voice: low}}")
    running = merged(old, new)
    assert (running.queue.cap, running.extensions, "shout" in running.channels.sections()) == (6, (), False)
    assert list(map(dotted, changed(running, new))) == ["channels.shout", "extensions"]


async def made(factory: Any) -> list[str]:
    run: Any = RunContext(turn_id="t", session_key="s", transcript_id="u", trusted=True, workspace=None)  # type: ignore[arg-type]
    async with factory(run) as found:
        return [tool.name for tool in found]


async def test_tools_are_named_as_their_entry_point_and_say_where_their_effect_goes(site: Site) -> None:
    site.install("loud", {"hark.tools shout": "loud:make", "hark.tools cry": "loud:fail"}, loud=TOOLS)
    assert [await made(one) for one in load(("loud",)).tools] == [["shout", "shout_more"], []]


async def test_two_extensions_do_not_share_a_name(site: Site) -> None:
    site.install("loud", {"hark.tools shout": "loud:make"}, loud=TOOLS)
    site.install("louder", {"hark.tools shout": "loud:make"})
    (said,) = load(("loud", "louder")).problems
    assert said.startswith("louder: hark.tools shout (loud:make) cannot be used: the name `shout` is taken")


@pytest.mark.parametrize(("names", "said"), [(["loud"], "HEY"), (["loud", "guard"], "never")])
async def test_tools_and_hooks_in_the_service(site: Site, tmp_path: Path, names: list[str], said: str) -> None:
    site.install("loud", {"hark.tools shout": "loud:make"}, loud=TOOLS)
    site.install("guard", {"hark.hooks never": "guard:Never"}, guard=HOOKS)
    changes = {"agent": {"model": "offline/offline"}, "extensions": names}
    async with running(tmp_path, config=changes, chosen=True) as hark:
        reply = await hark.say("call shout")
        assert said in "".join(reply.texts), reply.texts
        (end,) = reply.of(ToolExecutionEnd)
        assert end.state == ("denied" if said == "never" else "done")


async def test_where_a_hook_is_broken_no_tool_is_called(site: Site) -> None:
    site.install("loud", {"hark.hooks never": "loud:Never", "hark.hooks gone": "loud:Gone"}, loud=HOOKS)
    call = BeforeToolCall(session_key="s", turn_id="t", call_id="c", tool_name="read", tool_input={})
    never, *shut = load(("loud",)).hooks
    assert await Hooks((never,)).ask(call) == (call, "never")
    _, reason = await Hooks(shut).ask(call)
    assert reason is not None
    assert reason.startswith("No tool can be used: a hook is broken")


async def test_a_model_api(site: Site, tmp_path: Path) -> None:
    source = "from agent.models.base import ModelClient\nclass Mine(ModelClient):\n    limits = 'Mine.'"
    site.install("loud", {"hark.models mine": "loud:Mine", "hark.models gone": "loud:Gone"}, loud=source)
    found = config(tmp_path, "extensions: [loud]\nproviders: {a: {api: mine}, b: {api: gone}}")
    assert models.build(as_written(found, "a/m")).limits == "Mine."
    with pytest.raises(ModelError, match=r"hark\.models gone \(loud:Gone\) cannot be used"):
        _ = [part async for part in models.build(as_written(found, "b/m")).stream(REQUEST)]
    with pytest.raises(ConfigError, match="allowed: anthropic, openai-chat, openai-responses, cli"):
        config(tmp_path, "providers: {a: {api: openai-chatt}}")


@pytest.mark.parametrize("adapter", ["raise OSError('no larynx')", "def build(settings, times):\n    1 / 0"])
async def test_a_broken_adapter_is_down_and_the_service_runs(site: Site, tmp_path: Path, adapter: str) -> None:
    site.install("loud", {"hark.channels shout": "shout"}, shout__settings=SETTINGS, shout__adapter=adapter)
    async with serving(config(tmp_path, "extensions: [loud]\nchannels: {shout: {voice: low}}")) as service:
        health = service.parts.health.view().channels["shout"]
        assert (health.state, health.detail.startswith("its extension is broken: ")) == (HealthState.DOWN, True)


STARTLESS = """
from channels.base import Health, HealthState
from hark_recipe import Bare

class Mute(Bare):
    async def start(self, sink):
        raise OSError("no larynx")

def build(settings, times):
    return Mute()
"""
BARE = """
from channels.base import Capabilities, Health, HealthState

class Bare:
    name, account = "shout", ""
    capabilities = Capabilities(block_chars=1000, typing_seconds=0, rules="")

    async def stop_intake(self): ...

    async def close(self): ...

    def health(self):
        return Health(HealthState.DOWN, 0, "mute")
"""


async def test_an_adapter_that_cannot_start_leaves_the_others_alone(site: Site, tmp_path: Path) -> None:
    modules = {"shout__settings": SETTINGS, "shout__adapter": STARTLESS, "hark_recipe": BARE}
    site.install("loud", {"hark.channels shout": "shout"}, **modules)
    async with serving(config(tmp_path, "extensions: [loud]\nchannels: {shout: {voice: low}}")) as service:
        assert service.parts.health.serving
        assert service.parts.health.view().channels["shout"].detail == "mute"

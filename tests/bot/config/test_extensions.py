"""Extensions: what is named is loaded, nothing else is, and what is broken is a sentence and never a failed start."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent import models
from agent.errors import ModelError
from agent.events import ToolExecutionEnd
from agent.hooks import BeforeToolCall, Hooks
from agent.message import Mark, Message, Text
from agent.models.base import ModelRequest
from agent.tools.base import RunContext
from bot.config import extensions
from bot.config.changes import changed, merged
from bot.config.checks import warnings
from bot.config.choose_model import as_written
from bot.config.errors import ConfigError, dotted
from bot.config.extensions import load
from bot.config.load import load as read
from bot.config.model import Config
from bot.people import accounts as people_accounts
from channels.base import HealthState
from tests.bot.skills.test_skills import put, results
from tests.installed import Site, site
from tests.service import Hark, running
from tests.serving import serving
from tests.standins.script import Call

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
    "no-memory": ({"hark.memory mine": "loud:NUMBER"}, "must make an agent.memory.base.MemoryEngine"),
    "no-context": ({"hark.context mine": "loud:fine"}, "must be an `async def` that sums up"),
    "interrupts": ({"hark.tools shout": "interrupting:make"}, "KeyboardInterrupt"),
    "hangs": ({"hark.tools shout": "hanging:make"}, "it took longer than 0.2 s"),
    "odd-name": ({"hark.tools shout!": "loud:fine"}, "letters, digits, `_` and `-` only"),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_what_is_broken_is_a_sentence_and_the_service_starts(
    site: Site, tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, sentence = BROKEN[case]
    if case == "hangs":
        monkeypatch.setattr(extensions, "PATIENCE", 0.2)
    modules = {
        "loud": "NUMBER = 5\ndef fine(run): ...",
        "interrupting": "raise KeyboardInterrupt",
        "hanging": "import threading\nthreading.Event().wait()",
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


UNFIT = """
class Opaque(Plain):
    name, parameters = "shout_opaque", dict

class Nameless(Plain):
    name = "shout at all"

@asynccontextmanager
async def unfit(run):
    yield [Opaque(), Nameless(), 5, Plain(), Plain()]

@asynccontextmanager
async def slow(run):
    await asyncio.Event().wait()
    yield []

@asynccontextmanager
async def messy(run):
    yield [Plain()]
    raise RuntimeError("no end")

class Odd(Plain):
    async def run(self, parameters, context):
        return "just words"

class Leaving(Plain):
    name = "shout_and_leave"

    async def run(self, parameters, context):
        raise SystemExit(3)

class Vague(Plain):
    name = "shout_somewhere"

    async def sink(self, parameters, context):
        return "wherever"

@asynccontextmanager
async def odd(run):
    yield [Odd(), Leaving(), Vague()]
"""


@pytest.mark.parametrize(("factory", "names"), [("unfit", ["shout"]), ("slow", []), ("messy", ["shout"])])
async def test_what_a_factory_does_wrong_costs_its_tools_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch, factory: str, names: list[str]
) -> None:
    if factory == "slow":
        monkeypatch.setattr(extensions, "PATIENCE", 0.05)
    site.install("loud", {"hark.tools shout": f"loud:{factory}"}, loud=f"import asyncio{TOOLS}{UNFIT}")
    (one,) = load(("loud",)).tools
    assert await made(one) == names


async def test_what_a_tool_does_wrong_is_an_error_of_its_call(site: Site, tmp_path: Path) -> None:
    site.install("loud", {"hark.tools shout": "loud:odd"}, loud=TOOLS + UNFIT)
    put(tmp_path, "report")
    async with running(tmp_path, config={"extensions": ["loud"]}) as hark:
        odd, leaving, vague = await results(
            hark, *(Call(f"shout{one}", {}) for one in ("", "_and_leave", "_somewhere"))
        )
        assert (odd.is_error, "the tool returned a str and no ToolOutput" in odd.text) == (True, True)
        assert (leaving.is_error, "SystemExit: 3" in leaving.text) == (True, True)
        assert vague.text == "HEY"
        await hark.say("go on", answers=[Call("read", {"path": "skills/report/SKILL.md"}), Call("shout_somewhere", {})])
        ((asked,),) = hark.stored.approvals("ask", state="open")
        assert "shout_somewhere" in asked


ENGINES = """
from agent.memory.base import Cited

class Finder:
    async def search(self, room, question, most):
        if "break" in question:
            raise ValueError("no index")
        names = ("memory/a.md", "AGENTS.md", "people/telegram-2/MEMORY.md", "../config.yaml", "memory/gone.md")
        return [Cited(name, 2, 3, 0.8) for name in names]

async def sum_up(messages, focus, words):
    if focus == "break":
        raise ValueError("no words")
    return f"{len(messages)} messages about {focus}."
"""


async def test_a_memory_engine_says_where_and_hark_reads_there(site: Site, tmp_path: Path) -> None:
    site.install("loud", {"hark.memory mine": "loud:Finder", "hark.memory too": "loud:Finder"}, loud=ENGINES)
    assert [one.partition("used: ")[2] for one in load(("loud",)).problems] == ["there is a memory engine already"]
    async with running(tmp_path, config={"extensions": ["loud"]}) as hark:
        (hark.service.parts.workspace / "memory").mkdir(exist_ok=True)
        (hark.service.parts.workspace / "memory" / "a.md").write_text("# A\nOne plumber.\nTwo.\nThree.\n")
        found, own = await results(
            hark, Call("memory_search", {"query": "x"}), Call("memory_search", {"query": "break: plumber"}), text="hi"
        )
        assert found.text == "memory/a.md:2-3 (0.80) One plumber. Two."
        assert own.text == "memory/a.md:2 (0.50) A: One plumber.", "where the engine fails, Hark searches itself"
        (block,) = (one.text for one in hark.model.requests[-1].messages if one.mark is Mark.RECALLED)
        assert "One plumber. Two." in block


def summaries(hark: Hark) -> int:
    return sum(event["type"] == "compaction_end" for event in hark.stored.events())


async def test_a_context_engine_sums_up_in_place_of_a_model(site: Site, tmp_path: Path) -> None:
    site.install("loud", {"hark.context mine": "loud:sum_up"}, loud=ENGINES)
    asks = "Write a summary"
    async with running(tmp_path, config={"extensions": ["loud"]}) as hark:
        hark.model.whenever(asks, "By the model.")
        for number in range(8):
            await hark.say(f"Question {number}. {'word ' * 300}", answers=[f"Answer {number}."])
        await hark.write("/compact plumbers")
        await hark.until(lambda: summaries(hark) == 1, "the summary")
        assert not [one for one in hark.model.requests if asks in one.messages[-1].text]
        await hark.say("And now?")
        assert "messages about plumbers." in hark.model.requests[-1].messages[0].text
        for number in range(8):
            await hark.say(f"Question {number}. {'word ' * 300}")
        await hark.write("/compact break")
        await hark.until(lambda: summaries(hark) == 2, "the second summary")
        assert [one for one in hark.model.requests if asks in one.messages[-1].text]


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
    call = BeforeToolCall(session_key="s", session_id="i", turn_id="t", call_id="c", tool_name="read", tool_input={})
    never, *shut = load(("loud",)).hooks
    assert await Hooks((never,)).ask(call) == (call, "never")
    _, reason = await Hooks(shut).ask(call)
    assert reason is not None
    assert reason.startswith("Nothing passes here: a hook is broken")
    assert {one.point for one in shut} == {"before_tool_call", "before_install"}


def test_a_broken_hook_that_may_have_guarded_what_is_sent_lets_nothing_be_sent(site: Site) -> None:
    site.install("loud", {"hark.hooks gone": "loud:Gone"}, loud='POINT = "message_sending"')
    (site.folder / "loud-1.0.dist-info" / "RECORD").write_text("loud.py,,\n")
    assert "message_sending" in [one.point for one in load(("loud",)).hooks]


def test_what_an_import_prints_is_no_part_of_an_output(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.install("loud", {"hark.tools shout": "loud:make"}, loud="print('HEY')\ndef make(run): ...")
    assert load(("loud",)).problems == []
    assert tuple(capsys.readouterr()) == ("", "HEY\n")


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


async def test_an_adapter_that_never_starts_is_left_behind(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people_accounts, "STARTING", 0.05)
    hanging = STARTLESS.replace('raise OSError("no larynx")', "await asyncio.Event().wait()")
    modules = {"shout__settings": SETTINGS, "shout__adapter": f"import asyncio\n{hanging}", "hark_recipe": BARE}
    site.install("loud", {"hark.channels shout": "shout"}, **modules)
    settings = config(tmp_path, "extensions: [loud]\nchannels: {shout: {voice: low}}")
    async with asyncio.timeout(60), serving(settings) as service:
        assert service.parts.health.serving


async def test_an_adapter_that_cannot_start_leaves_the_others_alone(site: Site, tmp_path: Path) -> None:
    modules = {"shout__settings": SETTINGS, "shout__adapter": STARTLESS, "hark_recipe": BARE}
    site.install("loud", {"hark.channels shout": "shout"}, **modules)
    async with serving(config(tmp_path, "extensions: [loud]\nchannels: {shout: {voice: low}}")) as service:
        assert service.parts.health.serving
        assert service.parts.health.view().channels["shout"].detail == "mute"

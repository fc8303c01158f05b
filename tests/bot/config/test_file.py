"""A key of the configuration is changed in its file, which stays as its owner wrote it."""

import os
import re
import stat
from pathlib import Path

import pytest

from bot.config.choose_model import choose_model
from bot.config.document import Tree, read_document
from bot.config.errors import ConfigError
from bot.config.file import ConfigFile
from bot.config.load import load
from bot.config.model import Config
from bot.config.providers import ModelSettings, Provider
from tests.forked import hark

WRITTEN = """\
# what I run
agent: {name: Hark, model: offline/offline} # who
owners:
    - telegram:1 # me
providers:
    mine:
        api: openai-chat
        base_url: http://127.0.0.1:9
        api_keys: [${KEY}, "${OTHER:-b}"]
        models: {a.b: {vision: true}}

# the last
queue:
    debounce_ms: 0 # at once
"""


def file(folder: Path, text: str = WRITTEN) -> ConfigFile:
    (folder / "config.yaml").write_text(text)
    return ConfigFile(None, {"KEY": "sk-123456789"}, folder)


def test_what_is_there_changes_alone(tmp_path: Path) -> None:
    found = file(tmp_path)
    found.change("queue.debounce_ms", "5")
    assert (tmp_path / "config.yaml").read_text() == WRITTEN.replace("debounce_ms: 0", "debounce_ms: 5")


def test_what_is_not_there_is_added_in_the_same_manner(tmp_path: Path) -> None:
    found = file(tmp_path)
    assert found.change("providers.mine.models.a.b.thinking", "true")[-2:] == ("a.b", "thinking")
    found.change("budget.bot.tokens", "50")
    found.change("approvals.approvers", "[telegram:2, 'telegram:3']")
    now = (tmp_path / "config.yaml").read_text()
    assert "{a.b: {vision: true, thinking: true}}" in now
    assert "budget:\n    bot:\n        tokens: 50\n" in now
    config = found.load()
    assert config.approvals.approvers == ("telegram:2", "telegram:3")
    assert config.budget.bot.tokens == 50


def test_lists_are_indented_as_they_are(tmp_path: Path) -> None:
    text = "owners:\n- telegram:1\n# here\nagent:\n  name: H\n"
    found = file(tmp_path, text)
    found.change("agent.name", "K")
    assert (tmp_path / "config.yaml").read_text() == text.replace("H", "K")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("queue.debounce", "5", "nearest known name is `debounce_ms`"),
        ("queue.debounce_ms", "soon", "allowed: "),
        ("queue.debounce_ms.more", "5", "queue.debounce_ms is no mapping"),
        ("queue.debounce_ms", "[5", "not valid YAML"),
        ("agent.model", "unknown/m", "unknown"),
        ("tools.exec.security", "full", "needs gateway.token"),
    ],
)
def test_what_would_not_load_is_refused_and_changes_nothing(tmp_path: Path, key: str, value: str, said: str) -> None:
    found = file(tmp_path)
    with pytest.raises(ConfigError, match=said):
        found.change(key, value)
    assert (tmp_path / "config.yaml").read_text() == WRITTEN
    assert os.listdir(tmp_path) == ["config.yaml"]


def test_the_mode_stays_and_a_link_too_and_a_new_file_is_for_its_owner(tmp_path: Path) -> None:
    found = file(tmp_path)
    (tmp_path / "config.yaml").rename(tmp_path / "real.yaml")
    (tmp_path / "real.yaml").chmod(0o640)
    (tmp_path / "config.yaml").symlink_to("real.yaml")
    found.change("queue.debounce_ms", "5")
    assert (tmp_path / "config.yaml").is_symlink()
    assert stat.S_IMODE((tmp_path / "real.yaml").stat().st_mode) == 0o640
    new = tmp_path / "new"
    new.mkdir()
    ConfigFile(None, {}, new).change("queue.debounce_ms", "5")
    assert (new / "config.yaml").read_text() == "queue:\n  debounce_ms: 5\n"
    assert stat.S_IMODE((new / "config.yaml").stat().st_mode) == 0o600


def test_the_command_line_sets_what_it_gets(tmp_path: Path) -> None:
    file(tmp_path, "agent: {name: Hark}\n")
    assert hark(tmp_path, "config", "set", "queue.debounce_ms", "25").code == 0
    assert hark(tmp_path, "config", "get", "queue.debounce_ms").out == "25\n"
    refused = hark(tmp_path, "config", "set", "queue.debounce_ms", "soon")
    assert refused.code == 2
    assert "allowed" in refused.error


# `config.example.yaml` shows every key with its default, and what it shows is true.

EXAMPLE = Path(__file__).parents[3] / "config.example.yaml"


def written() -> list[str]:
    return EXAMPLE.read_text(encoding="utf-8").splitlines()


def uncommented() -> str:
    """The file with every commented default made to count; lines with two signs stay comments."""
    return "\n".join(line.removeprefix("#") for line in written())


def read(folder: Path, text: str, environ: dict[str, str] | None = None) -> Config:
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    return load(None, environ or {}, folder)


def test_it_sets_nothing_as_it_is(tmp_path: Path) -> None:
    assert [line for line in written() if line and not line.startswith("#")] == []


def test_every_default_is_true(tmp_path: Path) -> None:
    nothing = read(tmp_path, "")
    assert read(tmp_path, uncommented()) == nothing


def test_every_key_is_there() -> None:
    defaults = Config().model_dump(by_alias=True, mode="json")
    assert keys_of(read_document(uncommented(), {}, "config.example.yaml").tree) == keys_of(defaults)


def test_every_default_has_its_line_of_why() -> None:
    lines = written()
    for number, line in enumerate(lines):
        is_value = re.match(r"# *[a-z_]+: ", line)
        assert not is_value or " # " in line or lines[number - 1].startswith(("##", "#workspace")), line


def test_the_example_of_providers_is_true_and_whole(tmp_path: Path) -> None:
    example = "\n".join(line.removeprefix("##| ") for line in written() if line.startswith("##|"))
    providers = read(tmp_path, example, {"ANTHROPIC_API_KEY": "sk"}).providers
    workshop, program = providers["workshop"], providers["claude-code"]
    assert workshop.model_fields_set | program.model_fields_set == set(Provider.model_fields)
    assert workshop.models["some-model"].model_fields_set == set(ModelSettings.model_fields)


def keys_of(tree: Tree, path: str = "") -> set[str]:
    if not isinstance(tree, dict):
        return {path}
    return {path} | {key for name, below in tree.items() for key in keys_of(below, f"{path}.{name}")}


def test_the_examples_of_models_are_right(tmp_path: Path) -> None:
    page = (EXAMPLE.parent / "docs" / "models.md").read_text(encoding="utf-8")
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", page), "a-key")
    servers, programs, abilities, _budgets, outages = (read(tmp_path, example, variables) for example in examples)
    assert programs.providers["claude-code"].command == ("claude",)
    assert choose_model(servers, {}, lambda url: None).name == servers.agent.model
    assert len(servers.providers) > 8
    assert abilities.providers["ollama"].models["qwen3:8b"].context_window == 32768
    assert [one.model for one in outages.agent.fallbacks] == ["openai/gpt-6.1-terra", "ollama/qwen3:8b"]

"""`config.example.yaml` shows every key with its default, and what it shows is true."""

import re
from pathlib import Path

from bot.config.choose_model import choose_model
from bot.config.document import Tree, read_document
from bot.config.load import load
from bot.config.model import Config
from bot.config.providers import ModelSettings, Provider

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

"""What is said of models that nobody knows: what is assumed of them, and which keys say otherwise."""

from pathlib import Path

import pytest
import structlog

from bot.config import price_book
from bot.config.assumed import assumed, look_up
from bot.config.choose_model import as_written
from bot.config.model import Config
from bot.config.prices import Prices
from tests.bot.config.test_cli import hark
from tests.bot.config.test_load import read

ALL = (
    "of `house/large` is assumed: a window of 128,000 tokens, a limit of output of 8,192, "
    "no price, so that it counts for nothing in money; "
    "write context_window, max_output, price at providers.house.models.large"
)
HOUSE = "providers: {house: {api: openai-chat, base_url: 'http://127.0.0.1:8000/v1', models: {%s}}}"


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_book, "_found", {})


def said(tmp_path: Path, text: str) -> list[str]:
    return list(assumed(read(tmp_path, text)))


@pytest.mark.parametrize(
    "chosen",
    [
        "agent: {model: house/large}",
        "agent: {fallbacks: [{model: house/large}]}",
        "heartbeat: {model: house/large}",
        "compaction: {model: house/large}",
        "channels: {telegram: {token: '1:x', groups: {allow: {'-1': {model: house/large}}}}}",
    ],
)
def test_a_model_of_an_unknown_provider(tmp_path: Path, chosen: str) -> None:
    assert said(tmp_path, f"{chosen}\n{HOUSE % ''}") == [ALL]
    assert said(tmp_path, f"{chosen}\n{HOUSE % 'large: {}'}") == [ALL], "once"


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("context_window: 1024", ["a limit of output of 256", "no price"]),
        ("context_window: 1024, max_output: 9", ["no price"]),
        ("max_output: 9, price: {input: 1, output: 1}", ["a window of 128,000"]),
        ("context_window: 1024, max_output: 9, price: {input: 0, output: 0}", []),
    ],
)
def test_what_is_written_is_not_missed(tmp_path: Path, written: str, left: list[str]) -> None:
    found = said(tmp_path, HOUSE % f"large: {{{written}}}")
    assert len(found) == bool(left)
    assert [one in found[0] for one in left] == [True for _ in left]
    assert "".join(found).count("a window") == sum("window" in one for one in left)


def test_known_providers_ollama_and_programs_are_known(tmp_path: Path) -> None:
    providers = "providers: {local: {api: openai-chat, base_url: 'http://127.0.0.1:11434/v1', models: {qwen: {}}}}"
    assert said(tmp_path, providers) == []
    for name in ("offline", "ollama/qwen3", "openai/gpt-6.1-terra"):
        assert said(tmp_path, f"agent: {{model: {name}}}") == []
    assert said(tmp_path, "providers: {claude: {api: cli, command: [claude], models: {opus: {}}}}") == []


def test_a_price_is_missed_once_it_was_looked_for(tmp_path: Path) -> None:
    for model, missed in (("gpt-nonsense", True), ("gpt-5.1", False)):
        config = read(tmp_path, f"agent: {{model: openai/{model}}}")
        assert list(assumed(config)) == []
        look_up(config)
        assert [one.startswith("of `openai/gpt-nonsense` is assumed: no price") for one in assumed(config)] == (
            [True] if missed else []
        )


def test_the_service_says_which_prices_it_does_not_find() -> None:
    config = Config.model_validate({"agent": {"model": "openai/gpt-nonsense"}})
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            Prices(lambda name: as_written(config, name)).look_up(
                ["openai/gpt-nonsense", "openai/gpt-5.1", "offline/x"]
            )
    assert [(one["event"], one["model"]) for one in logs] == [("no price of a model is known", "openai/gpt-nonsense")]


def test_the_check_says_it(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"agent: {{model: openai/gpt-nonsense}}\n{HOUSE % 'large: {}'}")
    done = hark(tmp_path, "config", "check", OPENAI_API_KEY="sk-1")
    assert (done.code, f"warning: {ALL}\n" in done.out) == (0, True)
    assert "warning: of `openai/gpt-nonsense` is assumed: no price" in done.out

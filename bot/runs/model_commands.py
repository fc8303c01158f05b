"""The commands /model and /think, which choose for a session which model answers and how long it thinks."""

from dataclasses import dataclass, replace

from pydantic import Field

from agent.models.base import ThinkingLevel
from agent.models.fleet import Fleet
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.config.prices import Prices
from bot.persistence.settings import SessionSettings
from bot.persistence.turns import TurnKind
from bot.runs.settings_commands import ChangeSetting
from bot.runs.specs import Specs
from bot.store.store import Store
from channels.message import SEVERAL, InboundKind, InboundMessage
from channels.outgoing import Button

# Levels by the words for them that people know from elsewhere.
_LEVELS: dict[str, ThinkingLevel] = {
    **{level: level for level in ("auto", "off", "low", "medium", "high", "x-high")},
    **dict.fromkeys(("on", "min", "minimal"), "low"),
    **dict.fromkeys(("max", "xhigh", "ultra"), "x-high"),
}
_ALLOWED = "auto, off, low, medium, high, x-high"
# The most models that are offered as buttons.
_OFFERED = 8


class ModelArguments(Arguments):
    """The arguments of /model."""

    name: str | None = Field(default=None, description="provider/model, or default; without it I say which answers.")


class ThinkArguments(Arguments):
    """The arguments of /think."""

    level: str | None = Field(default=None, description=f"{_ALLOWED}; without it I say what is set.")
    words: str | None = Field(default=None, description="A message: then the level is for this one alone.")


@dataclass(frozen=True, slots=True)
class Ask(Effect):
    """Makes the command a message, which a turn answers."""

    message: InboundMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCommands:
    """Makes the commands. offered: the models that the configuration names, of which people can choose by a button."""

    store: Store
    fleet: Fleet
    specs: Specs
    offered: tuple[str, ...]
    prices: Prices

    def build(self) -> tuple[Command, ...]:
        """Make the commands."""
        model = "Which model answers here: provider/model, or default."
        think = "How long the model thinks here, or about one message."
        return (
            Command(name="model", help=model, run=self._model, arguments=ModelArguments),
            Command(name="think", help=think, run=self._think, arguments=ThinkArguments),
        )

    async def _model(self, call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, ModelArguments)
        name = arguments.name
        settings = await self.store.settings.of(call.session_key)
        if name is None:
            return self._which(call, settings)
        if refusal := _not_here(call):
            return refusal
        if name == "default":
            settings = replace(settings, model="")
            answers = self.specs.answering(TurnKind.REPLY, settings, (call.message,)).model
            return ChangeSetting(("model", ""), f"`{answers}` answers here, as configured.")
        try:
            limits = self.fleet.clients(name)[0].limits
        except LookupError as problem:
            return Say(f"{problem.args[0]}. Nothing is changed.", mistake=True)
        said = f"`{name}` answers here from now on. {limits}".rstrip()
        return ChangeSetting(("model", name), f"{said} `/model default` takes that back.")

    def _which(self, call: Call, settings: SessionSettings) -> Say:
        """Say which model answers, and offer those that are configured."""
        answers = self.specs.answering(TurnKind.REPLY, settings, (call.message,)).model
        why = "chosen here" if settings.model == answers else "as configured"
        instead = f" At the moment `{settings.away}` stands in for it." if settings.away else ""
        gone = (
            "" if settings.model in ("", answers) else f" `{settings.model}`, chosen here, is not configured any more."
        )
        limits = f" {found}" if (found := self.fleet.clients(answers)[0].limits) else ""
        price = self.prices.shown(answers)
        cost = f" It costs {price}." if price else ""
        others = [name for name in self.offered if name != answers][:_OFFERED]
        choices = tuple(Button(name, f"/model {name}") for name in others) if others and not _not_here(call) else ()
        offer = " Others: " + ", ".join(f"`/model {name}`" for name in others) + "." if choices else ""
        return Say(f"`{answers}` answers here ({why}).{limits}{instead}{gone}{cost}{offer}", choices)

    async def _think(self, call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, ThinkArguments)
        settings = await self.store.settings.of(call.session_key)
        found = self.specs.answering(TurnKind.REPLY, settings, (call.message,))
        if arguments.level is None:
            taken = self.fleet.clients(found.model)[0].level_for(found.thinking)
            has = "" if taken == found.thinking else f" `{found.model}` has {'none' if taken == 'auto' else taken}."
            why = "chosen here" if settings.thinking else "as configured"
            return Say(f"Thinking is {found.thinking} ({why}).{has}")
        level = _LEVELS.get(arguments.level.lower())
        if level is None:
            return Say(f"`{arguments.level}` is no level of thinking; allowed: {_ALLOWED}.", mistake=True)
        if arguments.words:
            return Ask(replace(call.message, kind=InboundKind.MESSAGE, text=arguments.words, thinking=level))
        if refusal := _not_here(call):
            return refusal
        return ChangeSetting(("thinking", level), f"Thinking is {level}.")


def _not_here(call: Call) -> Say | None:
    """Return the answer to who may not choose for a place that others use as well."""
    if call.by_owner or call.message.origin.place.kind not in SEVERAL:
        return None
    return Say("Others use this conversation too: only an owner can change this here.", mistake=True)

"""The commands /model, /models and /think: which model answers in a session, and how long it thinks.

With words behind it a command is about these words alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from agent.models.base import ThinkingLevel
from agent.models.fleet import Fleet
from bot.commands.registry import Arguments, Call, Command, Effect, Say, TakeUp
from bot.config.prices import Prices
from bot.persistence.settings import SessionSettings
from bot.persistence.turns import TurnKind
from bot.runs.settings_commands import ChangeSetting
from bot.runs.specs import Specs
from bot.store.store import Store
from channels.message import InboundKind
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
    words: str | None = Field(default=None, description="A message: then the model answers this one alone.")


class ThinkArguments(Arguments):
    """The arguments of /think."""

    level: str | None = Field(default=None, description=f"{_ALLOWED}; without it I say what is set.")
    words: str | None = Field(default=None, description="A message: then the level is for this one alone.")


@dataclass(frozen=True, slots=True)
class ModelCommands:
    """Makes the commands.

    offered: the models that the configuration names, of which people can choose by a button.
    """

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
            Command(name="model", help=model, run=self._model, arguments=ModelArguments, guests="direct"),
            Command(name="models", help="Which models there are.", run=self._models, guests="direct"),
            Command(name="think", help=think, run=self._think, arguments=ThinkArguments, guests="direct"),
        )

    async def _model(self, call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, ModelArguments)
        name = arguments.name
        settings = await self.store.settings.of(call.session_key)
        if name is None:
            return self._which(call, settings)
        if name == "default" and not arguments.words:
            settings = replace(settings, model="")
            answers = self.specs.answering(TurnKind.REPLY, settings, (call.message,)).model
            return ChangeSetting(self.store, ("model", ""), f"`{answers}` answers here, as configured.")
        try:
            limits = self.fleet.clients(name)[0].limits
        except LookupError as problem:
            return Say(f"{problem.args[0]}. Nothing is changed.", mistake=True)
        if refusal := self.refusal(call, name):
            return refusal
        if arguments.words:
            return TakeUp(replace(call.message, kind=InboundKind.MESSAGE, text=arguments.words, model=name))
        said = f"`{name}` answers here from now on. {limits}".rstrip()
        return ChangeSetting(self.store, ("model", name), f"{said} `/model default` takes that back.")

    def refusal(self, call: Call, name: str) -> Say | None:
        """Return what somebody is told who may not choose a model; None: they may."""
        if name in self._choices(call) or call.by_owner or not self.specs.guest_models:
            return None
        listed = ", ".join(f"`{one}`" for one in self.specs.guest_models)
        return Say(f"`{name}` is not for you to choose. These are: {listed}.", mistake=True)

    def _choices(self, call: Call) -> Sequence[str]:
        """Return the models that somebody is offered."""
        return self.offered if call.by_owner else self.specs.guest_models or self.offered

    async def _models(self, call: Call, _: Arguments) -> Effect:
        settings = await self.store.settings.of(call.session_key)
        answers = self.specs.answering(TurnKind.REPLY, settings, (call.message,)).model
        return Say("\n".join(self._line(name, answers) for name in dict.fromkeys((answers, *self._choices(call)))))

    def _line(self, name: str, answers: str) -> str:
        """Return the line of a model: what it costs, and how it does."""
        price = self.prices.shown(name)
        state = "does not work at the moment" if self.fleet.knows(name) and self.fleet.is_down(name) else ""
        facts = ("answers here" if name == answers else "", price or "no price is known", state)
        return f"- `{name}`: {', '.join(filter(None, facts))}"

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
        others = [name for name in self._choices(call) if name != answers][:_OFFERED]
        choices = tuple(Button(name, f"/model {name}") for name in others)
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
            others = [level for level in dict.fromkeys(_LEVELS.values()) if level != found.thinking]
            offer = " Others: " + ", ".join(f"`/think {level}`" for level in others) + "."
            choices = tuple(Button(level, f"/think {level}") for level in others)
            return Say(f"Thinking is {found.thinking} ({why}).{has}{offer}", choices)
        level = _LEVELS.get(arguments.level.lower())
        if level is None:
            return Say(f"`{arguments.level}` is no level of thinking; allowed: {_ALLOWED}.", mistake=True)
        if arguments.words:
            return TakeUp(replace(call.message, kind=InboundKind.MESSAGE, text=arguments.words, thinking=level))
        return ChangeSetting(self.store, ("thinking", level), f"Thinking is {level}.")

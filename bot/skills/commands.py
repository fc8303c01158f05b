"""The commands /skills, which lists skills and accepts changed ones, and /skill, which has the model use one."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from agent.message import Provenance
from agent.skills.manifest import SkillError
from bot.commands.registry import Arguments, Call, Command, Effect, Say, TakeUp
from bot.compose import shortened
from bot.persistence.skills import SkillView
from bot.skills.shelf import FOLDER, Shelf
from bot.store import codec
from channels.message import InboundKind

# The most characters of a SKILL.md that come with /skill; the rest is read.
MAX_TEXT = 30_000
_ELSEWHERE = "not in this conversation: see `skills.by_channel` and, where others than owners write, `skills.guests`"


class SkillsArguments(Arguments):
    """The arguments of /skills."""

    order: Literal["accept"] | None = Field(default=None, description="accept: you have looked at NAME; it is used.")
    name: str = Field(default="", description="A skill.")


class SkillArguments(Arguments):
    """The arguments of /skill."""

    name: str = Field(description="A skill, as /skills names it.")
    words: str = Field(default="", description="What to do with it.")


def lines(found: Sequence[SkillView], here: Collection[str] | None = None) -> str:
    """Return the list of skills as people are shown it. here: those that a conversation has; None: of no conversation.

    Of a skill that is not used the line says why.
    """

    def line(one: SkillView) -> str:
        shown = f"- `{one.name}`: {one.description or 'not loaded'}"
        if one.why_not:
            return f"{shown} (not loaded: {one.why_not})"
        return shown if here is None or one.name in here else f"{shown} ({_ELSEWHERE})"

    return "\n".join(map(line, found)) or f"There are no skills in `{FOLDER}/` yet."


def accepted(name: str) -> str:
    """Return what is said once a skill was accepted."""
    return f"The skill `{name}` counts as looked at. Conversations that begin now are told of it."


def build(shelf: Shelf, owned: Callable[[str], bool]) -> Sequence[Command]:
    """Make the commands. owned: whether nobody but owners writes in a session, by its key."""

    async def show(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, SkillsArguments)
        if arguments.order is None:
            found, channel = await shelf.skills(), call.message.origin.place.channel
            there = shelf.there(channel, owned=owned(call.session_key))
            return Say(lines(found, {one.name for one in there}))
        try:
            await shelf.accept(arguments.name)
        except SkillError as error:
            return Say(str(error), mistake=True)
        return Say(accepted(arguments.name))

    async def use(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, SkillArguments)
        message, channel = call.message, call.message.origin.place.channel
        try:
            skill, text = await shelf.text(arguments.name, channel, owned=owned(call.session_key))
        except SkillError as error:
            return Say(str(error), mistake=True)
        head = f"The skill {skill.name}, from {FOLDER}/{skill.name}/SKILL.md; paths in it begin there:\n"
        origins = codec.ORIGINS.dump((Provenance("skill", skill.name),))
        words = arguments.words or f"Use the skill {skill.name}."
        context = head + shortened(text, MAX_TEXT)
        kind = InboundKind.MESSAGE
        taken = replace(message, kind=kind, text=words, extra_context=context, origins=origins, tools=skill.tools)
        return TakeUp(taken)

    return (
        Command(
            name="skills",
            help="What skills there are; accept NAME: you have looked at it.",
            run=show,
            arguments=SkillsArguments,
            decides=True,
        ),
        Command(name="skill", help="Have me use a skill.", run=use, arguments=SkillArguments),
    )

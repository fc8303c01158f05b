"""The section of skills: which of those in the workspace the model is told of, and where."""

from typing import Annotated

from pydantic import StringConstraints

from bot.config.values import Platform
from channels.section import Section, setting

SkillName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]


class Skills(Section):
    """Folders with instructions for the model, in `skills/` of the workspace."""

    enabled: tuple[SkillName, ...] | None = setting(None, "Only these; without it all that are there.")
    disabled: tuple[SkillName, ...] = setting((), "Never these.")
    by_channel: dict[Platform, tuple[SkillName, ...]] = setting({}, "Only these on a channel.")
    bundled: bool = setting(False, "Whether Hark's own are used.")
    guests: tuple[SkillName, ...] = setting((), "Those also for conversations in which not only owners write.")

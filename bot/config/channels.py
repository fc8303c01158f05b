"""The `channels` section: one subsection for each channel of the registry, which says what may be written there."""

from typing import TYPE_CHECKING

from pydantic import Field, create_model

from channels.registry import sections
from channels.section import Section
from channels.settings import ChannelSection


class ChannelSections(Section):
    """The places where people talk to the bot."""

    def sections(self) -> dict[str, ChannelSection]:
        """The section of each channel by its name."""
        return {name: getattr(self, name) for name in type(self).model_fields}


if TYPE_CHECKING:
    Channels = ChannelSections
else:
    Channels = create_model(
        "Channels",
        __base__=ChannelSections,
        __doc__=ChannelSections.__doc__,
        **{name: (found, Field(default=found(), description=found.__doc__)) for name, found in sections().items()},
    )

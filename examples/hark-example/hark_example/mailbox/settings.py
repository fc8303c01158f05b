"""The section `channels.mailbox` of the configuration."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from channels.settings import AccountSection, ChannelSection


class Mailbox(AccountSection):
    """A folder of messages."""

    # What tells it from others is no secret here.
    identity: ClassVar[str] = "folder"
    secrets: ClassVar[Mapping[str, tuple[str, str]]] = {}

    enabled: bool = Field(default=False, description="Whether it is read.")
    folder: str = Field(default="mailbox", description="Holds `in`, whose files are messages, and `out`.")


SECTION: type[ChannelSection] = Mailbox

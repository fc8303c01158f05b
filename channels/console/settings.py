"""What the configuration says of the terminal."""

from typing import ClassVar

from channels.section import setting
from channels.settings import ChannelSection, Streaming

# How answers are cut, by the service and by the terminals that read them as they are written.
CUTTING = Streaming(min_chars=200, max_chars=4000)


class Console(ChannelSection):
    """The terminal in which `hark run` was started."""

    local: ClassVar[bool] = True

    enabled: bool = setting(True, "Talk in the terminal of `hark run`, when it is one.")

    def cutting(self) -> Streaming:
        return CUTTING


SECTION: type[ChannelSection] = Console

"""Commands as a platform lists them: set when they are others than were set last, which the store remembers."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from channels.base import Mark, Sink
from channels.fields import digest_of


async def renew_menu(
    sink: Sink, channel: str, account: str, menu: Sequence[object], list_them: Callable[[], Awaitable[object]]
) -> None:
    """Call `list_them` unless it was done for this menu before; never fails: the bot works without."""
    mark = Mark(f"{channel}:{account}:commands", digest_of(repr(menu)) if menu else "")
    try:
        if (await sink.mark(mark.scope) or "") != mark.value:
            await list_them()
            await sink.accept([], mark)
    except Exception as error:  # the next start tries again
        logging.getLogger(__name__).warning("%s: the commands could not be listed: %s", channel, error)

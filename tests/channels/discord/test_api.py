"""Limits of calls, as far as they are kept beside the library."""

from channels.discord.api import Api
from channels.discord.settings import DiscordAccount
from tests.channels.sections import account
from tests.watch import LoopTime


async def test_limits_that_nobody_uses_are_forgotten() -> None:
    api, loop = Api(account(DiscordAccount, token="x")), LoopTime()
    for number in range(255):  # as each interaction has one of its own
        api.get_ratelimit(f"{number}")
    await loop.advance(301)
    one = api.get_ratelimit("new")
    assert list(api._buckets) == ["new"]
    assert api.get_ratelimit("new") is one

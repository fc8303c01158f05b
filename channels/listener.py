"""A small HTTP server that takes the requests of one platform on one path and serves nothing else.

It is a listener of its own because it is reached from outside, and the gateway must not be.
"""

from collections.abc import Awaitable, Callable

from aiohttp import web

from channels.settings import Listen

# Bytes of a request; more is answered 413.
_LARGEST = 4 * 1024 * 1024
# Seconds that requests under way may take when it closes.
_GRACE = 3.0


class Listener:
    """Hands each POST to that path to `handle`. port: the one it listens on, once it is started."""

    def __init__(self, listen: Listen, handle: Callable[[web.Request], Awaitable[web.Response]]) -> None:
        self.port = listen.port
        self._host = listen.host
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_post(listen.path, handle)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_GRACE)

    async def start(self) -> None:
        """Listen from now on. Raises OSError when it cannot, such as for a port that is taken."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self.port).start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Take no more requests; those under way are answered."""
        await self._runner.cleanup()

"""`hark chat`: talk in this terminal, with the service that runs or with one of its own."""

from pathlib import Path

from bot.cli.local import carry_out, service
from bot.config.model import Config


def main(config_path: Path | None) -> int:
    """Until the person leaves, or the input has ended and is answered. Returns the exit code. Raises ConfigError."""
    return carry_out(config_path, _chat)


async def _chat(config: Config) -> int:
    from bot.cli.terminal.session import talk

    async with service(config) as socket:
        await talk(socket, own_process=True)
    return 0

"""`hark usage`: what models have used, today and in seven days; where no service runs, from the store."""

from pydantic_core import to_json

from bot.cli.local import asked
from bot.config.model import Config
from bot.gateway.usage import UsageReport


async def show(as_json: bool, config: Config) -> int:
    """Print it. Returns the exit code."""
    async with asked(config, lambda parts: UsageReport(parts.store, parts.clock)) as report:
        view = await report.view()
    print(to_json(view, indent=2).decode() if as_json else view.text())  # noqa: T201
    return 0

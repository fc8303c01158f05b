"""`hark status`: whether the service runs, and what it is doing."""

from datetime import datetime
from pathlib import Path

from bot import wording
from bot.cli.local import FAILED, carry_out
from bot.cli.terminal.client import Activity, Client, Readiness, Unreachable
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET


def main(config_path: Path | None) -> int:
    """Print it. Returns the exit code: 0 when the service runs and is ready, else 1. Raises ConfigError."""
    return carry_out(config_path, _status)


async def _status(config: Config) -> int:
    try:
        client = Client(config.state / SOCKET)
        try:
            readiness, activity = await client.readiness(), await client.activity()
        finally:
            await client.close()
    except Unreachable:
        print(f"No service is running in {config.state}. `hark run` starts one.")  # noqa: T201
        return FAILED
    print(describe(readiness, activity))  # noqa: T201
    return 0 if readiness.ready else FAILED


def describe(readiness: Readiness, activity: Activity) -> str:
    """The service in a few lines."""
    width = max((len(name) for name in readiness.channels), default=0)
    channels = [
        f"{name:<{width}}  {channel.state} since {_local(channel.since)}"
        + (f": {channel.detail}" if channel.detail else "")
        for name, channel in readiness.channels.items()
    ]
    lines = [
        "Hark is running and ready." if readiness.ready else "Hark is running, but not ready.",
        f"model       {activity.model} ({activity.model_reason})",
        *(f"{'' if number else 'channels':<12}{line}" for number, line in enumerate(channels)),
        f"runs        {activity.running} running, {activity.waiting} waiting",
        f"deliveries  {activity.undelivered} open, {activity.failed_deliveries} refused,"
        f" {activity.uncertain_deliveries} uncertain",
        *(f"{'lost':<12}{wording.lost(found, _clock(found.at))}" for found in activity.lost),
    ]
    if activity.last_failure:
        lines.append(f"failure     {activity.last_failure}")
    return "\n".join(lines)


def _clock(at: int) -> str:
    """Milliseconds since the epoch on this machine's clock."""
    return datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M")


def _local(moment: str) -> str:
    """A moment of the service on this machine's clock."""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return moment

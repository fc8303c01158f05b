"""`hark heartbeat`: how it stands, a beat now, and events for the next turn; where no service runs, over the store."""

from bot.background.control import Control
from bot.cli.home import answers
from bot.cli.local import FAILED, USAGE, asked, complain
from bot.cli.status import at
from bot.compose import EVENT_LIMIT
from bot.config.model import Config
from bot.gateway.agent_routes import resolve_session
from bot.gateway.answers import HttpProblem
from bot.gateway.heartbeat_routes import NO_SESSION


async def status(config: Config) -> int:
    """Print it. Returns the exit code."""
    async with asked(config, lambda parts: Control(parts.dispatcher)) as beats:
        rows = list((await beats.heartbeat()).rows(at))
    print("\n".join(f"{name:<12}{text}" for name, text in rows))  # noqa: T201
    return 0


async def run(dry: bool, config: Config) -> int:
    """Beat now; with dry print what would be asked, and whether. Returns the exit code: 1 when it does not begin."""
    if not dry and not answers(config.state):
        return _nobody(config, "`hark run` starts one; `--dry` shows what a beat would be.")
    async with asked(config, lambda parts: Control(parts.dispatcher)) as beats:
        beat = await beats.beat(dry=dry)
    why = f" ({beat.reason}): {beat.words}"
    if dry:
        would = f"would not ask the model{why}" if beat.reason else f"would ask the model, in {beat.session}."
        print(f"{beat.prompt}\n\nA beat that is due now {would}")  # noqa: T201
        return 0
    print(f"A beat runs in {beat.session}." if beat.begun else f"No beat{why}")  # noqa: T201
    return 0 if beat.begun else FAILED


async def wake(text: str, now: bool, session: str | None, config: Config) -> int:
    """Tell a session (a key or a name) of an event. Returns the exit code."""
    try:
        wanted = resolve_session(session) if session else ""
    except HttpProblem as error:
        complain(f"{error.detail} {error.hint}")
        return USAGE
    if not text.strip() or len(text) > EVENT_LIMIT:
        complain(f"--text is empty, or longer than {EVENT_LIMIT:,} characters.")
        return USAGE
    if now and not answers(config.state):
        return _nobody(config, "Without --now the event is kept for the next turn.")
    async with asked(config, lambda parts: Control(parts.dispatcher)) as beats:
        told = await beats.wake(text, wanted, now=now)
    if told is None:
        complain(NO_SESSION)
        return FAILED
    print(f"The next turn of {told} is told of it.")  # noqa: T201
    return 0


def _nobody(config: Config, hint: str) -> int:
    complain(f"No service is running in {config.state}. {hint}")
    return FAILED

"""`hark approvals`: what waits for a decision, and what is allowed for always; also where no service runs."""

from pydantic_core import to_json

from bot import wording
from bot.approvals import words
from bot.approvals.decisions import NotDecided
from bot.cli.local import FAILED, asked, complain
from bot.cli.status import at
from bot.config.model import Config
from bot.persistence.approvals import Approval, Choice, Granted


async def show(as_json: bool, config: Config) -> int:
    """Print what waits. Returns the exit code."""
    async with asked(config, lambda parts: parts.requests) as requests:
        found = await requests.approvals()
    text = to_json(found).decode() if as_json else "\n\n".join(map(_shown, found))
    print(text or "Nothing waits for a decision.")  # noqa: T201
    return 0


async def settle(named: str, choice: Choice, config: Config) -> int:
    """Decide about a request. Returns the exit code: 1 for an id that is unknown, ambiguous or decided."""
    async with asked(config, lambda parts: parts.requests) as requests:
        try:
            found = await requests.settle(named, choice)
        except NotDecided as error:
            complain(str(error).replace("**", ""))
            return FAILED
    print(f"{wording.DECIDED[found.state]}: {words.revealed(found.ask.subject)}")  # noqa: T201
    return 0


async def rules(config: Config) -> int:
    """Print what is allowed for more than one call. Returns the exit code."""
    async with asked(config, lambda parts: parts.requests.grants) as grants:
        found = await grants.rules()
    lines = (
        f"{n}  {words.revealed(one.words)} (by {one.by}, {at(one.at)}{_end(one)})" for n, one in enumerate(found, 1)
    )
    print("\n".join(lines) or "Nothing is allowed for always but by the configuration.")  # noqa: T201
    return 0


async def forget(number: int, config: Config) -> int:
    """Allow something no more, by its number. Returns the exit code: 1 for one that is not there."""
    async with asked(config, lambda parts: parts.requests.grants) as grants:
        found = await grants.rules()
        if not 0 < number <= len(found) or not await grants.forget(found[number - 1].what):
            complain(f"There is no rule {number}; `hark approvals rules` lists them.")
            return FAILED
    print(f"Asked again from now on: {words.revealed(found[number - 1].words)}")  # noqa: T201
    return 0


def _end(found: Granted) -> str:
    return f", until {at(found.until)}, in {found.session_key}" if found.until else ""


def _shown(found: Approval) -> str:
    ask = found.ask
    head = f"{found.approval_id[: words.SHORT]}  {found.tool}, asked by {found.asker}, until {at(found.expires_at)}"
    notes = (" ".join(words.revealed(one).split()) for one in (*ask.why, *ask.risks))
    below = (*words.revealed(ask.subject).splitlines(), *(f"- {one}" for one in notes))
    return "\n".join((head, *(f"    {line}" for line in below)))

"""The section `budget`: how many tokens and how much money model calls may take."""

from typing import Annotated, Literal

from pydantic import Field

from channels.section import Section, Whole, setting

Scope = Literal["turn", "session", "user", "job", "bot"]
SCOPES: tuple[Scope, ...] = ("turn", "session", "user", "job", "bot")


class Limit(Section):
    """What may be used."""

    tokens: Whole | None = setting(None, "Tokens, input and output together; null: any number.", ge=1)
    money: Annotated[float, Field(strict=True, gt=0, le=1_000_000, allow_inf_nan=False)] | None = setting(
        None, "US dollars, which needs the price of each model; null: any sum."
    )


class Budget(Section):
    """What model calls may take. A call that could take more is not made; whoever asked is told, and until when."""

    turn: Limit = setting(Limit(), "One turn.")
    session: Limit = setting(Limit(), "One session, in a day of this machine's clock.")
    user: Limit = setting(Limit(), "The turns of one person, in a day.")
    job: Limit = setting(Limit(), "One job, in a day; the heartbeat is a job, too.")
    bot: Limit = setting(Limit(), "Everything together, in a day.")

    def limits(self) -> dict[Scope, Limit]:
        """Return the limits that are set."""
        found: dict[Scope, Limit] = {scope: getattr(self, scope) for scope in SCOPES}
        return {scope: limit for scope, limit in found.items() if limit != Limit()}

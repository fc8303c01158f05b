"""Which request somebody means, and whether it can be decided as they want: for chats, HTTP and the command line."""

from collections.abc import Sequence
from typing import Literal

from agent.tools.base import Verdict
from bot import plain_words as plain
from bot.approvals import words
from bot.persistence.approvals import STOPPED, Approval

# What people type for a decision; `again` is for what nobody has decided about. `ask` is what a reply is that decides
# nothing, and `deny-with` the button which passes such words on, by their number in the inbox.
Order = Verdict | Literal["again", "ask", "deny-with"]
ORDERS: dict[str, Order] = {
    **dict.fromkeys(("once", "allow", "allow-once", "allowonce"), "once"),
    **dict.fromkeys(("always", "always-allow", "allow-always"), "always"),
    **dict.fromkeys(("deny", "reject", "no", "block"), "denied"),
    "again": "again",
    "ask": "ask",
    "deny-with": "deny-with",
}
# The same for programs.
VERDICTS: dict[str, Verdict] = {"once": "once", "always": "always", "deny": "denied", "answer": "answered"}


class NotDecided(Exception):
    """Nothing was decided; the text says why. code: of `docs/http.md`."""

    def __init__(self, code: Literal["no_such_request", "ambiguous", "ended", "invalid"], text: str) -> None:
        super().__init__(text)
        self.code = code


def meant(found: Sequence[Approval], named: str) -> Approval:
    """The one that an id or its shown digits mean: of several the one that is open. Raises NotDecided."""
    several = [one for one in found if one.state == "open"] or found
    if not several:
        raise NotDecided(
            "no_such_request", f"There is no request {words.prose(named)}. `/approvals` lists those that wait."
        )
    if len(several) > 1:
        listed = "\n".join(f"- {words.line(one)}" for one in several)
        raise NotDecided("ambiguous", f"Several are meant by that; write the whole id:\n{listed}")
    return several[0]


def check(approval: Approval, order: Order, now: int) -> None:
    """Whether a request can be decided so. now: milliseconds. Raises NotDecided."""
    ident, question = approval.approval_id[: words.SHORT], approval.ask.question
    state = "expired" if approval.state == "open" and approval.expires_at <= now else approval.state
    if order == "again":
        if state != "expired" or approval.reason == STOPPED:
            raise NotDecided("ended", f"That cannot be asked again: {words.verdict(approval)}.")
    elif state == "expired":
        raise NotDecided(
            "ended", f"It is too late: nobody decided about {ident} in time. `/approve {ident} again` asks again."
        )
    elif state != "open":
        raise NotDecided("ended", f"That was decided before: {words.verdict(approval)}. Nothing has changed.")
    elif question and order in ("once", "always"):
        raise NotDecided("invalid", f"That is a question: `/answer {ident}` and the answer.")
    elif order == "answered" and not question:
        raise NotDecided("invalid", f"That is no question: `/approve {ident}` once or deny.")
    elif order == "always" and not approval.ask.grants:
        raise NotDecided("invalid", f"That cannot be allowed for always, only `/approve {ident} once`.")


def answer(approval: Approval, text: str) -> str:
    """What is answered by a text: the option that it means, or that of `#` and a number as buttons send it; else the
    text."""
    options, given = approval.ask.options, text.strip()
    number = given.removeprefix("#")
    if given != number and number.isdecimal() and 0 < int(number) <= len(options):
        return options[int(number) - 1]
    return plain.option(approval.ask, given) or given

"""Finds the request that an id means and checks a decision about it: for chats, HTTP and the command line."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from agent.tools.base import Verdict
from bot import plain_words as plain
from bot.approvals import words
from bot.persistence.approvals import STOPPED, Approval
from heartbeat.times import in_words, parse_duration

# What a command can order about a request. `again`: ask about it once more, because it has expired. `ask`: ask the
# sender what is to become of the words behind it, because they decide nothing. `deny-with`: deny it, with the words of
# the message at that place in the inbox as the reason; a button sends that.
Order = Verdict | Literal["again", "ask", "deny-with"]
# The words that people type for them.
ORDERS: dict[str, Order] = {
    **dict.fromkeys(("once", "allow", "allow-once", "allowonce"), "once"),
    **dict.fromkeys(("always", "always-allow", "allow-always", "task"), "always"),
    **dict.fromkeys(("deny", "reject", "no", "block"), "denied"),
    "again": "again",
    "ask": "ask",
    "deny-with": "deny-with",
}
# The longest time for which something is allowed by `for`, in seconds.
LONGEST = 30 * 24 * 3600.0


class NotDecided(Exception):
    """Nothing was decided; the text says why, for people. code: for programs, see `docs/http.md`."""

    def __init__(self, code: Literal["no_such_request", "ambiguous", "ended", "invalid"], text: str) -> None:
        super().__init__(text)
        self.code = code


def meant(found: Sequence[Approval], named: str) -> Approval:
    """Return the request that is meant, of those found under a name: of several the one that is open.

    named: what somebody wrote, for the error. Raises NotDecided where none or several are meant.
    """
    several = [one for one in found if one.state == "open"] or found
    if not several:
        raise NotDecided(
            "no_such_request", f"There is no request {words.prose(named)}. `/approvals` lists those that wait."
        )
    if len(several) > 1:
        listed = "\n".join(f"- {words.line(one)}" for one in several)
        raise NotDecided("ambiguous", f"Several are meant by that; write the whole id:\n{listed}")
    return several[0]


def check(approval: Approval, order: Order, now: int, picked: Sequence[int] = (), seconds: float = 0) -> None:
    """Raise NotDecided if an order cannot be carried out about a request.

    now: milliseconds. picked, seconds: see Choice.
    """
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
    elif not 0 <= seconds <= LONGEST:
        raise NotDecided("invalid", f"Allow it for at most {in_words(timedelta(seconds=LONGEST))}, or `always`.")
    elif (seconds and order != "always") or (picked and order != "once"):
        raise NotDecided("invalid", "A time goes with `always`, and numbers of calls go with `once`.")
    elif wrong := [one for one in picked if not 0 < one <= len(approval.ask.calls)]:
        known = f"1 to {len(approval.ask.calls)}" if approval.ask.calls else "none, it is about one call"
        raise NotDecided("invalid", f"There is no call {wrong[0]} in that; its numbers are {known}.")


def seconds(text: str) -> float | None:
    """Return the seconds of a time such as `15m`, at least one; None: the text is no such time."""
    try:
        found = parse_duration(text).total_seconds()
    except (ValueError, OverflowError):
        return None
    return found if found >= 1 else None


def answer(approval: Approval, text: str) -> str:
    """Return the answer that a text gives to a question.

    It is the option that the text means, or the option with a number (`#2`, as buttons send it); else the text itself.
    """
    options, given = approval.ask.options, text.strip()
    number = given.removeprefix("#")
    if given != number and number.isdecimal() and 0 < int(number) <= len(options):
        return options[int(number) - 1]
    return plain.option(approval.ask, given) or given

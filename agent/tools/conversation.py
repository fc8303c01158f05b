"""The tools `stay_silent` and `ask_person`, which do nothing but lead the conversation.

`stay_silent` ends the turn without another word: the loop ends it (`agent/calls/batch.py`), and the service drops the
parts of the reply that are not on their way yet. A cut call of it counts as well, because it has no other effect.
`ask_person` parks the turn until a person answers (decision 0015): nothing is held meanwhile, and the answer is kept
with the call and used once.
"""

import hashlib

from pydantic import Field, field_validator

from agent.message import ToolOutput
from agent.tools.base import Ask, CallContext, Parameters, Tool

STAY_SILENT = "stay_silent"


class StaySilentParameters(Parameters):
    """Of `stay_silent`."""

    reason: str = Field(default="", max_length=500, description="Why, in a few words. Nobody is told.")


class StaySilentTool(Tool[StaySilentParameters]):
    """Ends the turn without another word."""

    name = STAY_SILENT
    description = "End your turn without saying anything, or anything more. For when nothing needs to be said."
    parameters = StaySilentParameters
    parallel_safe = True

    async def run(self, parameters: StaySilentParameters, context: CallContext) -> ToolOutput:
        """Do nothing; the model reads the result only if a steering text keeps the turn going."""
        return ToolOutput(text="Nothing was said.")


MAX_OPTIONS = 8
_LABEL = 60
_DEFAULT_HOURS, _MOST_HOURS = 24, 14 * 24


class AskPersonParameters(Parameters):
    """Of `ask_person`."""

    question: str = Field(min_length=1, max_length=3000, description="In full: they see nothing else.")
    options: tuple[str, ...] = Field(default=(), max_length=MAX_OPTIONS, description="Answers shown as buttons.")
    who: str = Field(default="asker", description="asker, owner, anyone (in this conversation), or `channel:id`.")
    default: str = Field(default="", max_length=1000, description="What you go on with when nobody answers.")
    wait_hours: float = Field(default=_DEFAULT_HOURS, gt=0, le=_MOST_HOURS, description="How long they have.")

    @field_validator("options")
    @classmethod
    def _can_be_told_apart(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        found = tuple(" ".join(option.split()) for option in options)
        if len(set(found)) < len(found) or not all(0 < len(option) <= _LABEL for option in found):
            raise ValueError(f"options differ, and have 1 to {_LABEL} characters")
        return found

    @field_validator("who")
    @classmethod
    def _is_somebody(cls, who: str) -> str:
        if who not in ("asker", "owner", "anyone") and not all(who.partition(":")):
            raise ValueError("it is asker, owner, anyone, or `channel:id` of somebody who writes in this conversation")
        return who


class AskPersonTool(Tool[AskPersonParameters]):
    """Asks people a question; their answer is the result."""

    name = "ask_person"
    description = (
        "Ask what you need to know before you go on, and wait for the answer, days if need be. They may choose an "
        "option or write something else. What can wait, ask in your answer."
    )
    parameters = AskPersonParameters
    trusted_only = True

    async def asks(self, parameters: AskPersonParameters, context: CallContext) -> Ask:
        """Return the question. If nobody answers, the call runs all the same and says so."""
        return Ask(
            digest=hashlib.sha256(f"{context.session_key}\n{parameters.model_dump_json()}".encode()).hexdigest(),
            subject=parameters.question,
            is_code=False,
            question=True,
            options=parameters.options,
            who=parameters.who,
            seconds=parameters.wait_hours * 3600,
            otherwise="",
            runs_unanswered=True,
        )

    async def run(self, parameters: AskPersonParameters, context: CallContext) -> ToolOutput:
        """Return the answer in the person's words, or that nobody answered."""
        decision = context.decision
        if decision is not None and decision.state == "answered":
            return ToolOutput(text=f"They answered: {decision.reason}")
        why = decision.reason if decision else ""
        why = why or f"Nobody answered in {parameters.wait_hours:g} hours."
        then = f"Go on with: {parameters.default}" if parameters.default else "Go on without an answer, or stop here."
        return ToolOutput(text=f"{why} {then}")

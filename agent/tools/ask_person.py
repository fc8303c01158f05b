"""`ask_person`: a question to people, with answers to choose from; the turn waits for as long as that takes.

It parks like a call that must be allowed (decision 0015): nothing is held meanwhile, the answer is kept with the call
and used once. Offered by `agent/tools/registry`.
"""

import hashlib

from pydantic import Field, field_validator

from agent.message import ToolOutput
from agent.tools.base import Ask, CallContext, Parameters, Tool

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
    """Asks; what was answered is its result."""

    name = "ask_person"
    description = (
        "Ask what you need to know before you go on, and wait for the answer, days if need be. They may choose an "
        "option or write something else. What can wait, ask in your answer."
    )
    parameters = AskPersonParameters
    trusted_only = True

    async def asks(self, parameters: AskPersonParameters, context: CallContext) -> Ask:
        """The question; when nobody answers it the call runs all the same, and says so."""
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
        """What was answered, in their words."""
        decision = context.decision
        if decision is not None and decision.state == "answered":
            return ToolOutput(text=f"They answered: {decision.reason}")
        why = decision.reason if decision else ""
        why = why or f"Nobody answered in {parameters.wait_hours:g} hours."
        then = f"Go on with: {parameters.default}" if parameters.default else "Go on without an answer, or stop here."
        return ToolOutput(text=f"{why} {then}")

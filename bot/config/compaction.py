"""The section `compaction`: when and how long conversations are summed up."""

from typing import Annotated

from pydantic import Field

from agent.window import CompactionRules
from channels.section import Section, Whole


class CompactionSettings(Section):
    """When the older part of a conversation is summed up, and what stays word for word."""

    threshold: Annotated[float, Field(strict=True, ge=0.1, le=0.95)] = Field(
        default=0.6, description="The fraction of the model's window above which that is done at the end of a turn."
    )
    reserve_tokens: Whole = Field(
        default=20_000, ge=0, description="Tokens left free before a call, at most half the window."
    )
    keep_recent_tokens: Whole = Field(
        default=20_000, ge=0, description="The newest tokens, kept word for word, at most a quarter of a request."
    )
    attempts: Whole = Field(default=3, ge=1, le=3, description="Tries for one summary.")
    timeout_seconds: Whole = Field(default=60, ge=1, le=600, description="For all tries of one summary.")
    model: str | None = Field(default=None, description="The model that sums up; null: the one that answers.")

    def rules(self) -> CompactionRules:
        """Return the settings as the agent takes them."""
        return CompactionRules(
            threshold=self.threshold,
            reserve=self.reserve_tokens,
            keep=self.keep_recent_tokens,
            attempts=self.attempts,
            timeout=self.timeout_seconds,
            model=self.model or "",
        )

"""The section `compaction`: when and how long conversations are summed up."""

from typing import Annotated

from pydantic import Field

from agent.window import CompactionRules
from channels.section import Section, Whole, setting


class CompactionSettings(Section):
    """When the older part of a conversation is summed up, and what stays word for word."""

    threshold: Annotated[float, Field(strict=True, ge=0.1, le=0.95)] = setting(
        0.6, "The fraction of the model's window above which that is done at the end of a turn."
    )
    reserve_tokens: Whole = setting(20_000, "Tokens left free before a call, at most half the window.", ge=0)
    keep_recent_tokens: Whole = setting(
        20_000, "The newest tokens, kept word for word, at most a quarter of a request.", ge=0
    )
    attempts: Whole = setting(3, "Tries for one summary.", ge=1, le=3)
    timeout_seconds: Whole = setting(60, "For all tries of one summary.", ge=1, le=600)
    model: str | None = setting(None, "The model that sums up; null: the one that answers.")

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

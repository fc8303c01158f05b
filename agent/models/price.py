"""What a model costs."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agent.message import Usage

_Dollars = Annotated[float, Field(strict=True, ge=0, le=1_000_000, allow_inf_nan=False)]


class Price(BaseModel):
    """US dollars per million tokens. Tokens read from or written to a cache cost what other input does, unless said."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Dollars = Field(description="Of input.")
    output: _Dollars = Field(description="Of output.")
    cache_read: _Dollars | None = Field(default=None, description="Of input read from a cache.")
    cache_write: _Dollars | None = Field(default=None, description="Of input written to a cache.")

    def cost(self, usage: Usage) -> float:
        """US dollars of so many tokens."""
        read = self.input if self.cache_read is None else self.cache_read
        written = self.input if self.cache_write is None else self.cache_write
        plain = usage.input - usage.cache_read - usage.cache_write
        parts = (plain, self.input), (usage.cache_read, read), (usage.cache_write, written), (usage.output, self.output)
        return sum(tokens * price for tokens, price in parts) / 1_000_000

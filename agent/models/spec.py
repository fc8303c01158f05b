"""Which model to call and how, as the configuration says it; what `agent.models.build` makes a client from."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # clients are built without pydantic
    from agent.models.price import Price


ThinkingLevel = Literal["off", "low", "medium", "high", "x-high"]
ModelApi = Literal["anthropic", "openai-chat", "offline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One model of one provider.

    base_url: API root as the provider's own library takes it; empty: the provider's public one. context_window and
    max_output in tokens. params: further fields of the request as (name, JSON value), sent as they stand. price: None
    where it is not known. why: this model, in a few words, for `hark status`.
    """

    provider: str
    api: ModelApi
    model: str
    base_url: str = ""
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    context_window: int = 200_000
    max_output: int = 8192
    thinking: ThinkingLevel = "off"
    vision: bool = True
    params: tuple[tuple[str, object], ...] = ()
    price: "Price | None" = None
    why: str = ""

    @property
    def name(self) -> str:
        """`provider/model`, as configuration and transcripts write it."""
        return f"{self.provider}/{self.model}"

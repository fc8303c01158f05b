"""The section `memory`: what is remembered by itself, and what finds it besides its words."""

from datetime import timedelta
from typing import Literal

from pydantic import model_validator

from bot.config.values import Span
from channels.section import Secret, Section, Url, conflict, setting


class Embeddings(Section):
    """What finds memories by their meaning: an endpoint that speaks as OpenAI's `/v1/embeddings` does."""

    base_url: Url | None = setting(
        None, "Its address, such as http://127.0.0.1:11434/v1; without it words alone count."
    )
    model: str | None = setting(None, "Its model, such as nomic-embed-text.", min_length=1)
    api_key: Secret = setting(None, "Its key, if it wants one.")

    @model_validator(mode="after")
    def _is_whole(self) -> "Embeddings":
        if self.base_url is not None and self.model is None:
            raise conflict("memory.embeddings.base_url needs memory.embeddings.model, such as nomic-embed-text")
        return self


class Memory(Section):
    """MEMORY.md and memory/ of each room."""

    recall: Literal["auto", "off"] = setting(
        "auto", "Whether what is remembered about a message is shown to the model beside it."
    )
    embeddings: Embeddings = setting(Embeddings(), "What finds memories by their meaning.")
    digest_every: Span = setting(
        timedelta(days=1), "How often people are asked about memories that wait for them, if any do."
    )

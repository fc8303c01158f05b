"""The section `telemetry`: what is written down of the work for those who look into it."""

from importlib.util import find_spec

from pydantic import Field, SecretStr, model_validator

from channels.section import Section, Url, Whole, conflict, setting


class Otlp(Section):
    """A collector of OpenTelemetry that takes spans over HTTP."""

    @model_validator(mode="before")
    @classmethod
    def _is_installed(cls, data: object) -> object:
        parts = ["opentelemetry", "exporter", "otlp", "proto", "http"]
        if any(find_spec(".".join(parts[:count])) is None for count in range(1, len(parts) + 1)):
            raise conflict("needs packages that are not installed: `EXTRAS=otel make install`, or pip's hark-bot[otel]")
        return data

    endpoint: Url = Field(description="Its address, such as http://localhost:4318.")
    headers: dict[str, SecretStr] = Field(default_factory=dict, description="Headers of each request, such as a key.")


class Telemetry(Section):
    """What is written down beside the log."""

    payloads: bool = setting(False, "Whether each request to a model and its answer are kept in payloads.jsonl.")
    payload_megabytes: Whole = setting(50, "The most that is kept of them; the oldest go first.", ge=1, le=10_000)
    otlp: Otlp | None = setting(
        None, "Where spans of turns, model calls and tools go; needs the extra otel. null: nowhere."
    )

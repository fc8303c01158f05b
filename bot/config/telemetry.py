"""The section `telemetry`: what is written down of the work for those who look into it."""

from pydantic import Field

from channels.section import Section, Whole


class Telemetry(Section):
    """What is written down beside the log."""

    payloads: bool = Field(
        default=False, description="Whether each request to a model and its answer are kept in payloads.jsonl."
    )
    payload_megabytes: Whole = Field(
        default=50, ge=1, le=10_000, description="The most that is kept of them; the oldest go first."
    )

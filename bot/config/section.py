"""The base of every configuration section: frozen, closed to unknown keys, and free of nulls.

A key that is written without a value counts as not written, so that a section whose lines are all commented
out means its defaults.
"""

from pydantic import BaseModel, ConfigDict, model_validator


class Section(BaseModel):
    """A mapping of the configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        return {key: value for key, value in data.items() if value is not None or key not in known}

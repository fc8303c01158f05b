"""Parameters that somebody else describes, by a JSON schema: is it one, and do arguments fit it?

The schema is a stranger's: what it refers to is never fetched.
"""

import json
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from agent.tools.base import JsonArguments, JsonSchema

_SHOWN = 80  # characters of a wrong value that an error repeats


class SchemaError(ValueError):
    """It is no JSON schema of an object."""


def checked(text: str) -> JsonSchema:
    """Parameters described by a JSON schema. Raises SchemaError when it is none, or not one of an object."""
    from jsonschema.exceptions import SchemaError as Wrong  # type: ignore[import-untyped]

    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"it is not JSON: {error}") from None
    if not isinstance(found, dict) or found.get("type") != "object":
        raise SchemaError("it does not describe an object")
    schema = JsonSchema(text)
    try:
        type(_validator(schema)).check_schema(found)
    except Wrong as error:
        raise SchemaError(error.message) from None
    return schema


def names(schema: JsonSchema) -> tuple[tuple[str, ...], set[str]]:
    """The parameters there are, and those that are required."""
    found = _validator(schema).schema
    return tuple(found.get("properties", {})), set(found.get("required", ()))


def parse(schema: JsonSchema, text: str) -> JsonArguments | list[str]:
    """The arguments in a text, or what is wrong with them, a line each in the words of the library."""
    try:
        arguments = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        return [f"The arguments are not valid JSON ({error})."]
    if not isinstance(arguments, dict):
        return [f"The arguments must be one JSON object, found {shown(arguments)}."]
    try:
        errors = list(_validator(schema).iter_errors(arguments))
    except Exception as error:  # a reference that leads nowhere, a pattern that is none
        return [f"The arguments cannot be checked by their schema ({type(error).__name__})."]
    mistakes = {f"{'.'.join(map(str, error.absolute_path)) or 'arguments'}: {_cut(error.message)}" for error in errors}
    return sorted(mistakes) or JsonArguments(json.dumps(arguments, ensure_ascii=False))


@lru_cache(maxsize=1024)
def _validator(schema: JsonSchema) -> Any:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]
    from referencing import Registry

    value = json.loads(schema.text)
    return validator_for(value, default=Draft202012Validator)(value, registry=Registry())


def _cut(message: str) -> str:
    """A message without the middle of the value that it repeats."""
    return message if len(message) <= 2 * _SHOWN else f"{message[:_SHOWN]}…{message[-_SHOWN:]}"


def shown(value: object) -> str:
    """A value as an error repeats it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

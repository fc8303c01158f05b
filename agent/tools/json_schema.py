"""Parameters that somebody else describes, by a JSON schema: is it one, and do arguments fit it?

The schema is a stranger's: what it refers to is never fetched.
"""

import json
import re
from functools import lru_cache
from typing import Any

from pydantic_core import ErrorDetails, from_json

from agent.tools.base import JsonArguments, JsonSchema

_SHOWN = 80  # characters of a rule, or of a wrong value, that an error repeats


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


def parse(schema: JsonSchema, text: str) -> JsonArguments | list[ErrorDetails]:
    """The arguments in a text, or what is wrong with them, as pydantic says it of parameters of our own."""
    try:
        arguments = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        return [_details("json_invalid", (), str(error), text)]
    if not isinstance(arguments, dict):
        return [_details("model_type", (), "", arguments)]
    found: list[ErrorDetails] = []
    try:
        errors = sorted(_validator(schema).iter_errors(arguments), key=lambda one: [*map(str, one.absolute_path)])
    except Exception as error:  # a reference that leads nowhere, a pattern that is none
        why = f"cannot be checked by its schema ({type(error).__name__})"
        return [_details("schema", ("arguments",), why, arguments)]
    for wrong in errors:
        found += [mistake for mistake in _mistakes(wrong) if mistake not in found]
    return found or JsonArguments(json.dumps(arguments, ensure_ascii=False))


@lru_cache(maxsize=1024)
def _validator(schema: JsonSchema) -> Any:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]
    from referencing import Registry

    value = json.loads(schema.text)
    return validator_for(value, default=Draft202012Validator)(value, registry=Registry())


def _mistakes(error: Any) -> list[ErrorDetails]:
    """One error of the library; of what is missing or not known, one for each name."""
    path, rule, wanted, value = (*error.absolute_path,), error.validator, error.validator_value, error.instance
    match rule:
        case "required":
            return [_details("missing", (*path, name), "", value) for name in wanted if name not in value]
        case "additionalProperties" if wanted is False:
            known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
            extra = [name for name in value if name not in known and not any(re.search(one, name) for one in patterns)]
            return [_details("extra_forbidden", (*path, name), "", value) for name in extra]
        case "type":
            message = f"must be of type {' or '.join([wanted] if isinstance(wanted, str) else wanted)}"
        case "enum":
            message = f"must be one of {shown(wanted)}"
        case _:
            message = f"must fit {rule} {shown(wanted)}"
    return [_details(rule, path or ("arguments",), message, value)]


def _details(kind: str, where: tuple[str | int, ...], message: str, found: object) -> ErrorDetails:
    return {"type": kind, "loc": where, "msg": message, "input": found}


def shown(value: object) -> str:
    """A rule or a value as an error repeats it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

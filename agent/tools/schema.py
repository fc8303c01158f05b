"""Describes tools to the model as JSON schemas, and parses the arguments that the model writes.

The same tool gives the same bytes in every process (promise 7 of the design). A mistake of the model becomes a text
that names the parameter, what was found and what is allowed.
"""

import difflib
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ModelSchema, NullableSchema, WithDefaultSchema

from agent.errors import ToolError
from agent.message import ToolSpec
from agent.tools.base import P, Parameters, Tool

# Keywords that are left out of schemas. A parameter with such a name stays.
_UNSAID = ("additionalProperties", "minLength", "maxLength", "maxItems", "minimum", "exclusiveMinimum")
_SHOWN = 80  # characters of a wrong value that an error repeats


class ArgumentsError(ToolError):
    """The arguments of a call are not what the tool takes."""


def specs(tools: Iterable[Tool[Any]]) -> tuple[ToolSpec, ...]:
    """Return the tools as the model sees them, with parameters in their order of declaration. The result is cached."""
    return _specs(tuple([(tool.name, tool.description, tool.parameters, tool.schema) for tool in tools]))


@lru_cache(maxsize=256)
def _specs(tools: tuple[tuple[str, str, type[Parameters], str], ...]) -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(name, description, schema or _told(parameters)) for name, description, parameters, schema in tools
    )


def spec(tool: Tool[P]) -> ToolSpec:
    """Return one tool as the model sees it."""
    return specs((tool,))[0]


@lru_cache(maxsize=1024)
def _told(parameters: type[Parameters]) -> str:
    schema = parameters.model_json_schema(schema_generator=_Generator)
    schema.pop("description", None)  # of the class, for readers of the code
    return json.dumps(_short(schema), ensure_ascii=False, separators=(",", ":"))


def _short(schema: Any) -> Any:
    """Remove bounds that hardly any call reaches; validation names a bound when a call exceeds it."""
    if not isinstance(schema, dict):
        return schema
    return {key: _short(value) for key, value in schema.items() if key not in _UNSAID or isinstance(value, dict)}


class _Generator(GenerateJsonSchema):
    """Leaves out what is of no use to the model: titles, empty defaults, and null as an alternative to a type."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        described = super().model_schema(schema)
        del described["title"]
        return described

    def nullable_schema(self, schema: NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        return {key: value for key, value in described.items() if key != "default" or value}


def parse_arguments(tool: Tool[P], json_text: str) -> P:
    """Parse the JSON text of a call's arguments; an empty text means no arguments. Raises ArgumentsError."""
    fields = tool.parameters.model_fields
    try:
        return tool.parameters.model_validate_json(json_text.strip() or "{}")
    except ValidationError as error:
        mistakes = [f"- {_mistake(details, fields)}" for details in error.errors(include_url=False)]
    if tool.schema:
        raise ArgumentsError("\n".join((f"Wrong arguments for {tool.name}; it was not called.", *mistakes)))
    takes = ", ".join(f"{name} (required)" if field.is_required() else name for name, field in fields.items())
    first, last = f"Wrong arguments for {tool.name}; it was not called.", f"It takes: {takes or 'no parameters'}."
    raise ArgumentsError("\n".join((first, *mistakes, last)))


def _mistake(details: ErrorDetails, names: Iterable[str]) -> str:
    where = ".".join(str(part) for part in details["loc"])
    match details["type"]:
        case "json_invalid":
            return f"The arguments are not valid JSON ({details['msg'].removeprefix('Invalid JSON: ')})."
        case "model_type":
            return f"The arguments must be one JSON object, found {_shown(details['input'])}."
        case "missing":
            return f"{where}: missing."
        case "extra_forbidden":
            near = difflib.get_close_matches(where, names, 1)
            return f"{where}: no such parameter." + (f" Did you mean {near[0]}?" if near else "")
    message = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{where}: {message}; found {_shown(details['input'])}."


def _shown(value: object) -> str:
    """A value as an error repeats it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

"""From a tool to what the model is told of it, and from what the model wrote back to typed parameters.

Promises: the same tool gives the same bytes in every process (promise 7 of the design); a mistake of the model becomes
a text that names the parameter, what was found and what is allowed.
"""

import difflib
import json
from collections.abc import Callable
from functools import lru_cache
from typing import cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agent.models.base import ToolSpec
from agent.tools import json_schema
from agent.tools.base import JsonArguments, JsonSchema, P, Parameters, Tool

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


class ArgumentsError(ValueError):
    """The arguments of a call are not what the tool takes; the text is for the model."""


def spec(tool: Tool[P]) -> ToolSpec:
    """The tool as the model sees it. Properties keep their order of declaration, all other keys are sorted."""
    return ToolSpec(tool.name, tool.description, _told(tool.parameters))  # type: ignore[arg-type]  # classes are hashable


@lru_cache(maxsize=1024)
def _told(parameters: type[Parameters | JsonArguments] | JsonSchema) -> str:
    if isinstance(parameters, JsonSchema):
        schema = json.loads(parameters.text)
    else:
        assert issubclass(parameters, Parameters), "JsonArguments are described by a JsonSchema"
        described = parameters.model_json_schema()
        described.pop("description", None)  # of the class, for readers of the code
        schema = _cleaned(described)
    return json.dumps(_ordered(schema), ensure_ascii=False, separators=(",", ":"))


def parse_arguments(tool: Tool[P], json_text: str) -> P:
    """The parameters of a call, from the JSON text as the model wrote it; nothing at all means no arguments.

    Raises ArgumentsError.
    """
    text, parameters = json_text.strip() or "{}", tool.parameters
    if isinstance(parameters, JsonSchema):
        found = json_schema.parse(parameters, text)
        if isinstance(found, JsonArguments):
            return cast(P, found)
        names, required = json_schema.names(parameters)
    else:
        assert issubclass(parameters, Parameters), "JsonArguments are described by a JsonSchema"
        try:
            return parameters.model_validate_json(text)
        except ValidationError as error:
            found = error.errors(include_url=False)
        names = tuple(parameters.model_fields)
        required = {name for name, field in parameters.model_fields.items() if field.is_required()}
    lines = [_mistake(details, names) for details in found]
    takes = ", ".join(f"{name} (required)" if name in required else name for name in names) or "no parameters"
    raise ArgumentsError(
        "\n".join((f"Wrong arguments for {tool.name}; it was not called.", *lines, f"It takes: {takes}."))
    )


def _mistake(details: ErrorDetails, names: tuple[str, ...]) -> str:
    where = ".".join(str(part) for part in details["loc"])
    match details["type"]:
        case "json_invalid":
            return f"- The arguments are not valid JSON ({details['msg'].removeprefix('Invalid JSON: ')})."
        case "model_type":
            return f"- The arguments must be one JSON object, found {json_schema.shown(details['input'])}."
        case "missing":
            return f"- {where}: missing."
        case "extra_forbidden":
            near = difflib.get_close_matches(where, names, 1)
            return f"- {where}: no such parameter." + (f" Did you mean {near[0]}?" if near else "")
    message = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"- {where}: {message}; found {json_schema.shown(details['input'])}."


def _cleaned(schema: Json) -> Json:
    """Without what tells the model nothing: titles, and null beside a type, since a parameter can be left out."""
    if isinstance(schema, list):
        return [_cleaned(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "title" and not (key == "default" and value is None)}
    match kept.get("anyOf"):
        case [dict() as only, {"type": "null"}]:
            del kept["anyOf"]
            kept = only | kept
    return {key: _of_each(value, _cleaned) if key == "properties" else _cleaned(value) for key, value in kept.items()}


def _ordered(schema: Json) -> Json:
    """Keys sorted, but for the parameters themselves."""
    if isinstance(schema, list):
        return [_ordered(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    items = sorted(schema.items())
    return {key: _of_each(value, _ordered) if key == "properties" else _ordered(value) for key, value in items}


def _of_each(properties: Json, change: Callable[[Json], Json]) -> Json:
    """Here the keys are names of parameters, one of which may well be `title`."""
    if not isinstance(properties, dict):
        return properties
    return {name: change(schema) for name, schema in properties.items()}

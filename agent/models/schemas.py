"""Schemas of tools in forms that providers take."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

Schema = dict[str, Any]

# What Anthropic takes as the name of a property, the strictest of all: tools[].input_schema.
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_TYPES = ("string", "number", "integer", "boolean", "array", "object")
# Levels that are written out; a schema may contain itself.
_DEEPEST = 6


# What every provider takes, more or less.
_USUAL = {
    *("type", "properties", "required", "description", "items", "enum", "const", "default", "title", "anyOf"),
    *(
        "additionalProperties",
        "pattern",
        "$defs",
        "$ref",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    ),
}


@lru_cache(maxsize=500)
def is_odd(text: str) -> bool:
    """Whether a schema holds what not every provider takes."""
    left = [json.loads(text)]
    while left:
        schema = left.pop()
        if isinstance(schema, dict):
            if schema.keys() - _USUAL or not isinstance(schema.get("type", ""), str):
                return True
            left += [*schema.get("properties", {}).values(), schema.get("items"), *schema.get("anyOf", ())]
    return False


@lru_cache(maxsize=500)
def plain(text: str) -> str:
    """Return a schema with no more than types, descriptions, properties, items and enums, which every provider takes.

    Of alternatives the first counts, and references are written out.
    """
    found = json.loads(text)
    return json.dumps({"properties": {}} | _plain(found, found, 0) | {"type": "object"}, ensure_ascii=False)


def _plain(schema: Any, root: Schema, depth: int) -> Schema:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return {"type": "string"}
    schema = _resolved(schema, root)
    kind = schema.get("type")
    kind = next((one for one in kind if one in _TYPES), None) if isinstance(kind, list) else kind
    if kind not in _TYPES:
        kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
    made: Schema = {"type": kind}
    if isinstance(schema.get("description"), str):
        made["description"] = schema["description"]
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if kind == "string" and values and all(isinstance(value, str) and value for value in values):
        made["enum"] = values
    if kind == "array":
        made["items"] = _plain(schema.get("items", {}), root, depth + 1)
    if kind == "object" and isinstance(schema.get("properties"), dict) and schema["properties"]:
        made["properties"] = {name: _plain(one, root, depth + 1) for name, one in schema["properties"].items()}
        required = [name for name in schema.get("required", ()) if name in made["properties"]]
        made |= {"required": required} if required else {}
    return made


def _resolved(schema: Schema, root: Schema) -> Schema:
    """Return a schema with what it refers to, all of `allOf`, and the first alternative that is not null, in it."""
    for _ in range(_DEEPEST):
        others: list[Any] = []
        if isinstance(ref := schema.get("$ref"), str):
            target: Any = root
            for step in filter(None, ref.removeprefix("#").split("/")):
                target = target.get(step, {}) if isinstance(target, dict) else {}
            others.append(target)
        others += schema.get("allOf") or ()
        choices = [one for name in ("anyOf", "oneOf") for one in schema.get(name) or () if one != {"type": "null"}]
        others += choices[:1]
        schema = {key: value for key, value in schema.items() if key not in ("$ref", "allOf", "anyOf", "oneOf")}
        if not others:
            break
        for other in others:
            schema = (other if isinstance(other, dict) else {}) | schema
    return schema


def taken(schema: Schema) -> tuple[Schema, Mapping[str, str]]:
    """Return a schema whose names of properties every provider takes, and whose lists say what they hold.

    Also returns the own names of the properties that got others, by the others.
    """
    names: dict[str, str] = {}
    used = set(_names(schema))
    for name in sorted(used):
        if not _NAME.fullmatch(name):
            bare = other = re.sub(r"[^a-zA-Z0-9_.-]", "_", name)[:56] or "_"
            number = 1
            while other in used or other in names:
                number += 1
                other = f"{bare}_{number}"
            names[other] = name
    return _taken(schema, {name: other for other, name in names.items()}), names


def _names(schema: Any) -> Iterable[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("properties", "$defs", "definitions") and isinstance(value, dict):
                yield from value if key == "properties" else ()
                for one in value.values():
                    yield from _names(one)
            elif key not in ("enum", "const", "default", "examples"):
                yield from _names(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from _names(one)


def _taken(schema: Any, others: Mapping[str, str]) -> Any:
    if isinstance(schema, list):
        return [_taken(one, others) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made: Schema = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            made[key] = {others.get(name, name): _taken(one, others) for name, one in value.items()}
        elif key in ("$defs", "definitions") and isinstance(value, dict):
            made[key] = {name: _taken(one, others) for name, one in value.items()}
        elif key == "required" and isinstance(value, list):
            made[key] = [others.get(name, name) for name in value if isinstance(name, str)]
        else:
            made[key] = value if key in ("enum", "const", "default", "examples") else _taken(value, others)
    kind = made.get("type")
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and not made.keys() & {"items", "prefixItems"}:
        made["items"] = {}
    return made


def given(arguments: Any, names: Mapping[str, str]) -> Any:
    """Return arguments with the own names of the properties. names: as `taken` returns them."""
    if isinstance(arguments, dict):
        return {names.get(name, name): given(value, names) for name, value in arguments.items()}
    return [given(one, names) for one in arguments] if isinstance(arguments, list) else arguments

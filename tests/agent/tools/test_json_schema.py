"""Tools that somebody else describes: the schema reaches the model as it is, arguments reach the tool checked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.message import ToolOutput, ToolResult
from agent.tools.base import CallContext, JsonArguments, Tool
from agent.tools.json_schema import SchemaError, checked
from agent.tools.schema import ArgumentsError, parse_arguments, spec
from tests.service import running
from tests.standins.script import Call

SCHEMA = """
{"type": "object", "required": ["title"], "additionalProperties": false, "properties": {
  "title": {"type": "string", "title": "Title"},
  "count": {"minimum": 1, "type": ["integer", "null"], "default": null},
  "properties": {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "string"}}, "required": ["z"]},
  "colour": {"enum": ["red", "blue"]}}}
"""


class ForeignTool(Tool[JsonArguments]):
    """Repeats its arguments."""

    name, description = "foreign", "Described elsewhere."

    def __init__(self, schema: str = SCHEMA) -> None:
        self.parameters = checked(schema)

    async def run(self, parameters: JsonArguments, context: CallContext) -> ToolOutput:
        return ToolOutput(text=parameters.text)


def test_the_schema_is_told_as_it_is_in_one_order() -> None:
    told = spec(ForeignTool()).schema_json
    assert json.loads(told) == json.loads(SCHEMA)
    turned = json.loads(SCHEMA, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    turned["properties"] = dict(reversed(turned["properties"].items()))
    turned["properties"]["properties"] = json.loads(SCHEMA)["properties"][
        "properties"
    ]  # called so, it is left as it is
    assert spec(ForeignTool(json.dumps(turned))).schema_json == told
    assert list(json.loads(told)["properties"]) == ["title", "count", "properties", "colour"]
    assert list(json.loads(told)["properties"]["properties"]["properties"]) == ["z", "a"]
    assert told.startswith('{"additionalProperties":false,"properties":{"title":{"title":"Title","type":"string"},')


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ('{"title": "x", "cuont": 1}', "- arguments: Additional properties are not allowed ('cuont' was unexpected)"),
        ('{"title": "x", "count": 0}', "- count: 0 is less than the minimum of 1"),
        ('{"title": "x", "count": "many"}', "- count: 'many' is not of type 'integer', 'null'"),
        ('{"title": "x", "colour": "green"}', "- colour: 'green' is not one of ['red', 'blue']"),
        ('{"title": "x", "properties": {}}', "- properties: 'z' is a required property"),
        ('{"title": "x", "properties": {"z": 1}}', "- properties.z: 1 is not of type 'string'"),
        ('{"count": 1}', "- arguments: 'title' is a required property"),
        ("", "- arguments: 'title' is a required property"),
        ('{"title": "x', "- The arguments are not valid JSON"),
        ('{"title": "x", "count": NaN}', "- The arguments are not valid JSON"),
        ('{"title": "\\ud800"}', "- The arguments are not valid JSON"),
        ('["x"]', '- The arguments must be one JSON object, found ["x"].'),
        ('{"title": ' + '["' + "x" * 500 + '"]}', "xxx…xxx"),
    ],
)
def test_mistakes_are_explained(arguments: str, complaint: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        parse_arguments(ForeignTool(), arguments)
    told = str(caught.value)
    assert complaint in told
    assert told.startswith("Wrong arguments for foreign; it was not called.\n")
    assert told.endswith("\nIt takes: title (required), count, properties, colour.")
    assert len(told) < 400


def test_what_a_schema_refers_to_is_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr("urllib.request.urlopen", asked.append)
    tool = ForeignTool('{"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}')
    assert parse_arguments(tool, "{}") == JsonArguments("{}")
    with pytest.raises(ArgumentsError, match="cannot be checked by their schema"):
        parse_arguments(tool, '{"a": 1}')
    assert asked == []


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("true", "does not describe an object"),
        ("[]", "does not describe an object"),
        ('{"type": "array"}', "does not describe an object"),
        ('{"type": "object", "properties": 3}', "3 is not of type 'object'"),
        ('{"type": "object", "properties": {"a": {"type": "strange"}}}', "is not valid"),
    ],
)
def test_what_is_no_schema_of_an_object_is_refused(schema: str, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        checked(schema)


def test_the_library_is_imported_when_a_schema_is_checked() -> None:
    program = (
        "import sys, bot.wiring\n"
        "assert 'jsonschema' not in sys.modules\n"
        "from agent.tools.json_schema import checked\n"
        'checked(\'{"type": "object"}\')\n'
        "assert 'jsonschema' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[3], check=True)


async def test_a_run_calls_it(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [ForeignTool()]) as hark:
        hark.model.add(Call("foreign", {"title": "grün"}), Call("foreign", {"titel": "x"}))
        hark.model.add("done")
        await hark.say("do it")
        assert "foreign" in [tool.name for tool in hark.model.requests[0].tools]
        good, bad = (part for part in hark.model.requests[-1].messages[-1].parts if isinstance(part, ToolResult))
        assert (good.text, good.is_error) == ('{"title": "grün"}', False)
        assert bad.text.startswith("Wrong arguments for foreign; it was not called.")

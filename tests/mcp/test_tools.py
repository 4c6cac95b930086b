"""What an agent is told at its start is short and true."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest

from gpuwhy.mcp.tools import instructions, tools

MOST_BYTES = 6 * 1024
MOST_TOOLS = 7


@pytest.mark.parametrize("allow_apply", [False, True])
def test_the_list_is_short(allow_apply: bool) -> None:
    listed = [tool.document() for tool in tools(allow_apply)]
    assert len(listed) <= MOST_TOOLS
    assert len(json.dumps({"tools": listed}, separators=(",", ":"))) < MOST_BYTES
    assert len(instructions(allow_apply)) < 400


@pytest.mark.parametrize("allow_apply", [False, True])
def test_the_schemas_are_schemas_and_agree_with_the_arguments(allow_apply: bool) -> None:
    for tool in tools(allow_apply):
        document = tool.document()
        for key in ("inputSchema", "outputSchema"):
            jsonschema.Draft202012Validator.check_schema(document[key])
            assert document[key]["type"] == "object"
        assert set(document["inputSchema"]["properties"]) == set(tool.arguments.__struct_fields__)
        given = {key: value for key, value in msgspec.to_builtins(tool.arguments()).items() if value is not None}
        jsonschema.validate(json.loads(json.dumps(given)), document["inputSchema"])


def test_only_what_changes_something_is_not_called_read_only() -> None:
    hints = {tool.name: tool.document()["annotations"] for tool in tools(False)}
    assert {name for name, hint in hints.items() if not hint["readOnlyHint"]} == {"collect"}
    assert hints["collect"]["destructiveHint"] is False
    assert {name for name, hint in hints.items() if not hint["openWorldHint"]} == {"inspect", "cause"}


def test_with_leave_to_apply_the_tool_that_applies_says_that_it_does() -> None:
    (tool,) = [tool for tool in tools(True) if tool.name == "propose_fix"]
    hints = tool.document()["annotations"]
    assert hints["readOnlyHint"] is False
    assert hints["destructiveHint"] is True
    assert "apply_token" in tool.document()["inputSchema"]["properties"]
    (without,) = [tool for tool in tools(False) if tool.name == "propose_fix"]
    assert "apply_token" not in without.document()["inputSchema"]["properties"]

"""The server as agents meet it: the SDK's own client, over standard input and output and over HTTP."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.talking import Call, served, talk_over_http, talk_over_stdio

LOGS = Path(__file__).parents[1] / "data" / "logs"
FOLDER = ["--folder", str(LOGS)]
RECORDED = Path(__file__).parents[2] / "docs" / "agent-session.json"
MOST_ANSWERED = 20_000
"""Bytes of all answers of the recorded session, as they go over the wire."""
MOST_CALLS = 3

CALLS: list[Call] = [
    ("diagnose", {"where": "incident.export"}),
    ("diagnose", {"where": "/etc/passwd"}),
    ("trace", {"surprise": 1}),
    ("no_such_tool", {}),
]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, str]]:
    with served(FOLDER) as address:
        yield address


def judge(session: dict[str, Any]) -> None:
    assert [tool["name"] for tool in session["tools"]] == [
        "diagnose", "collect", "check", "inspect", "trace", "cause", "propose_fix",
    ]  # fmt: skip
    assert len(json.dumps({"tools": session["tools"]}, separators=(",", ":"))) < 6 * 1024
    first, outside, unknown, missing = session["answers"]
    assert first["structuredContent"]["cause"] == "toolkit-too-old-for-arch"
    assert json.loads(first["content"][0]["text"]) == first["structuredContent"]
    assert not first.get("isError")
    for error in (outside, unknown, missing):
        assert error["isError"]
        assert set(json.loads(error["content"][0]["text"])) == {"error", "next"}


def test_over_standard_input_and_output() -> None:
    judge(talk_over_stdio(FOLDER, CALLS))


def test_over_http(server: tuple[str, str]) -> None:
    judge(talk_over_http(*server, CALLS))


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/mcp", {}, 401),
        ("/mcp", {"Authorization": "Bearer wrong"}, 401),
        ("/", {}, 401),
        ("/", {"Authorization": "Bearer TOKEN"}, 404),
        ("/mcp", {"Authorization": "Bearer TOKEN", "Host": "evil.example"}, 421),
        ("/mcp", {"Authorization": "Bearer TOKEN", "Origin": "http://evil.example"}, 403),
    ],
)
def test_nobody_gets_in_without_the_token_or_from_a_web_page(
    server: tuple[str, str], path: str, headers: dict[str, str], status: int
) -> None:
    url, token = server
    connection = http.client.HTTPConnection(url.split("/")[2], timeout=30)
    given = {name: value.replace("TOKEN", token) for name, value in headers.items()}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    connection.request("POST", path, body, {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **given})  # fmt: skip
    assert connection.getresponse().status == status


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.1:80", "gpu-host:80", "x", "127.0.0.1:99999999"])
def test_an_address_that_others_reach_is_refused(address: str) -> None:
    ended = subprocess.run([sys.executable, "-m", "gpuwhy", "mcp", "--http", address], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("gpuwhy: --http")


def test_nothing_but_the_protocol_is_on_standard_output() -> None:
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "check", "arguments": {"where": "local"}}},
    ]  # fmt: skip
    lines = "".join(json.dumps(each) + "\n" for each in asked)
    with subprocess.Popen([sys.executable, "-m", "gpuwhy", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.stdout.read() == ""
    assert [each["id"] for each in answers] == [1, 2]
    assert answers[1]["result"]["structuredContent"]["outcome"]


def test_the_recorded_session_is_what_happens_and_solves_the_seed_case() -> None:
    """docs/agent-session.json is written by scripts/record_agent_session.py; run it after a change of words."""
    recorded = json.loads(RECORDED.read_text())
    calls = [(step["tool"], step["arguments"]) for step in recorded]
    answers = talk_over_stdio(FOLDER, calls)["answers"]
    assert [without_chance(each["structuredContent"]) for each in answers] == [without_chance(step["answer"]) for step in recorded]  # fmt: skip
    assert len(calls) <= MOST_CALLS
    assert sum(each["bytes"] for each in answers) < MOST_ANSWERED
    assert answers[1]["structuredContent"]["cause"] == "toolkit-too-old-for-arch"
    remedy = answers[-1]["structuredContent"]["remedy"]
    assert (remedy["name"], remedy["value"]) == ("FLASHINFER_CUDA_ARCH_LIST", "12.0a")
    assert "systemctl daemon-reload" in remedy["commands"]


def without_chance(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "next_cursor"}

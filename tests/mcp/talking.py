"""An agent's side of a session, with the SDK's own client, of major 1 or 2.

Run as a program in an environment that holds another SDK: ``python talking.py stdio|http FOLDER`` reads calls as JSON on standard
input, and prints what the tools and the answers were.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from mcp import ClientSession
from mcp.client import streamable_http
from mcp.client.stdio import StdioServerParameters, stdio_client

Call = tuple[str, dict[str, Any]]
Session = dict[str, Any]
"""``tools`` and ``answers`` as the protocol has them, the latter with ``bytes``: the whole result as JSON."""


def talk_over_stdio(arguments: list[str], calls: list[Call], python: str = sys.executable) -> Session:
    """Starts ``gpuwhy mcp`` and makes the calls."""

    async def session() -> Session:
        server = StdioServerParameters(command=python, args=["-m", "gpuwhy", "mcp", *arguments])
        async with stdio_client(server) as (received, sent), ClientSession(received, sent) as client:
            return await _spoken(client, calls)

    return asyncio.run(session())


def talk_over_http(url: str, token: str, calls: list[Call]) -> Session:
    """With a server that :func:`served` started."""

    async def session() -> Session:
        async with _http(url, token) as streams, ClientSession(streams[0], streams[1]) as client:
            return await _spoken(client, calls)

    return asyncio.run(session())


@contextmanager
def served(arguments: list[str], python: str = sys.executable) -> Iterator[tuple[str, str]]:
    """``gpuwhy mcp --http 0`` while it is used: its URL and its token."""
    environment = {name: value for name, value in os.environ.items() if name != "GPUWHY_MCP_TOKEN"}
    command = [python, "-m", "gpuwhy", "mcp", "--http", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stderr is not None
            told = server.stderr.readline() + server.stderr.readline()
            found = re.search(r"(http://\S+)\ngpuwhy: token (\S+)", told)
            assert found, told
            yield found[1], found[2]
        finally:
            server.terminate()


@asynccontextmanager
async def _http(url: str, token: str) -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {token}"}
    module: Any = streamable_http
    if hasattr(module, "streamable_http_client"):
        library = __import__("httpx2" if hasattr(module, "httpx2") else "httpx")
        async with (
            library.AsyncClient(headers=headers, timeout=500, follow_redirects=True) as client,
            module.streamable_http_client(url, http_client=client) as streams,
        ):
            yield streams
    else:
        async with module.streamablehttp_client(url, headers=headers) as streams:
            yield streams


async def _spoken(client: Any, calls: list[Call]) -> Session:
    await client.initialize()
    tools = _document(await client.list_tools())["tools"]
    answers = []
    for name, arguments in calls:
        answer = _document(await client.call_tool(name, arguments))
        answers.append({**answer, "bytes": len(json.dumps(answer, separators=(",", ":")).encode())})
    return {"tools": tools, "answers": answers}


def _document(result: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(result.model_dump_json(by_alias=True, exclude_none=True))
    return document


def main() -> None:
    transport, folder = sys.argv[1:3]
    calls = [(name, arguments) for name, arguments in json.load(sys.stdin)]
    if transport == "stdio":
        session = talk_over_stdio(["--folder", folder], calls)
    else:
        with served(["--folder", folder]) as (url, token):
            session = talk_over_http(url, token, calls)
    json.dump(session, sys.stdout)


if __name__ == "__main__":
    main()

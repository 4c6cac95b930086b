"""The server of the official SDK around a desk. Its majors 1 and 2 register handlers differently; the rest is alike."""

from __future__ import annotations

import inspect
import os
import sys
from typing import Any, cast

import anyio
import anyio.to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from gpuwhy import __version__
from gpuwhy.mcp.answering import Desk
from gpuwhy.mcp.tools import instructions

NAME = "gpuwhy"


def server_of(desk: Desk) -> Any:
    """A server whose tools are those of the desk."""
    told = instructions(desk.manner.allow_apply)
    return _of_major_2(desk, told) if _is_major_2() else _of_major_1(desk, told)


def _is_major_2() -> bool:
    return "on_call_tool" in inspect.signature(Server.__init__).parameters


def _of_major_2(desk: Desk, told: str) -> Any:
    async def list_tools(context: Any, params: Any) -> Any:
        del context, params
        return _tools(desk)

    async def call_tool(context: Any, params: Any) -> Any:
        del context
        return await _called(desk, params.name, params.arguments)

    server: Any = Server
    return server(NAME, version=__version__, instructions=told, on_list_tools=list_tools, on_call_tool=call_tool)


def _of_major_1(desk: Desk, told: str) -> Any:
    major_1 = cast("Any", types)
    server = cast("Any", Server)(NAME, version=__version__, instructions=told)

    async def list_tools(request: Any) -> Any:
        del request
        return major_1.ServerResult(_tools(desk))

    async def call_tool(request: Any) -> Any:
        return major_1.ServerResult(await _called(desk, request.params.name, request.params.arguments))

    server.request_handlers[types.ListToolsRequest] = list_tools
    server.request_handlers[types.CallToolRequest] = call_tool
    return server


def _tools(desk: Desk) -> types.ListToolsResult:
    return types.ListToolsResult.model_validate({"tools": [tool.document() for tool in desk.tools.values()]})


async def _called(desk: Desk, name: str, arguments: dict[str, Any] | None) -> types.CallToolResult:
    """In a thread: the connection answers pings meanwhile, and a cancelled call keeps nobody waiting."""
    reply = await anyio.to_thread.run_sync(desk.call, name, arguments, abandon_on_cancel=True)
    shape: dict[str, Any] = {"content": [{"type": "text", "text": reply.text}], "isError": reply.is_error}
    if not reply.is_error:
        shape["structuredContent"] = reply.document
    return types.CallToolResult.model_validate(shape)


async def serve_stdio(desk: Desk) -> None:
    """Until the client closes standard input."""
    server = server_of(desk)
    stdin, stdout = (None, None) if _is_major_2() else _private_streams()
    async with stdio_server(stdin, stdout) as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


def _private_streams() -> tuple[anyio.AsyncFile[str], anyio.AsyncFile[str]]:
    """The connection on descriptors of its own, as major 2 does it: ssh and others that are started must neither read nor write it."""
    stdin = os.fdopen(os.dup(0), "r", encoding="utf-8", errors="replace")
    stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(sys.stderr.fileno(), 1)
    return anyio.wrap_file(stdin), anyio.wrap_file(stdout)


def http_manager(desk: Desk, authority: str) -> StreamableHTTPSessionManager:
    """Streamable HTTP for requests whose Host is ``authority`` (or localhost with its port): no web page gets through by a name of its own."""
    port = authority.rpartition(":")[2]
    hosts = [authority, f"localhost:{port}"]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[f"http://{host}" for host in hosts],
    )
    return StreamableHTTPSessionManager(server_of(desk), json_response=True, stateless=True, security_settings=security)

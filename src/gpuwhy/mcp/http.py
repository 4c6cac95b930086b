"""Streamable HTTP on this machine alone, for whoever has the token."""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from gpuwhy.mcp.answering import Desk

PATH = "/mcp"

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class AddressError(Exception):
    """An address that is not one of this machine alone, or not free."""


def bound(address: str) -> socket.socket:
    """A socket that listens on ``[HOST:]PORT``; port 0 is any free one. Raises AddressError."""
    host, _, port = address.rpartition(":")
    host = (host or "127.0.0.1").strip("[]")
    host = "127.0.0.1" if host == "localhost" else host
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
        number = int(port)
    except ValueError as error:
        raise AddressError(f"{address}: give PORT, 127.0.0.1:PORT or [::1]:PORT") from error
    if not is_loopback:
        raise AddressError(
            f"{address} is not an address of this machine alone: use 127.0.0.1, and an SSH tunnel from elsewhere"
        )
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, number))
        listening.listen(64)
    except (OSError, OverflowError) as error:
        listening.close()
        raise AddressError(f"{address}: {getattr(error, 'strerror', None) or error}") from error
    return listening


def authority_of(listening: socket.socket) -> str:
    """``HOST:PORT`` as a URL has it."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def serve_http(desk: Desk, listening: socket.socket, token: str) -> None:
    """Until the process is told to end."""
    import uvicorn

    from gpuwhy.mcp.sdk import http_manager

    manager = http_manager(desk, authority_of(listening))
    config = uvicorn.Config(guarded(manager.handle_request, token), lifespan="off", log_level="warning", access_log=False)  # fmt: skip
    async with manager.run():
        await uvicorn.Server(config).serve(sockets=[listening])


def guarded(application: Application, token: str) -> Application:
    """Lets through what has the token; says 401 to the rest, and 404 to other paths."""
    expected = f"Bearer {token}".encode()

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        if not hmac.compare_digest(given, expected):
            await _refuse(send, 401, b"gpuwhy mcp: send Authorization: Bearer TOKEN, as it was printed at the start\n")
        elif scope["path"].rstrip("/") != PATH:
            await _refuse(send, 404, b"gpuwhy mcp: the endpoint is /mcp\n")
        else:
            await application(scope, receive, send)

    return guard


async def _refuse(send: Send, status: int, words: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(words)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words})

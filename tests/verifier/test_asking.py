"""A service asked over a real loopback port: healthy, loading, broken, asking for a key, gone."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from gpuwhy.applier import services
from gpuwhy.verifier import asking

ACTIVE = {"ActiveState": "active", "SubState": "running", "InvocationID": "a"}


@contextmanager
def serving(answers: dict[str, tuple[int, bytes]]) -> Iterator[int]:
    """A server that gives each path its answer, and everything else a 404; its port."""

    class Answers(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = answers.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 - the names are http.server's

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def states(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What systemd says of the unit, one after the other; the last one stays. The port is the unit's own."""
    told = [ACTIVE]
    monkeypatch.setattr(services, "properties", lambda manager, unit: told[0] if len(told) == 1 else told.pop(0))
    monkeypatch.setattr(asking, "processes_of", lambda unit: {os.getpid()})
    return told


def asked(port: int, seconds: float = 2.0) -> dict[str, Any]:
    return {"port": port, "unit": "vllm.service", "seconds": seconds}


def test_a_healthy_service_answers_a_request_that_samples() -> None:
    models = b'{"data": [{"id": "m"}]}'
    with serving({"/health": (200, b""), "/v1/models": (200, models), "/v1/completions": (200, b"{}")}) as port:
        assert asking.health(asked(port)) == {"status": "ok", "path": "/health", "reason": "GET /health answered 200"}
        assert asking.request(asked(port))["status"] == "ok"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(500, "failed"), (503, "failed"), (400, "not possible"), (401, "not possible"), (404, "not possible")],
)
def test_only_an_error_of_the_server_speaks_against_it(status: int, outcome: str) -> None:
    with serving({"/v1/completions": (status, b"sampling failed")}) as port:
        answer = asking.request(asked(port))
    assert answer["status"] == outcome
    assert status == 404 or str(status) in answer["reason"]


def test_a_service_that_only_loads_is_waited_for_and_then_not_well() -> None:
    with serving({"/health": (503, b"")}) as port:
        answer = asking.health(asked(port, 1.2))
    assert answer == {"status": "failed", "reason": "GET /health answered 503"}
    assert asking.health(asked(port, 0.1))["status"] == "not possible"  # nobody listens any more


def test_a_service_that_dies_of_the_request_has_failed(states: list[dict[str, str]]) -> None:
    states[:] = [ACTIVE, {**ACTIVE, "InvocationID": "b"}]
    with serving({"/v1/completions": (200, b"{}")}) as port:
        answer = asking.request(asked(port))
    assert answer["status"] == "failed"
    assert "did not outlive the request" in answer["reason"]


def test_the_port_of_another_process_says_nothing_of_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "processes_of", lambda unit: {1})
    with serving({"/health": (200, b"")}) as port:
        answer = asking.health(asked(port))
    assert answer["status"] == "not possible"
    assert "another process" in answer["reason"]

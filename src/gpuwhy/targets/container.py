"""A container of docker, podman or nerdctl: from outside through its engine, and its inside when it runs.

The collector runs on the engine's host, this machine or one over SSH. There it asks the engine, and when the container
runs it starts itself a second time inside, through ``exec -i``: one connection carries both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gpuwhy.targets.engines import explain
from gpuwhy.targets.interface import Ask, Connection, HostTarget, Reply, TargetError
from gpuwhy.targets.local import LocalTarget

ENGINES = ("docker", "podman", "nerdctl")

STATE = "container_state"
"""The probe that tells whether the container is there: without its answer there is nothing to examine."""

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,200}\Z")


class ContainerTarget:
    """A container of ``engine``, by name or id, running or not. ``host`` is where the engine's client is run."""

    def __init__(self, engine: str, container: str, host: HostTarget | None = None) -> None:
        if not _NAME.match(container):
            raise TargetError(f"{container!r} is not the name of a container", f"{engine} ps -a lists them.")
        self.engine = engine
        self.container = container
        self.host = host or LocalTarget()

    @property
    def kind(self) -> str:
        return self.engine

    @property
    def name(self) -> str:
        return f"{self.engine}:{self.container}" + via(self.host)

    def open(self, program: str) -> Connection:
        request = {"engine": self.engine, "name": self.container}
        return EngineConnection(self.host.open(program), request, self.host)


def via(host: HostTarget) -> str:
    """How a target's name says on which host it is; empty on this machine."""
    return "" if host.kind == "local" else f" on {host.name}"


class EngineConnection:
    """A connection to an engine's host whose collector is told which container or pod to examine."""

    def __init__(self, connection: Connection, container: Mapping[str, str], host: HostTarget) -> None:
        self._connection = connection
        self._container = dict(container)
        self._host = host

    def collect(
        self, request: Mapping[str, Any], on_result: Callable[[dict[str, Any]], None], deadline: float
    ) -> dict[str, Any]:
        """As :class:`Connection` has it; raises TargetError too when the engine cannot be asked, or knows no such container."""
        state: dict[str, Any] = {}

        def note(result: dict[str, Any]) -> None:
            if result.get("probe") == STATE:
                state.update(result)
            on_result(result)

        end = self._connection.collect({**request, "container": self._container}, note, deadline)
        if not state:
            state = {"status": "timed out"}
        if state.get("status") != "ok":
            raise explain(self._container, state, "" if self._host.kind == "local" else self._host.name)
        return end

    def ask(self, asks: Iterable[Ask], deadline: float = 10.0) -> list[Reply]:
        return self._connection.ask(asks, deadline)

    def close(self) -> None:
        self._connection.close()

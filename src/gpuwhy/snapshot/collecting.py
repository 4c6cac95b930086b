"""Takes a snapshot of a live target, and goes on asking it over the same connection."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

import msgspec

from gpuwhy import __version__
from gpuwhy.collector.bundle import program
from gpuwhy.snapshot.containers import arranged
from gpuwhy.snapshot.document import Excerpt, Probe, Snapshot, Subject
from gpuwhy.snapshot.file import from_document
from gpuwhy.targets import Ask, HostTarget, Reply
from gpuwhy.targets.pipe import SHELL_LINE

DEADLINE = 8.0
"""Seconds that the probes are given altogether."""

CONNECTING = 27.0
"""Seconds that reaching the target may take on top (a jump host, a slow key exchange, a passphrase), and that the
collector has to say that it ended."""

CLOSING = 10.0
"""Seconds after which a collector that lost us ends by itself, beyond the time that we had."""

TIMEOUT = 30.0
"""Seconds after which the collection ends with everything found so far."""

JOURNAL_VARIABLE = "GPUWHY_JOURNAL_DIRECTORY"
"""Names a folder of journal files on the target that are read in place of its own journal."""

OnProbe = Callable[[Probe], None]


class Session:
    """A target that is being examined: one connection from the first probe to the last request.

    Use it as a context manager. :attr:`snapshot` always holds everything that was brought home so far.
    """

    def __init__(self, target: HostTarget, unit: str = "", timeout: float = TIMEOUT, pid: int | None = None) -> None:
        """Connects. ``timeout`` is in seconds from now, for everything until :meth:`close`; ``pid`` names a process.

        Raises :class:`gpuwhy.targets.TargetError`.
        """
        self._target = target
        self._unit = unit
        self._pid = pid
        self._end = time.monotonic() + timeout
        self._excerpts: list[Excerpt] = []
        self._snapshot: Snapshot | None = None
        self._connection = target.open(program())

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def collect(
        self, on_probe: OnProbe | None = None, deadline: float = DEADLINE, probes: Sequence[str] = (), python: str = ""
    ) -> Snapshot:
        """Run the probes; ``on_probe`` sees each as it comes. Raises TargetError when not one of them came.

        ``probes`` names those that are needed (with what these need themselves), all by default; ``python`` is an
        interpreter or environment there, looked at before those of the service.
        """
        started, begun = time.time(), time.monotonic()
        results: list[dict[str, Any]] = []

        def keep(result: dict[str, Any]) -> None:
            try:
                probe = msgspec.convert(result, Probe)
            except msgspec.ValidationError:
                return
            results.append(result)
            if on_probe is not None:
                on_probe(probe)

        request = self._request(deadline)
        if probes:
            request["probes"] = list(probes)
        if python:
            request["python"] = python
        end = self._connection.collect(request, keep, self._within(deadline + CONNECTING))
        document = {
            "gpuwhy_version": __version__,
            "target": msgspec.to_builtins(Subject(self._target.kind, self._target.name, self._unit, self._pid)),
            "started": round(started, 3),
            "duration": round(time.monotonic() - begun, 3),
            "is_complete": bool(end),
            "probes": arranged(results),
            "redacted": end.get("redacted") or {},
            "target_python": str(end.get("python") or ""),
        }
        self._snapshot = from_document(document, self._target.name)
        return self._snapshot

    def ask(self, asks: Iterable[Ask], deadline: float = 10.0) -> list[Reply]:
        """Answers in the order of ``asks``; each is kept in the snapshot, and one asked before is not asked again."""
        wanted = list(asks)
        known = {_key(excerpt): excerpt for excerpt in self._excerpts}
        new = [ask for ask in dict.fromkeys(wanted) if _key(ask) not in known]
        for ask, reply in zip(new, self._asked(new, deadline), strict=True):
            excerpt = Excerpt(
                ask.ask, ask.path, reply.status, reply.value, reply.reason, ask.first, ask.last, ask.offset, ask.length,
                ask.queries,
            )  # fmt: skip
            known[_key(ask)] = excerpt
            self._excerpts.append(excerpt)
        found = [known[_key(ask)] for ask in wanted]
        return [Reply(status=each.status, reason=each.reason, value=each.value) for each in found]

    def _asked(self, asks: list[Ask], deadline: float) -> list[Reply]:
        """Nothing is asked once the time is over: that an answer is missing is then said of each."""
        within = self._within(deadline)
        if within <= 0:
            return [Reply(status="timed out", reason="the time of the whole run was over")] * len(asks)
        return self._connection.ask(asks, within) if asks else []

    def _within(self, deadline: float) -> float:
        """``deadline`` seconds, as far as the time of the whole run goes."""
        return min(deadline, max(0.0, self._end - time.monotonic()))

    @property
    def snapshot(self) -> Snapshot:
        """What was collected and asked until now. Raises RuntimeError before :meth:`collect`."""
        if self._snapshot is None:
            raise RuntimeError("nothing was collected yet")
        return msgspec.structs.replace(self._snapshot, excerpts=tuple(self._excerpts))

    def close(self) -> None:
        """End the collector on the target. Safe to call twice."""
        self._connection.close()

    def _request(self, deadline: float) -> dict[str, Any]:
        left = self._within(3600.0)
        # Of a short time a part is kept for the way: what did not answer is then named by the collector itself.
        request: dict[str, Any] = {"deadline": round(min(deadline, left * 0.75), 3), "life": round(left + CLOSING, 3)}
        # the target may have to start the collector once more, inside a container
        request["shell"] = SHELL_LINE
        if self._unit:
            request["unit"] = self._unit
        if self._pid is not None:
            request["pid"] = self._pid
        if os.environ.get(JOURNAL_VARIABLE):
            request["journal_directory"] = os.environ[JOURNAL_VARIABLE]
        return request


def _key(asked: Ask | Excerpt) -> tuple[Any, ...]:
    return (asked.ask, asked.path, asked.first, asked.last, asked.offset, asked.length, asked.queries)


def collect(
    target: HostTarget,
    unit: str = "",
    on_probe: OnProbe | None = None,
    deadline: float = DEADLINE,
    timeout: float = TIMEOUT,
) -> Snapshot:
    """A snapshot of ``target``, taken over one connection that ends with it. Raises TargetError."""
    with Session(target, unit, timeout) as session:
        return session.collect(on_probe, deadline)

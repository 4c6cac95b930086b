"""Keeps the investigation record while the investigation runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from gpuwhy.model.investigation import Investigation, Step


class OpenStep:
    """A question while it is being answered; what it found is filled in by whoever answers it."""

    __slots__ = ("changed", "found", "outcome")

    def __init__(self) -> None:
        self.outcome = "ok"
        self.found = ""
        self.changed = ""


class Record:
    """The steps so far, in order."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    @contextmanager
    def step(self, question: str, where: str) -> Iterator[OpenStep]:
        """Time one question. An exception is recorded as ``failed`` and passes on."""
        begun = time.monotonic()
        answer = OpenStep()
        try:
            yield answer
        except Exception as error:
            answer.outcome, answer.found = "failed", f"{type(error).__name__}: {error}"
            raise
        finally:
            duration = round(time.monotonic() - begun, 4)
            self._steps.append(Step(question, where, answer.outcome, answer.found, answer.changed, duration=duration))

    def add(
        self,
        question: str,
        where: str,
        outcome: str,
        found: str = "",
        changed: str = "",
        assumes: str = "",
        duration: float | None = None,
    ) -> None:
        """Add a question that was answered elsewhere (a probe on the target, a cause)."""
        self._steps.append(Step(question, where, outcome, found, changed, assumes, duration))

    def closed(self, open_questions: tuple[str, ...] = ()) -> Investigation:
        return Investigation(tuple(self._steps), open_questions)

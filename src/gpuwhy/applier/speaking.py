"""Requests in, answers out: one JSON object a line, without secrets, in the frames that the collector's answers have.

A request may give any number of ``{"probe": STEP, "status": ..., "reason": ..., "value": ...}`` lines and one
``{"end": {"status": ..., ...}}``.
"""

import json
import os
import signal
import sys
from typing import Any, Dict, Iterator

from gpuwhy.redaction import Redactor

IDLE_DEADLINE = 900
"""Seconds that the program waits for the next request: a person reads the preview meanwhile."""

LONGEST_REQUEST = 8 << 20

Answer = Dict[str, Any]


class Voice:
    """Standard output. When nobody listens any more it falls silent: a change that has begun is brought to its end."""

    def __init__(self) -> None:
        self.redactor = Redactor()
        self._is_heard = True

    def step(self, name: str, status: str, reason: str = "", value: Any = None) -> None:
        """How one step went."""
        self._say({"probe": name, "status": status, "reason": reason, "value": value})

    def end(self, answer: Answer) -> None:
        """The last line of an answer."""
        self._say({"end": answer})

    def _say(self, document: Answer) -> None:
        if not self._is_heard:
            return
        data = json.dumps(self.redactor.value(document), ensure_ascii=True).encode("ascii") + b"\n"
        try:
            while data:
                data = data[os.write(1, data) :]
        except OSError:
            self._is_heard = False


def requests() -> Iterator[Answer]:
    """The requests as they come; ends with the input, with ``quit``, or when none came for a long time."""
    reader = sys.stdin.buffer
    while True:
        signal.alarm(IDLE_DEADLINE)
        line = reader.readline(LONGEST_REQUEST)
        signal.alarm(0)
        if not line or line.strip() == b"quit":
            return
        try:
            request = json.loads(line.decode("utf-8", "replace"))
        except ValueError:
            request = None
        if isinstance(request, dict):
            yield request

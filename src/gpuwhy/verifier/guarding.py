"""The failing check itself, with the change and, to know that it is the right one, without it."""

import time
from typing import Any, Dict

from gpuwhy.applier.speaking import Answer
from gpuwhy.verifier.room import Room
from gpuwhy.verifier.service import service_of

MEMORY = 16 << 30


def guard(request: Dict[str, Any]) -> Answer:
    """``without`` and ``with`` the change: how the same call ended in two fresh processes, side by side."""
    service = service_of(request)
    changes = request.get("variables") or {}
    keeps = request.get("keeps") or ()
    asked = {"act": "call", **request["call"]}
    with Room(service, MEMORY) as room:
        until = time.monotonic() + float(request["seconds"])
        trials = {"without": room.start("without", asked, {}, keeps), "with": room.start("with", asked, changes, keeps)}
        ended = {name: trial.ended(until) for name, trial in trials.items()}
    return {"status": "ok", "interpreter": service.interpreter, **ended}

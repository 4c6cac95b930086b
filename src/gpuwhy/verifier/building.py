"""A module that is compiled where the service is, with the change, loaded, and read: for which GPUs does it hold code?"""

import os
import time
from typing import Any, Dict, List

from gpuwhy.applier.speaking import Answer
from gpuwhy.binaries.code_sets import code_sets, loaded_sets
from gpuwhy.binaries.examining import examine
from gpuwhy.binaries.reading import FileSource, Unreadable
from gpuwhy.verifier.room import Room
from gpuwhy.verifier.service import service_of

MEMORY = 32 << 30


def build(request: Dict[str, Any]) -> Answer:
    """``ended`` of the build, ``codes`` that its result holds."""
    service = service_of(request)
    changes = request.get("variables") or {}
    with Room(service, MEMORY) as room:
        until = time.monotonic() + float(request["seconds"]) * times_slower()
        begun = time.monotonic()
        ended = room.start("build", {"act": "build", **request["build"]}, changes).ended(until)
        answer: Answer = {"status": "ok", "interpreter": service.interpreter, "ended": ended}
        answer["seconds"] = round(time.monotonic() - begun, 1)
        if ended["status"] == "returned":
            answer["codes"] = codes_of(ended["path"])
    return answer


MOST_TIMES = 4.0


def times_slower() -> float:
    """How many times longer than on an idle machine a compiler takes here: 1 to 4, by the load of each core."""
    return min(MOST_TIMES, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def codes_of(path: str) -> List[str]:
    """The device code in a file: ``["sm_120a", "compute_90"]``."""
    try:
        binary = examine(FileSource(path))
    except Unreadable:
        return []
    return sorted({code.architecture for each in loaded_sets(code_sets(binary)) for code in each.codes})

"""Answers requests, one JSON line each: ``guard``, ``build``, ``launch``, ``health``, ``request``.

Each names the service (``unit``) and the change to its environment (``variables``: null for one that is taken out).
"""

import os
import signal
from typing import Any, Callable, Dict

from gpuwhy.applier.refusing import Refused
from gpuwhy.applier.speaking import Answer, Voice, requests
from gpuwhy.verifier import asking, building, guarding, on_gpu

ACTS: Dict[str, Callable[[Dict[str, Any]], Answer]] = {
    "guard": guarding.guard,
    "build": building.build,
    "launch": on_gpu.launch,
    "health": asking.health,
    "request": asking.request,
}


def main() -> None:
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        # raised where the work is, so that processes are ended and folders removed on the way out
        signal.signal(number, _leave)
    voice = Voice()
    for request in requests():
        voice.end(answer(request))
    os._exit(0)


def answer(request: Dict[str, Any]) -> Answer:
    """What one request gives; that it is not possible here is an answer."""
    act = ACTS.get(str(request.get("do")))
    if act is None:
        return not_possible("the verifier knows no request of this name")
    try:
        return act(request)
    except Refused as error:
        return not_possible(error.reason)
    except (OSError, KeyError, TypeError, ValueError) as error:
        return not_possible("%s: %s" % (type(error).__name__, error))


def not_possible(reason: str) -> Answer:
    return {"status": "not possible", "reason": reason}


def _leave(_number: int, _frame: Any) -> None:
    raise SystemExit(0)

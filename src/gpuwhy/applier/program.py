"""Answers requests, one JSON line each: ``look``, ``container``, ``version``, ``resolve``, ``history``, ``apply``, ``finish``, ``undo``, ``conclude``.

It changes nothing but what a plan lists, and only on ``apply``, ``finish`` and ``undo``. It goes on to the end of a
change when the connection is lost: half a change is worse than a change that nobody watched.
"""

import os
import signal
from typing import Any, Callable, Dict

from gpuwhy.applier import steps
from gpuwhy.applier.changing import Changer
from gpuwhy.applier.containers import container
from gpuwhy.applier.history import History, summary
from gpuwhy.applier.looking import look, version_of
from gpuwhy.applier.refusing import Refused
from gpuwhy.applier.resolving import resolve
from gpuwhy.applier.speaking import Answer, Voice, requests


def main() -> None:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    _leave_session()
    voice = Voice()
    for request in requests():
        voice.end(answer(request, voice))
    os._exit(0)


def answer(request: Dict[str, Any], voice: Voice) -> Answer:
    """What one request gives; a refusal is an answer."""
    history = History(str(request.get("root") or ""))
    try:
        if request.get("do") == "look":
            return look(history, request)
        if request.get("do") == "container":
            return container(request)
        if request.get("do") == "version":
            return version_of(request)
        if request.get("do") == "resolve":
            return resolve(request)
        if request.get("do") == "history":
            return {"status": "ok", "path": history.path, "records": [summary(each) for each in history.records()]}
        return _changed(request, history, voice)
    except Refused as error:
        return {"status": "refused", "reason": error.reason, "advice": error.advice, "detail": error.detail}
    except (OSError, KeyError, TypeError, ValueError) as error:
        return {"status": "refused", "reason": "%s: %s" % (type(error).__name__, error), "advice": "", "detail": {}}


def _changed(request: Dict[str, Any], history: History, voice: Voice) -> Answer:
    changer = Changer(history, voice)
    acts: Dict[str, Callable[[Dict[str, Any]], Answer]] = {
        "apply": changer.apply,
        "finish": changer.finish,
        "undo": changer.undo,
        "conclude": changer.conclude,
    }
    act = acts.get(str(request.get("do")))
    if act is None:
        raise Refused("the applier knows no request of this name")
    # what is refused, or concerns no change that was ever made, leaves nothing behind, not even a folder for the journal
    if request.get("do") == "apply":
        steps.check(history.root, request["plan"])
    elif not history.records():
        raise Refused("gpuwhy has changed nothing here")
    lock = history.lock()
    try:
        return act(request)
    finally:
        lock.free()


def _leave_session() -> None:
    """Goes on in a process of its own: one that is ended with the connection must not leave half a change."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
    os.setsid()

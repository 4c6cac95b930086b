"""Rung b: the failing check itself, in the service's interpreter and environment, with the change and without it."""

from __future__ import annotations

import msgspec

from gpuwhy.model.event import RaisedException
from gpuwhy.remedies.applying.verification import Rung, Trial
from gpuwhy.remedies.verifying.calls import Call, failing_call, failing_exception
from gpuwhy.remedies.verifying.changes import changes_of
from gpuwhy.remedies.verifying.checker import Ended, asked

SECONDS = 120.0
"""Libraries are imported: a big one takes ten seconds on an idle machine."""


class GuardHolds:
    """Before the change: it must fail as it did without the change, else it is not the failing check; and not with it."""

    name = "guard"
    needs_change = False

    def verify(self, trial: Trial) -> Rung | None:
        change = changes_of(trial.remedy)
        if change is None or not change.variables:
            return None
        call, raised = failing_call(trial.diagnosis), failing_exception(trial.diagnosis)
        if call is None or raised is None:
            return Rung("b", self.name, "not possible", "no failing check is known that could be run alone")
        said = asked(trial, "guard", SECONDS, variables=dict(change.variables), call=msgspec.to_builtins(call))
        if said.status != "ok" or said.without is None or said.with_change is None:
            return Rung("b", self.name, "not possible", said.reason)
        return judged(call, raised, said.without, said.with_change, said.interpreter)


class GuardHoldsAfterwards:
    """After a change of files (a package, a cache), which cannot be tried before it is made."""

    name = "guard"
    needs_change = True

    def verify(self, trial: Trial) -> Rung | None:
        if trial.remedy.kind not in ("package", "cache", "files"):
            return None
        call, raised = failing_call(trial.diagnosis), failing_exception(trial.diagnosis)
        if call is None or raised is None:
            return None
        keeps = ("FLASHINFER_WORKSPACE_BASE", "XDG_CACHE_HOME", "TRITON_CACHE_DIR") if trial.remedy.kind == "cache" else ()  # fmt: skip
        said = asked(trial, "guard", SECONDS, variables={}, call=msgspec.to_builtins(call), keeps=keeps)
        ended = said.with_change
        if said.status != "ok" or ended is None:
            return Rung("b", self.name, "not possible", said.reason)
        if ended.status == "returned":
            return Rung("b", self.name, "passed", f"{call} in {said.interpreter}: {ended.words}")
        if is_same(ended, raised):
            return Rung("b", self.name, "failed", f"{call} in {said.interpreter} still raises {ended.words}")
        return Rung("b", self.name, "not possible", f"{call} in {said.interpreter}: {ended.words}")


def judged(call: Call, raised: RaisedException, without: Ended, with_change: Ended, interpreter: str) -> Rung:
    """What two runs of the same call show, one without the change and one with it."""
    ran = f"{call} in {interpreter}"
    if not is_same(without, raised):
        why = f"{ran} does not fail here as the service did ({without.words}), so it proves nothing"
        return Rung("b", "guard", "not possible", why)
    if with_change.status == "returned":
        return Rung("b", "guard", "passed", f"{ran}: raises without the change, passes with it")
    if with_change.status == "timed out":
        return Rung("b", "guard", "not possible", f"{ran} did not end in time with the change")
    still = "still " if is_same(with_change, raised) else ""
    return Rung("b", "guard", "failed", f"{ran} {still}fails with the change: {with_change.words}")


def is_same(ended: Ended, raised: RaisedException) -> bool:
    """Whether a process ended in the exception of the failure: type and first line."""
    if ended.status != "raised":
        return False
    is_type = ended.type.rpartition(".")[2] == raised.type.rpartition(".")[2]
    return is_type and _first_line(ended.message) == _first_line(raised.message)


def _first_line(message: str) -> str:
    return " ".join(message.strip().partition("\n")[0].split())[:300]

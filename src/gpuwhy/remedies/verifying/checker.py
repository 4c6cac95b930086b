"""The verifier on the target of a trial: one connection a question, as each takes its own time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gpuwhy.remedies.applying.verification import Trial
from gpuwhy.verifier.bundle import program

LOADED = 4.0
"""How many times longer the verifier may take on a loaded machine."""

CONNECTING = 30.0
"""Seconds beyond the deadline of what is asked: the way there, the interpreter's start, the removal of the folder."""


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a process of a trial ended: ``returned``, ``raised``, ``died`` or ``timed out``."""

    status: str
    type: str = ""
    message: str = ""
    value: str = ""
    path: str = ""
    name: str = ""
    device: str = ""
    output: str = ""
    signal: int | None = None
    code: int | None = None

    @property
    def words(self) -> str:
        """In a few words, without what it printed."""
        if self.status == "raised":
            return f"{self.type}: {self.message.strip().partition(chr(10))[0][:200]}"
        if self.status == "died":
            told = self.output.strip().rpartition("\n")[2][:200]
            how = f"signal {self.signal}" if self.signal is not None else f"exit status {self.code}"
            return f"the process ended by {how}" + (f": {told}" if told else "")
        return "it did not end in time" if self.status == "timed out" else f"it returned {self.value or 'None'}"


class Said(msgspec.Struct, frozen=True, omit_defaults=True, rename={"with_change": "with"}):
    """An answer of the verifier. ``status`` is ``ok``, ``failed`` or ``not possible``, ``reason`` why."""

    status: str
    reason: str = ""
    interpreter: str = ""
    without: Ended | None = None
    with_change: Ended | None = None
    ended: Ended | None = None
    codes: tuple[str, ...] = ()
    seconds: float = 0.0


def asked(trial: Trial, what: str, seconds: float, **more: Any) -> Said:
    """One question to the verifier on the trial's target. Raises :class:`gpuwhy.targets.TargetError`."""
    setting = trial.setting
    if setting.is_container:
        return Said("not possible", "the service runs in a container: the change takes a new one")
    unit = setting.unit if setting.kind == "systemd" else ""
    request: Mapping[str, Any] = {
        "do": what,
        "unit": f"user:{unit}" if setting.is_user_unit else unit,
        "python": setting.python,
        "seconds": seconds,
        **more,
    }
    connection = trial.site.target.open(program())
    try:
        answer = connection.collect(request, lambda _: None, LOADED * seconds + CONNECTING)
    finally:
        connection.close()
    if not answer:
        return Said("not possible", "the target gave no answer in time")
    return msgspec.convert(answer, Said, strict=False)

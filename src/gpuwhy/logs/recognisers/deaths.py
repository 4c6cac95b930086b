"""Programs that tell of another process's end.

Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.
Killed
Process finished with exit code 137 (interrupted by signal 9:SIGKILL)
exit status: 1
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "exit code",
    "exitcode",
    "Exit code",
    "exit status",
    "Exit status",
    "Exited (",
    "died unexpectedly",
    "Killed",
    "killed",
    "died",
    "return code",
    "OOM",
    "sigquit",
    "SIGQUIT",
    "terminated",
)
_CODE = Pattern(
    r"(?:[Ee]xit(?: |_)?code|exitcode|[Ee]xit status|return code|Exited)[ :=]*\(?'?(?P<code>-?\d{1,10}|None)\b"
)
_SHELL_KILLED = Pattern(r"^(?:\S.{0,200}?[:\uff1a] {0,4}\d{1,10} {1,6})?Killed(?: +.{0,500})?$")
_DEATH = Pattern(
    r"died unexpectedly|died with|(?:was|got|been) killed|process .{0,60}(?:died|terminated|killed)|(?:SIGKILL|signal 9)\b|dead\b.{0,40}exit|[Ss]igquit|SIGQUIT received"
)
_PROSE = Pattern(r"subprocess\.CalledProcessError|pip|wheel")
LONGEST = 2000


def recognise(text: str, level: str = "") -> Recognised | None:
    shown = text[:LONGEST]
    if _SHELL_KILLED.match(shown):
        return Recognised("death", "", {"exit_code": "137", "signal": "9"}, is_fatal=True)
    code = _CODE.search(shown)
    told = _DEATH.search(shown)
    if code is None and told is None:
        return None
    detail: dict[str, str] = {}
    if code is not None and code["code"] != "None":
        number = int(code["code"])
        if number == 0:
            return None
        detail["exit_code"] = str(number)
        if -65 < number < 0:
            detail["signal"] = str(-number)
        elif 128 < number < 193:
            detail["signal"] = str(number - 128)
    elif "SIGKILL" in shown or "signal 9" in shown:
        detail["signal"] = "9"
    return Recognised("death", "", detail, is_echo=True, is_fatal=level not in ("info", "debug"))

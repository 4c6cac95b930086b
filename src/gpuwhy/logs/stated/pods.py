"""How Kubernetes says that a container ended (``kubectl describe pod``).

Last State:     Terminated
  Reason:       OOMKilled
  Exit Code:    137
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength

OPENING = ("State:",)
_STATE = Pattern(r"^\s{0,12}(?:Last )?State:\s{1,20}Terminated\s*$")
_REASON = Pattern(r"^\s{2,16}Reason:\s{1,20}(?P<value>\w{2,60})\s*$")
_EXIT = Pattern(r"^\s{2,16}Exit Code:\s{1,20}(?P<value>\d{1,3})\s*$")
_MORE = Pattern(r"^\s{2,16}(?:Message|Started|Finished|Signal):")


def opened(text: str) -> Block | None:
    return _Terminated() if _STATE.match(text[:100]) else None


class _Terminated:
    shares = False

    def read(self, text: str) -> list[Statement] | None:
        shown = text[:200]
        reason, code = _REASON.match(shown), _EXIT.match(shown)
        if reason is not None:
            is_killed = reason["value"] == "OOMKilled"
            return [Statement("container.oom_killed", True, Strength.REPORTED)] if is_killed else []
        if code is not None:
            return [Statement("container.exit_code", int(code["value"]), Strength.REPORTED)]
        return [] if _MORE.match(shown) else None

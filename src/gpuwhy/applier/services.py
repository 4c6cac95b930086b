"""systemd units: loaded anew, started again, and watched until they are stable or have failed."""

import re
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from gpuwhy.applier import commands
from gpuwhy.applier.refusing import Refused

UNIT = re.compile(r"^[A-Za-z0-9_.@\\:][A-Za-z0-9:_.\\@-]{0,250}\.(?:service|socket|timer)$")

DEADLINE = 60.0

PROPERTIES = (
    "LoadState", "LoadError", "ActiveState", "SubState", "Result", "NRestarts", "MainPID", "Type", "ExecMainStatus",
    "ExecMainCode", "FragmentPath", "DropInPaths", "ExecMainStartTimestampMonotonic", "ExecMainExitTimestampMonotonic",
    "NeedDaemonReload", "InvocationID", "User",
)  # fmt: skip

STARTS_WITHIN = 10.0
"""Seconds within which systemd begins a start that was asked for."""

SHORTEST_GRACE, LONGEST_GRACE = 5.0, 2400.0

A_START = 1800.0
"""Seconds within which a life that ended is taken for a start that failed: weights of hundreds of gigabytes are read."""

GRACE_AFTER_A_LONG_LIFE = 60.0


def systemctl(manager: str, *arguments: str) -> Tuple[int, str]:
    """systemctl's exit status and words; ``manager`` is ``system`` or ``user``."""
    options = ["--user"] if manager == "user" else []
    return commands.run(["systemctl"] + options + list(arguments), DEADLINE)


def check_name(unit: str) -> None:
    """Raises Refused for what is no unit's name, an option or a pattern among them."""
    if not UNIT.match(unit):
        raise Refused("%r is not the name of a unit" % unit[:200])


def properties(manager: str, unit: str) -> Dict[str, str]:
    """The unit's properties, empty when systemd does not answer."""
    check_name(unit)
    status, output = systemctl(manager, "show", "--no-pager", "-p", ",".join(PROPERTIES), "--", unit)
    if status:
        return {}
    return dict(line.partition("=")[::2] for line in output.splitlines() if "=" in line)


def perform(act: str, manager: str, unit: str) -> None:
    """``daemon-reload``, ``reset-failed``, ``restart`` or ``stop``. Raises Refused in systemctl's words."""
    check_name(unit)
    if act == "daemon-reload":
        _must(manager, "daemon-reload")
        loaded = properties(manager, unit)
        if loaded.get("LoadState") in ("bad-setting", "error"):
            raise Refused("systemd cannot load %s with this change: %s" % (unit, loaded.get("LoadError", "")))
    elif act == "reset-failed":
        # A unit that has not failed and is not loaded cannot be reset: nothing is to be reset then.
        systemctl(manager, "reset-failed", "--", unit)
    else:
        # What a unit's start takes (a model's weights are read) is waited for by watching it, not by this call.
        _must(manager, "--no-block", act, "--", unit)


def _must(manager: str, *arguments: str) -> None:
    status, output = systemctl(manager, *arguments)
    if status:
        raise Refused("systemctl %s: %s" % (" ".join(arguments), output or "exit status %d" % status))


def grace_for(before: Dict[str, str]) -> float:
    """Seconds that a unit must stay up: longer than its last life was, for it may fail in the same place again."""
    try:
        began = int(before.get("ExecMainStartTimestampMonotonic") or 0)
        ended = int(before.get("ExecMainExitTimestampMonotonic") or 0)
    except ValueError:
        began = ended = 0
    lived = (ended - began) / 1e6 if ended > began > 0 else 0.0
    if lived > A_START:
        return GRACE_AFTER_A_LONG_LIFE
    return min(LONGEST_GRACE, max(SHORTEST_GRACE, 1.25 * lived + 2.0))


def wait_until_stable(
    manager: str,
    unit: str,
    grace: float,
    deadline: float,
    previous: str = "",
    tell: Optional[Callable[[str], None]] = None,
) -> Tuple[bool, str, Dict[str, Any]]:
    """Whether the unit got up and stayed up for ``grace`` seconds; in words; and what was seen.

    ``deadline``: seconds until it must be up. ``previous``: the invocation before the restart, whose end is no news.
    """
    begun = time.monotonic()
    if tell is not None:
        tell("%s must stay up for %.0f s" % (unit, grace))
    up_since, invocation, last = 0.0, "", ""
    seen: Dict[str, str] = {}
    while time.monotonic() - begun < deadline + grace:
        time.sleep(0.2)
        seen = properties(manager, unit) or seen
        now = time.monotonic()
        if previous and seen.get("InvocationID") in (previous, "") and now - begun < STARTS_WITHIN:
            continue
        state, detail = seen.get("ActiveState", ""), seen.get("SubState", "")
        if tell is not None and state + detail != last:
            tell("%s is %s (%s)" % (unit, state, detail))
        last = state + detail
        is_over = state == "inactive" and now - begun > 2.0
        if is_over and seen.get("Type") == "oneshot" and seen.get("Result") == "success":
            return True, "%s ran to its end" % unit, _stand(seen, now - begun)
        is_new_life = bool(invocation) and seen.get("InvocationID", "") != invocation
        if state == "failed" or detail == "auto-restart" or is_over or is_new_life or (up_since and state != "active"):
            return False, "%s %s" % (unit, _how_it_ended(seen, is_new_life)), _stand(seen, now - begun)
        invocation = invocation or seen.get("InvocationID", "")
        if state == "active":
            up_since = up_since or now
            if now - up_since >= grace:
                words = "%s is %s (%s), up for %.0f s without a restart" % (unit, state, detail, now - up_since)
                return True, words, _stand(seen, now - begun)
        elif now - begun >= deadline:
            break
    words = "%s is still %s (%s) after %.0f s" % (unit, seen.get("ActiveState"), seen.get("SubState"), deadline)
    return False, words, _stand(seen, time.monotonic() - begun)


def _how_it_ended(seen: Dict[str, str], is_new_life: bool) -> str:
    """``is failed (failed): Result=exit-code, status 1``."""
    if is_new_life:
        return "ended and was started again by systemd"
    return "is %s (%s): Result=%s, status %s" % (
        seen.get("ActiveState"),
        seen.get("SubState"),
        seen.get("Result"),
        seen.get("ExecMainStatus"),
    )


def _stand(seen: Dict[str, str], seconds: float) -> Dict[str, Any]:
    names = ("ActiveState", "SubState", "Result", "NRestarts", "MainPID", "ExecMainStatus", "InvocationID")
    return {"seconds": round(seconds, 2), "unit": {name: seen.get(name, "") for name in names}}


def variables_of(process: str) -> Optional[List[str]]:
    """``NAME=VALUE`` of a running process; None when it cannot be read."""
    try:
        with open("/proc/%d/environ" % int(process), "rb") as stream:
            return stream.read(1 << 20).decode("utf-8", "surrogateescape").split("\0")
    except (OSError, ValueError):
        return None

"""What the words of ssh and of the shell that it started say about a node: one of the statuses, and a reason for people.

The texts are those of OpenSSH 7 to 10.
"""

from __future__ import annotations

import re

from gpuwhy.fleet.store import DENIED, FAILED, NO_PYTHON, OK, REFUSED, TIMED_OUT, UNREACHABLE
from gpuwhy.targets import TargetError
from gpuwhy.targets.pipe import NO_PYTHON as NO_PYTHON_WORDS
from gpuwhy.targets.ssh import SshTarget

_STATUSES = (
    (re.compile(re.escape(NO_PYTHON_WORDS)), NO_PYTHON),
    (re.compile(r"HOST IDENTIFICATION HAS CHANGED|Host key verification failed|No \S{1,80} host key is known|Permission denied|Too many authentication failures|sudo: ", re.I), DENIED),
    (re.compile(r"Connection refused|Connection (?:closed|reset)|kex_exchange_identification|Not allowed at this time", re.I), REFUSED),
    (re.compile(r"during banner exchange|Timeout, server .{1,255} not responding|Operation timed out|Connection timed out|timed out", re.I), UNREACHABLE),
    (re.compile(r"Could not resolve|Name or service not known|No route to host|Network is unreachable|Host is down", re.I), UNREACHABLE),
)  # fmt: skip


def of_ssh(node: str, status: int | None, errors: str) -> tuple[str, str]:
    """Status and reason of a node from the exit status of ssh (None: it was given up) and from its error output."""
    if status == 0:
        return OK, ""
    found = next((meaning for pattern, meaning in _STATUSES if pattern.search(errors)), None)
    if found is None:
        found = TIMED_OUT if status is None else FAILED
    return found, _reason(node, status, errors)


def _reason(node: str, status: int | None, errors: str) -> str:
    try:
        return SshTarget(node).explain(status, errors).message.removeprefix(f"{node}: ").removeprefix(f"{node} ")
    except TargetError:
        return f"ssh ended with status {status}" if status is not None else "no answer in time"


def of_task(status: int, errors: str) -> tuple[str, str]:
    """Status and reason from what a shell on the node ended with, where no ssh stands between."""
    if status == 0:
        return OK, ""
    if NO_PYTHON_WORDS in errors:
        return NO_PYTHON, "has no python3 (3.6 or later), which reading it needs"
    said = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "")
    return FAILED, f"the collector ended with status {status}" + (f": {said[:300]}" if said else "")

"""What ``sudo -n`` says when it does not let the collector run, and what a person can do about it.

The texts are those of sudo's own messages (1.8 to 1.9) in the C locale, and of sudo-rs.
"""

from __future__ import annotations

import re

from gpuwhy.targets.interface import TargetError
from gpuwhy.targets.pipe import NO_SUDO

WITHOUT = "Or leave --sudo out: what may not be read is then named, with who may."

_KNOWN = (
    (re.compile(re.escape(NO_SUDO)), "there is no sudo on {place}", "Log in as root there."),
    (re.compile(r"a password is required|password is required|authentication required|no tty present and no askpass|interactive authentication is required", re.I), "sudo on {place} asks for a password, and nobody is asked here", "Let the account run it without one, by `sudo visudo -f /etc/sudoers.d/gpuwhy`: USER ALL=(root) NOPASSWD: {python}"),
    (re.compile(r"is not in the sudoers file|is not allowed to (?:run sudo|execute)|not allowed to run|may not run sudo", re.I), "sudo on {place} does not allow this account to run the collector", "Whoever administers it can allow it, by `visudo -f /etc/sudoers.d/gpuwhy`: USER ALL=(root) NOPASSWD: {python}"),
    (re.compile(r"you must have a tty to run sudo|no tty present", re.I), "sudo on {place} only runs in a terminal", "Set `Defaults:USER !requiretty` in /etc/sudoers.d/gpuwhy."),
    (re.compile(r"no new privileges", re.I), "sudo cannot gain rights on {place}: a service manager or container took that away (no new privileges)", "Run gpuwhy outside of it."),
    (re.compile(r"must be owned by uid 0 and have the setuid bit set|effective uid is not 0", re.I), "sudo on {place} has lost its rights (its file is not setuid root, or lies on a file system mounted nosuid)", "Log in as root there."),
    (re.compile(r"sudo: .{0,200}(?:parse error|syntax error|no valid sudoers)", re.I), "sudo on {place} cannot read its rules", "`visudo -c` there names the line."),
    (re.compile(r"sudo: .{0,200}command not found", re.I), "sudo on {place} does not find the interpreter that the account has", "Install python3 in /usr/bin there."),
)  # fmt: skip


def refusal(place: str, errors: str, python: str = "/usr/bin/python3") -> TargetError | None:
    """The error that sudo's words stand for; None when they are not about sudo."""
    if "sudo" not in errors:
        return None
    for pattern, meaning, advice in _KNOWN:
        if pattern.search(errors):
            return TargetError(meaning.format(place=place), f"{advice.format(python=python)}\n{WITHOUT}")
    return None

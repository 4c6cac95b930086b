"""The commands that would let this account read what it may not."""

import grp
import os
import pwd
from typing import Tuple

from gpuwhy.collector.reading import try_line


def account() -> str:
    """The name of who asks."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def joining(group: str) -> Tuple[str, ...]:
    """The command that makes the account a member, as far as the host has that group. It counts from the next login."""
    try:
        grp.getgrnam(group)
    except KeyError:
        return ()
    return ("sudo usermod -aG %s %s" % (group, account()),)


def reading_kernel_log() -> Tuple[str, ...]:
    """Membership in a group that may read the journal; where the kernel keeps its log to root, its switch too."""
    is_restricted = try_line("/proc/sys/kernel/dmesg_restrict") == "1"
    return joining("systemd-journal") + (("sudo sysctl kernel.dmesg_restrict=0",) if is_restricted else ())

"""The unit that a process belongs to, by its control group.

0::/system.slice/vllm.service
0::/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service
0::/user.slice/user-1000.slice/session-3.scope
"""

import pwd
import re
from typing import Optional

from gpuwhy.collector.reading import try_text

CARRIER = re.compile(
    r"^(?:systemd-|user@|getty@|serial-getty@|ssh|sshd|cron|crond|atd|docker|podman|containerd|crio|kubelet|k3s|snap\.docker|supervisor|supervisord|"
    r"slurm|ray|munge|rc-local|init)"
)
"""Units in whose group runs what others started: their journal tells nothing of it."""


def unit_of_process(pid: int) -> Optional[str]:
    """The unit as ``--unit`` takes it (``vllm.service``, ``user:alice/vllm.service``), None for a process of no service."""
    for line in (try_text("/proc/%d/cgroup" % pid, 1 << 16) or "").splitlines():
        unit = unit_of_group(line.split(":", 2)[-1])
        if unit is not None:
            return unit
    return None


def unit_of_group(group: str) -> Optional[str]:
    parts = [part for part in group.split("/") if part]
    services = [part for part in parts if part.endswith(".service")]
    if not services or parts[-1].endswith(".scope"):
        return None
    name = services[-1]
    if CARRIER.match(name):
        return None
    of_user = re.search(r"/user@(\d{1,10})\.service/", group)
    if of_user is None:
        return name
    try:
        return "user:%s/%s" % (pwd.getpwuid(int(of_user.group(1))).pw_name, name)
    except KeyError:
        return None

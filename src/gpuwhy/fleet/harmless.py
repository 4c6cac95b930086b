"""Differences between nodes that mean nothing, taken out by rule before anything is compared.

Two kinds of rules: facts that are never compared (:data:`IGNORED`), and parts of values that name a node, a device or a
moment (:func:`neutralised`). What a rule takes out is the same on every node, so it can hide nothing else.
"""

from __future__ import annotations

import functools
import re
from typing import Any

_IDENTITIES = "HOSTNAME|HOST|NODENAME|PWD|OLDPWD|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_EXEC_PID|MAINPID|MEMORY_PRESSURE_\\w+|LS_COLORS|TERM|COLUMNS|LINES|SHLVL|SSH_\\w+|XDG_SESSION_ID|DBUS_\\w+|WINDOWID|TMUX\\w*|STY|CREDENTIALS_DIRECTORY|NOTIFY_SOCKET|WATCHDOG_\\w+|LISTEN_\\w+"  # fmt: skip
_PLACES = "\\w*_RANK|RANK|\\w*_(?:IP|ADDRESS)|POD_\\w+|NODE_(?:NAME|ID|RANK)|NODE_?IP|MY_\\w+|SLURM_(?:NODEID|PROCID|LOCALID|TASK_PID|\\w*NODENAME|TOPOLOGY_ADDR\\w*|LAUNCH_NODE_\\w+|GTIDS|CPU_BIND\\w*)|PMI\\w*_RANK|OMPI_COMM_WORLD_\\w*RANK|RAY_\\w*(?:ID|IP)\\w*"  # fmt: skip

IGNORED = re.compile(
    rf"mem_available_bytes|gpu_processes|processes|memory_limit_kills|ninja_path|kernel_log|journal"
    rf"|service\.(?:result|exit_status|restarts)|environment_complete|ulimit\.(?:sigpending|nproc)"
    rf"|container\.(?:id|name|hostname|pid|ip|state|started|finished|exit_code|restarts)"
    rf"|env\.(?:{_IDENTITIES}|{_PLACES})\Z"
)
"""Facts that differ on every node and every day by their nature: who and where it is, how busy, how it ended."""

_NODE, _ADDRESS = "<node>", "<address>"
_WHERE = re.compile(r"(?:\w{1,10}://)?(?:[\w.-]{1,60}@)?(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?/?")
_MEETING = re.compile(
    r"(?i)(?:init[-_]addr|master[-_]addr|parallel[-_]address|--address|_addr_master)(?:ess)?[\"']?[=: ]{1,2}[\"']?(?:tcp://)?$"
)
_PATTERNS = (
    (re.compile(r"(?i)\b(?:GPU-|MIG-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"(?<![\w:])\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?![\w:])"), "<time>"),
    (re.compile(r"(?i)(?<![\w:.])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:])"), "<mac>"),
    (re.compile(r"(?i)(?<![\w:.])(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?!\w)"), "<pci>"),
    (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2}|:\d{1,5})?(?![\w.])"), _ADDRESS),
    (re.compile(r"(?i)(?<![\w:])(?:(?:[0-9a-f]{0,4}:){3,8}[0-9a-f]{1,4}|[0-9a-f]{1,4}::[0-9a-f]{1,4})(?![\w:])"), _ADDRESS),
    (re.compile(r"(?i)\b(?=[0-9a-f]{0,64}\d)(?=[0-9a-f]{0,64}[a-f])[0-9a-f]{12,64}\b"), "<id>"),
    (re.compile(r"(?<![\w.])\d{9,20}(?![\w.])"), "<number>"),
    (re.compile(r"(?i)\b(serial|uuid|partuuid|label|pid|machine[-_]id|boot[-_]id|node[-_]?rank|node[-_]?id|rank|rd\.luks\.uuid)([= ]{1,2})[\w.:-]{1,80}"), r"\1\2<id>"),
    (re.compile(r"(?<=/)(tmp|job|run|session|task|container|pid|user|uid|node|rank|slot)([-_.]?)(?=\w{0,39}\d)\w{1,40}(?=[/\s:,]|$)"), r"\1\2<id>"),
    (re.compile(r"/(tmp|run/user|var/run|proc|scratch|slurm|jobs?)/(?:\d{1,12}|[\w.-]{0,40}\d[\w.-]{0,40})(?=[/\s:,]|$)"), r"/\1/<id>"),
    (re.compile(r"\b(size|nr_inodes|inode64|resuid|resgid|uid|gid|clientaddr|addr|mountaddr|port|local_lock|lowerdir|upperdir|workdir|subvolid)=[^,\s]{1,4000}"), r"\1=<…>"),
)  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z_. -]{0,400}|[A-Za-z_-]{0,60}\d{1,6}(?:\.\d{1,6}){1,4}(?:[+.][a-z0-9.]{1,11})?")
"""Words without a digit, and versions: most values are, and need no search."""
_LONGEST = 16_384
"""Characters of a value that are looked at; longer ones are cut, and compared by what is left."""
_CABLE = re.compile(r"(?:ib|roce|mlx|hsn|rdma)\w{0,20}")
_PASSING = re.compile(r"(?:veth|cali|br-|docker|tap|tun|vnet|cni|flannel|lxc|lxdbr|virbr|cilium|kube|nodelocaldns|vxlan|dummy|ifb|podman|bond|vlan|wg)")  # fmt: skip
_BUILT = ("built", "unbuilt")
_FULL = 20
"""A twentieth of room left is little."""


class Node:
    """Takes out what names one node. ``names`` are what it is called; short ones are no telling word and stay."""

    def __init__(self, *names: str) -> None:
        told: set[str] = set()
        for name in names:
            host = name.rpartition("@")[2]
            told |= {host, host.partition(".")[0]}
        # a name of letters alone ("local", "head") is a word of every path
        words = sorted((each for each in told if len(each) >= 3 and re.search(r"\d|-", each)), key=len, reverse=True)
        self._names = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, words))})(?![A-Za-z0-9])") if words else None  # fmt: skip

    def neutral(self, text: str) -> str:
        """``text`` without the node's names, and without what :func:`neutralised` takes out."""
        return neutralised(self.unnamed(text))

    def unnamed(self, text: str) -> str:
        """``text`` without the node's names."""
        return text if self._names is None or text.isalpha() else self._names.sub(_NODE, text)


@functools.lru_cache(maxsize=1 << 14)
def neutralised(text: str) -> str:
    """``text`` without addresses, ids, moments and serial numbers. Versions and small numbers stay."""
    if len(text) < 4 or text.isdigit() or _PLAIN.fullmatch(text):
        return text
    text = text[:_LONGEST]
    for pattern, instead in _PATTERNS:
        text = pattern.sub(_unless_shared if instead == _ADDRESS else instead, text)
    return text


def _unless_shared(found: re.Match[str]) -> str:
    """An address at which all nodes meet is the same for all of them, or it is the fault."""
    before = found.string[max(0, found.start() - 40) : found.start()]
    return found.group() if _MEETING.search(before) else _ADDRESS


def is_address(key: str, value: str) -> bool:
    """Whether a variable says where something is: a node that says otherwise than the majority looks in the wrong place."""
    return key.startswith("env.") and _WHERE.fullmatch(value) is not None


def told(key: str, value: Any) -> Any:
    """What of the plain value of ``key`` can matter to another node; ``...`` (Ellipsis) when nothing of it does."""
    if IGNORED.match(key):
        return ...
    if key.startswith("unit_state.") and not key.startswith("unit_state.nvidia-"):
        return ...
    if key.startswith("jit_cache."):
        return _broken(value)
    if key.startswith("files."):
        # a cache that is there, and how full it is, is the work of the day; what is named and missing is not
        return (
            ...
            if isinstance(value, str) and value.startswith(("FlashInfer's cache for", "a build was begun"))
            else value
        )
    if key.startswith("df."):
        return _room(value)
    if key == "net_interfaces":
        return _interfaces(value)
    if key == "pci_gpus":
        return f"{len(value)} on the bus" if isinstance(value, list) else value
    if key == "pci_acs":
        return "redirected" if value else "not redirected"
    if key in ("gpu_errors", "fabric_state"):
        return _without_index(value)
    return value


def _broken(value: Any) -> Any:
    """Of a cache the modules that are broken: what else it holds depends on what was asked of the node so far."""
    states = value if isinstance(value, dict) else {}
    broken = {name: state for name, state in states.items() if name != "entries" and state not in _BUILT}
    return broken or ...


def _room(value: Any) -> Any:
    size, left = (value.get("size_bytes"), value.get("avail_bytes")) if isinstance(value, dict) else (None, None)
    if not isinstance(size, int) or not isinstance(left, int):
        return ...
    return "less than 5 % left" if left * _FULL < size else "room left"


def _interfaces(value: Any) -> Any:
    """Names of Ethernet ports follow the slot and come and go with containers; the ports of the fabric are counted."""
    if not isinstance(value, list):
        return value
    fabric: dict[str, int] = {}
    for each in map(str, value):
        if _CABLE.match(each) and not _PASSING.match(each):
            name = re.match(r"[a-z]+", each)
            word = name.group() if name else each
            fabric[word] = fabric.get(word, 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in sorted(fabric.items())) or "no port of a fabric"


def _without_index(value: Any) -> Any:
    """Which of the GPUs it is, is chance; how many, and what is said of them, is not."""
    texts = [re.sub(r"^GPU \w{1,20}: ", "", str(each)) for each in value] if isinstance(value, list) else [str(value)]
    counted = {text: texts.count(text) for text in texts}
    return "; ".join(f"{count} x {text}" for text, count in sorted(counted.items())) or "none"

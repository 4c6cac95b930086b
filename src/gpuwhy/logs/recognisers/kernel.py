"""Messages of the kernel.

Out of memory: Killed process 18231 (sglang::schedul) total-vm:702345120kB, anon-rss:431992012kB, ...
oom-kill:constraint=CONSTRAINT_NONE,...,global_oom,task_memcg=/system.slice/sglang-eagle3.service,task=...,pid=18231,uid=0
NVRM: Xid (PCI:0000:01:00): 79, pid=1365, name=python3, GPU has fallen off the bus.
python3[4711]: segfault at 0 ip 00007f... sp ... error 4 in libcuda.so[...]
"""

from __future__ import annotations

import re

from gpuwhy.logs.echoes import ECHO_XIDS
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised
from gpuwhy.logs.recognisers.xids import meaning_of_sxid, meaning_of_xid

LITERALS = (
    "oom", "Out of memory: Kill", "out of memory: Kill", "NVRM", "Xid", "SXid", "IO_PAGE_FAULT", "DMAR", "AER:", "pcieport", "segfault at",
    "general protection", "traps: ", "Hardware Error", "PCIe Bus Error", "Surprise Down", "nvidia-nvlink", "nvidia-uvm", "blocked for more than", "mce:", "trap invalid opcode",
    "trap divide", "RxErr", "mlx5_core", "nvswitch", "EDAC", "Machine Check", "nvidia: probe", "pciehp", "soft lockup", "hard LOCKUP", "Kernel panic", "BUG: unable", "BUG: kernel", "page allocation failure",
    "I/O error", "EXT4-fs error", "XFS ", "nvme ",
)  # fmt: skip
_KILLED = Pattern(
    r"[Oo]ut of memory: Kill(?:ed)? process (?:(?P<pid>\d{1,10}) )?\((?P<name>[^)]{1,100})\)(?P<rest>.{0,400})"
)
_MEMORY = Pattern(r"(?P<what>total-vm|anon-rss|file-rss|shmem-rss):(?P<kilobytes>\d{1,15})kB")
_CONSTRAINT = Pattern(r"oom-kill:constraint=(?P<constraint>\w{1,60})(?P<rest>.{0,2000})")
_FIELD = Pattern(r"(\w{1,30})=([^,\s]{0,400})")
_INVOKED = Pattern(r"(?P<name>.{1,80}) invoked oom-killer:")
_REAPED = Pattern(r"oom_reaper: reaped process (?P<pid>\d{1,10}) \((?P<name>[^)]{1,100})\)")
_XID = Pattern(
    r"Xid \((?P<device>[^)]{1,60})\): (?P<number>\d{1,4})(?:, (?:pid=(?P<pid>[^,]{1,30}), )?(?:name=(?P<name>[^,]{1,60}), )?)?(?P<rest>.{0,500})"
)
_PLUGIN_XID = Pattern(r"XidCriticalError: Xid=(?P<number>\d{1,4}) on Device=(?P<device>[\w:-]{1,80})")
"""How the device plugin of Kubernetes passes an Xid on."""
_SXID = Pattern(
    r"SXid \((?P<device>[^)]{1,60})\): (?P<number>\d{1,6})(?:, (?P<severity>Fatal|Non-fatal))?(?:, Link (?P<link>\d{1,3}) (?P<said>.{1,200}))?"
)
_PREVIOUS = Pattern(r"caused by previous Xid (\d{1,4})")
_SEGFAULT = Pattern(
    r"(?P<name>[^\s\[]{1,60})\[(?P<pid>\d{1,10})\](?::? segfault at| general protection| trap )(?P<rest>.{0,300})"
)
_MODULE = Pattern(r" in (?P<module>[^\s\[]{1,200})\[")
_PCI = Pattern(
    r"\b(?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b|Request device \[(?P<short>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\]"
)
_OTHERS: tuple[tuple[str, Pattern, bool], ...] = (
    ("iommu", Pattern(r"IO_PAGE_FAULT|DMAR: .{0,60}fault|\[fault reason"), True),
    (
        "aer",
        Pattern(r"Surprise Down|(?:AER: |PCIe Bus Error|Hardware Error).{0,200}(?:[Uu]ncorrect|(?<!Non-)(?<!non-)[Ff]atal)"),
        True,
    ),
    ("mce", Pattern(r"\bmce: .{0,40}Hardware Error|Machine Check|EDAC .{0,40}\bUE\b"), False),
    ("aer", Pattern(r"AER: |PCIe Bus Error|RxErr {2,}|Hardware Error"), False),
    ("nvlink", Pattern(r"nvidia-nvlink.{0,80}(?:[Ee]rror|fail)|NVLink.{0,60}(?:fatal|error)"), True),
    ("nvrm", Pattern(r"NVRM: .{0,400}(?:NV_ERR_\w+|[Ff]ailed|[Ee]rror|mismatch|fallen off|has been reset|not supported|is already|unable|No NVIDIA)"), True),
    ("nvrm", Pattern(r"^nvidia: probe of .{1,40} failed|NVRM: The NVIDIA (?:probe routine|GPU) .{0,200}not"), True),
    ("hung-task", Pattern(r"task .{1,60} blocked for more than \d+ seconds|(?:soft|hard) (?:lockup|LOCKUP)"), False),
    ("panic", Pattern(r"^Kernel panic - |^BUG: (?:unable|kernel)"), True),
    ("allocation", Pattern(r": page allocation failure: order:\d"), False),
    ("pcie", Pattern(r"pciehp: Slot\(.{1,20}\): (?:Link Down|Card not present)"), True),
    ("disk", Pattern(r"\bI/O error, dev |EXT4-fs error|XFS .{0,60}(?:[Cc]orruption|I/O [Ee]rror)|nvme .{0,60}(?:timeout|controller is down)"), False),
    ("mlx5", Pattern(r"mlx5_core (?!.{0,80}(?:device \[[0-9a-f:]{9}\] error status/mask|severity=Correct)).{0,200}(?:error|[Ll]ink down|fail)"), True),
)  # fmt: skip
_UNIT_IN_PATH = Pattern(r"/([^/,\s]{1,200}\.(?:service|scope|slice))(?=/|$)")
_CONTAINER_IN_PATH = Pattern(r"(?:docker[-/]|libpod-|cri-containerd-|crio-|nerdctl-)([0-9a-f]{12,64})")
_POD_IN_PATH = Pattern(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
_DESKTOP = Pattern(
    r"^(?:gnome-|gjs|gsd-|gvfs|nautilus|tracker-|localsearch|evolution|mutter|kwin|plasma|kded|ksmserver|dolphin|baloo|akonadi|Xorg$|Xwayland|xfce|xfwm|xdg-|cinnamon|caja|nemo|marco|firefox|Web Content|"
    r"Isolated Web|chrome|chromium|brave|msedge|electron|slack|discord|spotify|teams|zoom|steam|telegram|thunderbird|libreoffice|soffice|vlc|totem|pipewire|wireplumber|pulseaudio|cups|update-manager|"
    r"update-notifier|packagekit|apport|snap-store|gnome|bluetoothd|ibus|fcitx|code$|cursor$)",
    re.IGNORECASE,
)
"""Programs of a desktop: their crashes are nothing of a service's."""
LONGEST = 2000


def is_of_desktop(program: str) -> bool:
    """Whether a program, by its name, is one of a desktop."""
    return _DESKTOP.match(program) is not None


def recognise(text: str) -> Recognised | None:
    shown = text[:LONGEST]
    if "memory: Kill" in shown:
        return _killed(shown)
    if "oom" in shown:
        return _oom(shown)
    if "Xid (" in shown:
        return _xid(shown)
    passed_on = _PLUGIN_XID.search(shown)
    if passed_on is not None:
        return _numbered_xid(int(passed_on["number"]), {"device": passed_on["device"]})
    found = _SEGFAULT.search(shown)
    if found is not None:
        return _segfault(found)
    for tool, pattern, fatal in _OTHERS:
        if pattern.search(shown):
            more = tool == "nvrm" and "API mismatch" in shown
            return Recognised("kernel", tool, _device(shown), is_fatal=fatal, takes_more=more)
    return None


def _segfault(found: re.Match[str]) -> Recognised:
    detail = {"process": found["name"], "pid": found["pid"]}
    module = _MODULE.search(found["rest"])
    if module is not None:
        detail["module"] = module["module"]
    return Recognised("kernel", "segfault", detail, is_fatal=not is_of_desktop(found["name"]))


def _device(text: str) -> dict[str, str]:
    """The PCI device that a fault is about: the last one of the line, which a port names after itself."""
    found = list(_PCI.finditer(text))
    return {"device": found[-1]["device"] or found[-1]["short"]} if found else {}


def _killed(text: str) -> Recognised | None:
    found = _KILLED.search(text)
    if found is None:
        return None
    detail = {"process": found["name"]}
    if found["pid"]:
        detail["pid"] = found["pid"]
    for memory in _MEMORY.finditer(found["rest"]):
        detail[memory["what"].replace("-", "_") + "_bytes"] = str(int(memory["kilobytes"]) * 1024)
    detail["scope"] = "cgroup" if "Memory cgroup" in text else "host"
    return Recognised("kernel", "oom", detail, is_fatal=True)


def _oom(text: str) -> Recognised | None:
    found = _CONSTRAINT.search(text)
    if found is not None:
        fields = dict(_FIELD.findall(found["rest"]))
        path = fields.get("task_memcg", "")
        detail = {"constraint": found["constraint"]}
        for key, name in (("process", "task"), ("pid", "pid"), ("cgroup", "task_memcg")):
            if fields.get(name):
                detail[key] = fields[name]
        container = _CONTAINER_IN_PATH.search(path) or _CONTAINER_IN_PATH.search(fields.get("cpuset", ""))
        if container:
            detail["container"] = container.group(1)
        pod = _POD_IN_PATH.search(path)
        if pod:
            detail["pod"] = pod.group(1).replace("_", "-")
        detail["scope"] = "cgroup" if "MEMCG" in found["constraint"] else "host"
        unit = unit_of_cgroup(path) or ("" if container or pod else _group_of_its_own(path))
        return Recognised("kernel", "oom", detail, is_fatal=True, unit=unit)
    found = _REAPED.search(text)
    if found is not None:
        return Recognised("kernel", "oom", {"process": found["name"], "pid": found["pid"]}, is_echo=True)
    found = _INVOKED.search(text)
    if found is not None:  # who asked for memory, not who was killed for it
        return Recognised("kernel", "oom", {"invoked_by": found["name"].split()[-1]}, is_echo=True)
    return None


def unit_of_cgroup(path: str) -> str:
    """The unit of a control group: the innermost service or scope, ``sglang.service`` of ``/system.slice/sglang.service``."""
    units: list[str] = [unit for unit in _UNIT_IN_PATH.findall(path) if not unit.endswith(".slice")]
    services = [unit for unit in units if unit.endswith(".service") and not unit.startswith("user@")]
    return (services or units or [""])[-1]


def _group_of_its_own(path: str) -> str:
    """A control group that somebody made beside the units: nothing in it belongs to a unit. Slices and the root say
    nothing, as units stand in them where memory is not counted for each."""
    last = path.rpartition("/")[2]
    return path if path.startswith("/") and last and not last.endswith(".slice") else ""


def _xid(text: str) -> Recognised | None:
    found = _SXID.search(text)
    if found is not None:
        detail = {"number": found["number"], "device": found["device"]}
        for key in ("severity", "link"):
            if found[key]:
                detail[key] = found[key]
        meaning = meaning_of_sxid(int(found["number"])) or (found["said"] or "").strip()
        return Recognised(
            "kernel",
            "sxid",
            detail | ({"meaning": meaning} if meaning else {}),
            is_fatal=found["severity"] != "Non-fatal",
        )
    found = _XID.search(text)
    if found is None:
        return None
    detail = {"device": found["device"]}
    for key, name in (("pid", "pid"), ("process", "name")):
        value = found[name]
        if value and not value.startswith(("'", "<")):
            detail[key] = value
    previous = _PREVIOUS.search(found["rest"])
    if previous:
        detail["previous_xid"] = previous.group(1)
    return _numbered_xid(int(found["number"]), detail)


def _numbered_xid(number: int, detail: dict[str, str]) -> Recognised:
    meaning = meaning_of_xid(number)
    told = {"number": str(number), **detail} | ({"meaning": meaning} if meaning else {})
    return Recognised("kernel", "xid", told, is_echo=number in ECHO_XIDS, is_fatal=True)

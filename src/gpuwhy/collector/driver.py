"""The NVIDIA driver: the loaded kernel module, the one installed on disk, the user-space library beside it.

``/proc/driver/nvidia/version`` begins
``NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@...)``.
"""

import glob
import os
import re
from typing import Any, Dict, List, Optional

from gpuwhy.collector import commands
from gpuwhy.collector.probing import Absent, Notes, NoValue, Request
from gpuwhy.collector.reading import try_line, try_list, try_text

LIBRARIES = (
    "/usr/lib/*-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1", "/usr/lib/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1", "/run/opengl-driver/lib/libcuda.so.1", "/usr/local/cuda*/compat/libcuda.so.1",
)  # fmt: skip


def driver(_request: Request, notes: Notes) -> Dict[str, Any]:
    """``loaded`` and ``installed`` are versions of the kernel module, ``library`` that of libcuda; None: not there."""
    text = try_text("/proc/driver/nvidia/version", 4096) or ""
    version = re.search(r"(?:Module[^\n]*?|NVRM version:[^\n]*?)\s(\d{3}\.\d+(?:\.\d+)?)\s", text)
    loaded = version.group(1) if version else try_line("/sys/module/nvidia/version")
    libraries = _libraries()
    found = {
        "loaded": loaded,
        "is_open": "Open Kernel Module" in text,
        "text": text.strip()[:500],
        "installed": _installed(notes),
        "modules": [name for name in try_list("/sys/module", 5000) if name == "nouveau" or name.startswith("nvidia")],
        "libraries": libraries,
        "library": next(
            (each["version"] for each in libraries if each["version"] and "/compat/" not in each["path"]), None
        ),
        "devices": sorted(path for path in glob.glob("/dev/nvidia*") if not os.path.isdir(path))[:80],
        "parameters": _parameters(),
    }
    for place in ("/proc/driver/nvidia/version", "/sys/module/nvidia", "/dev/nvidia*"):
        notes.source(place)
    if not (loaded or found["installed"] or libraries or found["devices"]):
        raise Absent("no NVIDIA driver is loaded or installed")
    return found


def _installed(notes: Notes) -> Optional[str]:
    try:
        output = commands.run("modinfo", ["-F", "version", "nvidia"], timeout=2.0)
    except NoValue:
        return None
    notes.source("modinfo -F version nvidia")
    return output.out.strip().split("\n")[0] or None


def _libraries() -> List[Dict[str, Any]]:
    """Each libcuda.so.1 in the usual places, with the version in the name of the file it points at."""
    found: List[Dict[str, Any]] = []
    for pattern in LIBRARIES:
        for path in sorted(glob.glob(pattern))[:10]:
            real = os.path.realpath(path)
            version = re.search(r"\.so\.(\d{3}\.\d+(?:\.\d+)?)$", real)
            size = os.path.getsize(real) if os.path.exists(real) else None
            found.append({"path": path, "real": real, "version": version.group(1) if version else None, "size": size})
    return found


def _parameters() -> Dict[str, str]:
    """Options of the module that change what works, from ``/proc/driver/nvidia/params``."""
    text = try_text("/proc/driver/nvidia/params", 1 << 14) or ""
    pairs = (line.partition(":") for line in text.splitlines())
    wanted = ("EnableStreamMemOPs", "EnableGpuFirmware", "OpenRmEnableUnsupportedGpus", "RegistryDwords", "NvLinkDisable", "ModifyDeviceFiles", "DeviceFileMode", "EnableResizableBar", "DmaRemapPeerMmio", "GrdmaPciTopoCheckOverride")  # fmt: skip
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip() in wanted}


def gpu_services(_request: Request, notes: Notes) -> Dict[str, Dict[str, str]]:
    """The services that GPUs depend on, by unit: fabric manager, persistence daemon, GPU resets."""
    names = [
        "nvidia-fabricmanager.service",
        "nvidia-persistenced.service",
        "nvidia-imex.service",
        "dcgm.service",
        "nvidia-dcgm.service",
        "docker.service",
        "containerd.service",
    ]
    output = commands.run(
        "systemctl",
        ["show", "--no-pager", "-p", "Id,LoadState,ActiveState,SubState,Result,UnitFileState", "--"] + names,
        timeout=3.0,
    )
    notes.source("systemctl show " + " ".join(names))
    found: Dict[str, Dict[str, str]] = {}
    for block in output.out.split("\n\n"):
        pairs = {key: value for key, sign, value in (line.partition("=") for line in block.splitlines()) if sign}
        if pairs.get("Id") and pairs.get("LoadState") != "not-found":
            found[pairs["Id"]] = pairs
    if output.status != 0 and not found:
        raise Absent("systemd does not run here: " + output.err.strip()[:200])
    return found

"""Asks libnvidia-ml for the GPUs. Run as a process of its own: on a wedged driver the library never returns.

Prints one JSON object. Imports nothing of ours, so that its text alone can be given to an interpreter.
"""

import ctypes
import json
import sys
import time
from typing import Any, Dict, List, Optional

LIBRARIES = (
    "libnvidia-ml.so.1",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/run/opengl-driver/lib/libnvidia-ml.so.1",
)


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class PciInfo(ctypes.Structure):
    """nvmlPciInfo_t."""

    _fields_ = [
        ("legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("device_id", ctypes.c_uint),
        ("subsystem_id", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    ]


class Utilisation(ctypes.Structure):
    """nvmlUtilization_t: percent of the last sampling time (0.2 to 1 s) in which a kernel ran, or memory was accessed."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class ProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_t of the ``_v3`` calls."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class FabricInfo(ctypes.Structure):
    """nvmlGpuFabricInfo_t, of drivers since 525."""

    _fields_ = [
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_int),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    ]


FABRIC_STATES = {1: "not started", 2: "in progress", 3: "completed"}
"""NVML_GPU_FABRIC_STATE_*; 0 is "not supported", as on any GPU without NVSwitches."""


class Nvml:
    """The library, loaded. A call that this version of it lacks, or that fails, gives None."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def call(self, name: str, *arguments: Any) -> Optional[int]:
        """The return code of a function, None when the library has none of that name."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            return None
        function.restype = ctypes.c_int
        return int(function(*arguments))

    def text(self, name: str, *arguments: Any) -> Optional[str]:
        buffer = ctypes.create_string_buffer(256)
        if self.call(name, *(arguments + (buffer, ctypes.c_uint(256)))) != 0:
            return None
        return buffer.value.decode("utf-8", "replace")

    def number(self, name: str, *arguments: Any) -> Optional[int]:
        value = ctypes.c_uint(0)
        return value.value if self.call(name, *(arguments + (ctypes.byref(value),))) == 0 else None

    def error(self, code: int) -> str:
        try:
            function = self._library.nvmlErrorString
        except AttributeError:
            return "error %d" % code
        function.restype = ctypes.c_char_p
        text = function(ctypes.c_int(code))
        return "%s (NVML error %d)" % (text.decode("utf-8", "replace") if text else "unknown", code)


def load() -> "tuple[Optional[Nvml], str]":
    problem = "libnvidia-ml.so.1 is not on this host"
    for name in LIBRARIES:
        try:
            return Nvml(ctypes.CDLL(name)), name
        except OSError as error:
            if "No such file" not in str(error):
                problem = str(error)
    return None, problem


def gpus(nvml: Nvml) -> "tuple[List[Dict[str, Any]], List[Dict[str, Any]]]":
    """Every GPU, and every process that holds memory on one."""
    listed: List[Dict[str, Any]] = []
    processes: List[Dict[str, Any]] = []
    for index in range(min(nvml.number("nvmlDeviceGetCount_v2") or 0, 256)):
        device = ctypes.c_void_p()
        code = nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
        if code != 0:
            listed.append({"index": index, "error": nvml.error(code if code is not None else 999)})
            continue
        listed.append(describe(nvml, index, device))
        processes += holders(nvml, index, device)
    return listed, processes


def describe(nvml: Nvml, index: int, device: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = {"index": index, "name": nvml.text("nvmlDeviceGetName", device) or ""}
    found["uuid"] = nvml.text("nvmlDeviceGetUUID", device)
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    if nvml.call("nvmlDeviceGetCudaComputeCapability", device, ctypes.byref(major), ctypes.byref(minor)) == 0:
        found["compute_capability"] = "%d.%d" % (major.value, minor.value)
    memory = Memory()
    if nvml.call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory)) == 0:
        found["memory_total"], found["memory_used"] = int(memory.total), int(memory.used)
    pci = PciInfo()
    if nvml.call("nvmlDeviceGetPciInfo_v3", device, ctypes.byref(pci)) == 0:
        found["pci"] = (pci.bus_id or pci.legacy).decode("ascii", "replace")
    current, pending = ctypes.c_uint(0), ctypes.c_uint(0)
    if nvml.call("nvmlDeviceGetMigMode", device, ctypes.byref(current), ctypes.byref(pending)) == 0:
        found["mig"] = bool(current.value)
    fabric = FabricInfo()
    if nvml.call("nvmlDeviceGetGpuFabricInfo", device, ctypes.byref(fabric)) == 0 and fabric.state in FABRIC_STATES:
        status = "success" if fabric.status == 0 else nvml.error(fabric.status)
        found["fabric"] = {"state": FABRIC_STATES[fabric.state], "status": status}
    mode = nvml.number("nvmlDeviceGetComputeMode", device)
    if mode is not None:
        found["compute_mode"] = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}.get(
            mode, str(mode)
        )
    return found


def holders(nvml: Nvml, index: int, device: Any) -> List[Dict[str, Any]]:
    count = ctypes.c_uint(256)
    table = (ProcessInfo * 256)()
    if nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), table) != 0:
        return []
    # All ones stands for a size that the driver does not tell (in containers, on WSL).
    return [
        {"gpu": index, "pid": each.pid, "memory": int(each.used) if each.used < 1 << 60 else None}
        for each in table[: min(count.value, 256)]
    ]


ACTIVITY_LOOKS = 4

ACTIVITY_PAUSE = 0.15


def activity(nvml: Nvml) -> List[Dict[str, Any]]:
    """What each GPU does, looked at a few times within half a second: percent, watts, and who computes on it."""
    found: List[Dict[str, Any]] = []
    devices: List[Any] = []
    for index in range(min(nvml.number("nvmlDeviceGetCount_v2") or 0, 64)):
        device = ctypes.c_void_p()
        if nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device)) == 0:
            limit = nvml.number("nvmlDeviceGetEnforcedPowerLimit", device)
            each: Dict[str, Any] = {"index": index, "name": nvml.text("nvmlDeviceGetName", device) or ""}
            each.update(
                {"gpu": [], "memory": [], "power": [], "power_limit": None if limit is None else limit / 1000.0}
            )
            each["pids"] = [holder["pid"] for holder in holders(nvml, index, device)]
            found.append(each)
            devices.append(device)
    for look in range(ACTIVITY_LOOKS if found else 0):
        time.sleep(ACTIVITY_PAUSE if look else 0.0)
        for each, device in zip(found, devices):
            used = Utilisation()
            if nvml.call("nvmlDeviceGetUtilizationRates", device, ctypes.byref(used)) == 0:
                each["gpu"].append(int(used.gpu))
                each["memory"].append(int(used.memory))
            power = nvml.number("nvmlDeviceGetPowerUsage", device)
            if power is not None:
                each["power"].append(power / 1000.0)
    return found


def main() -> None:
    nvml, place = load()
    if nvml is None:
        print(json.dumps({"error": place, "status": "absent"}))
        return
    code = nvml.call("nvmlInit_v2")
    if code != 0:
        reason = "the library has no nvmlInit_v2" if code is None else nvml.error(code)
        print(json.dumps({"error": reason, "status": "failed", "library": place, "code": code}))
        return
    if sys.argv[1:] == ["activity"]:
        print(json.dumps({"library": place, "activity": activity(nvml)}))
        sys.stdout.flush()
        return
    version = ctypes.c_int(0)
    has_version = nvml.call("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(version)) == 0
    listed, processes = gpus(nvml)
    print(
        json.dumps(
            {
                "library": place,
                "driver": nvml.text("nvmlSystemGetDriverVersion"),
                "driver_cuda": "%d.%d" % (version.value // 1000, version.value % 1000 // 10) if has_version else None,
                "gpus": listed,
                "processes": processes,
            }
        )
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()

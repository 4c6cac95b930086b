"""One launch on a real GPU, where NVML shows one."""

import ctypes
import time
from typing import Any, Dict

from gpuwhy.applier.speaking import Answer
from gpuwhy.verifier.room import Room
from gpuwhy.verifier.service import service_of

MEMORY = 64 << 30


def launch(request: Dict[str, Any]) -> Answer:
    """``ended`` of the launch. Not possible where there is no GPU."""
    if not has_gpu():
        return {"status": "not possible", "reason": "NVML shows no GPU here"}
    service = service_of(request)
    with Room(service, MEMORY) as room:
        until = time.monotonic() + float(request["seconds"])
        act = str(request.get("act") or "launch")
        ended = room.start("launch", {"act": act}, request.get("variables") or {}).ended(until)
    return {"status": "ok", "interpreter": service.interpreter, "ended": ended}


def has_gpu() -> bool:
    """Whether the driver's own library lists a GPU whose device file is there."""
    import os

    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        count = ctypes.c_uint(0)
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return False
    except (OSError, AttributeError):
        return False
    return count.value > 0 and os.path.exists("/dev/nvidiactl")

"""What to ask next when no cause of the catalogue fits: the observations an expert would ask for first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.model.event import Event
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.finding import Missing
from gpuwhy.model.incident import Incident

MOST = 6
_PACKAGE = re.compile(r"(?:site|dist)-packages/(?P<package>[A-Za-z_]\w{1,60})/")
_PUBLISHED_AS = {"flashinfer": "flashinfer-python", "flash_attn": "flash-attn", "sgl_kernel": "sgl-kernel"}
_CUDA_FAULT = re.compile(r"CUDA error|cuda(?:Error|Runtime)|illegal (?:memory|instruction)|launch failure|Xid", re.IGNORECASE)  # fmt: skip
_ENDED_BY_SIGNAL = re.compile(r"signal[: =]{0,3}9\b|SIGKILL|\bKilled\b|-9\b|\b137\b", re.IGNORECASE)
_CRASHED = re.compile(r"Segmentation fault|SIGSEGV|signal[: =]{0,3}11\b|\b139\b|Segfault", re.IGNORECASE)
_MISSING_FILE = re.compile(r"No such file or directory:? ['\"‘](?P<path>/[\w./+@=,-]{2,200})['\"’]")
_OF_MODEL = re.compile(r"KeyError|config\.json|size mismatch|weights? .{0,40}not (?:found|initialized)|unexpected key|missing key", re.IGNORECASE)  # fmt: skip
_OF_PLATFORM = {
    "rocm": (
        ("gpus", "rocminfo | grep -E 'Marketing Name|gfx'; echo $HSA_OVERRIDE_GFX_VERSION", "which GPU it is (gfx name), and whether it is passed off as another"),
        ("driver", "cat /sys/module/amdgpu/version; cat /opt/rocm/.info/version", "which amdgpu driver and ROCm release are installed"),
        ("torch", "python -c 'import torch; print(torch.__version__, torch.version.hip, torch.cuda.get_arch_list())'", "for which ROCm and which gfx names torch was built"),
        ("kernel_log", "journalctl -k -b --no-pager | grep -iE 'amdgpu|kfd'", "what the driver reported before the program's own error"),
    ),
    "xpu": (("gpus", "sycl-ls", "which Intel GPUs the run time sees"), ("torch", "python -c 'import torch; print(torch.__version__, torch.xpu.is_available())'", "whether torch was built for XPU")),
    "ascend": (("gpus", "npu-smi info", "which NPUs there are, their driver and firmware"), ("packages", "python -m pip list | grep -iE 'torch|npu|cann|vllm'", "which releases of torch, torch_npu and the engine")),
    "metal": (("os", "sw_vers; sysctl hw.memsize", "which macOS, and how much memory"), ("torch", "python -c 'import torch; print(torch.__version__, torch.backends.mps.is_available())'", "whether torch sees the GPU")),
}  # fmt: skip
"""What is asked first of another maker's platform: facts of NVIDIA's tell nothing there."""
_WAITING = re.compile(r"watchdog|time[d]?[ -]?out|\bhang|\bstuck\b|No available shared memory broadcast", re.IGNORECASE)


def questions(incident: Incident, facts: Facts) -> tuple[Missing, ...]:
    """Facts that are unknown and that the failure's kind makes worth knowing; the most telling first."""
    event = incident.primary_event
    if event is None:
        return ()
    asked: dict[str, Missing] = {}
    for missing in _asked(incident, event):
        if missing.key not in asked and not isinstance(facts.get(missing.key), Fact):
            asked[missing.key] = missing
    return tuple(asked.values())[:MOST]


def _asked(incident: Incident, event: Event) -> Iterator[Missing]:
    text = event.text[:4000]
    others = next((_OF_PLATFORM[each.tool] for each in incident.events if each.tool in _OF_PLATFORM), None)
    if others is not None:
        yield from (Missing(key, command, why) for key, command, why in others)
        yield Missing("command", "tr '\\0' ' ' < /proc/PID/cmdline", "how the service is started")
        return
    if not any(log.kind == "kernel log" for log in incident.logs):
        if _ENDED_BY_SIGNAL.search(text) or event.kind == "death":
            yield Missing(
                "kernel_log",
                "journalctl -k -b --no-pager | grep -iE 'oom|killed process'",
                "whether the kernel killed the process",
            )
        if _CUDA_FAULT.search(text) or event.kind == "crash":
            yield Missing(
                "kernel_log",
                "journalctl -k -b --no-pager | grep -iE 'NVRM|Xid|segfault'",
                "what the driver reported before the program's own error",
            )
    if _CRASHED.search(text):
        yield Missing(
            "tests.stacks",
            "PYTHONFAULTHANDLER=1 COMMAND; coredumpctl info",
            "in which library it crashed, and what Python was at then",
        )
    absent = _MISSING_FILE.search(text)
    if absent is not None:
        yield Missing(f"files.{absent['path']}", f"ls -ld {absent['path']}", "whether the file is there for this user")
    if event.kind == "exception" and _OF_MODEL.search(text):
        yield Missing("model.config", "cat MODEL/config.json", "what the checkpoint says of itself")
    if _WAITING.search(text):
        yield Missing(
            "tests.stacks", "py-spy dump --pid PID", "where each rank waits; the one that waits elsewhere is the lead"
        )
    if _is_cut_off(event):
        yield Missing("journal", _journal(incident), "the text is cut off: the lines before it name the first error")
    if event.kind in ("exception", "crash"):
        for name in _packages(event):
            yield Missing(
                f"packages.{name}", f"python -m pip show {name}", "the release whose source the frames are of"
            )
    if _CUDA_FAULT.search(text) or not _packages(event):
        yield Missing("cc", "nvidia-smi --query-gpu=index,name,compute_cap --format=csv", "which GPU it is")
        yield Missing("driver", "cat /proc/driver/nvidia/version", "which driver is loaded")
        yield Missing(
            "torch",
            "python -c 'import torch; print(torch.__version__, torch.version.cuda)'",
            "which torch, built for which CUDA",
        )
    if event.is_echo:
        yield Missing(
            "journal",
            _journal(incident),
            "this only says that something else failed: the first error stands earlier, perhaps in the log of another process",
        )
    yield Missing("command", "tr '\\0' ' ' < /proc/PID/cmdline", "how the service is started")
    yield Missing("cc", "nvidia-smi --query-gpu=index,name,compute_cap --format=csv", "which GPU it is")
    yield Missing("driver", "cat /proc/driver/nvidia/version", "which driver is loaded")


def _packages(event: Event) -> list[str]:
    """The packages of the innermost frames, the innermost first; as pip calls them."""
    found: dict[str, None] = {}
    for block in event.exceptions[:1]:
        for frame in reversed(block.frames):
            package = _PACKAGE.search(frame.path[-400:])
            if package is not None:
                found.setdefault(_PUBLISHED_AS.get(package["package"], package["package"].replace("_", "-")))
    return list(found)[:2]


def _is_cut_off(event: Event) -> bool:
    return event.kind == "exception" and (not event.exceptions or not event.exceptions[0].type)


def _journal(incident: Incident) -> str:
    unit = f" -u {incident.unit}" if re.fullmatch(r"[\w@.:-]{1,120}", incident.unit) else " -u UNIT"
    return f"journalctl{unit} -b --no-pager"

"""Faults of GPUs, their memory and their links, in the order in which the kernel reported them.

Four causes share these lines. Which of them it is is a matter of order: a lost GPU makes links fail and the GSP time
out, a failed link makes channels die. The first line that is not an echo belongs to the cause, the others follow it.
"""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import says
from gpuwhy.knowledge import xid_origins as origins
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Missing

_XID = r"(?<!S)Xid \((?P<device>[^)]{1,60})\):? {0,3}(?:\[\w{1,8}\] )?(?!45\b|154\b)(?P<number>\d{1,3})\b"
_ECHO_OF = r"Xid \((?P<device>[^)]{1,60})\): 45,.{0,200}?caused by previous Xid (?P<number>\d{1,3})\b"
_SXID = r"\bSXid \((?P<device>[^)]{1,60})\):? {0,3}(?P<number>\d{1,6})\b(?:, (?P<severity>Fatal|Non-fatal))?"
_TYPED = r"XidCriticalError: Xid=(?P<passed>\d{1,3})\b|\bXid(?:[ -]?(?:errors?|codes?|events?|critical error|messages?))?(?: (?:of|code|number|is|was))?[ :=#]{1,3}(?!45\b|154\b)(?P<number>\d{2,3})\b(?![.:%]\d)"
_LOST = r"fallen off the bus|\bGPU (?:\S{1,40} )?is lost\b|GPU_IS_LOST|cleanup_gpu_lost_state|\bGpuLost\b|lost from the bus|GPU.{0,40}(?:dropped|disappeared) (?:off|from) (?:the )?(?:PCIe? )?bus"
_SURPRISE = r"Surprise Down|SurprDn|pciehp: Slot\(.{1,20}\): (?:Link Down|Card not present)"
_LINK = (
    r"uncorrectable NVLink error|NvlinkUncorrectable|NVLINK_UNCORRECTABLE|NVLink: {0,2}[Ff]atal error detected|(?:NVSwitch|LinkBank|NVLink)\w{0,3} (?:non-)?fatal error|fatal NVSwitch error"
    r"|NVLink.{0,60}(?:link training|training) (?:failed|error)|(?:fail\w{0,3}|unable) to train .{0,40}\blinks?\b|nvlink_(?:flit|data)_crc_error_count_\w{1,20} .{0,60}exceed|NV[Ll]ink (?:port|link) \S{0,20} ?(?:is )?(?:currently )?down\b|\bDCGM_FR_NVLINK_\w{2,40}|NvLink errors on GPU .{0,60}exceeds threshold"
)
_MEMORY = r"uncorrectable ECC|\becc uncorrect|ECC_UNCORRECTABLE|ECCUncorrectable|\bdouble[- ]bit ECC|DBE \(double bit error\)|Remapp\w{1,4}.{0,30}(?:fail\w{0,3}(?! Occurred {0,30}: No)|exceed)|uncorrectable (?:DRAM|SRAM|HBM|memory) error|(?:un)?contained (?:ECC|memory) error|\buncontained errors?\b|\bDCGM_FR_(?:UNCONTAINED|ROW_REMAP_FAILURE|PENDING_ROW_REMAP|VOLATILE_DBE|FAULTY_MEMORY|PENDING_PAGE|RETIRED_PAGES_DBE)\w{0,30}|\bpending row remap|\bvolatile double-bit ECC|(?:DRAM|SRAM|HBM|[Vv]olatile|[Aa]ggregate)[ \w]{0,20}[Uu]ncorrect\w{0,5}[ \w]{0,20}: {0,30}[1-9]\d{0,9}\b"
_STOPPED = (
    r"R[mM]InitAdapter failed|rm_init_adapter failed|Timeout waiting for RPC (?:response )?from GSP|GSP RPC timeout|\bGSP (?:task )?(?:Failed|exception|crash)|GSP firmware .{0,40}(?:fail|crash|halt)|GPU is probably locked|\bGPU requires (?:a )?reset"
    r"|NV_ERR_RESET_REQUIRED|\bGPU (?:is )?in (?:a )?bad state|(?:GPU )?Recovery Action {0,30}: (?:Reset|GPU Reset|Reboot|Node Reboot|Drain)|failed to (?:boot|initiali[sz]e) (?:the )?GSP|requires use of the NVIDIA open kernel modules|is not supported by the (?:open )?(?:nvidia\.ko|NVIDIA driver|\d{3}\.\d)"
)

XID = says("xid", "xid (", _XID)
ECHO_OF_XID = says("echo-of-xid", "previous xid", _ECHO_OF)
SXID = says("sxid", "sxid (", _SXID)
TYPED_XID = says("typed-xid", "xid", _TYPED)
LOST = says("lost", ("fallen off the bus", "is lost", "gpu_is_lost", "gpu_lost_state", "gpulost", "lost from the bus", "the bus", "pcie bus", "pci bus"), _LOST)  # fmt: skip
SURPRISE = says("surprise-down", ("surprise down", "surprdn", "pciehp:"), _SURPRISE)
LINK = says("link-error", ("nvlink", "nvswitch", "linkbank", "to train"), _LINK)
MEMORY = says(
    "memory-error", ("dcgm_fr_", "uncontained", "ecc", "dbe", "remap", "uncorrectable", "contained memory"), _MEMORY
)
STOPPED = says("driver-fault", ("init_adapter", "initadapter", "gsp", "probably locked", "requires reset", "requires a reset", "reset_required", "bad state", "recovery action", "open kernel modules", "is not supported by the"), _STOPPED)  # fmt: skip
FELT = says(
    "felt",
    ("cuda error", "cuda failure", "cudaerror", "cuda_error", "nccl", "watchdog", "nvml", "nvidia-smi", "cuda driver", "after sigkill", "timed out", "no devices were found", "unresponsive", "device handle", "initialize cuda", "no cuda"),
    r"CUDA error|CUDA failure|cudaError[A-Z]|CUDA_ERROR_[A-Z]|NCCL (?:error|WARN|operation)|[Ww]atchdog|NVML\w{0,12}(?:Error|:| )|nvidia-smi .{0,40}(?:hang|stuck|timed? ?out|fail|took|takes|minutes)|has failed because it couldn't communicate|around after SIGKILL|[Tt]imed out|No devices were found|CUDA driver|unresponsive|device handle for|initiali[sz]e CUDA|[Nn]o CUDA(?:-capable| GPUs)",
)  # fmt: skip
"""What a program shows of a fault of the device: it says nothing alone, and everything beside a kernel log."""
SIGNS = (XID, ECHO_OF_XID, SXID, TYPED_XID, LOST, SURPRISE, LINK, MEMORY, STOPPED, FELT)
_IN_ORDER = (XID, ECHO_OF_XID, SXID, TYPED_XID, LOST, SURPRISE, LINK, MEMORY, STOPPED)
_PART = {
    LOST.name: origins.LOST,
    SURPRISE.name: origins.LOST,
    LINK.name: origins.LINK,
    MEMORY.name: origins.MEMORY,
    STOPPED.name: origins.OTHER,
}
_COMPILED = {sign.name: lazy_pattern(sign.pattern, re.IGNORECASE) for sign in _IN_ORDER}
_DENIED = lazy_pattern(
    r"\b(?:no|not|never|without|neither|nor|isn't|wasn't|any|if|could be|might be|either|like|such as|e\.g\.|for example|0|zero) (?:\w{1,20} ){0,4}(?:Xid|ECC|NVLink|uncorrect|double)"
    r"|(?:Xid|ECC|NVLink)[\w ]{0,40}(?:: none|: 0\b|errors? (?:were )?not|not (?:seen|found|present))|(?:uncorrect|double)\w{0,10}[\w ]{0,30}: {0,4}(?:0|N/A)\b",
    re.IGNORECASE,
)  # fmt: skip
"""People who say that they saw none, or that it may be one."""
_SYMPTOM = lazy_pattern(
    r"CUDA|NCCL|cublas|cudnn|NVML|nvidia-smi|[Ww]atchdog|illegal memory|launch failure|device handle|GPU|timed? ?out|SIGKILL|ECC|NVLink",
    re.IGNORECASE,
)
_UNRELATED = lazy_pattern(r"out of memory|no kernel image|not compiled|insufficient|ImportError|ModuleNotFound|No space left|Address already", re.IGNORECASE)  # fmt: skip
_KERNEL_KEYS = ("kernel_log", "journal", "gpu_errors", "nvidia_smi.host")
MOST_LINES = 3000


class Fault(Struct, frozen=True):
    """One fault. ``part`` is the id of the cause it belongs to, or PROGRAM; ``number`` that of its Xid or SXid.

    ``is_kernels``: reported by the kernel or the device plugin itself; else a program's error or somebody's words.
    ``match`` is None for a line of a fact.
    """

    part: str
    text: str
    sign: str
    place: Place | None
    standing: Standing
    match: Match | None = None
    number: int | None = None
    device: str = ""
    is_mild: bool = False
    is_kernels: bool = True
    time: float | None = None

    @property
    def is_switch(self) -> bool:
        return self.sign == SXID.name

    @property
    def is_count(self) -> bool:
        """A counter of errors, which may be of another day."""
        return self.is_mild and self.sign == MEMORY.name

    @property
    def is_hearsay(self) -> bool:
        """Somebody's words about an Xid, not the message itself."""
        return self.sign == TYPED_XID.name and not self.is_kernels

    @property
    def name(self) -> str:
        """``Xid 79``, ``SXid 20034``, or nothing."""
        return "" if self.number is None else f"{'SXid' if self.is_switch else 'Xid'} {self.number}"

    def evidence(self, statement: str) -> Evidence:
        return Evidence(statement, self.text, self.place, self.standing)


def read_faults(case: Case) -> tuple[Fault, ...]:
    """Every fault of the logs and of the facts ``kernel_log``, ``journal``, ``gpu_errors`` and ``nvidia_smi.host``, the earliest first. Echoes are left out."""
    found = [*_of_logs(case), *_of_facts(case)]
    if all(fault.time is not None for fault in found):
        found.sort(key=lambda fault: fault.time or 0.0)
    return tuple(found)


def lead(faults: tuple[Fault, ...]) -> Fault | None:
    """The fault that the others follow: the kernel's before a program's, a serious one before one of the record."""
    own = [fault for fault in faults if fault.part != origins.PROGRAM]
    kernels = [fault for fault in own if fault.is_kernels]
    for among in ([f for f in kernels if not f.is_mild], [f for f in own if not f.is_mild], kernels, own):
        if among:
            return among[0]
    return None


def of_part(faults: tuple[Fault, ...], part: str) -> tuple[Fault, ...]:
    """The faults of one cause, those that can lead first."""
    own = [fault for fault in faults if fault.part == part]
    return tuple(sorted(own, key=lambda fault: (fault.is_mild, not fault.is_kernels)))


def explained(case: Case, faults: tuple[Fault, ...]) -> tuple[int, ...]:
    """The events of these faults, and the failures of programs that such a fault shows itself by."""
    own = set(case.explains(*(fault.match for fault in faults)))
    for event in case.incident.events:
        is_theirs = event.kind in ("exception", "crash", "death", "warning", "unit", "kernel")
        if is_theirs and (
            event.is_echo or (_SYMPTOM.search(event.text[:2000]) and not _UNRELATED.search(event.text[:2000]))
        ):
            own.add(event.id)
    return tuple(sorted(own))


def symptom(case: Case, pattern: re.Pattern[str]) -> Match | None:
    """The first line that is felt and matches ``pattern``; no advice, and no quoted code."""
    return next(
        (match for match in case.all(FELT.name) if pattern.search(match.text[:1600]) and not match.is_code), None
    )


def clean_kernel_log(case: Case) -> Evidence | None:
    """The kernel log, when it is given as a fact; called where no fault was found in it."""
    return case.fact_evidence("kernel_log", "the kernel log has no Xid")


def kernel_log_missing(case: Case, why: str) -> Missing | None:
    return case.missing("kernel_log", why, "journalctl -k -b | grep -iE 'xid|nvrm|aer|nvlink|nvswitch'")


def _of_logs(case: Case) -> list[Fault]:
    faults: dict[tuple[str, int], Fault] = {}
    for sign in _IN_ORDER:
        for match in case.all(sign.name):
            key = (match.place.path, match.line.number)
            if match.is_code or match.line.level == "debug" or key in faults:
                continue
            fault = _fault(sign.name, match.text, match.groups, match)
            if fault is not None:
                faults[key] = fault
    return [faults[key] for key in sorted(faults)]


def _of_facts(case: Case) -> list[Fault]:
    found: list[Fault] = []
    for key in _KERNEL_KEYS:
        fact = case.fact(key)
        if not isinstance(fact, Fact) or not fact.value:
            continue
        texts = fact.value if isinstance(fact.value, list | tuple) else str(fact.value).splitlines()
        for text in texts[:MOST_LINES]:
            fault = _of_text(str(text)[:1600], fact)
            if fault is not None:
                found.append(fault)
    return found


def _of_text(text: str, fact: Fact) -> Fault | None:
    for name, pattern in _COMPILED.items():
        found = pattern.search(text)
        if found is not None:
            groups = {key: value for key, value in found.groupdict().items() if value is not None}
            return _fault(name, text.strip(), groups, None, fact.evidence.place or Place("facts", fact.key), fact.evidence.standing)  # fmt: skip
    return None


def _fault(
    sign: str, text: str, groups: dict[str, str], match: Match | None, place: Place | None = None, standing: Standing = Standing.OBSERVED
) -> Fault | None:  # fmt: skip
    is_numbered = sign in (XID.name, ECHO_OF_XID.name, SXID.name)
    if not is_numbered and _DENIED.search(text[:1600]):
        return None
    number = int(groups.get("number") or groups.get("passed") or -1)
    is_mild = False
    if sign == TYPED_XID.name and number not in origins.XID_ORIGINS:
        return None  # databases and file systems have numbers of that name, too
    if sign == SXID.name:
        part, is_mild = origins.LINK, origins.is_harmless_sxid(number, groups.get("severity", ""))
    elif number >= 0:
        origin = origins.origin_of_xid(number)
        part, is_mild = origin.part, origin.is_mild
    else:
        part = _PART[sign]
    if part == origins.ECHO:
        return None
    is_mild = is_mild or (sign == MEMORY.name and _COUNT.search(text[:400]) is not None)
    return Fault(
        part=part,
        text=_told(sign, text),
        sign=sign,
        place=match.place if match is not None else place,
        standing=standing,
        match=match,
        number=number if number >= 0 else None,
        device=groups.get("device", ""),
        is_mild=is_mild,
        is_kernels=_is_kernels(sign, text, groups, match),
        time=match.line.time if match is not None else None,
    )


def _told(sign: str, text: str) -> str:
    """The error itself, where a program wraps it in a line of its own words (JSON, a repr)."""
    if sign not in (MEMORY.name, LINK.name) or len(text) < _LONG_LINE:
        return text
    found = _CUDAS_WORDS.search(text[:4000])
    return found[0] if found is not None else text


_LONG_LINE = 160
_COUNT = lazy_pattern(
    r"(?:volatile|aggregate|uncorrect\w{0,5}|errors?)\s{0,30}: {0,30}[1-9]\d{0,18}\s*$", re.IGNORECASE
)
"""A counter tells that there were errors, not when."""
_CUDAS_WORDS = lazy_pattern(r"(?:CUDA error: |Cuda failure (?:\d{1,4} )?'?|CUDA_ERROR_\w{1,40}: )?uncorrectable (?:ECC|NVLink) error[\w ]{0,60}", re.IGNORECASE)  # fmt: skip


def _is_kernels(sign: str, text: str, groups: dict[str, str], match: Match | None) -> bool:
    if sign in (XID.name, ECHO_OF_XID.name, SXID.name, SURPRISE.name) or "passed" in groups:
        return True
    if match is None:
        return sign != TYPED_XID.name
    return "NVRM" in text or (match.event is not None and match.event.kind == "kernel")

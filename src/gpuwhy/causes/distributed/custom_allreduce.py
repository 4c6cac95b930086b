"""custom-allreduce: the engine's own all-reduce cannot share its buffers between the GPUs."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.host import Environment
from gpuwhy.model.remedy import NotARemedy, Remedy

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""torch reads both; the second is the name since 2.9."""
_PLACE = lazy_pattern(
    r"custom_all_reduce|custom_allreduce|customAllReduce|CustomAllreduce|quick_all_reduce|_C_custom_ar|trtllm_allreduce|allreduce_fusion|trtllm_ar\b|cuda_wrapper\.py|ipcUtils|foreignPtr|"
    r"create_shared_buffer|CudaIpcComm|cuda_ipc_comm|mscclpp|create_ipc_buffer|register_graph_buffers|get_graph_buffer_ipc_meta|IpcMemory|flashinfer[./]comm",
)
_P2P_TOO = lazy_pattern(
    r"NCCL_P2P_DISABLE|(?:did|does|do)(?:n't| not) (?:help|work|fix|solve)|no (?:help|effect)|neither|even (?:with|after)|still|tried",
    re.IGNORECASE,
)
_EXPANDABLE = lazy_pattern(r"expandable_segments[:=]\s{0,3}True", re.IGNORECASE)
_REFUSED_POINTER = lazy_pattern(
    r"invalid argument|invalid device pointer|pidfd_getfd|invalid resource handle|resource already mapped",
    re.IGNORECASE,
)


@cause(
    "custom-allreduce",
    family="Distributed",
    signs=[
        says(
            "in-kernel-file",
            ("custom_all_reduce.cu", "customallreducekernels", "custom_allreduce.cu", "quick_all_reduce.cu", "custom_ar.cu", "trtllm_allreduce", "reduce_internal.cu", "peer mapping resources exhausted"),
            r"(?:Cuda|CUDA)(?: runtime)? (?:error|failure).{0,200}(?:custom_all_?reduce|customAllReduceKernels|quick_all_reduce|trtllm_allreduce|reduce_internal)\S{0,40}.{0,10}'?(?P<what>[\w ]{0,60})"
            r"|(?:custom_all_?reduce|customAllReduceKernels|quick_all_reduce|trtllm_allreduce)\w{0,20}\.(?:cuh?|cpp|h)\b.{0,160}(?:error|failed|invalid|not supported|illegal)",
        ),
        says(
            "ipc-handle",
            ("cudart error", "cudaipc", "cuipc", "pidfd_getfd", "cudadeviceenablepeeraccess"),
            r"CUDART error: (?P<what>[\w ]{3,80})|(?:cudaIpc(?:Get|Open)MemHandle|cuIpc(?:Get|Open)MemHandle|cudaDeviceEnablePeerAccess).{0,200}(?:error|fail|invalid|not supported|returned)"
            r"|(?:error|fail\w{0,3}).{0,120}(?:cudaIpc(?:Get|Open)MemHandle|cuIpc(?:Get|Open)MemHandle|cudaDeviceEnablePeerAccess)|pidfd_getfd: \w.{0,60}",
        ),
        says(
            "peer-refused",
            ("peer access is not supported", "peer-to-peer", "invalid argument", "invalid device context", "resource already mapped", "invalid device pointer", "peer access has not been enabled"),
            r"CUDA (?:driver )?error: (?P<what>peer access is not supported between these two devices|peer access has not been enabled|invalid argument|invalid device context|resource already mapped|invalid device pointer)",
        ),
        says(
            "helps-without",
            ("disable-custom-all-reduce", "disable_custom_all_reduce", "use_custom_all_reduce"),
            r"(?:works?|fixed|fixes|solved|solves|resolved|helped|helps|cured|success\w{0,5}|no (?:longer )?(?:hang|crash|error)\w{0,3}|fine|workaround).{0,120}disable[-_]custom[-_]all[-_]reduce"
            r"|disable[-_]custom[-_]all[-_]reduce(?!=False).{0,120}\b(?:works?|fixed|fixes|solved|solves|resolved|helped|helps|cured|success\w{0,5}|fine|no (?:longer )?(?:hang|crash|error)\w{0,3})\b",
        ),
    ],
)  # fmt: skip
def custom_allreduce(case: Case, environment: Environment | Unknown) -> Judgement:
    """The engine's own all-reduce cannot share its buffers with the other GPUs.

    How it shows itself
      `Failed: Cuda error .../custom_all_reduce.cuh:164 'invalid argument'` and then nothing but a dead worker: the C++ check
      prints one line and ends the process, without a traceback. Or `CUDART error: invalid argument` under `cudaIpcGetMemHandle`,
      `peer access is not supported between these two devices` under custom_all_reduce, during graph capture or just after it.

    Why it happens
      For small tensors vLLM, SGLang, TensorRT-LLM and FlashInfer reduce with a kernel of their own that reads the other GPUs'
      buffers. They share them through CUDA IPC handles. With `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` torch maps
      memory in another way, and CUDA refuses a handle for it. Where GPUs have no peer access at all, opening it is refused.

    How to be sure
      PYTORCH_CUDA_ALLOC_CONF of the process that failed. If it holds expandable_segments, that is it. If not, look at
      `nvidia-smi topo -p2p r` and at the driver's peer-to-peer support.

    What helps
      Remove expandable_segments; or --disable-custom-all-reduce, which costs a little latency: NCCL does the work.

    What does not help
      NCCL_P2P_DISABLE=1: NCCL is not the one who fails. Less GPU memory, a shorter context.

    Not to be confused with
      p2p-iommu (peer copies are accepted and never arrive: it hangs), nccl-version (the message is NCCL's). The warnings
      `Custom allreduce is disabled because ...` and `Setup Custom allreduce failed` are fall-backs that harm nobody.
    """
    match = _failing(case)
    if match is None:
        return _cured_without(case)
    setting = _expandable(case, environment)
    is_named = match.sign == "in-kernel-file" or _PLACE.search(match.text) is not None
    refused = _REFUSED_POINTER.search(match.text) is not None
    certainty = _certainty(case, match, setting, environment, refused)
    component = _component(case, match)
    seen = case.evidence(match, "sharing a buffer with the other GPUs was refused")
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"The custom all-reduce of {component or 'the engine'} cannot share its buffers"
        + (" because of expandable_segments" if setting is not None else ""),
        chain=(
            Link("torch allocates in expandable segments, which have no IPC handle", setting)
            if setting is not None or refused
            else Link("The GPUs cannot open each other's memory", inferred("why, is not in the log")),
            Link("The custom all-reduce asks for a handle of its buffers", inferred("what it does at its start and after graph capture")),
            Link("CUDA refuses, and the check ends the process", seen),
        ),
        evidence=tuple(each for each in (seen, setting) if each is not None),
        explains=case.explains(match),
        missing=_missing(case, environment) if setting is None else (),
        rivals=("p2p-iommu",) if setting is None else (),
        remedies=_remedies(case, environment, setting is not None, refused),
        not_remedies=_IN_VAIN,
        strength=85 if is_named else 60,
    )  # fmt: skip


def _failing(case: Case) -> Match | None:
    """The refusal, where it is the custom all-reduce that was refused."""
    for match in case.all("in-kernel-file"):
        if not match.is_code and not _is_fall_back(match.text):
            return match
    for match in case.all("ipc-handle", "peer-refused"):
        if match.is_code or _is_fall_back(match.text):
            continue
        if "NCCL" in match.text or "ncclUnhandled" in match.text:
            continue
        if _PLACE.search(match.text) or _in_frames(case, match):
            return match
    return None


def _cured_without(case: Case) -> Judgement:
    """Somebody tried: with NCCL's reduction instead of the engine's own one, it works."""
    tried = _experiment(case)
    told = next((match for match in case.all("helps-without") if not match.is_code and _is_told(match)), None)
    if tried is None and (told is None or _P2P_TOO.search(told.text[:1600])):
        return None
    seen = tried or (case.evidence(told, "without the custom all-reduce it works") if told is not None else None)
    if seen is None:
        return None
    primary = case.incident.primary
    return Verdict(
        certainty=Certainty.LIKELY,
        component=case.engine or "vllm",
        title="The engine's custom all-reduce fails or hangs here; NCCL's does not",
        chain=(Link("The custom all-reduce reads other GPUs' memory by itself", inferred("what it is for")), Link("That fails or never ends here", seen)),
        evidence=(seen,),
        explains=() if primary is None else (primary,),
        missing=_missing(case, Unknown("not asked")),
        rivals=("p2p-iommu",),
        remedies=(_disabled(case),),
        not_remedies=_IN_VAIN[1:],
        strength=55,
    )  # fmt: skip


def _experiment(case: Case) -> Evidence | None:
    """An experiment without the custom all-reduce that went well."""
    for name, fact in case.facts.group("tests").items():
        told = f"{name}: {fact.value}"
        if re.search(r"disable[-_]custom[-_]all[-_]reduce", told) and re.search(
            r"(?i)works|succe|\bok\b|fine|completes|no (?:hang|crash|error)", told
        ):
            return fact.evidence if "NCCL_P2P" not in told else None
    return None


def _is_told(match: Match) -> bool:
    """A sentence of the reporter, not a line of a failure."""
    return match.event is None or match.event.kind == "warning"


def _is_fall_back(text: str) -> bool:
    return "Setup Custom allreduce failed" in text or "allreduce is disabled" in text.lower()


def _in_frames(case: Case, match: Match) -> bool:
    """The innermost frames, or the lines just above, are those of a custom all-reduce."""
    if any(_PLACE.search(f"{frame.path} {frame.function} {frame.code}") for frame in match.frames[-6:]):
        return True
    if match.frames:
        return False
    near = (line.text[:400] for line in case.lines_around(match, 12, 2))
    return any(_PLACE.search(text) and not _is_fall_back(text) for text in near)


def _expandable(case: Case, environment: Environment | Unknown) -> Evidence | None:
    """The setting, where it is known to be on."""
    if isinstance(environment, Unknown):
        return None
    for name in ALLOCATOR_VARIABLES:
        value = environment.get(name)
        if isinstance(value, str) and _EXPANDABLE.search(value):
            return case.fact_evidence(f"env.{name}", f"{name} switches expandable segments on")
    return None


def _is_known_off(environment: Environment | Unknown) -> bool:
    if isinstance(environment, Unknown):
        return False
    value = environment.get(ALLOCATOR_VARIABLES[0])
    return value is None or (isinstance(value, str) and not _EXPANDABLE.search(value))


def _certainty(
    case: Case, match: Match, setting: Evidence | None, environment: Environment | Unknown, refused: bool
) -> Certainty:
    if match.sign == "peer-refused" and not _PLACE.search(match.text) and "peer" not in match.text and setting is None:
        return Certainty.POSSIBLE
    if setting is not None and refused:
        return Certainty.PROVEN
    if "peer access is not supported" in match.text:
        return Certainty.PROVEN
    if _is_known_off(environment):
        return Certainty.LIKELY if case.found("helps-without") else Certainty.POSSIBLE
    return Certainty.LIKELY


def _component(case: Case, match: Match) -> str | None:
    if "trtllm_allreduce" in match.text or "flashinfer" in match.text or case.frame_in(match, "flashinfer/comm"):
        return "flashinfer"
    if "customAllReduceKernels" in match.text or "ipcUtils" in match.text:
        return "tensorrt-llm"
    return case.engine or case.component_near(match) or "vllm"  # whose file it is first


def _missing(case: Case, environment: Environment | Unknown) -> tuple[Missing, ...]:
    if _is_known_off(environment):
        asked = case.missing("p2p_test", "whether peer copies between these GPUs work", "nvidia-smi topo -p2p r")
        return (asked,) if asked is not None else ()
    if isinstance(case.fact("env.PYTORCH_CUDA_ALLOC_CONF"), Fact):
        return ()
    return (
        Missing(
            "env.PYTORCH_CUDA_ALLOC_CONF",
            "tr '\\0' '\\n' < /proc/PID/environ | grep ALLOC_CONF",
            "whether expandable_segments is on in the process that failed",
        ),
    )


def _remedies(case: Case, environment: Environment | Unknown, is_expandable: bool, refused: bool) -> tuple[Remedy, ...]:
    remedies = []
    if is_expandable or (refused and not _is_known_off(environment)):
        remedies.append(_without_segments(environment, is_expandable))
    remedies.append(_disabled(case))
    return tuple(remedies)


def _without_segments(environment: Environment | Unknown, is_sure: bool) -> Remedy:
    name, value = ALLOCATOR_VARIABLES[0], "without expandable_segments"
    for each in ALLOCATOR_VARIABLES:
        found = None if isinstance(environment, Unknown) else environment.get(each)
        if isinstance(found, str) and _EXPANDABLE.search(found):
            rest = ",".join(part for part in found.split(",") if not _EXPANDABLE.search(part))
            name, value = each, rest or "unset"
    return Remedy(
        kind="env",
        name=name,
        value=value,
        summary="Take expandable_segments out of the allocator's settings",
        cost="memory that is reserved and not used may grow a little",
        check=(f"tr '\\0' '\\n' < /proc/PID/environ | grep {name}",),
        is_sure=is_sure,
    )


def _disabled(case: Case) -> Remedy:
    if case.engine == "tensorrt-llm":
        return Remedy(kind="flag", name="--use_custom_all_reduce", value="disable", summary="Build the engine without the custom all-reduce plug-in (newer releases: allreduce_strategy NCCL)", cost="the engine must be built again", rank=1)  # fmt: skip
    return Remedy(
        kind="flag",
        name="--disable-custom-all-reduce",
        summary="Let NCCL do all reductions",
        cost="a few percent of latency at small batches",
        rank=1,
    )


_IN_VAIN = (
    NotARemedy("NCCL_P2P_DISABLE=1", "it governs NCCL; the custom all-reduce opens peer memory by itself"),
    NotARemedy("a lower memory fraction, a shorter context", "no memory is short"),
)

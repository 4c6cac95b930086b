"""What helps against FlashInfer's toolkit check, with values computed for this host."""

from __future__ import annotations

import shlex

from gpuwhy.causes._case import Case
from gpuwhy.causes.toolchain._flashinfer_gate import ARCH_LIST, Gate, at_least, interpreter_near
from gpuwhy.knowledge import flashinfer, pins, toolkits
from gpuwhy.model.fact import Unknown
from gpuwhy.model.host import Gpus, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy, Survives

_SAMPLE = (
    "curl -s http://127.0.0.1:PORT/v1/completions -H 'Content-Type: application/json' "
    '-d \'{"model": "MODEL", "prompt": "1, 2, 3,", "max_tokens": 8, "temperature": 0.8, "top_p": 0.9}\''
)
"""A request that reaches the sampler: greedy ones, such as the warm-up, do not (SGLang 0.5.10.post1 sampler.py)."""


_CHECK = "{python} -c 'from flashinfer.jit.core import check_cuda_arch; check_cuda_arch(); print(\"ok\")'"
"""Runs the check itself, in a fresh process: it prints ok or raises what the service raised."""


def arch_list_remedy(case: Case, gate: Gate, gpus: Gpus | Unknown) -> Remedy | None:
    """The smallest fix: name the target with its suffix, which FlashInfer takes as it is, past the check.

    None when the toolkit is known not to compile for it: then the variable only moves the failure.
    """
    value = arch_list_value(gate, gpus)
    if value is None:
        return None
    python = interpreter_near(case, gate.symptom)
    computed = gate.toolkit is not None and gate.capability is not None
    return Remedy(
        kind="env",
        name=ARCH_LIST,
        value=value,
        summary="Name the target yourself: an entry with a suffix is taken as it is, and "
        + (f"nvcc {gate.toolkit} knows " if gate.toolkit else "nvcc 12.8 (older ones do not) knows ")
        + " and ".join(f"sm_{entry.replace('.', '')}" for entry in value.split()),
        cost="one JIT build of each kernel at the next start (minutes, several GiB of host memory); nothing is installed",
        survives=Survives(restart=True, upgrade=True, reboot=True),
        check=(
            f"{ARCH_LIST}={shlex.quote(value)} {_CHECK.format(python=python)}",
            _SAMPLE,
        ),
        limits=(
            "cures the JIT modules that ask FlashInfer's list; FP4 quantisation goes by torch.version.cuda, not by the list",
            "SGLang overwrites the variable after FlashInfer was imported, with the same value (SGLang 0.5.6 to 0.5.23)",
        ),
        is_sure=computed,
        rank=0,
    )


def other_toolkit_remedy(gate: Gate, needed: str) -> Remedy | None:
    """Another toolkit of this host, while nobody looked which one is in use: a good one is often there, not chosen."""
    if gate.toolkit is not None:
        return None
    return Remedy(
        kind="env",
        name="CUDA_HOME",
        value=f"toolkit >= {needed}",
        summary=f"If a toolkit of CUDA {needed} or later is installed already (look at /usr/local/cuda*), name it in the service's environment",
        cost="one JIT build of each kernel at the next start",
        check=("ls -d /usr/local/cuda*", '"$CUDA_HOME/bin/nvcc" --version'),
        is_sure=False,
        rank=5,
    )


def arch_list_value(gate: Gate, gpus: Gpus | Unknown) -> str | None:
    """The value of FLASHINFER_CUDA_ARCH_LIST for these GPUs and this toolkit, for instance ``12.0a``.

    Entries are ``major.minor`` with the suffix of the best target that this nvcc knows, separated by one space.
    None without nvcc, or when nvcc knows no architecture-specific target of one of the GPUs. With the toolkit
    unknown the value for the oldest toolkit that could work (12.8) is given.
    """
    if gate.is_without_nvcc:
        return None
    release = gate.toolkit or "12.8"
    if not at_least(release, "12.8"):  # this FlashInfer passes --compress-mode, which nvcc knows from 12.8 on
        return None
    capabilities = gpus.capabilities if isinstance(gpus, Gpus) and gpus.capabilities else ("12.0",)
    entries = []
    for capability in capabilities:
        digits = capability.replace(".", "")
        if float(capability) < 9.0:
            entries.append(capability)
        elif toolkits.accepts(release, f"sm_{digits}a").value:
            entries.append(f"{capability}a")
        else:
            return None
    return " ".join(entries)


def sampler_remedies(case: Case, gate: Gate) -> list[Remedy]:
    """Ways around FlashInfer's sampler, for the engine that runs; only when the sampler is what failed, or may be."""
    if not _may_be_sampler(gate):
        return []
    is_shown = any("sampling" in frame.path for frame in gate.symptom.frames)
    remedies = []
    if case.engine in ("vllm", "") or _names(case, "vllm"):
        remedies.append(
            Remedy(
                kind="env",
                name="VLLM_USE_FLASHINFER_SAMPLER",
                value="0",
                summary="Let vLLM sample with its own kernels instead of FlashInfer's",
                cost="a little slower top-p and top-k sampling",
                check=(_SAMPLE,),
                limits=(
                    "an fp8 KV cache, the FlashInfer attention backend and FlashInfer MoE still reach the same check",
                ),
                is_sure=is_shown,
                rank=10,
            )
        )
    if case.engine == "sglang" or _names(case, "sglang"):
        remedies.append(
            Remedy(
                kind="flag",
                name="--sampling-backend",
                value="pytorch",
                summary="Let SGLang sample with torch instead of FlashInfer",
                cost="a little slower top-p and top-k sampling",
                check=(_SAMPLE,),
                limits=(
                    "EAGLE verification of non-greedy requests and min-p still reach FlashInfer (SGLang 0.5.10 and later)",
                    "prove it with a request of temperature > 0 and top_p < 1: the warm-up is greedy and passes anyway",
                ),
                is_sure=is_shown,
                rank=10,
            )
        )
    return remedies


def kv_cache_remedies(case: Case, gate: Gate) -> list[Remedy]:
    """An fp8 KV cache makes vLLM choose FlashInfer for attention; without it the check is not reached on that path."""
    command = str(case.facts.value("command") or "")
    texts = [
        command,
        *(
            line.text
            for line in case.lines_around(gate.symptom, 400, 50)
            if "kv_cache_dtype" in line.text or "kv-cache-dtype" in line.text
        ),
    ]
    if not any("fp8" in text for text in texts):
        return []
    return [
        Remedy(
            kind="flag",
            name="--kv-cache-dtype",
            value="auto",
            summary="Keep the KV cache in the model's own format: fp8 makes the engine choose FlashInfer here",
            cost="twice the memory for the KV cache",
            limits=("the sampler may reach the same check next",),
            is_sure=False,
            rank=20,
        )
    ]


def package_remedies(case: Case, gate: Gate) -> list[Remedy]:
    """A release without the check: of the engine where it pins FlashInfer exactly, else of FlashInfer itself."""
    if gate.capability is not None and not gate.capability.startswith("12.0"):
        return []  # SM 12.1 needs 12.9 in every release that has the check
    if gate.toolkit is not None and not at_least(gate.toolkit, "12.8"):
        return []
    remedies = []
    engine = case.engine if case.engine in ("sglang", "vllm") else ""
    first = pins.first_release_with(engine, "flashinfer-python", "0.7.1") if engine else None
    if first is not None:
        remedies.append(
            Remedy(
                kind="package",
                name=engine,
                value=f">={first}",
                summary=f"{engine} {first} and later pin FlashInfer 0.7.1 or later, which accepts SM 12.0 with CUDA 12.8",
                cost="an upgrade of the engine and of all that it pins (torch among them)",
                survives=Survives(restart=True, upgrade=True, reboot=True),
                risk="medium",
                rank=0,
            )
        )
    remedies.append(
        Remedy(
            kind="package",
            name="flashinfer-python",
            value=">=0.7.1",
            summary="FlashInfer 0.7.1 and later accept SM 12.0 with CUDA 12.8 (0.6.6 and earlier have no such check)",
            cost="the engine pins another release; flashinfer-cubin and flashinfer-jit-cache must be of the same one"
            if engine
            else "flashinfer-cubin and flashinfer-jit-cache must be of the same release",
            survives=Survives(restart=True, upgrade=False, reboot=True),
            risk="medium",
            is_sure=not engine,
            rank=10,
        )
    )
    return remedies


def toolkit_remedy(needed: str, torch: Torch | Unknown) -> Remedy:
    """Install a toolkit that passes the check; of torch's own CUDA major where that is known."""
    major = torch.cuda.partition(".")[0] if isinstance(torch, Torch) and torch.cuda else ""
    advice = f" (a {major}.x one, torch's own major, needs no other libraries at load)" if major else ""
    return Remedy(
        kind="toolkit",
        name="cuda",
        value=f">={needed}",
        summary=f"Install a CUDA toolkit of at least {needed}{advice}, and point CUDA_HOME at it",
        cost="2 to 6 GB of disk; the driver is not touched",
        check=("nvcc --version",),
        limits=(
            "modules built by a 13.x toolkit need libcudart.so.13 when they are loaded; torch for CUDA 12 brings only libcudart.so.12",
        ),
        risk="medium",
    )


def patch_remedy(case: Case, gate: Gate) -> Remedy:
    """Last: change the check in the installed source; names who else reads the set."""
    readers = ", ".join(dict.fromkeys(reader.file for reader in flashinfer.readers_of_targets()))
    return Remedy(
        kind="patch",
        name="flashinfer/compilation_context.py",
        value="let _normalize_cuda_arch return (12, '0a') for SM 12.0 with CUDA 12.8",
        summary="Relax the check in the installed FlashInfer",
        cost=f"lost at the next upgrade; TARGET_CUDA_ARCHS is also read by {readers}",
        survives=Survives(restart=True, upgrade=False, reboot=True),
        undo=(f"{interpreter_near(case, gate.symptom)} -m pip install --force-reinstall --no-deps {_installed(gate)}",),
        check=(_CHECK.format(python=interpreter_near(case, gate.symptom)), _SAMPLE),
        risk="high",
    )


def in_vain(gate: Gate) -> tuple[NotARemedy, ...]:
    """Values and changes that are known not to work here, each measured or read in the source."""
    release = gate.toolkit or "12.8"
    refused = [
        NotARemedy(f"{ARCH_LIST}=12.0", "an entry without suffix goes through the same check and then fails at import"),
        NotARemedy(
            f"{ARCH_LIST}=12.0a;9.0a (or with a comma)",
            "entries are separated by one space; anything else is a ValueError at import",
        ),
        NotARemedy("FLASHINFER_NVCC", "changes only the compile command; the check still asks the nvcc of CUDA_HOME"),
        NotARemedy("--attention-backend", "does not avoid the sampler"),
    ]
    if not at_least(release, "12.9"):
        refused.insert(1, NotARemedy(f"{ARCH_LIST}=12.0f", f"nvcc {release} does not know compute_120f"))
    if not at_least(release, "12.8"):
        refused.insert(
            0,
            NotARemedy(
                f"{ARCH_LIST}=12.0a", f"nvcc {release} knows neither sm_120a nor the options that FlashInfer passes"
            ),
        )
    if gate.is_without_nvcc:
        refused.insert(0, NotARemedy(f"{ARCH_LIST}=12.0a", "there is no nvcc that could compile for it"))
    return tuple(refused)


def _may_be_sampler(gate: Gate) -> bool:
    frames = gate.symptom.frames
    inside = [frame.path for frame in frames if "flashinfer/" in frame.path and "/jit/" not in frame.path]
    return not inside or any("sampling" in path for path in inside)


def _names(case: Case, engine: str) -> bool:
    return any(engine in line.text for _, line in case.lines())


def _quoted(value: str) -> str:
    import shlex

    return shlex.quote(value)


def _installed(gate: Gate) -> str:
    return f"flashinfer-python=={shlex.quote(gate.version)}" if gate.version else "flashinfer-python"

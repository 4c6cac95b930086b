"""Variables and options that engines renamed or dropped, and what took their place.

Kept by hand, from release notes, deprecation messages and help texts. Which release has which name is not said here:
the table of :mod:`gpuwhy.knowledge.switches` says that.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class Change(Struct, frozen=True):
    """What became of a variable or an option.

    ``instead``: option and value that do it now; ``""`` when the behaviour is the default or gone. ``is_same``: both
    spellings do exactly the same, so that one stands for the other in any release. ``is_switch``: it takes no value.
    """

    engine: str
    name: str
    instead: str = ""
    why: str = ""
    is_same: bool = False
    is_switch: bool = False


class Renamed(Struct, frozen=True):
    """One spelling. ``kind`` is ``env`` or ``flag``; ``value`` what a given value becomes."""

    kind: str
    name: str
    value: str


_CHANGES = (
    Change("vllm", "VLLM_ATTENTION_BACKEND", "--attention-backend", "an option in place of the variable", is_same=True),
    Change("vllm", "VLLM_ALL2ALL_BACKEND", "--all2all-backend", "an option in place of the variable", is_same=True),
    Change("vllm", "VLLM_FLASH_ATTN_VERSION", "--attention-config.flash_attn_version", "an option in place of the variable", is_same=True),
    Change("triton", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_PTXAS_PATH", "one assembler for all GPUs", is_same=True),
    Change("vllm", "--disable-log-requests", "--no-enable-log-requests", "requests are not logged by default any more", is_same=True, is_switch=True),
    Change("vllm", "--swap-space", "", "the V1 engine recomputes in place of swapping"),
    Change("vllm", "--use-v2-block-manager", "", "it is the only one"),
    Change("vllm", "--num-scheduler-steps", "", "multi-step scheduling is gone with the V0 engine"),
    Change("vllm", "--num-lookahead-slots", "", "gone with the V0 engine"),
    Change("vllm", "--multi-step-stream-outputs", "", "gone with the V0 engine"),
    Change("vllm", "--scheduler-delay-factor", "", "gone with the V0 engine"),
    Change("vllm", "--preemption-mode", "", "gone with the V0 engine"),
    Change("vllm", "--worker-use-ray", "--distributed-executor-backend ray", "renamed"),
    Change("vllm", "--engine-use-ray", "--distributed-executor-backend ray", "renamed"),
    Change("vllm", "--speculative-model", "--speculative-config", "one JSON option holds all of speculative decoding"),
    Change("vllm", "--num-speculative-tokens", "--speculative-config", "one JSON option holds all of speculative decoding"),
    Change("vllm", "--speculative-draft-tensor-parallel-size", "--speculative-config", "one JSON option holds all of speculative decoding"),
    Change("vllm", "--speculative-max-model-len", "--speculative-config", "one JSON option holds all of speculative decoding"),
    Change("vllm", "--ngram-prompt-lookup-max", "--speculative-config", "one JSON option holds all of speculative decoding"),
    Change("vllm", "--ngram-prompt-lookup-min", "--speculative-config", "one JSON option holds all of speculative decoding"),
    Change("vllm", "--enable-reasoning", "--reasoning-parser", "a reasoning parser switches it on"),
    Change("vllm", "--guided-decoding-backend", "--structured-outputs-config.backend", "renamed", is_same=True),
    Change("vllm", "--disable-mm-preprocessor-cache", "--mm-processor-cache-gb 0", "a size of 0 switches it off", is_same=True, is_switch=True),
    Change("vllm", "--rope-scaling", "--hf-overrides", "part of the overrides of config.json"),
    Change("vllm", "--rope-theta", "--hf-overrides", "part of the overrides of config.json"),
    Change("vllm", "--task", "--runner", "split into --runner and --convert", is_same=True),
    Change("vllm", "--device", "", "the device is detected"),
    Change("vllm", "--enable-prompt-adapter", "", "prompt adapters are gone"),
    Change("vllm", "--max-seq-len-to-capture", "--max-model-len", "graphs have no length limit in the V1 engine"),
    Change("vllm", "--cuda-graph-sizes", "--cudagraph-capture-sizes", "renamed", is_same=True),
    Change("vllm", "--disable-frontend-multiprocessing", "", "gone with the V0 engine"),
    Change("vllm", "--lora-extra-vocab-size", "", "added vocabulary of adapters is gone"),
    Change("vllm", "--tool-parser", "--tool-call-parser", "the name has call in it"),
    Change("vllm", "--tp", "--tensor-parallel-size", "vLLM's short form is -tp"),
    Change("vllm", "--context-length", "--max-model-len", "an option of SGLang"),
    Change("vllm", "--mem-fraction-static", "--gpu-memory-utilization", "an option of SGLang"),
    Change("vllm", "--model-path", "--model", "an option of SGLang"),
    Change("vllm", "--ctx-size", "--max-model-len", "an option of llama.cpp"),
    Change("vllm", "--trust-remote-code=True", "--trust-remote-code", "a switch takes no value"),
    Change("sglang", "--nccl-init-addr", "--dist-init-addr", "renamed"),
    Change("sglang", "--disable-piecewise-cuda-graph", "--cuda-graph-backend-prefill disabled", "renamed", is_same=True, is_switch=True),
    Change("sglang", "--disable-cuda-graph", "--cuda-graph-backend-decode disabled", "renamed", is_same=True, is_switch=True),
    Change("sglang", "--cuda-graph-max-bs", "--cuda-graph-max-bs-decode", "renamed", is_same=True),
    Change("sglang", "--cuda-graph-bs", "--cuda-graph-bs-decode", "renamed", is_same=True),
    Change("sglang", "--enable-ep-moe", "--ep-size", "the size of expert parallelism switches it on"),
    Change("sglang", "--enable-deepep-moe", "--moe-a2a-backend deepep", "renamed", is_same=True, is_switch=True),
    Change("sglang", "--enable-flashinfer-moe", "--moe-runner-backend flashinfer_cutlass", "renamed"),
    Change("sglang", "--enable-flashinfer-cutlass-moe", "--moe-runner-backend flashinfer_cutlass", "renamed", is_same=True, is_switch=True),
    Change("sglang", "--enable-flashinfer-trtllm-moe", "--moe-runner-backend flashinfer_trtllm", "renamed"),
    Change("sglang", "--enable-flashinfer-mla", "--attention-backend flashinfer", "renamed", is_same=True, is_switch=True),
    Change("sglang", "--enable-flashmla", "--attention-backend flashmla", "renamed", is_same=True, is_switch=True),
    Change("sglang", "--enable-mla", "", "MLA is on for the models that have it"),
    Change("sglang", "--disable-mla", "", "MLA is on for the models that have it"),
    Change("sglang", "--disable-flashinfer", "--attention-backend triton", "renamed", is_same=True, is_switch=True),
    Change("sglang", "--disable-flashinfer-sampling", "--sampling-backend pytorch", "renamed", is_same=True, is_switch=True),
    Change("sglang", "--enable-overlap-schedule", "", "on by default; --disable-overlap-schedule switches it off"),
    Change("sglang", "--disable-jump-forward", "", "jump forward is gone"),
    Change("sglang", "--enable-torch-compile-max-bs", "--torch-compile-max-bs", "renamed"),
    Change("sglang", "--max-model-len", "--context-length", "an option of vLLM"),
    Change("sglang", "--gpu-memory-utilization", "--mem-fraction-static", "an option of vLLM"),
    Change("sglang", "--model", "--model-path", "an option of vLLM"),
    Change("sglang", "--tensor-parallel", "--tp-size", "renamed"),
    Change("sglang", "--enforce-eager", "--disable-cuda-graph", "an option of vLLM"),
    Change("sglang", "--max-num-seqs", "--max-running-requests", "an option of vLLM"),
    Change("llama.cpp", "-fa", "--flash-attn on", "the option takes on, off or auto"),
    Change("llama.cpp", "--flash-attn", "--flash-attn on", "the option takes on, off or auto"),
    Change("llama.cpp", "--defrag-thold", "", "the cache needs no defragmentation any more"),
    Change("llama.cpp", "--n-gpu-layers-draft", "-ngld", "renamed"),
    Change("llama.cpp", "--mmproj", "--mmproj", "an option of llama-server and llama-mtmd-cli, not of llama-cli"),
    Change("llama.cpp", "--instruct", "--conversation", "renamed"),
    Change("llama.cpp", "--draft", "--draft-max", "renamed"),
    Change("text-generation-inference", "--max-input-length", "--max-input-tokens", "renamed"),
    Change("lmdeploy", "--cache_max_entry_count", "--cache-max-entry-count", "options are spelled with hyphens"),
    Change("lmdeploy", "--instance_num", "--max-batch-size", "renamed"),
    Change("lmdeploy", "--model-format-awq", "--model-format awq", "renamed"),
)  # fmt: skip
"""documented: release notes, deprecation notices, help texts."""
_NO_VALUE = ("", "set")


def change_of(engine: str, option: str) -> Change | None:
    """What became of an option of an engine; underscores and hyphens are the same. None when nothing is recorded."""
    wanted = _spelled(option)
    return next((change for change in _CHANGES if change.engine == engine and _spelled(change.name) == wanted), None)


def groups() -> tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]:
    """What has two spellings that do exactly the same: package, and both with kind, name and fixed value ("" is any)."""
    return tuple(
        (
            change.engine,
            ((_kind(change.name), change.name, "set" if change.is_switch else ""), (_kind(later), later, fixed)),
        )
        for change in _CHANGES
        if change.is_same
        for later, _, fixed in (change.instead.partition(" "),)
    )


def other_spellings(package: str, name: str, value: str) -> Iterator[Renamed]:
    """What else the variable or option was, or will be, called in other releases of the package.

    >>> next(other_spellings("vllm", "VLLM_ATTENTION_BACKEND", "TRITON_ATTN")).name
    '--attention-backend'
    """
    if package == "sglang" and name.startswith("SGL_"):
        yield Renamed("env", name.replace("SGL_", "SGLANG_", 1), value)
    elif package == "sglang" and name.startswith("SGLANG_"):
        yield Renamed("env", name.replace("SGLANG_", "SGL_", 1), value)
    for change in _CHANGES:
        if change.engine != package or not change.is_same:
            continue
        later, _, fixed = change.instead.partition(" ")
        if name == change.name and (not change.is_switch or value in _NO_VALUE):
            yield Renamed(_kind(later), later, fixed if fixed else "" if change.is_switch else value)
        elif name == later and _is_that(value, fixed, change):
            yield Renamed(_kind(change.name), change.name, "" if change.is_switch else value)


def _is_that(value: str, fixed: str, change: Change) -> bool:
    """Whether a value of the later spelling is what the earlier one speaks of: this one, none, or any."""
    if fixed:
        return value == fixed
    return not change.is_switch or value in _NO_VALUE


def _kind(name: str) -> str:
    return "flag" if name.startswith("-") else "env"


def _spelled(option: str) -> str:
    return option.strip().lower().replace("_", "-")

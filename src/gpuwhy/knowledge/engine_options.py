"""Command-line options that engines dropped or renamed, and what took their place.

Provenance: "documented": release notes, deprecation notices and the options' own help texts. Releases are left out
where they are not certain; the direction of the change is.
"""

from __future__ import annotations

from msgspec import Struct


class OptionChange(Struct, frozen=True):
    """``instead``: option and value that do the same now; ``""`` when the behaviour is the default or gone."""

    engine: str
    name: str
    instead: str = ""
    why: str = ""


_CHANGES = (
    OptionChange("vllm", "--disable-log-requests", "--no-enable-log-requests", "requests are not logged by default any more"),
    OptionChange("vllm", "--swap-space", "", "the V1 engine recomputes in place of swapping"),
    OptionChange("vllm", "--use-v2-block-manager", "", "it is the only one"),
    OptionChange("vllm", "--num-scheduler-steps", "", "multi-step scheduling is gone with the V0 engine"),
    OptionChange("vllm", "--num-lookahead-slots", "", "gone with the V0 engine"),
    OptionChange("vllm", "--multi-step-stream-outputs", "", "gone with the V0 engine"),
    OptionChange("vllm", "--scheduler-delay-factor", "", "gone with the V0 engine"),
    OptionChange("vllm", "--preemption-mode", "", "gone with the V0 engine"),
    OptionChange("vllm", "--worker-use-ray", "--distributed-executor-backend ray", "renamed"),
    OptionChange("vllm", "--engine-use-ray", "--distributed-executor-backend ray", "renamed"),
    OptionChange("vllm", "--speculative-model", "--speculative-config", "one JSON option holds all of speculative decoding"),
    OptionChange("vllm", "--num-speculative-tokens", "--speculative-config", "one JSON option holds all of speculative decoding"),
    OptionChange("vllm", "--speculative-draft-tensor-parallel-size", "--speculative-config", "one JSON option holds all of speculative decoding"),
    OptionChange("vllm", "--speculative-max-model-len", "--speculative-config", "one JSON option holds all of speculative decoding"),
    OptionChange("vllm", "--ngram-prompt-lookup-max", "--speculative-config", "one JSON option holds all of speculative decoding"),
    OptionChange("vllm", "--ngram-prompt-lookup-min", "--speculative-config", "one JSON option holds all of speculative decoding"),
    OptionChange("vllm", "--enable-reasoning", "--reasoning-parser", "a reasoning parser switches it on"),
    OptionChange("vllm", "--guided-decoding-backend", "--structured-outputs-config.backend", "renamed"),
    OptionChange("vllm", "--rope-scaling", "--hf-overrides", "part of the overrides of config.json"),
    OptionChange("vllm", "--rope-theta", "--hf-overrides", "part of the overrides of config.json"),
    OptionChange("vllm", "--task", "--runner", "split into --runner and --convert"),
    OptionChange("vllm", "--device", "", "the device is detected"),
    OptionChange("vllm", "--enable-prompt-adapter", "", "prompt adapters are gone"),
    OptionChange("vllm", "--max-seq-len-to-capture", "--max-model-len", "graphs have no length limit in the V1 engine"),
    OptionChange("vllm", "--cuda-graph-sizes", "--cudagraph-capture-sizes", "renamed"),
    OptionChange("vllm", "--disable-frontend-multiprocessing", "", "gone with the V0 engine"),
    OptionChange("vllm", "--lora-extra-vocab-size", "", "added vocabulary of adapters is gone"),
    OptionChange("vllm", "--tool-parser", "--tool-call-parser", "the name has call in it"),
    OptionChange("vllm", "--tp", "--tensor-parallel-size", "vLLM's short form is -tp"),
    OptionChange("vllm", "--context-length", "--max-model-len", "an option of SGLang"),
    OptionChange("vllm", "--mem-fraction-static", "--gpu-memory-utilization", "an option of SGLang"),
    OptionChange("vllm", "--model-path", "--model", "an option of SGLang"),
    OptionChange("vllm", "--ctx-size", "--max-model-len", "an option of llama.cpp"),
    OptionChange("vllm", "--trust-remote-code=True", "--trust-remote-code", "a switch takes no value"),
    OptionChange("sglang", "--enable-ep-moe", "--ep-size", "the size of expert parallelism switches it on"),
    OptionChange("sglang", "--enable-deepep-moe", "--moe-a2a-backend deepep", "renamed"),
    OptionChange("sglang", "--enable-flashinfer-moe", "--moe-runner-backend flashinfer_cutlass", "renamed"),
    OptionChange("sglang", "--enable-flashinfer-cutlass-moe", "--moe-runner-backend flashinfer_cutlass", "renamed"),
    OptionChange("sglang", "--enable-flashinfer-trtllm-moe", "--moe-runner-backend flashinfer_trtllm", "renamed"),
    OptionChange("sglang", "--enable-flashinfer-mla", "--attention-backend flashinfer", "renamed"),
    OptionChange("sglang", "--enable-flashmla", "--attention-backend flashmla", "renamed"),
    OptionChange("sglang", "--enable-mla", "", "MLA is on for the models that have it"),
    OptionChange("sglang", "--disable-mla", "", "MLA is on for the models that have it"),
    OptionChange("sglang", "--disable-flashinfer", "--attention-backend triton", "renamed"),
    OptionChange("sglang", "--disable-flashinfer-sampling", "--sampling-backend pytorch", "renamed"),
    OptionChange("sglang", "--enable-overlap-schedule", "", "on by default; --disable-overlap-schedule switches it off"),
    OptionChange("sglang", "--disable-jump-forward", "", "jump forward is gone"),
    OptionChange("sglang", "--enable-torch-compile-max-bs", "--torch-compile-max-bs", "renamed"),
    OptionChange("sglang", "--max-model-len", "--context-length", "an option of vLLM"),
    OptionChange("sglang", "--gpu-memory-utilization", "--mem-fraction-static", "an option of vLLM"),
    OptionChange("sglang", "--model", "--model-path", "an option of vLLM"),
    OptionChange("sglang", "--tensor-parallel", "--tp-size", "renamed"),
    OptionChange("sglang", "--enforce-eager", "--disable-cuda-graph", "an option of vLLM"),
    OptionChange("sglang", "--max-num-seqs", "--max-running-requests", "an option of vLLM"),
    OptionChange("llama.cpp", "-fa", "--flash-attn on", "the option takes on, off or auto"),
    OptionChange("llama.cpp", "--flash-attn", "--flash-attn on", "the option takes on, off or auto"),
    OptionChange("llama.cpp", "--defrag-thold", "", "the cache needs no defragmentation any more"),
    OptionChange("llama.cpp", "--n-gpu-layers-draft", "-ngld", "renamed"),
    OptionChange("llama.cpp", "--mmproj", "--mmproj", "an option of llama-server and llama-mtmd-cli, not of llama-cli"),
    OptionChange("llama.cpp", "--instruct", "--conversation", "renamed"),
    OptionChange("llama.cpp", "--draft", "--draft-max", "renamed"),
    OptionChange("text-generation-inference", "--max-input-length", "--max-input-tokens", "renamed"),
    OptionChange("lmdeploy", "--cache_max_entry_count", "--cache-max-entry-count", "options are spelled with hyphens"),
    OptionChange("lmdeploy", "--instance_num", "--max-batch-size", "renamed"),
    OptionChange("lmdeploy", "--model-format-awq", "--model-format awq", "renamed"),
)  # fmt: skip
"""documented: release notes, deprecation notices, help texts."""


def change_of(engine: str, option: str) -> OptionChange | None:
    """What became of an option of an engine; underscores and hyphens are the same. None when nothing is recorded."""
    wanted = _spelled(option)
    return next((change for change in _CHANGES if change.engine == engine and _spelled(change.name) == wanted), None)


def _spelled(option: str) -> str:
    return option.strip().lower().replace("_", "-")

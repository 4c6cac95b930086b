"""Which engine wrote a log: by its banners, the paths of its frames, and the names of its processes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from gpuwhy.logs.patterns import Pattern
from gpuwhy.model.event import Event, Log

MOST_OF_A_REPORT = 400
"""Lines in which a person's words are looked for: reports are short, logs of services have no such words."""
MAX_SAMPLE = 4000
"""Lines looked at from either end of a log when no event gives the engine away."""
_IN_PATH = (
    ("sglang", Pattern(r"[/\\]sglang[/\\]")),
    ("vllm", Pattern(r"[/\\](?:vllm|vllm-\w+|aphrodite)[/\\]|[/\\]bin[/\\]vllm$")),
    ("tensorrt-llm", Pattern(r"[/\\]tensorrt_llm[/\\]")),
    ("lmdeploy", Pattern(r"[/\\]lmdeploy[/\\]")),
    ("text-generation-inference", Pattern(r"[/\\]text_generation_server[/\\]")),
    ("ktransformers", Pattern(r"[/\\]ktransformers[/\\]")),
    ("comfyui", Pattern(r"[/\\]ComfyUI[/\\]")),
    ("llama.cpp", Pattern(r"[/\\]llama_cpp[/\\]")),
)
_IN_TEXT = (
    ("sglang", Pattern(r"server_args=ServerArgs\(|sglang\.launch_server|sglang::|The server is fired up and ready to roll|\bsgl_kernel\b|Scheduler hit an exception|sglang[./]srt|lmsysorg/sglang|--mem-fraction-static")),
    ("vllm", Pattern(r"\bvllm serve\b|vllm\.entrypoints|vLLM API server|EngineCore|\[multiproc_executor\.py|\[gpu_model_runner\.py|\[gpu_worker\.py|VllmWorker|\bvllm\.v1\.|vllm/vllm-openai|\bvLLM Version\b|\bvllm: error:|\bvllm[./]")),
    ("ollama", Pattern(r"\bollama\b|github\.com/ollama|\bsource=(?:server|sched|runner|llama|routes|ggml|gpu|cuda_common)\.go:\d|ml/backend/ggml/ggml/|\bOLLAMA_[A-Z]")),
    ("tensorrt-llm", Pattern(r"\[TensorRT-LLM\](?!.{0,400}(?:flashinfer|nv_internal)/)|\[TRT-LLM\]|\btrtllm-\w+")),
    ("llama.cpp", Pattern(r"\bllama_model_load|\bllama-server\b|\bggml_|\bGGML_|ggml-cuda|llama\.cpp")),
    ("triton-server", Pattern(r"tritonserver|triton-inference-server")),
    ("lmdeploy", Pattern(r"\blmdeploy\b|\bturbomind\b")),
    ("text-generation-inference", Pattern(r"text_generation_(?:launcher|router|server)")),
    ("exllamav2", Pattern(r"\bexllamav2", re.IGNORECASE)),
    ("exllamav3", Pattern(r"\bexllamav3", re.IGNORECASE)),
    ("exllama", Pattern(r"\bexllama(?!v\d)", re.IGNORECASE)),
    ("comfyui", Pattern(r"ComfyUI-Manager|To see the GUI go to: http|\bComfyUI (?:version|startup)")),
)  # fmt: skip
_IN_WORDS = (
    ("sglang", Pattern(r"\bsglang\b", re.IGNORECASE)),
    ("vllm", Pattern(r"\bvllm\b", re.IGNORECASE)),
    ("lmdeploy", Pattern(r"\blmdeploy\b", re.IGNORECASE)),
    ("ktransformers", Pattern(r"\bktransformers\b", re.IGNORECASE)),
    ("comfyui", Pattern(r"\bcomfyui\b", re.IGNORECASE)),
    ("ollama", Pattern(r"\bollama\b", re.IGNORECASE)),
    ("llama.cpp", Pattern(r"\bllama\.cpp\b", re.IGNORECASE)),
)
_IN_PROCESS = (
    ("vllm", Pattern(r"EngineCore|VllmWorker|Worker_TP|APIServer|RayWorkerVllm|WorkerProc")),
    ("sglang", Pattern(r"^(?:TP|DP)\d+|sglang|SGLangWorker")),
    ("ollama", Pattern(r"^ollama")),
)  # fmt: skip


def engine_of(logs: Sequence[Log], events: Iterable[Event] = ()) -> str:
    """``sglang``, ``vllm``, ``llama.cpp`` ...; empty when the logs do not tell."""
    votes: Counter[str] = Counter()
    for event in events:
        if event.kind == "start":
            votes[event.detail.get("engine", "")] += 20
        for block in event.exceptions:
            for frame in block.frames:
                for engine, pattern in _IN_PATH:
                    if pattern.search(frame.path):
                        votes[engine] += 1
    logs = _of_services(logs)
    for log in logs:
        lines = log.lines if len(log.lines) <= 2 * MAX_SAMPLE else log.lines[:MAX_SAMPLE] + log.lines[-MAX_SAMPLE:]
        text = "\n".join(line.raw[:400] for line in lines)
        for engine, pattern in _IN_TEXT:
            votes[engine] += min(5, sum(1 for _ in _first(pattern, text, 5)))
        for name in {line.process.name for line in lines if line.process is not None}:
            for engine, pattern in _IN_PROCESS:
                if pattern.search(name):
                    votes[engine] += 2
    votes.pop("", None)
    best = votes.most_common(1)
    if not best or best[0][1] == 0:
        return _named_by_people(logs)
    if best[0][0] == "llama.cpp" and votes["ollama"]:  # Ollama's runner is llama.cpp under its own name
        return "ollama"
    return best[0][0]


def _of_services(logs: Sequence[Log]) -> Sequence[Log]:
    """The logs without those that are the kernel's alone, which names every process of the host; these where there is no other."""
    own = [log for log in logs if any(line.process is None or line.process.name != "kernel" for line in log.lines)]
    return own or logs


def _named_by_people(logs: Sequence[Log]) -> str:
    """The one engine that the words of a report name, where no line of a program tells; none when they name several."""
    text = "\n".join(line.raw[:400] for log in logs for line in log.lines[:MOST_OF_A_REPORT])
    named = [engine for engine, pattern in _IN_WORDS if pattern.search(text)]
    return named[0] if len(named) == 1 else ""


def _first(pattern: Pattern, text: str, limit: int) -> Iterable[re.Match[str]]:
    for at, found in enumerate(pattern.finditer(text)):
        if at >= limit:
            return
        yield found

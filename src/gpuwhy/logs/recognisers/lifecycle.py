"""Banners: a server begins a life, or says that it is up.

(APIServer pid=7) INFO 08-03 17:45:41 [api_utils.py:345]  ...  version 0.26.0
[2026-11-29 10:04:09] server_args=ServerArgs(model_path=...
[2026-11-29 10:07:39] The server is fired up and ready to roll!
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "server_args=ServerArgs(", "vLLM API server version", "non-default args:", "Initializing a V1 LLM engine", "Initializing an LLM engine", "version ", "Listening on",
    "llama_server", "system_info:", "system info:", "TensorRT-LLM version:", "TensorRT LLM version:", "ready to roll", "Application startup complete", "server is listening on",
    "Uvicorn running on", "Started server process", "inference compute", "Text Generation Inference", "Launching", "build: ",
)  # fmt: skip
_STARTS: tuple[tuple[str, str], ...] = (
    ("sglang", r"server_args=ServerArgs\("),
    ("vllm", r"vLLM API server version|[█▄▀][█▄▀ ]{5,80}.{0,10}version v?\d+\.\d+"),
    ("tensorrt-llm", r"TensorRT[- ]LLM version: ?\d"),
    ("ollama", r"Listening on \[?[\d.:a-f]+\]?:\d+ \(version"),
    ("llama.cpp", r"^(?:main: )?build(?: info)?: (?:b?\d+|\w+) \([0-9a-f]{6,}\)|^build: \d+ \([0-9a-f]+\) with"),
    ("tgi", r"Args \{.{0,200}model_id:"),
)
_READY = Pattern(
    r"fired up and ready to roll|Application startup complete|server is listening on|main: server is listening|llama runner started in|Connected$"
)
_COMPILED = tuple((engine, Pattern(pattern)) for engine, pattern in _STARTS)
LONGEST = 600


def recognise(text: str) -> Recognised | None:
    shown = text[:LONGEST]
    for engine, pattern in _COMPILED:
        if pattern.search(shown):
            return Recognised("start", engine, {"engine": engine})
    if _READY.search(shown):
        return Recognised("ready")
    return None

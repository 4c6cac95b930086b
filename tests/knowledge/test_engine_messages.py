"""Messages that give the engine away."""

from __future__ import annotations

import pytest

from gpuwhy.knowledge.engine_messages import engine_of_message, engine_of_messages


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("ValueError: No available memory for the cache blocks.", "vllm"),
        ("INFO 04-13 12:07:32 gpu_executor.py:94] # GPU blocks: 34032, # CPU blocks: 2048", "vllm"),
        ("Load weight begin. avail mem=78.52 GB", "sglang"),
        ("[TM][ERROR] CUDA runtime error: out of memory", "lmdeploy"),
        ("[TensorRT-LLM][ERROR] Assertion failed", "tensorrt-llm"),
        ("Not enough memory to handle 4145 prefill tokens.", "text-generation-inference"),
        ("Error: llama runner process has terminated: cudaMalloc failed: out of memory", "ollama"),
        ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 1.00 MiB", "llama.cpp"),
        ("torch.OutOfMemoryError: CUDA out of memory.", ""),
    ],
)
def test_messages(text: str, engine: str) -> None:
    assert engine_of_message(text) == engine


def test_the_first_that_tells() -> None:
    assert engine_of_messages(["hello", "Load weight end.", "No available memory for the cache blocks"]) == "sglang"
    assert engine_of_messages([]) == ""

"""Which release of a loader or engine first knows a model architecture.

One architecture goes by several names: the model type of config.json (``qwen3_moe``), the class that vLLM and SGLang
look up (``Qwen3MoeForCausalLM``), the name in a GGUF file (``qwen3moe``). All lead to one row. Releases are those the
projects' release notes and the model cards name as the first; a later patch release may be needed for a variety.
"""

from __future__ import annotations

import re

LONGEST_NAME = 200
_CLASS_ENDING = re.compile(
    r"(?:For(?:CausalLM|ConditionalGeneration|SequenceClassification|TextToSpeech|Multimodal\w{0,20}|Embedding)|LMHeadModel|ChatModel|Model|LM|Config)$"
)
_FIRST: dict[str, dict[str, str]] = {
    "mistral": {"transformers": "4.34.0", "vllm": "0.2.0"},
    "mixtral": {"transformers": "4.36.0", "vllm": "0.2.4"},
    "phi": {"transformers": "4.37.0", "vllm": "0.2.7"},
    "qwen2": {"transformers": "4.37.0", "vllm": "0.3.0"},
    "stablelm": {"transformers": "4.38.0"},
    "gemma": {"transformers": "4.38.0", "vllm": "0.3.2", "ollama": "0.1.26"},
    "starcoder2": {"transformers": "4.39.0", "vllm": "0.3.3", "ollama": "0.1.28"},
    "cohere": {"transformers": "4.39.0", "vllm": "0.4.0"},
    "commandr": {"ollama": "0.1.30"},
    "mamba": {"transformers": "4.39.0"},
    "qwen2moe": {"transformers": "4.40.0", "vllm": "0.4.0"},
    "dbrx": {"transformers": "4.40.0", "vllm": "0.4.0", "ollama": "0.1.32"},
    "jamba": {"transformers": "4.40.0"},
    "olmo": {"transformers": "4.40.0", "vllm": "0.4.1"},
    "phi3": {"transformers": "4.41.0", "vllm": "0.4.1", "ollama": "0.1.33"},
    "gemma2": {"transformers": "4.42.0", "vllm": "0.5.1", "ollama": "0.1.47"},
    "deepseekv2": {"transformers": "4.54.0", "vllm": "0.5.1"},
    "deepseek2": {"ollama": "0.1.45"},
    "mamba2": {"transformers": "4.44.0"},
    "nemotron": {"transformers": "4.44.0"},
    "qwen2vl": {"transformers": "4.45.0", "vllm": "0.6.1"},
    "mllama": {"transformers": "4.45.0", "vllm": "0.6.2", "ollama": "0.4.0"},
    "olmoe": {"transformers": "4.45.0", "vllm": "0.6.2"},
    "granite": {"transformers": "4.45.0"},
    "phimoe": {"transformers": "4.46.0"},
    "glm": {"transformers": "4.46.0"},
    "idefics3": {"transformers": "4.46.0"},
    "olmo2": {"transformers": "4.47.0"},
    "cohere2": {"transformers": "4.48.0"},
    "modernbert": {"transformers": "4.48.0"},
    "qwen25vl": {"transformers": "4.49.0", "vllm": "0.7.2", "ollama": "0.7.0"},
    "gemma3": {"transformers": "4.50.0", "vllm": "0.8.0", "ollama": "0.6.0"},
    "gemma3text": {"transformers": "4.50.0", "vllm": "0.8.0"},
    "mistral3": {"transformers": "4.50.0", "vllm": "0.8.0", "ollama": "0.6.5"},
    "deepseekv3": {"transformers": "4.51.0", "vllm": "0.6.6", "sglang": "0.4.1"},
    "llama4": {"transformers": "4.51.0", "vllm": "0.8.3", "sglang": "0.4.5", "ollama": "0.6.7"},
    "qwen3": {"transformers": "4.51.0", "vllm": "0.8.4", "sglang": "0.4.6.post1", "ollama": "0.6.6"},
    "qwen3moe": {"transformers": "4.51.0", "vllm": "0.8.4", "sglang": "0.4.6.post1", "ollama": "0.6.6"},
    "phi4multimodal": {"transformers": "4.51.0"},
    "phi4mm": {"vllm": "0.7.3"},
    "glm4": {"transformers": "4.52.0", "vllm": "0.8.5"},
    "qwen25omni": {"transformers": "4.52.0", "vllm": "0.8.5"},
    "granitemoehybrid": {"transformers": "4.52.0"},
    "falconh1": {"transformers": "4.53.0"},
    "gemma3n": {"transformers": "4.53.0", "vllm": "0.10.0", "ollama": "0.9.3"},
    "smollm3": {"transformers": "4.53.0"},
    "glm4v": {"transformers": "4.53.0"},
    "dots1": {"transformers": "4.53.0"},
    "glm4moe": {"transformers": "4.54.0", "vllm": "0.10.0"},
    "ernie45": {"transformers": "4.54.0", "vllm": "0.10.0"},
    "ernie45moe": {"transformers": "4.54.0", "vllm": "0.10.0"},
    "exaone4": {"transformers": "4.54.0", "vllm": "0.10.0"},
    "lfm2": {"transformers": "4.54.0"},
    "voxtral": {"transformers": "4.54.0", "vllm": "0.10.0"},
    "gptoss": {"transformers": "4.55.0", "vllm": "0.10.1", "sglang": "0.5.1", "ollama": "0.11.0"},
    "glm4vmoe": {"transformers": "4.55.0"},
    "seedoss": {"transformers": "4.56.0"},
    "apertus": {"transformers": "4.56.0"},
    "embeddinggemma": {"ollama": "0.11.10"},
    "qwen3next": {"transformers": "4.57.0", "vllm": "0.10.2", "sglang": "0.5.3"},
    "qwen3vl": {"transformers": "4.57.0", "vllm": "0.11.0", "sglang": "0.5.3", "ollama": "0.12.7"},
    "qwen3vlmoe": {"transformers": "4.57.0", "vllm": "0.11.0", "sglang": "0.5.3", "ollama": "0.12.7"},
    "qwen3omnimoe": {"transformers": "4.57.0", "vllm": "0.11.0"},
    "olmo3": {"transformers": "4.57.0"},
    "deepseekv32": {"vllm": "0.11.0", "sglang": "0.5.3"},
}  # fmt: skip
"""documented: release notes of the projects and the models' own cards."""


def normalised(architecture: str) -> str:
    """``Qwen3MoeForCausalLM``, ``qwen3_moe`` and ``qwen3moe`` as ``qwen3moe``."""
    name = architecture[:LONGEST_NAME].rpartition(".")[2]
    return re.sub(r"[^a-z0-9]", "", _CLASS_ENDING.sub("", name).lower())


def first_release(component: str, architecture: str) -> str | None:
    """The first release of ``component`` (transformers, vllm, sglang, ollama) that knows it; None when not recorded."""
    return _FIRST.get(normalised(architecture), {}).get(component)

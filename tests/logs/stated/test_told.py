"""GPUs in reporters' sentences: their own machine's, and none that is only compared with."""

from __future__ import annotations

import pytest

from gpuwhy.logs import read_bytes
from gpuwhy.logs.stated_facts import facts_in
from gpuwhy.model.fact import Facts


def facts(text: str) -> Facts:
    return facts_in(read_bytes(text.encode(), "report"))


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        ("Host GPU is a Tesla T4 (7.5)", "T4"),
        ("I am running on 2x RTX 5090, driver 570", "RTX 5090"),
        ("vLLM does not start on my A6000.", "A6000"),
        ("doesn't work on my RTX5090", "RTX 5090"),
        ("It crashes with a CUDA error on an H100 80GB", "H100"),
        ("I have two RTX 3090s and cannot load Qwen3", "RTX 3090"),
        ("Our node has 8 x H200", "H200"),
        ("my 4090 runs out of memory", "RTX 4090"),
        ("The GPU is NVIDIA GeForce RTX 4070 Ti", "RTX 4070 Ti"),
        ("It fails on my H100. The same model works on an A100.", "H100"),
    ],
)
def test_the_reporter_s_own_gpu(text: str, gpu: str) -> None:
    assert facts(text + "\n").value("gpu") == gpu


@pytest.mark.parametrize(
    "text",
    [
        "It works on my 4090",
        "same on H100",
        "this needs to run on an A100 or newer",
        "tested on A100 and H100, both fail",
        "my RTX 3090 fails, my A100 does not start",
        "Does anybody run this on H100?",
        "Please add support for RTX 5090",
        "like on H100 it crashes",
        "I use 4090 tokens",
        "my server is listening on 0.0.0.0:5090",
        "INFO 11-29 10:00:00 [worker.py:12] running on A100",
        "I have an RTX 3090.\nIt hangs on my A100.",
    ],
)
def test_comparisons_several_and_other_numbers_state_nothing(text: str) -> None:
    assert facts(text + "\n").value("gpu") is None


@pytest.mark.parametrize("stronger", ["GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)", "GPU: NVIDIA A100-SXM4-80GB"])
def test_whatever_else_names_the_gpu_outranks_a_mention(stronger: str) -> None:
    assert facts(f"I have an RTX 3090.\n{stronger}\n").value("gpu") == "NVIDIA A100-SXM4-80GB"

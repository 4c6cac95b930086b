"""Facts that logs state, and the traps where they must not."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from gpuwhy.logs import facts_in, open_log, read_bytes, read_report
from gpuwhy.model.evidence import Standing
from gpuwhy.model.fact import Fact, Unknown

DATA = Path(__file__).parents[1] / "data" / "logs"


def stated(text: str) -> dict[str, Any]:
    return {fact.key: fact.value for fact in facts_in(read_report(textwrap.dedent(text)))}


COLLECT_ENV = """\
Collecting environment information...
PyTorch version              : 2.10.0+cu130
CUDA used to build PyTorch   : 13.0
GCC version                  : (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0
Libc version                 : glibc-2.39
Python version               : 3.12.3 (main, Jan 22 2026) [GCC 13.3.0] (64-bit runtime)
CUDA runtime version         : 12.8.93
GPU models and configuration :
GPU 0: NVIDIA GeForce RTX 5090
GPU 1: NVIDIA GeForce RTX 5090

Nvidia driver version        : 580.95.05
[pip3] flashinfer-python==0.6.12
[pip3] triton==3.6.0
vLLM Version                 : 0.26.0
  CUDA Archs: Not Set; ROCm: Disabled
LD_LIBRARY_PATH=/usr/local/cuda/lib64
HF_TOKEN=hf_secretsecret
"""


def test_collect_env() -> None:
    assert stated(COLLECT_ENV) == {
        "torch": "2.10.0+cu130",
        "torch_cuda": "13.0",
        "gcc": "13.3.0",
        "glibc": "2.39",
        "python": "3.12.3",
        "nvcc_path_version": "12.8",  # what PATH gives, not what a JIT resolves
        "gpu": "NVIDIA GeForce RTX 5090",
        "gpus": ["0: NVIDIA GeForce RTX 5090", "1: NVIDIA GeForce RTX 5090"],
        "driver": "580.95.05",
        "packages.flashinfer-python": "0.6.12",
        "packages.triton": "3.6.0",
        "packages.vllm": "0.26.0",
        "env.LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
        "env.HF_TOKEN": "(set)",
    }


def test_evidence_cites_the_line() -> None:
    fact = facts_in(read_report(COLLECT_ENV)).get("torch")
    assert not isinstance(fact, Unknown)
    assert fact.evidence.quote == "PyTorch version              : 2.10.0+cu130"
    assert fact.evidence.place is not None
    assert (fact.evidence.place.line, fact.evidence.standing) == (2, Standing.OBSERVED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "| NVIDIA-SMI 470.182.03   Driver Version: 470.182.03   CUDA Version: 11.7     |",
            {"driver": "470.182.03", "driver_cuda": "11.7"},
        ),
        (
            "|   0  NVIDIA GeForce RTX 5090        On  |   00000000:01:00.0 Off |                  N/A |",
            {"gpu": "NVIDIA GeForce RTX 5090"},
        ),
        (
            "GPU 0: NVIDIA A10 (UUID: GPU-x)\nGPU 1: Tesla T4 (UUID: GPU-y)",
            {"gpus": ["0: NVIDIA A10", "1: Tesla T4"]},
        ),
        (
            "NVIDIA GeForce RTX 5070 Ti with CUDA capability sm_120 is not compatible with the current PyTorch.\nThe current PyTorch install supports CUDA capabilities sm_50 sm_90.",
            {"gpu": "NVIDIA GeForce RTX 5070 Ti", "cc": "12.0", "torch_arch_list": ["sm_50", "sm_90"]},
        ),
        ("    Found GPU0 NVIDIA GeForce GTX 1080 Ti which is of cuda capability 6.1.", {"gpu": "NVIDIA GeForce GTX 1080 Ti", "cc": "6.1"}),
        ("ValueError: awq is not supported. Minimum capability: 75. Current capability: 70.", {"cc": "7.0"}),
        ("requires device with capability > (9, 0) but your GPU has capability (8, 6) (too old)", {"cc": "8.6"}),
        ("less than CUDA device capability: 121", {"cc": "12.1"}),
        ("  Device 0: NVIDIA GeForce RTX 3080, compute capability 8.6, VMM: yes", {"gpu": "NVIDIA GeForce RTX 3080", "cc": "8.6"}),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12080).", {"driver_cuda": "12.8"}),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  520.56.06  Thu Oct  6 2022\nGCC version:  gcc version 12.2.0 (Debian)", {"driver": "520.56.06"}),
        ("Cuda compilation tools, release 12.8, V12.8.93", {"nvcc_path_version": "12.8"}),
        (
            "The detected CUDA version (12.9) mismatches the version that was used to compile\nPyTorch (11.8). Please make sure to use the same CUDA versions.",
            {"cuda_toolkit": "12.9", "torch_cuda": "11.8"},
        ),
        ("RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist", {"cuda_toolkit": None}),
        (
            "/usr/local/cuda/bin/nvcc -c x.cu -gencode=arch=compute_120a,code=sm_120a -gencode=arch=compute_90,code=sm_90",
            {"cuda_home": "/usr/local/cuda", "jit_targets": ["12.0a", "9.0"]},
        ),
        ("/tmp/.cache/flashinfer/0.6.6/120a/generated/x.cu:100: oops", {"packages.flashinfer-python": "0.6.6"}),
        ("INFO 04-19 17:25:10 api_server.py:149] vLLM API server version 0.4.0.post1", {"packages.vllm": "0.4.0.post1"}),
        (
            "(APIServer pid=3994) INFO 08-03 17:45:41 [api_utils.py:345]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.26.0",
            {"packages.vllm": "0.26.0"},
        ),
        ("torch==2.9.1+cu128\nvllm==0.14.1", {"torch": "2.9.1+cu128", "torch_cuda": "12.8", "packages.vllm": "0.14.1"}),
        (
            "Package            Version\n------------------ ----------\nflashinfer-python  0.6.12\nsgl_kernel         0.3.1\n",
            {"packages.flashinfer-python": "0.6.12", "packages.sgl-kernel": "0.3.1"},
        ),
        ("$ pip show torch\nName: torch\nVersion: 2.3.1\nSummary: x", {"torch": "2.3.1"}),
        ("- vLLM version: 0.11.0\n- GPU: 2x RTX 5090\n- Driver: 580.95.05", {"packages.vllm": "0.11.0", "gpu": "RTX 5090", "driver": "580.95.05"}),
        ("$ export CUDA_HOME=/usr/local/cuda-12.8", {"env.CUDA_HOME": "/usr/local/cuda-12.8"}),
        ("export TORCH_CUDA_ARCH_LIST=\"9.0 12.0\"", {"env.TORCH_CUDA_ARCH_LIST": "9.0 12.0"}),
        (
            "$ CUDA_VISIBLE_DEVICES=3 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2",
            {
                "env.CUDA_VISIBLE_DEVICES": "3", "command": "CUDA_VISIBLE_DEVICES=3 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2",
                "server_args.model": "Qwen/Qwen3-8B", "server_args.tensor_parallel_size": 2,
            },
        ),
        (
            "$ docker run --gpus all -e NCCL_DEBUG=INFO --env=VLLM_USE_V1=0 vllm/vllm-openai:latest",
            {
                "env.NCCL_DEBUG": "INFO", "env.VLLM_USE_V1": "0", "command": "docker run --gpus all -e NCCL_DEBUG=INFO --env=VLLM_USE_V1=0 vllm/vllm-openai:latest",
                "container.gpus": "all", "container.image": "vllm/vllm-openai:latest", "container.in_container": True,
            },
        ),
        ("[trainer3]:worker-3:1958:1958 [3] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth2", {"env.NCCL_SOCKET_IFNAME": "eth2"}),
        (
            "INFO 09-06 23:24:44 [utils.py:328] non-default args: {'model': 'q', 'enforce_eager': True, 'quant': <Q.X: 1>}",
            {},
        ),
        (
            "INFO 09-06 23:24:44 [utils.py:328] non-default args: {'model': 'q', 'enforce_eager': True}",
            {"server_args.model": "q", "server_args.enforce_eager": True},
        ),
        ('  File "/opt/venv/lib/python3.12/site-packages/vllm/x.py", line 3, in f', {"python": "3.12"}),
    ],
)  # fmt: skip
def test_stated(text: str, expected: dict[str, Any]) -> None:
    assert stated(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
        "FlashInfer requires GPUs with sm75 or higher",
        "please use at least NVCC 12.9 for the best DeepGEMM performance",
        "Triton only supports devices of CUDA Capability >= 7.0",
        "configurations:  12.6 following instructions at",
        "# again with NCCL_P2P_DISABLE=1 NCCL_CUMEM_ENABLE=0",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "Please set a HF_TOKEN to enable higher rate limits",
        "export CUDA_HOME=$(dirname $(which nvcc))",
        "a = b",
        "self.x=3",
        "you could try vllm serve with another backend",
    ],
)
def test_not_stated(text: str) -> None:
    assert stated(text) == {}


def test_contradictions_stay_unknown() -> None:
    facts = facts_in(read_report("torch==2.9.1+cu128\ntorch==2.8.0+cu128\n"))
    assert "torch" not in facts
    why = facts.get("torch")
    assert isinstance(why, Unknown)
    assert "2.9.1+cu128 and 2.8.0+cu128" in why.why
    assert facts.value("torch_cuda") == "12.8"


def test_a_tool_outranks_a_person() -> None:
    assert stated("- PyTorch: 2.5.0\nPyTorch version              : 2.9.1+cu128\n")["torch"] == "2.9.1+cu128"


def test_the_seed() -> None:
    facts = facts_in(open_log(DATA / "sglang.log"))
    assert facts.value("server_args.attention_backend") == "triton"
    assert facts.value("server_args.sampling_backend", "absent") is None
    assert facts.value("server_args.tp_size") == 8
    assert facts.value("python") == "3.12"
    assert facts_in(open_log(DATA / "seed_crash_fake128.log")).value("cc") == "12.0"


@pytest.mark.parametrize("line", ["export HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567", "HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"])  # fmt: skip
def test_a_secret_is_neither_stated_nor_quoted(line: str) -> None:
    facts = facts_in(read_bytes(f"{line}\nCUDA_HOME=/usr/local/cuda\n".encode(), "env.txt"))
    fact = facts.get("env.HF_TOKEN")
    assert isinstance(fact, Fact)
    assert fact.value == "(set)"
    assert "hf_AbC" not in fact.evidence.quote
    assert "HF_TOKEN=<redacted" in fact.evidence.quote

"""Messages that several causes share: the separating fact decides, and without it nothing is called proven.

One group for each message; in it, facts or surroundings that lead to different answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty

Judge = Callable[..., Judgement]
Outcome = tuple[str, dict[str, Any], str]
"""Report, facts, the cause that leads."""

GATE = "RuntimeError: FlashInfer requires GPUs with sm75 or higher\n"
GATE_WARNED = "Failed to get device capability: SM 12.x requires CUDA >= 12.9.\n" + GATE
NO_IMAGE = "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device\n"
SGL_KERNEL = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sgl_kernel/elementwise.py", line 20, in rmsnorm
    torch.ops.sgl_kernel.rmsnorm.default(out, input, weight, eps, enable_pdl)
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 23.52 GiB of which 410.00 MiB is free. Including non-PyTorch memory, this process has 23.10 GiB memory in use.\n"
OOM_OTHERS = OOM.replace("this process has 23.10 GiB", "this process has 2.10 GiB")
LOADING = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 2620, in load_model
    self.model = model_loader.load_model(
  File "/opt/venv/lib/python3.12/site-packages/vllm/model_executor/layers/linear.py", line 174, in create_weights
    weight = Parameter(torch.empty(sum(output_partition_sizes),
"""
CAPTURE = """\
[2026-11-29 10:06:02 TP0] KV Cache is allocated. #tokens: 98304, KV size: 6.43 GB
[2026-11-29 10:06:03 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=0.70 GB
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_executor/cuda_graph_runner.py", line 350, in __init__
    self.capture()
"""
WATCHDOG = "[rank{rank}]:[E1129 10:00:00.000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"


def watchdog(*ranks: tuple[int, str, int]) -> str:
    return "".join(
        WATCHDOG.format(rank=rank, seq=seq, op=op, numel=numel) for rank, (seq, op, numel) in enumerate(ranks)
    )


SHARED: dict[str, list[Outcome]] = {
    "requires GPUs with sm75 or higher": [
        (GATE_WARNED, {"cc": "12.0", "cuda_toolkit": "12.8", "packages.flashinfer-python": "0.6.12"}, "toolkit-too-old-for-arch"),
        (GATE_WARNED, {"cc": "12.0", "cuda_toolkit": "12.8", "packages.flashinfer-python": "0.6.12", "other_toolkits./usr/local/cuda-12.9": "12.9"}, "toolkit-path-wrong"),
        (GATE, {"cc": "7.0", "packages.flashinfer-python": "0.6.12"}, "gpu-too-old"),
    ],
    "Unsupported gpu architecture": [
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120'\n", {"cc": "12.0", "cuda_toolkit": "12.4"}, "toolkit-too-old-for-arch"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120'\n", {"cc": "8.6", "cuda_toolkit": "12.4"}, "toolkit-too-old-for-library"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120'\n", {"cc": "8.6", "cuda_toolkit": "12.4", "env.TORCH_CUDA_ARCH_LIST": "8.6;12.0"}, "arch-list-override"),
    ],
    "no kernel image is available": [
        (NO_IMAGE, {"cc": "12.0", "torch": "2.6.0+cu124", "torch_arch_list": ["sm_50", "sm_80", "sm_86", "sm_90"]}, "torch-lacks-arch"),
        (SGL_KERNEL, {"cc": "8.6", "torch": "2.8.0+cu128", "torch_arch_list": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"], "binary_archs.sgl-kernel": ["sm_90", "sm_100"]}, "binary-lacks-arch"),
    ],
    "nvcc not found": [
        ("RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist\n", {"cuda_toolkit": None, "other_toolkits": None}, "toolkit-missing"),
        ("RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist\n", {"other_toolkits./opt/cuda-12.8": "12.8"}, "toolkit-path-wrong"),
    ],
    "detected CUDA version mismatches": [
        ("RuntimeError: \nThe detected CUDA version (13.0) mismatches the version that was used to compile\nPyTorch (12.8). Please make sure to use the same CUDA versions.\n", {"cuda_toolkit": "13.0", "other_toolkits./usr/local/cuda-12.8": "12.8"}, "toolkit-path-wrong"),
        ("RuntimeError: \nThe detected CUDA version (13.0) mismatches the version that was used to compile\nPyTorch (12.8). Please make sure to use the same CUDA versions.\n", {"cuda_toolkit": "13.0", "other_toolkits": None}, "toolkit-torch-mismatch"),
    ],
    "No space left on device": [
        ("RuntimeError: unable to write to file </torch_12_34>: No space left on device (28)\n", {}, "shm-too-small"),
        ("OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/models--x/blobs/abc.incomplete'\n", {}, "disk-full"),
    ],
    "Bus error": [
        ("Bus error (core dumped)\n", {"shm_bytes": 67108864, "container.in_container": True}, "shm-too-small"),
    ],
    "CUDA out of memory": [
        (LOADING + OOM, {}, "gpu-oom-weights"),
        (CAPTURE + OOM, {}, "gpu-oom-graph-or-activation"),
        (OOM_OTHERS, {"gpu_processes": ["0: python3 pid 991 20480 MiB", "0: vllm (this service)"]}, "gpu-memory-taken"),
        ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n", {}, "gpu-oom-kv-cache"),
    ],
    "Killed": [
        ("Loading safetensors checkpoint shards:  40% Completed | 4/10\nKilled\n", {"kernel_log": ["Out of memory: Killed process 4711 (python3) total-vm:900000000kB, anon-rss:500000000kB"]}, "host-oom-kill"),
        ("[3/40] /usr/local/cuda/bin/nvcc -c flash_fwd.cu -o flash_fwd.o\nKilled\nninja: build stopped: subcommand failed.\n", {}, "jit-build-killed"),
    ],
    "Capture cuda graph failed": [
        ("Exception: Capture cuda graph failed: operation not permitted when stream is capturing\nRuntimeError: CUDA error: operation not permitted when stream is capturing: unjoined work in dispatch\n", {"command": "python -m sglang.launch_server --moe-a2a-backend deepep --deepep-mode normal"}, "backend-combination-unsupported"),
        ("Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.52 GiB of which 10.00 MiB is free.\n", {}, "gpu-oom-graph-or-activation"),
    ],
    "custom_all_reduce invalid argument": [
        ("Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:368 'invalid argument'\n", {"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, "custom-allreduce"),
    ],
    "system not yet initialized (802)": [
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized\nnv-fabricmanager: fabric manager NVIDIA GPU driver interface version 570.86.15 don't match with driver version 570.124.06. Please update with matching NVIDIA driver package.\n", {"nvswitch": True}, "fabric-manager-version"),
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized\n", {"nvswitch": True, "unit_state.nvidia-fabricmanager.service": "inactive"}, "fabric-manager-state"),
    ],
    "error 803": [
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination\n", {"driver": "580.82.07", "libcuda_path": "/usr/local/cuda/compat/libcuda.so.1"}, "libcuda-shadowed"),
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination\n", {"driver": "570.86.15", "driver_library": "580.82.07"}, "driver-library-mismatch"),
    ],
    "error 999": [
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 999: unknown error\n", {"nvidia_smi.host": "ok", "cuinit.host": "999"}, "driver-uvm-broken"),
        ("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment\nFailed to initialize NVML: Unknown Error\n", {"container.in_container": True, "nvidia_smi.host": "ok", "cuinit.host": "0"}, "container-devices-lost"),
    ],
    "Found no NVIDIA driver": [
        ("RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx\n", {"container.in_container": True, "libcuda_path": None, "nvidia_smi.host": "ok"}, "container-gpu-not-passed"),
    ],
    "No CUDA GPUs are available": [
        ("RuntimeError: No CUDA GPUs are available\n", {"env.CUDA_VISIBLE_DEVICES": "", "nvidia_smi.host": "ok"}, "no-device-visible"),
        ("RuntimeError: No CUDA GPUs are available\n", {"container.in_container": True, "libcuda_path": None, "container.gpus": None, "nvidia_smi.host": "ok"}, "container-gpu-not-passed"),
    ],
    "EOFError": [
        ("The repository for /models/x contains custom code which must be executed to correctly load the model. Do you wish to run the custom code? [y/N] Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    main()\nEOFError: EOF when reading a line\n", {}, "trust-remote-code"),
    ],
    "Address already in use": [
        ("OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n", {}, "port-in-use"),
    ],
    "safetensors header": [
        ("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge\n", {"files./models/x/model-00001-of-00004.safetensors": "135 bytes, begins with: version https://git-lfs.github.com/spec/v1"}, "weights-missing-or-corrupt"),
    ],
    "is not divisible by": [
        ("ValueError: Weight input_size_per_partition = 1376 is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.\n", {"command": "vllm serve m --tensor-parallel-size 8", "model.intermediate_size": 11008}, "parallel-size-invalid"),
        ("ValueError: Weight input_size_per_partition = 10944 is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.\n", {"command": "vllm serve m --tensor-parallel-size 1"}, "quantization-unsupported"),
    ],
    "401": [
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url https://huggingface.co/meta-llama/Llama-3.1-8B/resolve/main/config.json.\n", {"env.HF_TOKEN": None}, "gated-or-auth"),
    ],
    "unrecognized arguments": [
        ("vllm: error: unrecognized arguments: serve Qwen/Qwen3-8B\n", {}, "bad-argument"),
    ],
    "illegal instruction": [
        ("torch.AcceleratorError: CUDA error: an illegal instruction was encountered\n", {}, "kernel-illegal-instruction"),
    ],
    "GSP timeout": [
        ("[ 1000.000001] NVRM: Xid (PCI:0000:41:00): 119, pid=991, name=python3, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL)\n", {}, "gpu-xid-other"),
        ("[  990.000001] NVRM: Xid (PCI:0000:41:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)\n[ 1000.000001] NVRM: Xid (PCI:0000:41:00): 119, pid=991, name=python3, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL)\n", {}, "nvlink-fault"),
    ],
    "collective timeout": [
        (watchdog((2001, "ALLREDUCE", 4096), (2001, "ALLGATHER", 512)), {}, "collective-mismatch"),
        ("NCCL INFO comm 0x1 rank 0 nranks 2 - Init COMPLETE\n" + watchdog((1, "ALLREDUCE", 1), (1, "ALLREDUCE", 1)), {"iommu": "translated", "pci_acs": "ReqRedir+ CmpltRedir+ on 0000:40:01.1"}, "p2p-iommu"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("report", "facts", "cause"), [outcome for group in SHARED.values() for outcome in group])
def test_the_separating_fact_decides(judge_report: Judge, report: str, facts: dict[str, Any], cause: str) -> None:
    judgement = judge_report(report, facts)
    assert judgement.findings, "nothing found"
    assert judgement.findings[0].cause == cause, [(each.cause, each.certainty.value) for each in judgement.findings]


@pytest.mark.parametrize(
    "message", [name for name, group in SHARED.items() if len({each[0] for each in group}) < len(group)]
)
def test_the_message_alone_proves_nothing(judge_report: Judge, message: str) -> None:
    texts = [report for report, _, _ in SHARED[message]]
    for text in {each for each in texts if texts.count(each) > 1}:
        found = judge_report(text).findings
        assert found
        assert found[0].certainty is not Certainty.PROVEN
        assert found[0].missing

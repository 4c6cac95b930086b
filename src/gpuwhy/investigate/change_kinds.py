"""What a difference between two hosts can cause: facts by kind, the most dangerous kinds first, with causes of the catalogue."""

from __future__ import annotations

import re

import msgspec


class ChangeKind(msgspec.Struct, frozen=True):
    """A kind of fact. ``causes``: ids of the catalogue that a change of it can bring about, the usual ones first.

    ``is_outcome`` marks what follows from a failure rather than leading to it (exit status, restarts, free memory).
    """

    name: str
    keys: re.Pattern[str]
    causes: tuple[str, ...] = ()
    is_outcome: bool = False


def _kind(name: str, keys: str, causes: str = "", is_outcome: bool = False) -> ChangeKind:
    return ChangeKind(name, re.compile(rf"(?:{keys})\Z"), tuple(causes.split()), is_outcome)


KINDS = (
    _kind("GPU", r"gpus|gpu|cc|gpu_errors|pci_gpus|nvswitch", "gpu-lost no-device-visible gpu-too-old arch-unsupported-by-library torch-lacks-arch toolkit-too-old-for-arch"),
    _kind("driver", r"driver|driver_cuda", "driver-library-mismatch driver-too-old ptx-newer-than-driver fabric-manager-version driver-uvm-broken"),
    _kind("driver on disk", r"driver_installed|driver_library|libcuda_path", "driver-library-mismatch libcuda-shadowed fabric-manager-version"),
    _kind("nvidia-smi", r"nvidia_smi\..*", "driver-library-mismatch no-device-visible container-devices-lost"),
    _kind("toolkit chosen", r"toolkit_resolved\..*|cuda_toolkit|cuda_home|nvcc_path", "toolkit-too-old-for-arch toolkit-missing toolkit-path-wrong toolkit-torch-mismatch toolkit-too-old-for-library ptx-newer-than-driver"),
    _kind("assembler", r"assemblers\..*", "ptxas-too-old-for-arch ptx-newer-than-driver"),
    _kind("torch", r"torch|torch_cuda|torch_arch_list|packages\.torch", "abi-mismatch torch-lacks-arch toolkit-torch-mismatch cuda-major-mismatch driver-too-old"),
    _kind("CUDA library", r"packages\.nvidia-.*", "cuda-major-mismatch library-missing nccl-version package-conflict"),
    _kind("engine or kernel library", r"packages\.(?:flashinfer|vllm|sglang|sgl-|triton|flash-attn|flash_attn|deep|xformers|tensorrt|transformers|torch).*", "abi-mismatch api-drift arch-unsupported-by-library package-conflict jit-cache-stale backend-combination-unsupported"),
    _kind("architecture variable", r"env\.\w*ARCH\w*", "arch-list-override build-target-wrong"),
    _kind("device variable", r"env\.\w*VISIBLE_DEVICES|env\.CUDA_DEVICE_ORDER", "no-device-visible arch-unsupported-by-library"),
    _kind("toolkit variable", r"env\.(?:CUDA_HOME|CUDA_PATH|CUDACXX|PATH|FLASHINFER_NVCC|\w*NVCC\w*)", "toolkit-path-wrong toolkit-missing toolkit-too-old-for-arch"),
    _kind("loader variable", r"env\.(?:LD_\w+|PYTHONPATH|VIRTUAL_ENV|PYTHONHOME)", "libcuda-shadowed library-missing cuda-major-mismatch import-shadowed"),
    _kind("network variable", r"env\.(?:NCCL|GLOO|UCX|FI|MASTER|NVSHMEM)_\w+|net_interfaces|firewall", "bootstrap-network p2p-iommu rdma-link-fault"),
    _kind("start command", r"command|service\.exec_start", "bad-argument backend-combination-unsupported parallel-size-invalid gpu-oom-kv-cache context-too-long"),
    _kind("unit file", r"unit_file\..*|service\.(?:fragment|drop_ins|environment_files|user|unit|python|is_\w+)", "bad-argument toolkit-path-wrong ulimit"),
    _kind("memory limit", r"memory_limit_bytes|mem_total_bytes|swap_total_bytes|numa_nodes", "host-oom-kill jit-build-killed"),
    _kind("shared memory", r"shm_bytes|(?:df|mount|fs)\./dev/shm", "shm-too-small"),
    _kind("limit", r"memlock|ulimit\..*", "ulimit"),
    _kind("JIT cache", r"jit_cache\..*|files\..*", "jit-cache-stale library-corrupt cache-dir-unusable weights-missing-or-corrupt"),
    _kind("room on disk", r"df\..*", "disk-full"),
    _kind("mount", r"mount\..*|fs\..*", "cache-dir-unusable disk-full"),
    _kind("container", r"container\..*", "container-gpu-not-passed container-devices-lost libcuda-shadowed"),
    _kind("fabric manager", r"unit_state\.nvidia-.*", "fabric-manager-state fabric-manager-version"),
    _kind("kernel", r"kernel_release|kernel_cmdline|iommu|pci_acs|hypervisor", "p2p-iommu driver-uvm-broken host-kernel-bug"),
    _kind("system", r"glibc|os|gcc|ninja_path|python", "libc-too-old host-compiler python-headers-missing abi-mismatch"),
    _kind("toolkit on the host", r"toolkits?(?:\..*)?|other_toolkits\..*", "toolkit-missing toolkit-incomplete"),
    _kind("access variable", r"env\.(?:HF|HUGGING|MODELSCOPE|https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY)\w*", "gated-or-auth download-blocked weights-missing-or-corrupt"),
    _kind("cache variable", r"env\.(?:\w*CACHE\w*|\w*WORKSPACE\w*|\w*DIR|HOME|TMPDIR|XDG_\w+)", "cache-dir-unusable disk-full"),
    _kind("package", r"packages\..*|packages_shadowed", "package-conflict api-drift import-shadowed"),
    _kind("variable", r"env\..*"),
    _kind("holders of GPU memory", r"gpu_processes", "gpu-memory-taken", is_outcome=True),
    _kind("kills for lack of memory", r"memory_limit_kills", "host-oom-kill", is_outcome=True),
    _kind("outcome", r"service\..*|unit_state\..*|mem_available_bytes", is_outcome=True),
    _kind("other", r".*"),
)  # fmt: skip
"""In the order of how much a change of them usually matters. The first whose keys match is a fact's kind."""


def kind_of(key: str) -> ChangeKind:
    """The kind of the fact under ``key``."""
    return next(kind for kind in KINDS if kind.keys.match(key.replace("\n", " ")))

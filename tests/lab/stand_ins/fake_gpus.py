"""STAND-IN for GPUs: a CPU build of torch reports devices that are not there.

`FAKE_GPUS` names them ("8x12.0", or "4x9.0,4x12.0" for a mixed host), `FAKE_TORCH_CUDA` the CUDA release torch claims to
be built for ("12.8"). Without `FAKE_GPUS` nothing is changed. Everything that asks torch, FlashInfer among it, is real.

Installed into the seed environment with a one-line `.pth` file: `import fake_gpus`.
"""

import importlib.abc
import importlib.machinery
import os
import sys

NAME = "NVIDIA RTX PRO 6000 Blackwell Server Edition"


def capabilities(text):
    """`"4x9.0,4x12.0"` as one `(major, minor)` for each device."""
    found = []
    for group in text.split(","):
        count, _, capability = group.partition("x")
        major, _, minor = capability.partition(".")
        found += [(int(major), int(minor))] * int(count)
    return found


class DeviceProperties:
    """What `torch.cuda.get_device_properties` returns, as far as FlashInfer reads it at import."""

    def __init__(self, index, capability):
        self.name = NAME
        self.major, self.minor = capability
        self.total_memory = 96 << 30
        self.multi_processor_count = 188
        self.is_integrated = False
        self.warp_size = 32
        self.L2_cache_size = 128 << 20
        self.max_threads_per_multi_processor = 1536
        self.shared_memory_per_block_optin = 101376
        self.uuid = f"GPU-00000000-0000-0000-0000-{index:012d}"


def pretend(torch):
    devices = capabilities(os.environ["FAKE_GPUS"])

    def index(device):
        if device is None:
            return 0
        return device if isinstance(device, int) else torch.device(device).index or 0

    torch.cuda.is_available = lambda: bool(devices)
    torch.cuda.device_count = lambda: len(devices)
    torch.cuda.get_device_capability = lambda device=None: devices[index(device)]
    torch.cuda.get_device_name = lambda device=None: NAME
    torch.cuda.get_device_properties = lambda device=None: DeviceProperties(index(device), devices[index(device)])
    torch.cuda.current_device = lambda: 0
    torch.cuda.is_initialized = lambda: False
    if os.environ.get("FAKE_TORCH_CUDA"):
        torch.version.cuda = os.environ["FAKE_TORCH_CUDA"]


class AfterTorch(importlib.abc.MetaPathFinder):
    """Lets torch import itself as usual, then changes its answers."""

    def find_spec(self, fullname, path, target=None):
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_then_pretend(module):
            execute(module)
            pretend(module)

        spec.loader.exec_module = execute_then_pretend
        return spec


if os.environ.get("FAKE_GPUS"):
    sys.meta_path.insert(0, AfterTorch())

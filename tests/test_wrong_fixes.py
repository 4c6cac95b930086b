"""When a proposed remedy is one that a case calls useless."""

from __future__ import annotations

import pytest
from scripts.wrong_fixes import is_useless

from gpuwhy.model.remedy import Remedy


def remedy(kind: str, name: str, value: str = "") -> Remedy:
    return Remedy(kind=kind, name=name, value=value, summary="")


@pytest.mark.parametrize(
    ("proposed", "fix"),
    [
        (remedy("package", "sgl-kernel", "newer"), "pip install --upgrade sgl_kernel (installs the same wheel again)"),
        (remedy("flag", "--gpu-memory-utilization", "0.8"), "lowering --gpu-memory-utilization"),
        (remedy("flag", "--attention-backend", "flash_attn"), "--attention-backend flash_attn (the sampler remains)"),
        (remedy("env", "TORCH_CUDA_ARCH_LIST", "12.0"), "setting TORCH_CUDA_ARCH_LIST=12.0 at run time (no effect)"),
        (remedy("toolkit", "cuda", ">=12.9"), "changing the CUDA toolkit"),
        (remedy("driver", "nvidia", "reinstall"), "reinstalling the driver"),
        (remedy("service", "nvidia-fabricmanager", "restart"), "restarting Fabric Manager again"),
        (remedy("service", "host", "reboot"), "reboot (comes back)"),
    ],
)
def test_what_the_case_names_is_useless(proposed: Remedy, fix: str) -> None:
    assert is_useless(proposed, [fix])


@pytest.mark.parametrize(
    ("proposed", "fix"),
    [
        (
            remedy("package", "sgl-kernel", "rebuild"),
            "pip install --upgrade sgl_kernel (installs the same wheel again)",
        ),
        (remedy("flag", "--gpu-memory-utilization", "higher"), "lowering --gpu-memory-utilization"),
        (remedy("flag", "--attention-backend", "TRITON_ATTN"), "--attention-backend flash_attn (the sampler remains)"),
        (remedy("env", "TORCH_CUDA_ARCH_LIST", "unset"), "setting TORCH_CUDA_ARCH_LIST=12.0 at run time (no effect)"),
        (remedy("env", "NCCL_P2P_DISABLE", "1"), "NCCL_P2P_DISABLE=1 alone (a later stage still uses peer access)"),
        (remedy("package", "torch", "==2.9.1"), "installing another transformers"),
        (remedy("driver", "nvidia", ">=570"), "reinstalling the driver"),
        (remedy("flag", "--max-model-len", "lower"), "--max-model-length"),
    ],
)
def test_another_value_another_name_or_a_half_measure_is_not(proposed: Remedy, fix: str) -> None:
    assert not is_useless(proposed, [fix])


def test_help_for_a_while_is_not_useless_where_the_remedy_says_so() -> None:
    honest = Remedy(kind="service", name="host", value="reboot", summary="it clears the state, not what caused it")
    assert not is_useless(honest, ["reboot (comes back)"])

"""Experts in MXFP4 are padded to what the kernel of the GPU wants."""

from __future__ import annotations

import pytest
from tests.fit.models import estimated, model_of
from tests.fit.test_well_known_models import MODELS

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.padding import Alignment, mxfp4_alignment
from gpuwhy.fit.parallel import Parallel

SMALL = MODELS["gpt-oss-20b"][0]


@pytest.mark.parametrize(
    ("engine", "capability", "wanted"),
    [
        ("vllm 0.33.0", 9.0, (64, 1)),
        ("vllm 0.10.2", 9.0, (128, 256)),
        ("vllm 0.33.0", 12.0, (128, 256)),
        ("vllm 0.33.0", 8.9, (128, 256)),
        ("vllm 0.11.0", 10.0, (256, 256)),
        ("vllm 0.33.0", 10.0, (128, 256)),
        ("sglang 0.5.23", 10.0, (128, 128)),
        ("sglang 0.5.9", 10.0, (256, 256)),
        ("sglang 0.5.23", 9.0, (64, 1)),
    ],
)
def test_the_kernel_that_is_chosen_by_default_says_what_to_pad_to(engine: str, capability: float, wanted: tuple[int, int]) -> None:  # fmt: skip
    name, _, version = engine.partition(" ")
    assert mxfp4_alignment(name, version, capability, True) == Alignment(*wanted)


def test_the_share_of_one_rank_is_padded() -> None:
    """2880 is 22.5 x 128 and 45 x 64: on two ranks 1440 becomes 1536 or 1472."""
    shape = read_architecture(SMALL)
    marlin, triton = Alignment(128, 256), Alignment(64, 1)
    assert marlin.share(shape, Parallel()) == pytest.approx(2944 / 2880 * 3072 / 2880 - 1)
    assert triton.share(shape, Parallel()) == 0
    on_two = Parallel(tensor=2, attention=2, expert_ranks=2)
    assert triton.share(shape, on_two) == pytest.approx(1472 / 1440 - 1)
    by_experts = Parallel(tensor=2, attention=2, expert_ranks=2, experts=2)
    assert triton.share(shape, by_experts) == 0


def test_gpt_oss_takes_what_vllm_says() -> None:
    """ "Model loading took 13.72 GiB", with Marlin."""
    found = estimated(model_of(SMALL), "vllm 0.10.2", "--max-model-len 8192", gpu="RTX 5090")
    assert found.gib_of("weights").expected == pytest.approx(13.72, rel=0.005)


def test_widths_that_are_whole_multiples_need_no_padding() -> None:
    shape = read_architecture({**SMALL, "hidden_size": 4096, "intermediate_size": 2048})
    assert Alignment(256, 256).share(shape, Parallel()) == 0

"""Who holds memory on the GPUs, as the collector and people write it."""

from __future__ import annotations

import pytest

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.gpu_memory import GpuHolders, holder, size_in, size_of


def holders(value: object) -> GpuHolders:
    view = GpuHolders.of(Facts({"gpu_processes": Fact("gpu_processes", value, Evidence("given"))}))
    assert isinstance(view, GpuHolders)
    return view


@pytest.mark.parametrize(
    ("text", "gpu", "pid", "mebibytes"),
    [
        ("GPU 0: process 4711 (python -m vllm) holds 71234 MiB", 0, 4711, 71234),
        ("GPU 3: ComfyUI, 18 GiB", 3, None, 18432),
        ("pid 88 python 300MB", None, 88, 300),
        ("a leftover worker", None, None, None),
    ],
)
def test_texts(text: str, gpu: int | None, pid: int | None, mebibytes: int | None) -> None:
    found = holder(text)
    assert (found.gpu, found.pid) == (gpu, pid)
    assert found.memory == (None if mebibytes is None else mebibytes << 20)


def test_those_on_one_gpu() -> None:
    view = holders(["GPU 0: process 1 (a)", "GPU 1: process 2 (b)", "c somewhere"])
    assert [each.text for each in view.on(1)] == ["GPU 1: process 2 (b)", "c somewhere"]
    assert len(view.on(None)) == 3


@pytest.mark.parametrize("value", [[], None, ["none"], ["No running processes found"], "none"])
def test_looked_and_found_none(value: object) -> None:
    assert holders(value).holders == ()


def test_nobody_looked() -> None:
    view = GpuHolders.of(Facts())
    assert isinstance(view, Unknown)
    assert "nvidia-smi" in view.command


def test_sizes() -> None:
    assert size_of("1.5", "GiB") == 3 << 29
    assert size_of("10", "bytes") == 10
    assert size_in("holds 2 GB of it") == 2 << 30
    assert size_in("nothing") is None

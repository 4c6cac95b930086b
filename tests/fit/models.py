"""Models for tests: shapes of the notes in tests/data/fit, and the seed deployment's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.arguments import read_command
from gpuwhy.fit.estimate import estimate
from gpuwhy.fit.hardware import hardware_of
from gpuwhy.fit.inventory import computed_inventory
from gpuwhy.fit.model import Model
from gpuwhy.fit.results import Estimate
from gpuwhy.knowledge.gpu_memory_sizes import memory_of

DATA = Path(__file__).parents[1] / "data" / "fit"
SEED_GPU = "RTX PRO 6000 Blackwell"
KIMI = "moonshotai/Kimi-K2.6"
KIMI_BYTES = 595_140_000_000
KIMI_FILES = 64


def config(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "configs.json").read_text(encoding="utf-8"))["configs"][name]
    return found


def model(name: str) -> Model:
    return model_of(config(name), name)


def model_of(content: Any, name: str = "a model") -> Model:
    shape = read_architecture(content)
    return Model(name, shape, computed_inventory(shape))


def estimated(
    made: Model, engine: str, flags: str = "", gpu: str = "H100", gpus: int = 1, host_gib: float | None = None
) -> Estimate:
    """``engine`` with its release: ``sglang 0.5.23``."""
    name, _, version = engine.partition(" ")
    memory = memory_of(gpu)
    assert memory is not None
    return estimate(made, hardware_of(memory, gpus, host_gib=host_gib), read_command(name, version, flags))


def write_kimi(folder: Path) -> Path:
    """The seed deployment's model: its config.json and the index of its weights, which say all that is needed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(KIMI)), encoding="utf-8")
    files = {f"tensor.{number}": f"model-{number:05d}-of-{KIMI_FILES:05d}.safetensors" for number in range(KIMI_FILES)}
    index = {"metadata": {"total_size": KIMI_BYTES}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder

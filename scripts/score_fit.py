"""Scores ``gpuwhy.fit`` against measured starts: bytes per token, weights, budgets, outcomes.

Run: ``python -m scripts.score_fit [POINTS [MODELS ...]]``. POINTS is a file of one start per line (tests/data/fit/README.md
says how it is made); the shapes of its models come from the row itself ("config"), from the MODELS files, or from
configs.json and models.json beside POINTS. Exit status 1 when a bar is missed.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from gpuwhy.fit.amount import GIB
from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.arguments import settings_of
from gpuwhy.fit.estimate import estimate
from gpuwhy.fit.hardware import Hardware, hardware_of
from gpuwhy.fit.inventory import computed_inventory, scaled_inventory
from gpuwhy.fit.measured import Measured
from gpuwhy.fit.model import Model
from gpuwhy.fit.results import Estimate, Verdict
from gpuwhy.fit.settings import Settings
from gpuwhy.knowledge.config_defaults import has_states
from gpuwhy.knowledge.engine_memory import sglang_memory
from gpuwhy.knowledge.gpu_memory_sizes import GpuMemory, memory_of
from gpuwhy.knowledge.model_architectures import normalised

POINTS = Path(__file__).parents[1] / "tests" / "data" / "fit" / "points.jsonl"
KV_TOLERANCE, KV_BAR = 0.02, 0.93
WEIGHT_TOLERANCES = ((0.03, 0.85), (0.08, 0.95))
VLLM_BUDGET_GIB, BUDGET_BAR = 0.1, 0.95
SGLANG_BUDGET = 0.02
ROUNDING_GIB = 0.1
OUTCOME_BAR = 0.85
_RECORD_FIELDS = {
    "layers": "num_hidden_layers", "heads": "num_attention_heads", "kv_heads": "num_key_value_heads",
    "vocab": "vocab_size", "experts": "num_experts", "experts_per_token": "num_experts_per_tok",
    "shared_experts": "n_shared_experts", "first_dense_layers": "first_k_dense_replace",
    "tied_embeddings": "tie_word_embeddings",
}  # fmt: skip
_FORMATS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("nvfp4", "modelopt_fp4"), {"quant_method": "modelopt", "quant_algo": "NVFP4"}),
    (("mxfp4",), {"quant_method": "mxfp4"}),
    (("awq",), {"quant_method": "awq", "bits": 4, "group_size": 128}),
    (("w8a8", "w8a16", "int8"), {"quant_method": "compressed-tensors", "config_groups": {"all": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int"}}}}),
    (("gptq", "w4a16", "int4", "autoround"), {"quant_method": "gptq", "bits": 4, "group_size": 128}),
    (("fp8",), {"quant_method": "fp8"}),
    (("bitsandbytes", "bnb"), {"quant_method": "bitsandbytes", "load_in_4bit": True}),
)  # fmt: skip
_FREE_AT_START = re.compile(r"Free memory on device.{0,40}\((\d{1,6}\.\d{1,3})/(\d{1,6}\.\d{1,3}) GiB\) on startup")

_LOAD_BEGINS = re.compile(r"Load weight begin\..{0,80}avail mem=(\d{1,6}\.\d{1,4}) GB")
_LOAD_ENDS = re.compile(r"Load weight end\..{0,300}avail mem=(\d{1,6}\.\d{1,4}) GB")
_POOL_ENDS = re.compile(r"Memory pool end\..{0,80}avail mem=(\d{1,6}\.\d{1,4}) GB")
_FRACTION = re.compile(r"mem[_-]fraction[_-]static[=' :]{1,4}(0\.\d{1,6})")


class Score(msgspec.Struct):
    """Of one bar. ``wrong``: a line for each start that misses it."""

    name: str
    bar: float | None
    right: int = 0
    of: int = 0
    wrong: list[str] = []

    def count(self, is_right: bool, said: str) -> None:
        self.of += 1
        self.right += is_right
        if not is_right:
            self.wrong.append(said)

    @property
    def is_met(self) -> bool:
        return self.bar is None or self.of == 0 or self.right / self.of >= self.bar - 1e-9


def config_of(record: dict[str, Any]) -> dict[str, Any]:
    """A record of a model's shape as a config.json: it may be one already."""
    if "architectures" in record or "num_hidden_layers" in record or "text_config" in record:
        return record
    config = {_RECORD_FIELDS.get(name, name): value for name, value in record.items() if value is not None}
    if record.get("arch"):
        config["architectures"] = [record["arch"]]
    if record.get("full_attention_layers") and record.get("layers"):
        full, layers = int(record["full_attention_layers"]), int(record["layers"])
        # which layers are the others does not matter for the sums
        other = "linear_attention" if has_states(normalised(str(record.get("arch")))) else "sliding_attention"
        config.setdefault("layer_types", ["full_attention"] * full + [other] * (layers - full))
    return config


def models_beside(points: Path, named: list[Path]) -> dict[str, dict[str, Any]]:
    """Configurations by the name of the model."""
    files = named or [points.parent / "models.json", points.parent / "configs.json"]
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        if file.is_file():
            content = json.loads(file.read_text(encoding="utf-8"))
            found |= {
                name: config_of(record)
                for name, record in content.get("configs", content).items()
                if isinstance(record, dict)
            }
    return found  # fmt: skip


def model_of(row: dict[str, Any], models: dict[str, dict[str, Any]]) -> Model | None:
    """None: its shape is not known."""
    name = str(row.get("model"))
    inline = next(
        (row[key] for key in ("config", "model_config", "architecture") if isinstance(row.get(key), dict)), None
    )
    record = config_of(inline) if inline else _by_name(name, models)
    if not record:
        return None
    record = _quantised(record, row)
    shape = read_architecture(record)
    if not shape.layers or not shape.hidden:
        return None
    inventory = computed_inventory(shape)
    size, parameters = (record.get(name) for name in ("checkpoint_bytes", "total_params"))
    if isinstance(size, int | float) and size > 0:
        inventory = scaled_inventory(inventory, float(size), 0.0)
    elif isinstance(parameters, int | float) and parameters > 0 and not shape.quantization.is_quantized:
        stored = parameters * shape.quantization.dtype.bytes_each
        if abs(inventory.checkpoint_bytes - stored) > 0.025 * stored:
            # the record lacks a part of the model, such as a tower: its size stands in for an index
            inventory = scaled_inventory(inventory, stored, 0.0)
    return Model(name, shape, inventory)


def _quantised(record: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """A record of a shape says nothing of formats; the row and the name it goes by do."""
    text = record.get("text_config")
    if "quantization_config" in record or (isinstance(text, dict) and "quantization_config" in text):
        return record
    told = f"{row.get('quantization') or ''} {row.get('model') if row.get('quantization') else ''}".lower()
    for words, made in _FORMATS:
        if any(word in told for word in words):
            return {**record, "quantization_config": made}
    return record


def _by_name(name: str, models: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    if name in models:
        return models[name]
    lower = name.lower()
    return next((config for known, config in models.items() if known.lower() == lower), None)


def settings_of_row(row: dict[str, Any]) -> Settings:
    flags = dict(row.get("flags") or {})
    for field, flag in (
        ("tp", "tensor-parallel-size"),
        ("pp", "pipeline-parallel-size"),
        ("dp", "data-parallel-size"),
        ("ep", "ep-size"),
    ):
        given = row.get(field)
        if isinstance(given, int) and given > 1 and not (field == "ep" and row["engine"] == "vllm"):
            flags[flag] = given
    if row["engine"] == "vllm" and (row.get("ep") or 1) > 1:
        flags["enable-expert-parallel"] = True
    if row.get("kv_dtype"):
        flags.setdefault("kv-cache-dtype", row["kv_dtype"])
    if row.get("weight_dtype") and "dtype" not in flags:
        flags["dtype"] = row["weight_dtype"].rpartition(".")[2]
    return settings_of(row["engine"], str(row.get("engine_version") or ""), flags)  # fmt: skip


def hardware_of_row(row: dict[str, Any], settings: Settings, with_neighbours: bool = True) -> Hardware | None:
    """``with_neighbours``: what other processes hold is taken from the line that refused the start, if there is one.

    A user reads that from nvidia-smi before the start; a record has no other trace of it.
    """
    memory = memory_of(str(row.get("gpu") or ""))
    total = row["measured"].get("total_gpu_gib")
    if memory is None and total:
        memory = GpuMemory("not named", round(total * 1024 * 1.03), total, 132, False, False, 0.02, "the log")
    if memory is None:
        return None
    if total:
        memory = msgspec.structs.replace(memory, cuda_gib=total, within=0.02)
    free = next((found for line in row.get("lines") or [] if (found := _FREE_AT_START.search(line))), None)
    hardware = hardware_of(memory, int(row.get("gpu_count_total") or settings.gpus))
    if free and with_neighbours:
        context = 0.5 + (1.0 if settings.gpus > 1 else 0.0)
        hardware = msgspec.structs.replace(hardware, taken_gib=max(0.0, float(free[2]) - float(free[1]) - context))
    return hardware


def score(points: Path, models: dict[str, dict[str, Any]], only: str = "full") -> Iterator[Score]:
    """One score per bar, over the rows of that confidence ("" for all)."""
    rows = [json.loads(line) for line in points.read_text(encoding="utf-8").splitlines() if line.strip()]
    everything = rows
    rows = [row for row in rows if not only or row.get("confidence", "full") == only]
    known = [(row, model) for row in rows if (model := model_of(row, models))]
    unknown = Score("models whose shape is not given", None, of=len(rows), right=len(rows) - len(known))
    yield from (
        _bytes_per_token(known),
        *_weights(known),
        *_vllm_budgets(known),
        *_sglang_budget(everything, models),
        *_outcomes(known),
    )
    yield unknown


_Known = list[tuple[dict[str, Any], Model]]


def _estimated(
    row: dict[str, Any], model: Model, measured: Measured | None = None, with_neighbours: bool = True
) -> Estimate | None:
    settings = settings_of_row(row)
    hardware = hardware_of_row(row, settings, with_neighbours)
    if hardware is None:
        return None
    return estimate(model, hardware, settings, measured) if measured else estimate(model, hardware, settings)


def _bytes_per_token(known: _Known) -> Score:
    found = Score("KV bytes per token within 2 %", KV_BAR, wrong=[])
    for row, model in known:
        size, tokens = row["measured"].get("kv_cache_gib"), row["measured"].get("kv_tokens")
        made = _estimated(row, model) or _estimated({**row, "gpu": "80 GB"}, model)
        if size and tokens and made:
            real = size * GIB / tokens
            ranks = settings_of_row(row).decode_context
            found.count(
                _near(made.cache.bytes_per_token / ranks, real, KV_TOLERANCE),
                f"{row['id']}: {made.cache.bytes_per_token:,.0f} for {real:,.0f}",
            )
    return found  # fmt: skip


def _weights(known: _Known) -> Iterator[Score]:
    for tolerance, bar in WEIGHT_TOLERANCES:
        found = Score(f"weights per GPU within {tolerance:.0%}", bar, wrong=[])
        for row, model in known:
            real = row["measured"].get("weights_gib_per_gpu")
            made = _estimated(row, model) or _estimated({**row, "gpu": "80 GB"}, model)
            if real and made:
                # vLLM prints target and draft as one figure
                total = made.gib_of("weights").expected + (
                    made.gib_of("draft").expected if row["engine"] == "vllm" else 0
                )
                found.count(_near(total, real, tolerance), f"{row['id']}: {total:.2f} for {real:.2f}")
        yield found


def _vllm_budgets(known: _Known) -> Iterator[Score]:
    told = Score(
        "vLLM's KV budget within 0.1 GiB, given the logged weights, activation and non-torch", BUDGET_BAR, wrong=[]
    )
    alone = Score("  the same without the logged non-torch figure (for information)", None, wrong=[])
    for row, model in known:
        figures = row["measured"]
        real = figures.get("kv_cache_gib")
        if (
            row["engine"] != "vllm"
            or real is None
            or not figures.get("weights_gib_per_gpu")
            or not figures.get("activation_gib")
        ):
            continue
        for found, other in ((told, figures.get("non_torch_gib")), (alone, None)):
            measured = Measured(
                total=figures.get("total_gpu_gib"),
                weights=figures["weights_gib_per_gpu"],
                activation=figures["activation_gib"],
                non_torch=other,
                graphs=figures.get("graph_est_gib"),
            )
            made = _estimated(row, model, measured)
            if made:
                budget = made.cache.budget.expected
                found.count(abs(budget - real) <= VLLM_BUDGET_GIB + 1e-9, f"{row['id']}: {budget:.2f} for {real:.2f}")
    yield told
    yield alone  # fmt: skip


def _sglang_budget(rows: list[dict[str, Any]], models: dict[str, dict[str, Any]]) -> Iterator[Score]:
    """Of every row, also one whose model is not fully known: the budget follows from three figures of the log.

    The second score needs no fraction: what is free at the end of the pool is what the pool, and the tables beside it,
    left of what was free after loading.
    """
    told = Score(
        "SGLang's KV budget within 2 %, where the fraction is known (rows of any confidence)", BUDGET_BAR, wrong=[]
    )
    ended = Score("  the same from what is free after the pool (for information)", None, wrong=[])
    for row in rows:
        settings, real = settings_of_row(row), row["measured"].get("kv_cache_gib")
        before, after, end = _available(row)
        if row["engine"] != "sglang" or not real:
            continue
        fraction = settings.fraction or _fraction_in_lines(row)
        model = model_of(row, models)
        if fraction and before and after and not settings.total_tokens:
            made = _sglang_cache(row, model, before, after, fraction)
            found, said = told, made
        elif settings.total_tokens and model:
            cell = _estimated(row, model)
            found, said = told, cell.cache.bytes_per_token * settings.total_tokens / GIB if cell else 0.0
        elif after and end:
            found, said = ended, after - end
        else:
            continue
        found.count(_near(said, real, SGLANG_BUDGET), f"{row['id']}: {said:.2f} for {real:.2f}")
    yield told
    yield ended


def _sglang_cache(row: dict[str, Any], model: Model | None, before: float, after: float, fraction: float) -> float:
    """GiB of the pool. Without the model's shape: a cache without states, drafts and images."""
    measured = Measured(
        available_before=before,
        available_after=after,
        weights=row["measured"].get("weights_gib_per_gpu"),
        draft=row["measured"].get("draft_weights_gib"),
        fraction=fraction,
    )
    made = _estimated(row, model, measured) if model else None
    # the line of the pool counts neither states nor the draft's own cache
    return made.cache.tokens.expected * made.cache.bytes_per_token / GIB if made else after - before * (1 - fraction)


def _available(row: dict[str, Any]) -> tuple[float | None, float | None, float | None]:
    """GiB free when loading begins, after the last load, and at the end of the pool."""
    lines, figures = row.get("lines") or [], row["measured"]
    begun = [float(found[1]) for line in lines if (found := _LOAD_BEGINS.search(line))]
    loaded = [float(found[1]) for line in lines if (found := _LOAD_ENDS.search(line))]
    ended = [float(found[1]) for line in lines if (found := _POOL_ENDS.search(line))]
    before = figures.get("avail_before") or (begun[0] if begun else None)
    after = figures.get("avail_after_weights") or (loaded[-1] if loaded else None)
    weights, draft = figures.get("weights_gib_per_gpu"), figures.get("draft_weights_gib")
    is_of_target = before and after and weights and abs(before - weights - after) < ROUNDING_GIB
    if is_of_target and draft and sglang_memory(str(row.get("engine_version") or ""))[0].counts_draft:
        after -= draft
    return before, after, ended[0] if ended else None


def _fraction_in_lines(row: dict[str, Any]) -> float | None:
    found = next((found for line in row.get("lines") or [] if (found := _FRACTION.search(line))), None)
    return float(found[1]) if found else None


def _outcomes(known: _Known) -> Iterator[Score]:
    """Also without what a failed start's own line says of other processes: nothing of the outcome is known then."""
    for with_neighbours, said in ((True, ""), (False, "  blind to other processes (for information): ")):
        right = Score(
            f"{said}outcome right: it starts, or which memory runs out",
            OUTCOME_BAR if with_neighbours else None,
            wrong=[],
        )
        false = Score(f"{said}no 'starts' for a start that failed", 1.0 if with_neighbours else None, wrong=[])
        for row, model in known:
            real = row["measured"].get("outcome")
            made = _estimated(row, model, with_neighbours=with_neighbours) if real else None
            if made is None:
                continue
            predicted = _outcome(made)
            line = f"{row['id']}: {predicted} for {real} ({made.reason})"
            right.count(_same(predicted, real), line)
            if real != "started":
                false.count(predicted != "started", line)
        yield right
        yield false


def _outcome(made: Estimate) -> str:
    if made.verdict is Verdict.STARTS:
        return "started"
    if made.verdict is Verdict.CLOSE:
        return "too close to call"
    return made.decisive.outcome if made.decisive else "host-oom"


def _same(predicted: str, real: str) -> bool:
    # the records call a worker that finds its GPU taken "oom-weights"
    alike = {"not-free": {"oom-weights", "not-free"}, "oom-activation": {"oom-activation", "oom-graph"}}
    return real in alike.get(predicted, {predicted})


def _near(made: float, real: float, tolerance: float) -> bool:
    return real != 0 and math.isfinite(made) and abs(made - real) <= tolerance * abs(real)


def main(arguments: list[str], write: Callable[[str], Any] = sys.stdout.write) -> int:
    points = Path(arguments[0]) if arguments else POINTS
    models = models_beside(points, [Path(each) for each in arguments[1:]])
    missed = 0
    for found in score(points, models):
        share = f"{found.right / found.of:6.1%}" if found.of else "   n/a"
        bar = f"(bar {found.bar:.0%}{'' if found.is_met else ', MISSED'})" if found.bar is not None else ""
        write(f"{share}  {found.right:3} of {found.of:3}  {found.name} {bar}\n")
        for line in found.wrong:
            write(f"                  {line}\n")
        missed += not found.is_met
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

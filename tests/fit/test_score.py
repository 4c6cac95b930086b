"""The bars on measured starts hold, and the scorer can tell when they do not."""

from __future__ import annotations

import json
from pathlib import Path

from scripts.score_fit import POINTS, main, models_beside, score


def test_every_bar_is_met_on_the_measured_starts() -> None:
    found = list(score(POINTS, models_beside(POINTS, [])))
    assert [each.name for each in found if not each.is_met] == []
    counted = {each.name: each.of for each in found}
    assert counted["weights per GPU within 3%"] >= 30
    assert counted["KV bytes per token within 2 %"] >= 25


def test_another_file_brings_its_own_models(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in POINTS.read_text(encoding="utf-8").splitlines()]
    row = next(row for row in rows if row["model"] == "Qwen/Qwen3-8B" and row["confidence"] == "full")
    shape = {"layers": 36, "heads": 32, "kv_heads": 8, "head_dim": 128, "hidden_size": 4096, "intermediate_size": 12288,
             "vocab": 151936, "tied_embeddings": False, "arch": "Qwen3ForCausalLM"}  # fmt: skip
    points = tmp_path / "points.jsonl"
    points.write_text(json.dumps({**row, "model": "another"}) + "\n")
    (tmp_path / "models.json").write_text(json.dumps({"another": shape}))
    written: list[str] = []
    assert main([str(points)], written.append) == 0
    assert "100.0%    1 of   1  weights per GPU within 3%" in "".join(written)


def test_a_wrong_figure_misses_the_bar(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in POINTS.read_text(encoding="utf-8").splitlines()]
    row = next(row for row in rows if row["model"] == "Qwen/Qwen3-8B" and row["confidence"] == "full")
    row["measured"]["weights_gib_per_gpu"] *= 1.5
    points = tmp_path / "points.jsonl"
    points.write_text(json.dumps(row) + "\n")
    written: list[str] = []
    assert main([str(points), str(POINTS.parent / "models.json")], written.append) == 1
    assert "MISSED" in "".join(written)
    assert row["id"] in "".join(written)

"""The bars on measured starts hold, and the scorer can tell when they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def sglang_row(kv_gib: float, **more: Any) -> dict[str, Any]:
    """The figures of a log: 137.29 GiB free before, 60.00 after a load of 77.29."""
    figures = {
        "avail_before": 137.29,
        "avail_after_weights": 60.0,
        "weights_gib_per_gpu": 77.29,
        "kv_cache_gib": kv_gib,
    }
    return {"id": "one", "engine": "sglang", "engine_version": "0.5.15", "model": "nobody knows", "gpu": "H200", "tp": 8,
            "confidence": "partial", "flags": {}, "lines": [], "measured": figures, **more}  # fmt: skip


def sglang_score(tmp_path: Path, row: dict[str, Any]) -> tuple[int, int]:
    points = tmp_path / "points.jsonl"
    points.write_text(json.dumps(row) + "\n")
    found = next(each for each in score(points, {}) if each.name.startswith("SGLang's KV budget"))
    return found.right, found.of


def test_sglangs_budget_is_scored_whatever_the_model(tmp_path: Path) -> None:
    """60.00 - 137.29 x (1 - 0.85) = 39.41, by the flag or by the line of its arguments; a draft of 3.07 is in it from 0.5.14 on."""
    flags = {"mem-fraction-static": 0.85}
    assert sglang_score(tmp_path, sglang_row(39.4, flags=flags)) == (1, 1)
    assert sglang_score(tmp_path, sglang_row(39.4, lines=["server_args=ServerArgs(mem_fraction_static=0.85)"])) == (
        1,
        1,
    )
    assert sglang_score(tmp_path, sglang_row(42.0, flags=flags)) == (0, 1)
    assert sglang_score(tmp_path, sglang_row(39.4)) == (0, 0)
    drafted = sglang_row(36.34, flags=flags)
    drafted["measured"]["draft_weights_gib"] = 3.07
    assert sglang_score(tmp_path, drafted) == (1, 1)
    assert sglang_score(tmp_path, {**drafted, "engine_version": "0.5.9"}) == (0, 1)


def test_no_logged_failure_of_any_confidence_is_told_to_start() -> None:
    found = next(each for each in score(POINTS, models_beside(POINTS, []), "") if each.name.startswith("no 'starts'"))
    assert found.of >= 8
    assert found.wrong == []

"""Kimi K2.6 on 8 x 96 GB: the page holds what is computed, and what is computed is what the sources say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fit.models import write_kimi
from tests.fit.seed import CHOSEN, PAGE, RELEASES, SPECULATION, seed_estimate, written

from gpuwhy.fit.model import Model
from gpuwhy.fit.reading import read_model
from gpuwhy.fit.results import Verdict


@pytest.fixture(scope="module")
def kimi(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return read_model(write_kimi(tmp_path_factory.mktemp("seed") / "Kimi-K2.6"))


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("| 0.5.") == 2 * len(RELEASES)
    assert written(page) == page, "run `python -m tests.fit.seed`"


def test_weights_of_one_gpu(kimi: Model) -> None:
    found = seed_estimate(kimi, "0.5.23", "")
    assert found.gib_of("weights").expected == pytest.approx(71.7, abs=0.15)
    names = {part.name: part.gib.expected for part in found.parts if part.kind == "weights"}
    assert names["routed experts"] == pytest.approx(71.35e9 / 2**30, abs=0.05)
    assert names["attention q_a and kv_a"] == pytest.approx(1.85e9 / 2**30, abs=0.02)


@pytest.mark.parametrize(
    ("release", "flags", "verdict"),
    [
        ("0.5.9", "", Verdict.CLOSE),
        ("0.5.9", SPECULATION, Verdict.FAILS),
        ("0.5.15", "", Verdict.CLOSE),
        ("0.5.23", "", Verdict.FAILS),
        ("0.5.23", SPECULATION, Verdict.FAILS),
    ],
)
def test_the_default_fraction_does_not_do(kimi: Model, release: str, flags: str, verdict: Verdict) -> None:
    assert seed_estimate(kimi, release, flags).verdict is verdict


@pytest.mark.parametrize(
    ("release", "flags", "least", "tokens"),
    [
        ("0.5.9", "", 0.767, 133_000),
        ("0.5.9", SPECULATION, 0.767, 133_000),
        ("0.5.15", SPECULATION, 0.775, 120_000),
        ("0.5.23", "", 0.767, 131_000),
        ("0.5.23", SPECULATION, 0.775, 118_000),
    ],
)
def test_the_chosen_fraction_starts(kimi: Model, release: str, flags: str, least: float, tokens: int) -> None:
    found = seed_estimate(kimi, release, f"{flags} --mem-fraction-static {CHOSEN}")
    assert found.verdict is Verdict.STARTS
    assert found.cache.tokens.expected == pytest.approx(tokens, rel=0.02)
    assert found.fraction.minimum is not None
    assert found.fraction.minimum.expected == pytest.approx(least, abs=0.002)


def test_reading_without_mmap_takes_more_than_a_small_host_has(kimi: Model) -> None:
    found = seed_estimate(kimi, "0.5.23", f"--mem-fraction-static {CHOSEN} --weight-loader-disable-mmap", 256)
    # (8 threads + 2) x 9.3 GB x 8 ranks, and the processes
    assert found.host.unreclaimable_gb.expected == pytest.approx(784, rel=0.03)
    assert found.verdict is Verdict.FAILS
    older = seed_estimate(kimi, "0.5.9", f"--mem-fraction-static {CHOSEN} --weight-loader-disable-mmap", 256)
    assert older.host.unreclaimable_gb.expected < 256


def test_a_pickled_draft_is_read_whole_by_every_rank(kimi: Model, tmp_path: Path) -> None:
    import msgspec

    from gpuwhy.fit.model import Draft

    draft = Draft(kimi.shape, kimi.inventory, pickled_bytes=6e9)
    with_draft = msgspec.structs.replace(kimi, draft=draft)
    host = seed_estimate(with_draft, "0.5.23", SPECULATION).host
    assert next(part.gib.expected for part in host.parts if part.name == "pickled draft") == pytest.approx(48)
    assert any("safetensors" in each for each in host.advice)

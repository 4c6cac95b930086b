"""The numbers of docs/fit.md: Kimi K2.6 on 8 x 96 GB, computed as ``gpuwhy fit`` does.

Run: ``python -m tests.fit.seed`` writes them into the page; the test says whether they are up to date.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.fit.models import SEED_GPU, estimated, write_kimi

from gpuwhy.fit.model import Model
from gpuwhy.fit.reading import read_model
from gpuwhy.fit.results import Estimate

PAGE = Path(__file__).parents[2] / "docs" / "fit.md"
RELEASES = ("0.5.9", "0.5.15", "0.5.23")
SPECULATION = "--speculative-algorithm EAGLE3 --speculative-draft-model-path kimi-k2.6-eagle3"
CHOSEN = 0.86
HOSTS_GB = (256, 512, 1024)
LOADS = (
    ("as it is by default, through mmap", ""),
    ("`--weight-loader-disable-mmap`", "--weight-loader-disable-mmap"),
    ("the same, `num_threads` 1", "--weight-loader-disable-mmap --model-loader-extra-config '{\"num_threads\": 1}'"),
    ("`--enable-hierarchical-cache --hicache-size 50`", "--enable-hierarchical-cache --hicache-size 50"),
)


def seed_estimate(model: Model, release: str, flags: str, host_gb: float | None = None) -> Estimate:
    host = host_gb * 1e9 / 2**30 if host_gb else None
    return estimated(model, f"sglang {release}", f"--tp 8 {flags}", SEED_GPU, 8, host)


def starts_table(model: Model) -> str:
    """Which start at the default fraction, which value is needed, how many tokens remain."""
    lines = [
        "| SGLang | draft | default fraction | verdict at the default (GiB to spare for the cache) | least | most | tokens at 0.86 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for release in RELEASES:
        for draft, flags in (("none", ""), ("EAGLE-3", SPECULATION)):
            usual = seed_estimate(model, release, flags)
            chosen = seed_estimate(model, release, f"{flags} --mem-fraction-static {CHOSEN}")
            least, most, spare = chosen.fraction.minimum, chosen.fraction.maximum, usual.cache.budget
            assert least is not None
            assert most is not None
            lines.append(
                f"| {release} | {draft} | {usual.fraction.value:.4f} | {usual.verdict.value} "
                f"({spare.expected:+.2f}, {spare.low:+.2f} to {spare.high:+.2f}) "
                f"| {least.expected:.3f} ({least.low:.3f} to {least.high:.3f}) "
                f"| {most.expected:.3f} ({most.low:.3f} to {most.high:.3f}) "
                f"| {chosen.verdict.value}, {chosen.cache.tokens.expected / 1000:.0f}k |"
            )
    return "\n".join(lines)


def host_table(model: Model) -> str:
    """What a host of each size risks while loading."""
    lines = ["| how it loads | GB that cannot be reclaimed | " + " | ".join(f"{size} GB" for size in HOSTS_GB) + " |", "| --- | --- |" + " --- |" * len(HOSTS_GB)]  # fmt: skip
    for said, flags in LOADS:
        made = [
            seed_estimate(model, "0.5.23", f"--mem-fraction-static {CHOSEN} {flags}", size).host for size in HOSTS_GB
        ]
        amount = made[0].unreclaimable_gb
        risks = " | ".join(host.risks[0].says for host in made)
        lines.append(f"| {said} | {amount.expected:.0f} ({amount.low:.0f} to {amount.high:.0f}) | {risks} |")
    return "\n".join(lines)


def written(page: str) -> str:
    """The page with its tables computed anew."""
    with tempfile.TemporaryDirectory() as folder:
        model = read_model(write_kimi(Path(folder) / "Kimi-K2.6"))
    for name, table in (("starts", starts_table(model)), ("hosts", host_table(model))):
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}{table}\n{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

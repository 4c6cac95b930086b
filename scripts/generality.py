"""Scores the diagnosis under variations of the labelled cases (:mod:`scripts.variations`).

Run: ``python -m scripts.generality [FOLDER] [--failures]``. "kept" is the share of the cases that are answered rightly as
they stand and still are under the variation; "false" counts wrong answers that are called proven. A case whose
deciding line was cut away must fall to ``possible`` or nothing: "overbold" counts those that do not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.score import CASES, MODES, read_cases, score_case
from scripts.variations import VARIATIONS, is_decided_by


@dataclass(frozen=True)
class Outcome:
    """How one case fared under one variation, in one mode. ``kept`` is None where there is nothing to keep."""

    case: str
    variation: str
    mode: str
    kept: bool | None
    is_false: bool
    is_overbold: bool
    got: str


def outcomes(cases: list[dict[str, Any]], variations: tuple[str, ...] = tuple(VARIATIONS)) -> Iterator[Outcome]:
    """Every case under every variation, in both modes."""
    for case in cases:
        for mode in MODES:
            plain = score_case(case, mode)
            for name in variations:
                report = VARIATIONS[name](case["report"])
                decisive = case["truth"].get("decisive_line")
                has_line = is_decided_by(report, decisive, name)
                score = score_case({**case, "report": report}, mode)
                accepted = score.accepted or (mode == "report" and plain.top1 and case["truth"]["cause"] in score.got)
                yield Outcome(
                    case["id"],
                    name,
                    mode,
                    accepted if plain.accepted and has_line else None,
                    score.false_certainty,
                    not has_line and bool(decisive) and score.certainty == "proven" and not score.accepted,
                    ", ".join(score.got) + f" {score.certainty}",
                )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="generality", description="Score the diagnosis under variations of cases.")
    parser.add_argument("folder", nargs="?", type=Path, default=CASES)
    parser.add_argument("--failures", action="store_true", help="which case is lost under which variation")
    options = parser.parse_args(arguments)
    found = list(outcomes(read_cases(options.folder)))
    print(f"{'variation':<14}{'mode':<8}{'cases':>6}{'kept':>8}{'false':>8}{'overbold':>10}")
    for name in VARIATIONS:
        for mode in MODES:
            own = [each for each in found if (each.variation, each.mode) == (name, mode)]
            kept = [each.kept for each in own if each.kept is not None]
            share = f"{100 * sum(kept) / len(kept):.1f}%" if kept else "-"
            print(
                f"{name if mode == MODES[0] else '':<14}{mode:<8}{len(kept):>6}{share:>8}"
                f"{sum(each.is_false for each in own):>8}{sum(each.is_overbold for each in own):>10}"
            )
    if options.failures:
        for each in found:
            if each.kept is False or each.is_false or each.is_overbold:
                print(f"{each.case} ({each.variation}, {each.mode}): got {each.got}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

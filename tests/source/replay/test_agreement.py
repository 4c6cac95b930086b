"""Replay and real execution of the same function on the same facts end alike, or the replay says why it stops."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.source.replay import cases
from tests.source.replay.cases import Case
from tests.source.replay.releases import release

from gpuwhy.source.replay import FolderSource, NeedsFact, NotModelled, Raised, Replay, Returned, replay

REALLY = Path(__file__).with_name("really.py")


def really(chosen: list[Case], folders: dict[tuple[str, str], Path]) -> list[dict[str, Any]]:
    """How the real functions end, in child processes."""
    given = [
        {
            "entry": case.entry,
            "folders": [str(folders[root]) for root in case.roots],
            "facts": case.facts,
            "not_run": case.not_run,
            "before": case.before,
        }
        for case in chosen
    ]
    done = subprocess.run(
        [sys.executable, "-B", str(REALLY)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def ended(outcome: Returned | Raised) -> dict[str, Any]:
    if isinstance(outcome, Returned):
        return {"returned": outcome.value}
    return {"raised": outcome.type, "message": outcome.message, "site": [outcome.place.file, outcome.place.line]}


def said(result: Replay) -> list[Any]:
    return [[line.level, line.logger, line.message, line.place.file, line.place.line] for line in result.log_lines()]


def disagreements(chosen: list[Case]) -> tuple[list[str], dict[str, Replay]]:
    """What differs, and the replays that stopped."""
    folders = {root: release(*root) for case in chosen for root in case.roots}
    sources = {case.roots: FolderSource([folders[root] for root in case.roots]) for case in chosen}
    different: list[str] = []
    stopped: dict[str, Replay] = {}
    for case, real in zip(chosen, really(chosen, folders), strict=True):
        result = replay(sources[case.roots], case.entry, case.facts)
        if isinstance(result.outcome, (NeedsFact, NotModelled)):
            stopped[case.name] = result
        elif {**ended(result.outcome), "lines": said(result)} != real:
            different.append(f"{case.name}\n  replay {ended(result.outcome)} {said(result)}\n  really {real}")
    return different, stopped


@pytest.mark.parametrize(
    ("chosen", "decided", "unanswered"),
    [
        (
            cases.flashinfer_cases,
            175,
            {
                "toolkit not known": "cuda_toolkit",
                "gpus not known": "gpus",
                "flags, targets not known": "commands./usr/local/cuda/bin/nvcc --list-gpu-arch",
            },
        ),
        (cases.torch_cases, 30, {}),
        (cases.vllm_cases, 32, {"toolkit not known": "cuda_toolkit"}),
        (cases.sglang_cases, 15, {"pin not known": "packages.flashinfer_python"}),
    ],
)
def test_every_replay_ends_as_the_real_call_or_names_the_missing_fact(
    chosen: Callable[[], list[Case]], decided: int, unanswered: dict[str, str]
) -> None:
    sets = chosen()
    different, stopped = disagreements(sets)
    assert not different, "\n".join(different)
    assert len(sets) - len(stopped) == decided
    for name, result in stopped.items():
        what = name.partition(": ")[2]
        assert isinstance(result.outcome, NeedsFact), (name, result.outcome)
        assert what in unanswered, (name, result.outcome)
        assert result.outcome.key == unanswered[what]

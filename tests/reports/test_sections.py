"""Parts that all reports share."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scripts.score import CASES, read_cases

from gpuwhy.investigate import diagnose_log
from gpuwhy.model.finding import Certainty
from gpuwhy.remedies import prescribe
from gpuwhy.reports import Detail, render
from gpuwhy.reports.sections import subject_of


def test_the_subject_is_the_unit_and_a_process_without_one_has_no_name() -> None:
    crashed = replace(diagnose_log(b"RuntimeError: no\n", "x"), where="gpu-host")
    named = {unit: subject_of(replace(crashed, incident=replace(crashed.incident, unit=unit))) for unit in ("", "sglang.service", "process/4711")}  # fmt: skip
    assert named == {"": "gpu-host", "sglang.service": "sglang.service on gpu-host", "process/4711": "gpu-host"}


KILLED = "Killed\n"
DECIDES = "journalctl -k -b | grep -iE 'killed process|oom-kill'"


@pytest.mark.parametrize("is_verbose", [False, True])
def test_of_a_bare_kill_the_deciding_fact_comes_before_what_may_help(is_verbose: bool) -> None:
    told = render(prescribe(diagnose_log(KILLED.encode(), "x")), "text", Detail(verbose=is_verbose))
    asked, then, swap = (told.index(text) for text in (DECIDES, "Then, if that bears it out", "add swap"))
    assert told.index("What to do first") < asked < then < swap
    assert "do: find out kernel_log" in render(prescribe(diagnose_log(KILLED.encode(), "x")), "oneline")
    assert "Find this out first" in render(prescribe(diagnose_log(KILLED.encode(), "x")), "html")


def test_with_the_kernel_s_word_the_remedy_comes_first() -> None:
    kill = "kernel: Out of memory: Killed process 23 (python3) total-vm:79564kB, anon-rss:67968kB, file-rss:5596kB, shmem-rss:0kB, UID:0 pgtables:196kB oom_score_adj:0\n"
    diagnosis = prescribe(diagnose_log((kill + KILLED).encode(), "x"))
    told = render(diagnosis, "text")
    assert diagnosis.findings[0].cause == "host-oom-kill"
    assert "What to do first" in told
    assert "Then, if" not in told


def test_no_remedy_that_only_may_help_stands_before_a_fact_that_decides() -> None:
    for case in read_cases(CASES):
        diagnosis = prescribe(diagnose_log(case["report"].encode(), "report"))
        first = diagnosis.findings[0] if diagnosis.findings else None
        if (
            first is None
            or first.certainty is not Certainty.POSSIBLE
            or not first.remedies
            or first.remedies[0].is_sure
        ):
            continue
        if diagnosis.decides is not None and diagnosis.decides.command and first.missing:
            told = render(diagnosis, "text", Detail(width=0))
            assert told.index("What to do first") < told.index(diagnosis.decides.command) < told.index("Then, if that")

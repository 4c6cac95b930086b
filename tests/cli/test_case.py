"""Giving a crash back to the project as a labelled case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts.score import score_case
from tests.cli.running import LOGS, Done, gpuwhy

CASES = LOGS.parents[1] / "cases"
SNAPSHOT = LOGS.parent / "snapshots" / "schema-0.1.json"
SECRET = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
CRASH = f"""2026-11-30 10:00:00 alice@gpu-7 starts with HF_TOKEN={SECRET}
Failed to get device capability: SM 12.x requires CUDA >= 12.9.
Traceback (most recent call last):
  File "/home/alice/acme/serve.py", line 3, in main
    run()
  File "/home/alice/venv/lib/python3.12/site-packages/flashinfer/jit/core.py", line 108, in check_cuda_arch
    raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")
RuntimeError: FlashInfer requires GPUs with sm75 or higher
"""


def new(tmp_path: Path, file: Path, *options: str, cause: str = "toolkit-too-old-for-arch") -> Done:
    return gpuwhy(
        "case",
        "new",
        str(file),
        "--id",
        "a-case",
        "--cause",
        cause,
        "--why",
        "Because.",
        "--into",
        str(tmp_path),
        *options,
    )


def case_in(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((tmp_path / "a-case.yaml").read_text())
    return found


def test_a_log_becomes_a_case_that_is_scored_as_right(tmp_path: Path) -> None:
    done = new(
        tmp_path,
        LOGS / "sglang.log",
        "--remedy",
        "env:FLASHINFER_CUDA_ARCH_LIST=12.0a",
        "--source",
        "sgl-project/sglang#1",
    )
    assert done.status == 0
    assert done.out == f"{tmp_path}/a-case.yaml\n"
    assert "from the report alone gpuwhy says: toolkit-too-old-for-arch, likely" in done.err
    case = case_in(tmp_path)
    assert case["truth"]["decisive_line"] in case["report"]
    assert case["truth"]["remedies"] == [{"kind": "env", "name": "FLASHINFER_CUDA_ARCH_LIST", "value": "12.0a"}]
    assert case["truth"]["needs_host"] is False
    score = score_case(case, "report")
    assert score.top1
    assert score.component


def test_it_has_the_fields_of_the_cases_that_are_there(tmp_path: Path) -> None:
    assert new(tmp_path, LOGS / "sglang.log").status == 0
    case, other = case_in(tmp_path), yaml.safe_load((CASES / "sglang-1067.yaml").read_text())
    assert list(case) == [key for key in other if key != "given_host"]
    assert list(case["truth"]) == list(other["truth"])


def test_names_and_secrets_are_taken_out(tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_text(CRASH)
    assert new(tmp_path, log).status == 0
    text = (tmp_path / "a-case.yaml").read_text()
    for name in ("alice", "acme", SECRET):
        assert name not in text
    assert "flashinfer/jit/core.py" in text
    assert score_case(case_in(tmp_path), "report").top1


def test_a_long_log_is_cut_to_what_tells(tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_text("INFO: served a request\n" * 3000 + CRASH)
    assert new(tmp_path, log).status == 0
    case = case_in(tmp_path)
    assert len(case["report"].splitlines()) <= 400
    assert score_case(case, "report").top1


def test_what_the_report_does_not_decide_comes_with_facts_of_the_host(tmp_path: Path) -> None:
    done = new(tmp_path, SNAPSHOT, "--host-fact", "nvcc is of CUDA 12.8", cause="gpu-oom-kv-cache")
    assert done.status == 0
    assert "and the right one is gpu-oom-kv-cache" in done.err
    case = case_in(tmp_path)
    assert case["truth"]["needs_host"] is True
    assert case["given_host"]["cc"] == "12.0"
    assert case["given_host"]["cuda_toolkit"] == "12.8"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--decisive-line", "nothing of the kind"), "the decisive line is not in the report"),
        (("--remedy", "CUDA_HOME"), "write KIND:NAME=VALUE"),
        (("--id", "../x"), "small letters, digits"),
        (("--into", "/nowhere/at/all"), "No such file or directory"),
    ],
)
def test_what_would_be_no_case_is_refused(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    done = new(tmp_path, LOGS / "sglang.log", *options)
    assert done.status == 2
    assert said in done.err
    assert not (tmp_path / "a-case.yaml").exists()


def test_an_unknown_cause_is_told_and_no_case_is_overwritten(tmp_path: Path) -> None:
    done = new(tmp_path, LOGS / "sglang.log", cause="moon-phase")
    assert done.status == 0
    assert "no cause is called moon-phase" in done.err
    assert case_in(tmp_path)["truth"]["remedies"] == []
    assert new(tmp_path, LOGS / "sglang.log").status == 2

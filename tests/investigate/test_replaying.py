"""Replay as a part of a diagnosis: real releases of FlashInfer on a host whose facts are known."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.investigate.hosts import PACKAGES, Host, traceback_of
from tests.investigate.masks import SAMPLING, TOO_OLD
from tests.source.packages import release

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate.failing_condition import examined
from gpuwhy.investigate.record import Record
from gpuwhy.investigate.replaying import QUESTION, installed_source, replayed_with, with_replay
from gpuwhy.logs import find_incidents, read_bytes
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.host import Gpu, Resolution, ToolkitInstall
from gpuwhy.model.incident import Incident
from gpuwhy.model.source import ReplayedSource
from gpuwhy.source.replay import FolderSource

NO_RULE = Judgement(findings=(), ruled_out=(), decides=None)
RELEASE = ("flashinfer-python", "0.6.18.post1")
GATE = "flashinfer.jit.core:check_cuda_arch"
CUDA = "/usr/local/cuda"
SWALLOWED = "Failed to get device capability: SM 12.x requires CUDA >= 12.9.\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def facts(changes: Mapping[str, Any] | None = None, toolkit: str | None = "12.8") -> Facts:
    """What a snapshot of the host says: typed values, as the collector's facts have them."""
    evidence = Evidence("seen on the host", place=Place("command", "nvidia-smi"))
    installs = [ToolkitInstall("/opt/cuda-12.4", "12.4"), ToolkitInstall("/opt/cuda-12.9", "12.9")]
    if toolkit:
        installs.append(ToolkitInstall("/usr/local/cuda-12.8", toolkit, note=f"also {CUDA}"))
    values: dict[str, Any] = {
        "gpus": (Gpu(0, "RTX PRO 6000", "12.0"), Gpu(1, "RTX PRO 6000", "12.0")),
        "toolkits": tuple(installs),
        "toolkit_resolved.flashinfer": Resolution("flashinfer", toolkit, CUDA, "CUDA_HOME"),
        "cuda_toolkit": toolkit,
        "cuda_home": CUDA,
        "torch_cuda": "12.8",
        "torch": "2.9.1+cu128",
        "environment_complete": True,
        "env.CUDA_HOME": CUDA,
        "env.HOME": "/home/serve",
        "packages.torch": "2.9.1+cu128",
        "packages.flashinfer-python": RELEASE[1],
        **(changes or {}),
    }
    return Facts({key: Fact(key, value, evidence) for key, value in values.items()})


def incident(before: str = SWALLOWED, error: str = TOO_OLD) -> Incident:
    text = before + traceback_of([release(*RELEASE)], SAMPLING, error)
    return find_incidents([read_bytes(text.encode(), "crash.log")])


def proof(known: Facts, failed: Incident | None = None, record: Record | None = None) -> ReplayedSource | None:
    failed = failed or incident()
    host = Host(release(*RELEASE))
    answer = examined(failed, known, NO_RULE, host, Record(), 120.0)
    answer = with_replay(answer, failed, known, host, record or Record(), 120.0)
    assert answer is not None
    return answer.replay


def test_source_facts_and_log_say_the_same() -> None:
    record = Record()
    found = proof(facts(), record=record)
    assert found is not None
    assert (found.entry, found.agreement) == (f"{GATE}()", "same"), found.why
    assert (found.type, str(found.place)) == ("RuntimeError", "flashinfer/jit/core.py:109")
    assert "nvcc --version" in found.why
    assert "release 12.8" in found.why
    (line,) = [each for each in found.lines if each.level == "warning"]
    assert line.seen == Place("log", "crash.log", 1)
    assert [str(each.raised_at) for each in found.swallowed] == ["flashinfer/compilation_context.py:83"]
    assert ("not eligible", True) in [(each.condition, each.holds) for each in found.branches]
    assert found.assumed
    assert not found.is_proof
    (step,) = [each for each in record.closed().steps if each.question == QUESTION]
    assert (step.outcome, step.where) == ("ok", f"{GATE}()")


def test_a_toolkit_that_is_new_enough_contradicts() -> None:
    found = proof(facts(toolkit="12.9"))
    assert found is not None
    assert (found.ending, found.agreement) == ("returned", "other")
    assert "it is not reached" in found.why


def test_a_log_without_the_warning_agrees_in_part() -> None:
    found = proof(facts(), incident(before=""))
    assert found is not None
    assert found.agreement == "partly"
    assert "SM 12.x requires CUDA" in found.why


def test_a_call_that_failed_in_that_process_is_no_contradiction() -> None:
    """Facts of the host say nothing about a forked child."""
    forked = "Failed to get device capability: Cannot re-initialize CUDA in forked subprocess.\n"
    found = proof(facts(toolkit="12.9"), incident(before=forked))
    assert found is not None
    assert found.agreement == "open"
    assert "Cannot re-initialize CUDA" in found.why


def test_what_is_not_known_is_named_with_the_command_that_gets_it() -> None:
    known = facts({"toolkits": (), "toolkit_resolved.flashinfer": None})
    known = Facts({each.key: each for each in known if each.key not in ("cuda_toolkit", "toolkits")})
    found = proof(known)
    assert found is not None
    assert (found.ending, found.agreement, found.needs) == ("needs a fact", "open", "cuda_toolkit")
    assert found.command == f"{CUDA}/bin/nvcc --version"


def test_a_variable_that_is_set_and_not_collected_is_not_taken_for_unset() -> None:
    hidden = Facts({}, {"env.FLASHINFER_CUDA_ARCH_LIST": Unknown("its value is not collected")})
    found = proof(facts().merged(hidden))
    assert found is not None
    assert (found.agreement, found.needs) == ("open", "env.FLASHINFER_CUDA_ARCH_LIST")
    cut = proof(facts({"env.FLASHINFER_CUDA_ARCH_LIST": "<redacted:1>"}))
    assert cut is not None
    assert cut.needs == "env.FLASHINFER_CUDA_ARCH_LIST"


def test_files_that_a_fact_is_wanted_of_are_looked_at() -> None:
    """No variable, no nvcc on the path: whether /usr/local/cuda is there decides, and the target knows."""
    known = Facts({each.key: each for each in facts({"nvcc_path": None}) if each.key not in ("env.CUDA_HOME", "cuda_home", "toolkits", "toolkit_resolved.flashinfer", "cuda_toolkit")})  # fmt: skip
    found = proof(known)
    assert found is not None
    assert (f"files.{CUDA}", "False") in [(each.key, each.value) for each in found.facts]


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({}, "reached", "sm75 or higher"),
        ({"env.FLASHINFER_CUDA_ARCH_LIST": "12.0a"}, "not reached", "returns None"),
        ({"env.FLASHINFER_CUDA_ARCH_LIST": "12.0;9.0"}, "other exception", "ValueError"),
        ({"env.FLASHINFER_CUDA_ARCH_LIST": "12.0"}, "other exception", "SM 12.x requires CUDA >= 12.9"),
        ({"env.TORCH_CUDA_ARCH_LIST": "12.0a"}, "reached", "sm75 or higher"),
        ({"env.CUDA_HOME": "/opt/cuda-12.4"}, "reached", "sm75 or higher"),
        ({"env.CUDA_HOME": "/opt/cuda-12.9"}, "not reached", "returns None"),
        ({"env.CUDA_HOME": "/opt/unknown"}, "needs a fact", "other_toolkits./opt/unknown"),
        ({"gpus": ["0: H200 (9.0)"]}, "not reached", "returns None"),
    ],
)
def test_what_a_change_would_do(changes: dict[str, Any], kind: str, said: str) -> None:
    failed = incident()
    source = installed_source(failed, Host(release(*RELEASE)), 120.0)
    assert source is not None
    verdict = replayed_with(facts(), source, GATE, changes)
    assert verdict.kind == kind, verdict.why
    assert said in verdict.why
    assert replayed_with(facts(), FolderSource([release(*RELEASE)]), GATE, changes).kind == kind


def test_modules_come_as_the_code_needs_them() -> None:
    host = Host(release(*RELEASE))
    source = installed_source(incident(), host, 120.0)
    assert source is not None
    verdict = replayed_with(facts(), source, GATE)
    assert verdict.kind == "reached"
    assert not source.missed
    asked = [ask.path for asks in host.rounds for ask in asks]
    assert len(asked) == len(set(asked))
    assert f"{PACKAGES}/flashinfer/jit/cpp_ext.py" in asked


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "x = 'a'\n    while True: x = x + x",
        "return sum(i * i for i in range(10 ** 12))",
        "return [i for i in range(10 ** 9)]",
        "return " + "(" * 80 + ")" * 80,
        "return check()",
        "return {i: [0] * 90000 for i in range(90000)}",
    ],
)
def test_hostile_source_ends_within_the_limit(tmp_path: Path, body: str) -> None:
    site = tmp_path / "site-packages"
    (site / "engine").mkdir(parents=True)
    (site / "engine" / "__init__.py").write_text("")
    (site / "engine" / "gate.py").write_text(f"def check():\n    {body}\n    raise RuntimeError('never')\n")
    log = traceback_of([site], (("engine/gate.py", "raise RuntimeError"),), "RuntimeError: never")
    failed = find_incidents([read_bytes(log.encode(), "crash.log")])
    source = installed_source(failed, Host(site), 120.0)
    assert source is not None
    begun = time.thread_time()
    verdict = replayed_with(facts(), source, "engine.gate:check", seconds=0.3)
    assert time.thread_time() - begun < 2
    assert verdict.kind in ("not modelled", "not reached", "needs a fact")


def test_what_redaction_took_out_decides_nothing(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "engine").mkdir(parents=True)
    (site / "engine" / "__init__.py").write_text("")
    secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    text = f"def check():\n    token = '{secret}'\n    if len(token) < 36:\n        raise RuntimeError('no token')\n"
    (site / "engine" / "gate.py").write_text(text)
    log = traceback_of([site], (("engine/gate.py", "raise RuntimeError"),), "RuntimeError: no token")
    failed = find_incidents([read_bytes(log.encode(), "crash.log")])
    source = installed_source(failed, Host(site), 120.0)
    assert source is not None
    verdict = replayed_with(facts(), source, "engine.gate:check")
    assert secret not in str(source.packages["engine"].read("engine/gate.py"))
    assert verdict.kind == "not modelled", verdict.why

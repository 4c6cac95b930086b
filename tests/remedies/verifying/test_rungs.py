"""What the rungs make of what they see: which call is the check, and when a trial proves, refutes, or says nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import RaisedException
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.model.incident import Incident
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying.fixing import Choice, Tried
from gpuwhy.remedies.applying.site import Record
from gpuwhy.remedies.applying.verification import Rung, Verification
from gpuwhy.remedies.setting import Setting
from gpuwhy.remedies.verifying import build
from gpuwhy.remedies.verifying.calls import Call, call_of
from gpuwhy.remedies.verifying.changes import changes_of
from gpuwhy.remedies.verifying.checker import Ended, Said
from gpuwhy.remedies.verifying.guard import judged
from gpuwhy.remedies.verifying.refuting import refuted_before, with_refutation
from gpuwhy.remedies.verifying.service import is_server

CHECK = Call("flashinfer.jit.core", ("check_cuda_arch",), is_call=True)
RAISED = RaisedException("RuntimeError", "FlashInfer requires GPUs with sm75 or higher")
AS_BEFORE = Ended("raised", type="RuntimeError", message="FlashInfer requires GPUs with sm75 or higher")
OTHER = Ended("raised", type="RuntimeError", message="SM 12.x requires CUDA >= 12.9")
REMEDY = Remedy(kind="env", name="FLASHINFER_CUDA_ARCH_LIST", value="12.0a", summary="name the architecture")


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ("flashinfer.jit.core:check_cuda_arch()", "flashinfer.jit.core.check_cuda_arch()"),
        ("a.b:C.make(1, key='x')", "a.b.C.make(1, key='x')"),
        ("vllm.platforms:", "import vllm.platforms"),
        ("os:system(input())", None),
        ("os:system(*['x'])", None),
        ("os:system('a') or 1", None),
        ("a b:f()", None),
        ("os:(lambda: 1)()", None),
    ],
)
def test_only_a_plain_call_with_literals_is_made(entry: str, shown: str | None) -> None:
    call = call_of(entry)
    assert (None if call is None else str(call)) == shown


@pytest.mark.parametrize(
    ("without", "with_change", "outcome"),
    [
        (AS_BEFORE, Ended("returned", value="None"), "passed"),
        (AS_BEFORE, AS_BEFORE, "failed"),
        (AS_BEFORE, OTHER, "failed"),
        (AS_BEFORE, Ended("died", signal=11), "failed"),
        (AS_BEFORE, Ended("timed out"), "not possible"),
        (OTHER, Ended("returned"), "not possible"),
        (Ended("returned"), Ended("returned"), "not possible"),
    ],
)
def test_the_check_must_fail_without_the_change_to_prove_anything(
    without: Ended, with_change: Ended, outcome: str
) -> None:
    assert judged(CHECK, RAISED, without, with_change, "/opt/bin/python").outcome == outcome


@pytest.mark.parametrize(
    ("codes", "gpus", "outcome"),
    [
        (("sm_120a",), ("12.0",), "passed"),
        (("sm_90a",), ("12.0",), "failed"),
        (("sm_90a",), ("9.0", "12.0"), "failed"),
        (("sm_90a", "sm_120f"), ("9.0", "12.0"), "passed"),
        ((), ("12.0",), "failed"),
        (("sm_120a",), (), "not possible"),
    ],
)
def test_what_was_built_must_hold_code_for_every_gpu(
    codes: tuple[str, ...], gpus: tuple[str, ...], outcome: str
) -> None:
    assert build.judged("quantization", codes, gpus, 40.0).outcome == outcome


def test_a_remedy_is_told_in_facts_and_variables_only_where_its_value_is_one() -> None:
    change = changes_of(REMEDY)
    assert change is not None
    assert (dict(change.facts), dict(change.variables)) == (
        {"env.FLASHINFER_CUDA_ARCH_LIST": "12.0a"}, {"FLASHINFER_CUDA_ARCH_LIST": "12.0a"},
    )  # fmt: skip
    package = changes_of(Remedy(kind="package", name="flashinfer-python", value=">=0.7.1", summary=""))
    assert package is not None
    assert dict(package.facts) == {"packages.flashinfer-python": "0.7.1"}
    assert changes_of(Remedy(kind="env", name="A", value="lower", summary="")) is None
    assert changes_of(Remedy(kind="kernel", name="x", value="1", summary="")) is None


def diagnosis() -> Diagnosis:
    finding = Finding(cause="arch", family="f", component=None, certainty=Certainty.LIKELY, title="t", chain=(), evidence=(), remedies=(REMEDY,))  # fmt: skip
    return Diagnosis(where="local", incident=Incident(logs=(), events=(), unit="a.service"), findings=(finding,))


def test_a_refuted_remedy_is_evidence_against_and_no_remedy_any_more() -> None:
    rung = Rung("b", "guard", "failed", "it still raises")
    after = with_refutation(diagnosis(), Tried(choice=Choice(1, REMEDY), verification=Verification((rung,))))
    (finding,) = after.findings
    assert [(each.statement, each.quote) for each in finding.against] == [
        ("FLASHINFER_CUDA_ARCH_LIST=12.0a was tried and does not help", "it still raises")
    ]
    assert finding.remedies == ()
    assert finding.not_remedies[0].why == "refuted by guard: it still raises"
    assert after.investigation.steps[-1].changed == "it speaks against the finding"


def test_a_remedy_that_held_is_evidence_for_the_finding() -> None:
    rung = Rung("b", "guard", "passed", "raises without the change, passes with it")
    after = with_refutation(diagnosis(), Tried(choice=Choice(1, REMEDY), verification=Verification((rung,))))
    assert after.findings[0].evidence[0].quote == rung.words
    assert after.findings[0].remedies == (REMEDY,)


def test_the_journal_tells_which_remedies_were_refuted_on_this_unit() -> None:
    remedy = {"kind": "env", "name": "FLASHINFER_CUDA_ARCH_LIST", "value": "12.0a"}
    failed = {"rungs": [{"name": "active", "outcome": "failed", "words": "ended"}]}
    here = Record(id=3, state="undone", unit="a.service", remedy=remedy, verification=failed)
    assert refuted_before([here], diagnosis())[1].endswith("refuted at active: ended")
    elsewhere = Record(id=4, state="undone", unit="b.service", remedy=remedy, verification=failed)
    helped = Record(id=5, state="verified", unit="a.service", remedy=remedy, verification={"rungs": []})
    assert refuted_before([elsewhere, helped], diagnosis()) == {}


def test_a_port_is_waited_for_where_it_is_certain() -> None:
    assert is_server(Setting(kind="systemd", command=("/x/python", "serve.py", "--port", "80")))
    assert is_server(Setting(kind="systemd", command=("/x/bin/vllm", "serve", "m")))
    assert is_server(Setting(kind="systemd", command=("/x/python", "-m", "sglang.launch_server")))
    assert not is_server(Setting(kind="systemd", command=("/x/python", "serve.py")))


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ("[Errno 2] No such file or directory: 'ninja'", "not possible"),
        ("[Errno 2] No such file or directory: '/opt/venv/flashinfer/data/csrc/a.cu'", "failed"),
    ],
)
def test_a_build_tool_that_is_missing_anyway_refutes_nothing(monkeypatch: pytest.MonkeyPatch, message: str, outcome: str) -> None:  # fmt: skip
    said = Said("ok", ended=Ended("raised", type="FileNotFoundError", message=message))
    monkeypatch.setattr(build, "asked", lambda *_, **__: said)
    monkeypatch.setattr(build, "compiles_flashinfer", lambda _: True)
    rung = build.Builds().verify(SimpleNamespace(remedy=REMEDY, is_building=True, diagnosis=None))  # type: ignore[arg-type]
    assert rung is not None
    assert rung.outcome == outcome

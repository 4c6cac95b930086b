"""Diagnoses to make pages of: the seed crash with all that a host can add, an unknown failure, hostile text, a large incident."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.fit.models import KIMI, KIMI_BYTES, SEED_GPU, config, estimated, model

from gpuwhy.fit.arguments import read_command
from gpuwhy.fit.estimate import estimate
from gpuwhy.fit.hardware import hardware_of
from gpuwhy.fit.inventory import scaled_inventory
from gpuwhy.fit.model import Model
from gpuwhy.fit.search import Goal, search
from gpuwhy.investigate import diagnose_log
from gpuwhy.investigate.checks.results import Forecast, Passed, Problem, Unchecked
from gpuwhy.knowledge.gpu_memory_sizes import memory_of
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Event, Log, LogLine, Process, Span
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.finding import Certainty, Excluded, Finding, Link, Missing
from gpuwhy.model.hang import Waiting
from gpuwhy.model.incident import Incident
from gpuwhy.model.inspection import ContainerSet, InspectedFile, Inspection, Outcome, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy
from gpuwhy.model.source import (
    HiddenRaise,
    SeenInLog,
    SourceAnswer,
    SourceCondition,
    SourceLine,
    SourceStep,
    SourceWhatIf,
    SwallowedException,
)
from gpuwhy.remedies import prescribe
from gpuwhy.reports.fit_answer import FitAnswer
from gpuwhy.snapshot.given import given

LOGS = Path(__file__).parents[2] / "data" / "logs"
OWNED = "<script>window.owned=1</script><img src=x onerror=window.owned=1><style>body{display:none}</style></style></script>"
HOSTILE = (
    f"{OWNED}\"'`-->{{{{ 7*7 }}}}{{% raw %}} \x1b]0;owned\x07\x1b[2J \u202eesrever\u2066 \x9b31m\r\n\x00 \udc80 "
    "\u05d0\u05d1\u05d2 \u0627\u0644\u0639 javascript:alert(1)" + "Z" + "\u0310\u0316" * 40
)
LONG = "x" * 1_000_000

FACTS = {
    "gpu": "NVIDIA RTX PRO 6000 Blackwell",
    "cc": "12.0",
    "driver": "580.95.05",
    "cuda_toolkit": "12.8",
    "nvcc_path": "/usr/local/cuda/bin/nvcc",
    "torch": "2.9.1+cu130",
    "packages": {"flashinfer-python": "0.6.18.post1", "sglang": "0.5.15"},
    "env": {"CUDA_HOME": "/usr/local/cuda-12.8", "FLASHINFER_CUDA_ARCH_LIST": None},
    "binary_archs": {
        "sgl-kernel": ["sm_90a", "sm_100a", "sm_120a"],
        "torch": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"],
        "flash-attn": ["sm_80", "sm_90"],
    },
    "binary_runs": {"sgl-kernel": "native", "torch": "native", "flash-attn": "none"},
}
_CONTEXT, _CORE = "flashinfer/compilation_context.py", "flashinfer/jit/core.py"
_HIDDEN = HiddenRaise(
    "RuntimeError",
    "SM 12.x requires CUDA >= 12.9",
    SourceLine(_CONTEXT, 83, "CompilationContext._normalize_cuda_arch"),
    (SourceCondition("major == 12", 73), SourceCondition('not is_cuda_version_at_least("12.9")', 77)),
)


def log_of(name: str) -> bytes:
    return (LOGS / name).read_bytes()


def seed() -> Diagnosis:
    """The seed case as it comes from its host: journal, facts, installed source."""
    facts = given(FACTS).facts
    found = diagnose_log(log_of("incident.export"), "incident.export", facts)
    warning = next(event for event in found.incident.events if event.id == found.incident.primary)
    seen = SeenInLog("Failed to get device capability: SM 12.x requires CUDA >= 12.9.", warning.place, "SM 12.x requires CUDA >= 12.9", _HIDDEN, 18)  # fmt: skip
    source = SourceAnswer(
        place=SourceLine(_CORE, 109, "check_cuda_arch", 'raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")'),
        raises="RuntimeError",
        message="FlashInfer requires GPUs with sm75 or higher",
        conditions=(SourceCondition("not eligible", 108),),
        what_ifs=(SourceWhatIf("TARGET_CUDA_ARCHS", ("empty",), "always"),),
        origin=(SourceStep("write", "self.TARGET_CUDA_ARCHS = set()", 1, SourceLine(_CONTEXT, 89, "CompilationContext.__init__")),),
        swallowed=(SwallowedException(SourceLine(_CONTEXT, 107, "CompilationContext.__init__"), ("Exception",), skips="self.TARGET_CUDA_ARCHS.add(…)", hides=(_HIDDEN,), seen=(seen,)),),
        confirmed=("FLASHINFER_CUDA_ARCH_LIST",),
    )  # fmt: skip
    prescribed = prescribe(msgspec.structs.replace(found, source=source))
    # the durations of the record differ from run to run
    steps = tuple(msgspec.structs.replace(step, duration=None) for step in prescribed.investigation.steps)
    return msgspec.structs.replace(
        prescribed, investigation=msgspec.structs.replace(prescribed.investigation, steps=steps)
    )


def bare() -> Diagnosis:
    """The seed case as a log alone, without its host."""
    return prescribe(diagnose_log(log_of("sglang.log"), "sglang.log"))


def untimed() -> Diagnosis:
    """The seed case as a pasted log whose lines have no times."""
    found = bare()
    events = tuple(msgspec.structs.replace(event, time=None) for event in found.incident.events)
    return msgspec.structs.replace(found, incident=msgspec.structs.replace(found.incident, events=events))


def unknown() -> Diagnosis:
    """A failure that the catalogue does not know."""
    text = b'Traceback (most recent call last):\n  File "/srv/app/main.py", line 3, in run\n    raise OddError("no such moon")\nOddError: no such moon\n'
    return prescribe(diagnose_log(text, "odd.log"))


def hostile(text: str = HOSTILE) -> Diagnosis:
    """Every text of a diagnosis replaced by ``text``."""
    evidence = Evidence(text, text, Place("log", text, 1))
    remedy = Remedy(
        kind="env", name=text, value="v", summary=text, commands=(text,), cost=text, undo=(text,), check=(text,),
        limits=(text,), risk=text,
    )  # fmt: skip
    finding = Finding(
        cause=text, family=text, component=text, certainty=Certainty.LIKELY, title=text,
        chain=(Link(text, evidence, is_swallowed=True), Link(text), Link(text, evidence, installed=evidence)),
        evidence=(evidence,), against=(evidence,), missing=(Missing(text, text, text),), rivals=(text,),
        remedies=(remedy, remedy), not_remedies=(NotARemedy(text, text),), notes=(text,),
    )  # fmt: skip
    lines = tuple(LogLine(number, text, text) for number in range(1, 4))
    process = Process(text, 7, 0, text)
    events = tuple(
        Event(id=number, kind="exception", text=text, place=Place("log", text, number), span=Span(text, number, number), process=process, is_fatal=True, time=1e9 + number)
        for number in range(1, 4)
    )  # fmt: skip
    return Diagnosis(
        where=text,
        incident=Incident(logs=(Log(text, text, lines, (text,)),), events=events, primary=1, unit=text, engine=text),
        findings=(finding, msgspec.structs.replace(finding, is_independent=True)),
        ruled_out=(Excluded(text, text, (evidence,)),),
        decides=Missing(text, text, text),
        before=(evidence,),
        facts=tuple(given({f"env.{text[:50]}": text, "binary_archs": {"a": [text, "sm_120"]}, "gpu": text}).facts),
        notes=(text,),
    )


def large(events: int = 500, lines: int = 20_000) -> Diagnosis:
    """The seed case with hundreds of events of many ranks, and a log of many lines."""
    base = seed()
    log = base.incident.logs[0]
    begun = log.lines[0].time or 0.0
    more_lines = tuple(
        LogLine(log.lines[-1].number + number, f"[rank {number % 16}] step {number}: loss is finite, {'word ' * 12}", f"[rank {number % 16}] step {number}: loss is finite, {'word ' * 12}", time=begun + number)
        for number in range(1, lines + 1)
    )  # fmt: skip
    more = tuple(
        Event(
            id=100 + number, kind=("warning", "exception", "death", "kernel")[number % 4],
            text=f"rank {number % 16} gave up after {number} tries of the collective operation that never came back to it",
            place=Place("journal", log.name, log.lines[-1].number + number * 40 + 1),
            span=Span(log.name, log.lines[-1].number + number * 40 + 1, log.lines[-1].number + number * 40 + 1),
            process=Process(f"TP{number % 16}", 30_000 + number % 16, number % 16), time=begun + number * 1.7,
            is_fatal=number % 2 == 1,
        )
        for number in range(events - len(base.incident.events))
    )  # fmt: skip
    incident = msgspec.structs.replace(
        base.incident,
        events=base.incident.events + more,
        logs=(msgspec.structs.replace(log, lines=log.lines + more_lines),),
    )
    return msgspec.structs.replace(base, incident=incident)


def inspected() -> Inspection:
    """Three libraries against a GPU that one of them has no code for."""

    def file(path: str, outcome: Outcome, *architectures: str) -> InspectedFile:
        runs = outcome in (Outcome.NATIVE, Outcome.JIT)
        verdict = Verdict(outcome, runs, 4, 4 * (outcome is Outcome.NATIVE), 0, 0, 4 * (not runs), 0, "by its images")
        held = ContainerSet(".nv_fatbin", "registered", 4, architectures, 4096, outcome=outcome)
        return InspectedFile(path=path, kind="shared library", machine="x86-64", size=10_000_000, architectures=architectures, containers=4, container_sets=(held,), verdict=verdict)  # fmt: skip

    return Inspection(
        (
            file("/opt/sglang/lib/python3.12/site-packages/sgl_kernel/sm100/common_ops.abi3.so", Outcome.NATIVE, "sm_90a", "sm_100a", "sm_120a"),
            file("/opt/sglang/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so", Outcome.JIT, "sm_80", "sm_90", "compute_90"),
            file("/opt/sglang/lib/python3.12/site-packages/flash_attn_2_cuda.so", Outcome.NONE, "sm_80", "sm_90"),
        ),
        compute_capability="12.0",
        gpu="NVIDIA RTX PRO 6000 Blackwell",
        driver="580.95.05",
    )  # fmt: skip


def checked() -> Forecast:
    """A check that finds the seed's problem twice, before anything failed."""
    found = seed().findings[0]
    problem = Problem(cause=found.cause, component=found.component, certainty=found.certainty, title=found.title, evidence=found.evidence, remedies=found.remedies, not_remedies=found.not_remedies)  # fmt: skip
    return Forecast(
        where="gpu-host",
        problems=(problem, msgspec.structs.replace(problem, certainty=Certainty.POSSIBLE)),
        passed=(Passed("the driver is new enough", "580.95.05 for CUDA 13.0"),),
        unchecked=(Unchecked("Fabric Manager", "not asked", "fabric", "systemctl status nvidia-fabricmanager"),),
        facts=tuple(given(FACTS).facts),
        estimate=estimated(model(KIMI), "sglang 0.5.15", "--tp 8", SEED_GPU, 8, host_gib=238.4),
    )


def fitted() -> FitAnswer:
    """The seed deployment at a fraction that starves its cache, and the settings that fit."""
    memory = memory_of(SEED_GPU)
    assert memory is not None
    hardware, settings = hardware_of(memory, 8), read_command("sglang", "0.5.23", _TOO_LOW)
    return FitAnswer(estimate(_kimi(), hardware, settings), search(_kimi(), hardware, settings, Goal.CONTEXT))


_TOO_LOW = "--tp 8 --mem-fraction-static 0.72"


def _kimi() -> Model:
    """With the size of its checkpoint."""
    made = model(KIMI)
    scaled = scaled_inventory(made.inventory, KIMI_BYTES, made.inventory.largest_file_bytes)
    return msgspec.structs.replace(made, inventory=scaled)


def overfull() -> FitAnswer:
    """More than there is, and refused by the engine's own checks too."""
    return FitAnswer(estimated(model(KIMI), "vllm 0.33.0", "-tp 3 --gpu-memory-utilization 0.95", "H100", 3))


def hostile_fit() -> FitAnswer:
    """Hostile text wherever a configuration or a command gets into an estimate."""
    found = estimated(_kimi(), "sglang 0.5.23", _TOO_LOW, SEED_GPU, 8)
    parts = tuple(msgspec.structs.replace(each, name=HOSTILE, source=HOSTILE, detail=HOSTILE) for each in found.parts)
    assert found.decisive is not None
    decisive = msgspec.structs.replace(found.decisive, message=HOSTILE, says=HOSTILE)
    changed = msgspec.structs.replace(found, model=HOSTILE, gpu=HOSTILE, reason=HOSTILE, parts=parts, decisive=decisive, missing=(HOSTILE,))  # fmt: skip
    return FitAnswer(changed)


OUT_OF_MEMORY = (
    "[2026-11-29 10:04:09] server_args=ServerArgs(model_path='/models/Kimi-K2.6', tp_size=8)\n"
    "[2026-11-29 10:05:00 TP0] Load weight begin. avail mem=93.52 GB\n"
    "[2026-11-29 10:09:00 TP0] Load weight end. elapsed=240.00 s, type=KimiK25ForConditionalGeneration, avail mem=21.82 GB, mem usage=71.70 GB.\n"
    "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.7578. Raise --mem-fraction-static "
    "above 0.7667 (minimum viable = 1 - 21.82/93.52 = 0.7667).\n"
)


def out_of_memory(*, knows_the_model: bool = True) -> Diagnosis:
    """A start that the weights left no cache; what the model is comes from its files."""
    described: dict[str, object] = {"model_bytes": 595_140_000_000, "packages.sglang": "0.5.23", "server_args.tp_size": 8}  # fmt: skip
    described |= {f"model.{name}": value for name, value in config(KIMI).items()}
    facts = given(described).facts if knows_the_model else None
    return prescribe(diagnose_log(OUT_OF_MEMORY.encode(), "sglang.log", facts))


def waiting() -> Diagnosis:
    """A process that hangs, and for whose hanging the catalogue has no cause."""
    seen = Evidence("it waits for a lock", "flock /root/.cache/lock", Place("command", "/proc/7/stack"))
    return Diagnosis(
        where="gpu-host",
        incident=Incident(logs=(), events=(), is_failure=False),
        findings=(),
        waiting=Waiting(
            pid=7, state="stuck", what="lock", headline="process 7 waits for a lock that nobody holds", evidence=(seen,),
            stack=("acquire (filelock/_api.py:300)", "build (flashinfer/jit/core.py:200)"), remarks=("seen for 2 s",),
        ),
    )  # fmt: skip

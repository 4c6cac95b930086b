"""The report for people: the answer first, everything that was found, nothing that harms."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import msgspec
import pytest

from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.finding import Certainty, Excluded, Finding, Link, Missing
from gpuwhy.model.remedy import NotARemedy, Remedy
from gpuwhy.remedies import prescribe
from gpuwhy.reports import Detail, render
from gpuwhy.reports.colour import coloured
from gpuwhy.reports.text import rows
from gpuwhy.snapshot.given import given

LOGS = Path(__file__).parents[1] / "data" / "logs"
HOSTILE = "\x1b]0;owned\x07 \x1b[2J\u202e\x9b31m\r\n\x00 \udc80 [bold]x[/bold]"


def diagnosed(text: str) -> Diagnosis:
    return prescribe(diagnose_log(text.encode(), "a.log"))


@pytest.fixture(scope="module")
def seed() -> Diagnosis:
    return prescribe(diagnose_log((LOGS / "sglang.log").read_bytes(), "sglang.log"))


@pytest.fixture
def hostile(seed: Diagnosis) -> Diagnosis:
    """Every text of a diagnosis replaced by a hostile one."""
    evidence = Evidence(HOSTILE, HOSTILE, Place("log", HOSTILE, 1))
    remedy = Remedy(
        kind="env", name=HOSTILE, value=HOSTILE, summary=HOSTILE, commands=(HOSTILE,), cost=HOSTILE,
        undo=(HOSTILE,), check=(HOSTILE,), limits=(HOSTILE,), risk=HOSTILE,
    )  # fmt: skip
    finding = Finding(
        cause=HOSTILE, family=HOSTILE, component=HOSTILE, certainty=Certainty.LIKELY, title=HOSTILE,
        chain=(Link(HOSTILE, evidence, is_swallowed=True), Link(HOSTILE)), evidence=(evidence,), against=(evidence,),
        missing=(Missing(HOSTILE, HOSTILE, HOSTILE),), rivals=(HOSTILE,), remedies=(remedy, remedy),
        not_remedies=(NotARemedy(HOSTILE, HOSTILE),), notes=(HOSTILE,),
    )  # fmt: skip
    return msgspec.structs.replace(
        seed,
        where=HOSTILE,
        findings=(finding, finding),
        ruled_out=(Excluded(HOSTILE, HOSTILE, (evidence,)),),
        decides=Missing(HOSTILE, HOSTILE, HOSTILE),
        before=(evidence,),
        facts=tuple(given({f"env.{HOSTILE}": HOSTILE}).facts),
        notes=(HOSTILE,),
    )


def test_the_first_line_is_the_answer(seed: Diagnosis) -> None:
    first, second = render(seed, "text", Detail(width=0)).splitlines()[:2]
    assert first.startswith("sglang.log: likely: FlashInfer finds a CUDA version below 12.9")
    assert second.startswith("toolkit-too-old-for-arch, in flashinfer: likely")


def test_the_seed_in_the_order_of_its_questions(seed: Diagnosis) -> None:
    text = render(seed, "text")
    headings = ["How it happened", "What to do first", "Other ways", "Does not help", "Ruled out", "Could still be", "Not known"]  # fmt: skip
    starts = tuple(headings)
    assert [
        line.partition(" (")[0].partition(":")[0] for line in text.splitlines() if line.startswith(starts)
    ] == headings


def test_in_full_each_question_has_its_section(seed: Diagnosis) -> None:
    text = render(seed, "text", Detail(verbose=True))
    headings = [
        "How it happened",
        "Evidence",
        "What to do first",
        "Other ways, from the smallest change to the largest",
        "What does not help",
        "What else it could be",
        "Ruled out",
        "What is not known, and the one command that decides",
    ]
    assert [line for line in text.splitlines() if line in headings] == headings


def test_the_short_report_names_what_decides(seed: Diagnosis) -> None:
    text = " ".join(render(seed, "text").split())
    for expected in (
        "likely: it fits, one link is inferred",
        "sglang.log:1: Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
        "catches every exception and only logs a warning [swallowed]",
        "sglang.log:67: RuntimeError: FlashInfer requires GPUs with sm75 or higher",
        "--sampling-backend pytorch",
        "check that it helped: # with its port and model: curl",
        "Could still be: toolkit-path-wrong (possible), toolkit-missing (possible)",
    ):
        assert expected in text


def test_the_seed_in_full_names_links_remedies_and_what_fails(seed: Diagnosis) -> None:
    text = " ".join(render(seed, "text", Detail(verbose=True)).split())
    for expected in (
        "sglang.log:1: Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
        "CompilationContext.__init__ catches every exception and only logs a warning [swallowed]",
        "TARGET_CUDA_ARCHS stays an empty set [inferred]",
        "sglang.log:67: RuntimeError: FlashInfer requires GPUs with sm75 or higher",
        "FLASHINFER_CUDA_ARCH_LIST=12.0a",
        "--sampling-backend pytorch",
        "sglang >=0.5.22",
        "Install a CUDA toolkit of at least 12.9",
        "FLASHINFER_CUDA_ARCH_LIST=12.0f: nvcc 12.8 does not know compute_120f",
        "toolkit-path-wrong (possible)",
    ):
        assert expected in text


@pytest.mark.parametrize("width", [60, 80, 100])
def test_it_keeps_to_the_width_but_for_commands_and_words_that_are_longer(seed: Diagnosis, width: int) -> None:
    commands = {
        line for remedy in seed.findings[0].remedies for line in (*remedy.commands, *remedy.check, *remedy.undo)
    }
    commands |= {seed.decides.command} if seed.decides is not None else set()
    for line in render(seed, "text", Detail(width=width)).splitlines():
        is_one_word = len(line.split()) == 1
        assert len(line) <= width or line.strip() in commands or is_one_word, line


def test_commands_are_whole_lines_to_copy(seed: Diagnosis) -> None:
    shown = {line.strip() for line in render(seed, "text", Detail(verbose=True, width=60)).splitlines()}
    for remedy in seed.findings[0].remedies:
        assert set(remedy.commands) <= shown


def test_what_came_before_is_no_cause() -> None:
    log = (LOGS / "incident.export").read_bytes()
    found = prescribe(diagnose_log(log, "incident.export"))
    assert "Not the cause: " in render(found, "text")
    text = render(found, "text", Detail(verbose=True))
    _, came_before = text.split("What came before, and is not the cause of this")
    assert "sglang-eagle3.service" in came_before
    assert "Out of memory: Killed process" in came_before
    assert text.startswith("sglang.service on incident.export: ")


def test_a_failure_that_nobody_knows_is_shown_as_it_is() -> None:
    text = render(
        diagnosed(
            "Traceback (most recent call last):\n"
            '  File "/srv/app/serve.py", line 41, in main\n'
            "    rise(phase)\n"
            "MoonPhaseError: the moon is waning\n"
        ),
        "text",
    )
    assert text.splitlines()[0] == "a.log: MoonPhaseError: the moon is waning"
    assert "The cause is not in the catalogue" in text
    assert "/srv/app/serve.py:41 in main" in text
    assert "rise(phase)" in text


def test_no_failure_says_so() -> None:
    assert render(diagnosed("INFO: Application startup complete.\n"), "text").startswith(
        "a.log: no failure in what was examined"
    )


def test_another_platform_is_named() -> None:
    text = render(diagnosed("RuntimeError: HIP error: hipErrorNoBinaryForGpu: Unable to find code object\n"), "text")
    assert "ROCm" in text


def test_not_enough_was_examined(seed: Diagnosis) -> None:
    empty = msgspec.structs.replace(
        diagnosed("INFO: Application startup complete.\n"), is_examined=False, where="gpu-7"
    )
    assert render(empty, "text").startswith("gpu-7: not enough could be examined")


@pytest.mark.parametrize("width", [0, 40, 100])
def test_hostile_text_stays_text(hostile: Diagnosis, width: int) -> None:
    text = render(hostile, "text", Detail(verbose=True, show_work=True, width=width))
    text.encode()
    bad = [c for c in text if (unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n")]
    assert bad == []


def test_hostile_text_in_colour_is_no_markup(hostile: Diagnosis) -> None:
    found = rows(hostile, Detail(verbose=True, show_work=True))
    shown = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(coloured(found, 100, with_links=True)))
    assert "[bold]x[/bold]" in shown
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n" for c in shown)


def test_colours_change_no_word(seed: Diagnosis) -> None:
    sent = "".join(f"{line}\n" for line in coloured(rows(seed, Detail()), 100))
    assert "\x1b[1m" in sent
    assert re.sub(r"\x1b\[[\d;]*m", "", sent) == render(seed, "text", Detail())


@pytest.mark.parametrize(
    ("kind", "name", "value", "heading"),
    [
        ("env", "CUDA_HOME", "/usr/local/cuda", "CUDA_HOME=/usr/local/cuda"),
        ("env", "VLLM_PORT", "unset", "unset VLLM_PORT"),
        ("env", "CUDA_VISIBLE_DEVICES", "a GPU that is free", "CUDA_VISIBLE_DEVICES: a GPU that is free"),
        ("flag", "--max-num-seqs", "lower", "lower --max-num-seqs"),
        ("flag", "--trust-remote-code", "set", "--trust-remote-code"),
        ("flag", "--tensor-parallel-size", "4", "--tensor-parallel-size 4"),
        ("config", "network egress", "allow the artifact host", "network egress: allow the artifact host"),
        ("package", "vllm", "newer", "newer vllm"),
        ("package", "torch", "cu128 build", "torch cu128 build"),
        ("package", "flash-attn", "match:torch", "flash-attn, matching torch"),
        ("driver", "nvidia", ">=570", "A sentence"),
        ("toolkit", "cuda", ">=12.9", "A sentence"),
        ("files", "checkpoint", "non-FP8", "A sentence"),
    ],
)
def test_a_remedy_is_headed_by_what_is_typed_or_by_its_sentence(
    seed: Diagnosis, kind: str, name: str, value: str, heading: str
) -> None:
    remedy = Remedy(kind=kind, name=name, value=value, summary="A sentence")
    first = msgspec.structs.replace(seed.findings[0], remedies=(remedy,))
    lines = render(msgspec.structs.replace(seed, findings=(first,)), "text").splitlines()
    after = [*lines[lines.index(next(line for line in lines if line.startswith("What to do first"))) + 1 :], ""]
    assert after[0].strip() == heading
    assert (after[1].strip() == "A sentence") is (heading != "A sentence")


def test_a_line_of_its_own_begins_with_a_capital_unless_a_program_is_named(seed: Diagnosis) -> None:
    first = seed.findings[0]
    chain = (Link("the shell finds no such program"), Link("nvcc refuses"), Link("a kernel is missing"))
    other = msgspec.structs.replace(first, title="a binary needs a newer glibc", chain=chain)
    diagnosis = msgspec.structs.replace(seed, findings=(other,))
    for detail in (Detail(), Detail(verbose=True)):
        text = render(diagnosis, "text", detail)
        assert "  1. The shell finds no such program" in text
        assert "  2. nvcc refuses" in text
        assert "  3. A kernel is missing" in text
    assert render(diagnosis, "markdown").startswith("## A binary needs a newer glibc\n")
    assert "1. The shell finds" in render(diagnosis, "html")

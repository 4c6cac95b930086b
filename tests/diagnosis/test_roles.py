"""Nothing is told of in two roles that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from scripts.score import CASES, _given_facts, read_cases

from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.remedies import prescribe
from gpuwhy.reports import render

KILL = "Nov 29 09:59:30 gpu-host kernel: Memory cgroup out of memory: Killed process 23 (sglang::schedul) total-vm:79564kB, anon-rss:67968kB, file-rss:5596kB, shmem-rss:0kB, UID:0 pgtables:196kB oom_score_adj:0\n"
OTHER_ENDED = "Nov 29 09:59:31 gpu-host systemd[1]: other.service: Main process exited, code=killed, status=9/KILL\n"
STARTED = "Nov 29 10:00:01 gpu-host systemd[1]: Started sglang.service - SGLang.\n"
FAILED = "Nov 29 10:00:05 gpu-host python3[99]: RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
UNKNOWN = "Nov 29 10:00:05 gpu-host python3[99]: RuntimeError: the moon is in the wrong house\n"
EXITED = "Nov 29 10:00:07 gpu-host systemd[1]: sglang.service: Main process exited, code=exited, status=1/FAILURE\n"
MADE = {
    "a kill before a life that failed otherwise": KILL + OTHER_ENDED + STARTED + FAILED + EXITED,
    "a kill before a life that failed for an unknown reason": KILL + OTHER_ENDED + STARTED + UNKNOWN + EXITED,
    "a kill before a life and one in it": KILL + OTHER_ENDED + STARTED + KILL.replace("09:59:30", "10:00:06") + EXITED,
    "a kill before and a fault of a GPU in it": KILL + STARTED + FAILED.replace("RuntimeError", "NVRM: Xid (PCI:0000:41:00): 79, pid=99, GPU has fallen off the bus. RuntimeError") + EXITED,
}  # fmt: skip


def _told() -> Iterator[tuple[str, Diagnosis]]:
    for name, text in MADE.items():
        yield name, prescribe(diagnose_log(text.encode(), "report"))
    for case in read_cases(CASES):
        for facts in (None, _given_facts(case)):
            yield case["id"], prescribe(diagnose_log(case["report"].encode(), "report", facts))


def contradictions(diagnosis: Diagnosis) -> Iterator[str]:
    """What is told twice, in roles of which only one can be true."""
    incident, findings = diagnosis.incident, diagnosis.findings
    explained = {event for each in findings for event in each.explains}
    not_the_cause = {str(each.place) for each in diagnosis.before}
    for event in explained:
        if str(incident.event(event).place) in not_the_cause:
            yield f"{incident.event(event).place} is explained by a finding, and is not the cause"
    causes = [each.cause for each in findings]
    out = {each.cause for each in diagnosis.ruled_out}
    if len(set(causes)) < len(causes):
        yield f"found twice: {causes}"
    if out & set(causes):
        yield f"found and ruled out: {out & set(causes)}"
    for each in findings:
        if out & set(each.rivals):
            yield f"a rival of {each.cause}, and ruled out: {out & set(each.rivals)}"
        if each.is_independent and each.consequence_of:
            yield f"{each.cause} follows from {each.consequence_of}, and is a problem of its own"
        if each.consequence_of and each.consequence_of not in causes:
            yield f"{each.cause} follows from {each.consequence_of}, which was not found"
        if each.is_independent and findings[0].cause in each.rivals:
            yield f"{each.cause} is beside {findings[0].cause}, and its rival"
        helps = {remedy.name for remedy in each.remedies} | {remedy.summary for remedy in each.remedies}
        if helps & {remedy.what for remedy in each.not_remedies}:
            yield f"a remedy of {each.cause} that does not help"
    if findings and findings[0].is_independent:
        yield "the first finding is beside itself"


def test_no_report_says_two_things_of_one_event_or_cause() -> None:
    seen = [f"{name}: {told}" for name, diagnosis in _told() for told in contradictions(diagnosis)]
    assert seen == []


def test_a_kill_before_the_life_that_failed_is_no_answer_and_is_named_as_such() -> None:
    diagnosis = prescribe(diagnose_log(MADE["a kill before a life that failed otherwise"].encode(), "report"))
    assert "host-oom-kill" not in [each.cause for each in diagnosis.findings]
    assert diagnosis.findings[0].cause in ("binary-lacks-arch", "torch-lacks-arch")
    told = render(diagnosis, "text")
    assert "Not the cause: the kernel killed a process for lack of memory, before this life" in told
    assert "A second problem" not in told


def test_a_kill_in_the_life_that_failed_is_the_answer_all_the_same() -> None:
    diagnosis = prescribe(diagnose_log(MADE["a kill before a life and one in it"].encode(), "report"))
    assert diagnosis.findings[0].cause == "host-oom-kill"


@pytest.mark.parametrize("role", ["found", "ruled out"])
def test_the_check_finds_what_it_looks_for(role: str) -> None:
    """Diagnoses that do contradict themselves."""
    diagnosis = prescribe(diagnose_log(MADE["a kill before a life and one in it"].encode(), "report"))
    first = diagnosis.findings[0]
    if role == "found":
        spoiled = msgspec.structs.replace(diagnosis, findings=(first, first))
    else:
        first = msgspec.structs.replace(first, is_independent=True)
        spoiled = msgspec.structs.replace(diagnosis, findings=(first,))
    assert list(contradictions(spoiled))

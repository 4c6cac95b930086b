"""Findings about signs after which the service served are no answer; those about what ended it are."""

from __future__ import annotations

from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.finding import Certainty

POST = 'INFO:     192.0.2.7:53130 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
WARNED = "/x/torch/cuda/__init__.py:287: UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
NO_IMAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
LOST = "[91234.123456] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


def diagnosed(text: str) -> Diagnosis:
    return diagnose_log(text.encode(), "x")


def causes(text: str) -> list[str]:
    return [finding.cause for finding in diagnosed(text).findings]


def test_a_sign_before_it_served_is_no_answer_and_stays_in_the_record() -> None:
    assert causes(WARNED) == ["torch-lacks-arch"]
    served = diagnosed(WARNED + POST * 3)
    assert served.findings == ()
    asked = {step.question: step.found for step in served.investigation.steps}
    assert asked["is it torch-lacks-arch?"].startswith("seen, and survived")


def test_another_failure_after_it_served_is_not_put_down_to_it() -> None:
    assert causes(WARNED + POST * 3 + LOST)[0] == "gpu-lost"
    assert "torch-lacks-arch" not in causes(WARNED + POST * 3 + LOST)


def test_a_sign_that_explains_what_came_later_stays() -> None:
    assert causes(WARNED + POST * 3 + NO_IMAGE)[0] == "torch-lacks-arch"


def test_a_mere_possibility_is_none_in_a_whole_log_without_failure() -> None:
    said = "node-a:211:260 [0] NCCL INFO Failed to open libibverbs.so[.1]\n"
    found = diagnosed(said + "".join(f"loading part {n}\n" for n in range(60)))
    assert (found.findings, found.incident.is_failure) == ((), False)


def test_what_a_person_says_is_not_outweighed_by_work() -> None:
    said = "With two GPUs it just hangs after this, no further output:\n"
    complete = (
        "n:91:91 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x3f - Init COMPLETE\n"
    )
    found = diagnosed(said + complete)
    assert found.findings
    assert found.findings[0].certainty is Certainty.POSSIBLE

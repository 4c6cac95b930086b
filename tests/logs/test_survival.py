"""What looks fatal and was survived, and what only resembles it."""

from __future__ import annotations

import textwrap

import pytest

from gpuwhy.logs import find_incidents, read_bytes
from gpuwhy.model.incident import Incident

POST = 'INFO:     192.0.2.7:53130 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
READY = "INFO:     Application startup complete.\n"


def incident(text: str) -> Incident:
    return find_incidents([read_bytes(textwrap.dedent(text).encode(), "x")])


def begins_with(found: Incident) -> str:
    assert found.primary_event is not None
    return found.primary_event.text.partition("\n")[0]


def test_an_exception_that_was_survived_does_not_hide_the_one_that_was_not() -> None:
    found = incident(READY + "ValueError: prompt too long\n" + POST * 9 + "RuntimeError: CUDA error: unknown error\n")
    assert begins_with(found) == "RuntimeError: CUDA error: unknown error"


def test_an_exception_shortly_before_the_end_is_its_beginning() -> None:
    found = incident(READY + POST * 9 + "ValueError: a worker's\n" + POST * 2 + "Worker proc died unexpectedly\n")
    assert begins_with(found) == "ValueError: a worker's"


def test_what_a_new_process_does_says_nothing_of_the_one_before() -> None:
    found = incident("ValueError: first life\nINFO x api_server.py:149] vLLM API server version 0.9.0\n" + READY + POST)
    assert begins_with(found) == "ValueError: first life"


STOP = """\
    Jul 04 00:10:00 g systemd[1]: Started vllm.service - vLLM.
    {first}
    Jul 04 00:10:03 g systemd[1]: vllm.service: Main process exited, code=exited, status=143/n/a
    Jul 04 00:10:03 g systemd[1]: vllm.service: Failed with result 'exit-code'.
    Jul 04 00:10:03 g systemd[1]: Stopped vllm.service - vLLM.
"""


def test_an_ordered_stop_is_no_failure_whatever_the_exit_status() -> None:
    ordered = incident(STOP.format(first="Jul 04 00:10:01 g systemd[1]: Stopping vllm.service - vLLM..."))
    assert not ordered.is_failure
    by_itself = incident(STOP.format(first="Jul 04 00:10:01 g vllm[7]: INFO: nothing"))
    assert begins_with(by_itself).startswith("vllm.service: Main process exited")


INTERRUPTED = """\
Traceback (most recent call last):
  File "/opt/x/baton.py", line 9, in wait
    time.sleep(1)
KeyboardInterrupt
"""


def test_an_interrupt_stops_a_server_that_served_and_shows_where_another_hung() -> None:
    assert not incident(READY + POST + INTERRUPTED).is_failure
    assert begins_with(incident("Loading extension\n" + INTERRUPTED)) == "KeyboardInterrupt"
    assert begins_with(incident(READY + "request 1\n" + INTERRUPTED)) == "KeyboardInterrupt"


WAITING = (
    "  Warning  FailedScheduling  6m30s  default-scheduler  0/5 nodes are available: 5 Insufficient nvidia.com/gpu.\n"
)


def test_a_pod_that_found_a_node_later() -> None:
    placed = "  Normal   Scheduled         6m     default-scheduler  Successfully assigned llm/vllm-0 to gpu-node-2\n"
    assert not incident(WAITING + placed).is_failure
    assert incident(WAITING).is_failure
    assert incident(placed + WAITING).is_failure, "another pod, or the same one again"


@pytest.mark.parametrize(
    ("process", "is_failure"), [("nautilus", False), ("gnome-shell", False), ("python3", True), ("server", True)]
)
def test_the_crash_of_a_desktop_program_is_none_of_the_services(process: str, is_failure: bool) -> None:
    text = f"[ 910.0] {process}[4110]: segfault at 8 ip 00007f0b sp 00007ffc error 4 in lib{process}.so[7f0b2c1a0000+a1000]\n"
    assert incident(text).is_failure is is_failure


def test_tests_that_passed_had_failures_to_test() -> None:
    run = "ERROR    engine:test_engine.py:11 worker died unexpectedly\n=== {how} in 0.04s ===\n"
    assert not incident(run.format(how="7 passed")).is_failure
    assert incident(run.format(how="1 failed, 6 passed")).is_failure


ADVICE = "/x/torch/utils/cpp_extension.py:2425: UserWarning: TORCH_CUDA_ARCH_LIST is not set, all archs are included.\n"
TELLING = "/x/torch/cuda/__init__.py:287: UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
DULL = "loading part {n}\n"


def test_a_warning_is_a_failure_where_it_is_what_somebody_shows() -> None:
    long = "".join(DULL.format(n=n) for n in range(60))
    assert not incident(ADVICE).is_failure
    assert incident(TELLING).is_failure
    assert incident(TELLING + long).is_failure, "nothing shows that it works"
    assert not incident(TELLING + POST * 2).is_failure
    bare = "cannot open the file\n"
    assert incident(bare + "and so on\n").is_failure
    assert not incident(bare + long).is_failure
    assert incident(long + bare).is_failure, "its end"


def test_an_error_after_which_it_answers_on() -> None:
    error = "ERROR 08-21 07:32:10 [serving_chat.py:201] Error in preprocessing prompt inputs\n"
    assert not incident(READY + error + POST).is_failure
    assert incident(READY + POST + error).is_failure


def test_the_words_of_users_are_no_failure_of_the_server() -> None:
    prompt = "RuntimeError: CUDA error: out of memory"
    assert not incident(f'Input: {{"prompt": "{prompt}", "max_length": 120}}\n').is_failure
    assert not incident(f"test_engine.py::test_error_handling[{prompt}] PASSED [ 57%]\n").is_failure
    assert incident(f"{prompt}\n").is_failure


def test_a_transcript_is_no_report() -> None:
    assert not incident("[00:04.820 --> 00:09.120]  The server hangs when the memory is full.\n").is_failure
    assert incident("The server hangs when the memory is full.\n").is_failure

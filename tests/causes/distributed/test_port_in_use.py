"""Ports that are taken: who says it, which port it is, and what moves it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

UVICORN = """\
INFO:     Started server process [1]
INFO:     Application startup complete.
ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use
INFO:     Waiting for application shutdown.
"""
TORCH = """\
[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
[E socket.cpp:462] [c10d] The server socket has failed to listen on any local network address.
Traceback (most recent call last):
  File "serve.py", line 10, in <module>
    torch.distributed.init_process_group("nccl")
RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
"""
NEWER_TORCH = "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n"
ACCELERATE = "ConnectionError: Tried to launch distributed communication on port `29500`, but another process is utilizing it. Please specify a different port (such as using the `--main_process_port` flag)\n"
SGLANG = """\
Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/utils.py", line 2200, in wait_port_available
    raise ValueError(
ValueError: nccl_port at 30123 is not available in 30 seconds. nccl_port is used by a process already. pid=4711
"""
LLAMA = "srv    operator(): couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080\n"
OLLAMA = "$ ollama serve\nError: listen tcp 127.0.0.1:11434: bind: address already in use\n"
DOCKER = "docker: Error response from daemon: driver failed programming external connectivity on endpoint vllm: Bind for 0.0.0.0:8000 failed: port is already allocated.\n"
TRITON_SERVER = "failed to start HTTP service: Unavailable - Socket '0.0.0.0:8000' already in use\n"
RUST = "thread 'main' panicked at src/server.rs:210:10:\ncalled `Result::unwrap()` on an `Err` value: Os { code: 98, kind: AddrInUse, message: \"Address already in use\" }\n"
WINDOWS = "OSError: [WinError 10048] Only one usage of each socket address (protocol/network address/port) is normally permitted\n"


@pytest.mark.parametrize(
    ("report", "certainty", "component", "remedy"),
    [
        (UVICORN, Certainty.PROVEN, None, "--port"),
        (TORCH, Certainty.PROVEN, "torch", "MASTER_PORT"),
        (NEWER_TORCH, Certainty.PROVEN, "torch", "MASTER_PORT"),
        (ACCELERATE, Certainty.PROVEN, None, "--main_process_port"),
        (SGLANG, Certainty.PROVEN, "sglang", "--nccl-port"),
        (LLAMA, Certainty.LIKELY, "llama.cpp", "--port"),
        (OLLAMA, Certainty.PROVEN, "ollama", "OLLAMA_HOST"),
        (DOCKER, Certainty.PROVEN, "container-engine", "--publish"),
        (TRITON_SERVER, Certainty.PROVEN, "triton-inference-server", "--http-port"),
        (TRITON_SERVER.replace("HTTP", "GRPC"), Certainty.PROVEN, "triton-inference-server", "--grpc-port"),
        (RUST, Certainty.PROVEN, None, "--port"),
        (WINDOWS, Certainty.PROVEN, None, "--port"),
    ],
)
def test_each_program_says_it_in_its_words(
    judge_report: Judge, finding: Find, report: str, certainty: Certainty, component: str | None, remedy: str
) -> None:
    found = finding(judge_report(report), "port-in-use")
    assert found.certainty is certainty
    assert component is None or found.component == component
    assert remedy in [each.name for each in found.remedies]


def test_the_number_of_the_port_is_read_and_asked_after(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(UVICORN), "port-in-use")
    assert "8000" in found.title
    assert found.missing[0].key == "processes"
    assert "8000" in found.missing[0].command


def test_an_internal_port_is_not_moved_by_the_http_option(judge_report: Judge, finding: Find) -> None:
    report = (
        "$ vllm serve /models/a --port 8003\n"
        '  File "/usr/lib/python3.12/site-packages/vllm/distributed/shm_broadcast.py", line 434, in __init__\n'
        "zmq.error.ZMQError: Address already in use (addr='tcp://192.0.2.12:40043')\n"
    )
    found = finding(judge_report(report), "port-in-use")
    assert (found.remedies[0].name, found.remedies[0].value) == ("VLLM_PORT", "unset")
    assert "--port" not in [each.name for each in found.remedies]
    assert any("--port" in each.what for each in found.not_remedies)


def test_the_process_that_holds_it_is_quoted(judge_report: Judge, finding: Find) -> None:
    facts = {"processes": ["0.0.0.0:22 sshd (pid 9)", "0.0.0.0:8000 vllm (pid 4711)"]}
    found = finding(judge_report(UVICORN, facts), "port-in-use")
    assert found.evidence[1].quote == "0.0.0.0:8000 vllm (pid 4711)"
    assert not found.missing


@pytest.mark.parametrize(
    "report",
    [
        "INFO 08-10 23:02:36 [utils.py:3] Port 8000 is already in use, trying port 8001\nINFO:     Application startup complete.\n",
        "node:12:13 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use\nRuntimeError: broken\n",
        "zmq.error.ZMQError: Cannot assign requested address (addr='tcp://192.0.2.5:38211')\n",
        "[c10d] The server socket has failed to listen on any local network address. port: 80, code: -13, name: EACCES, message: Permission denied\n",
        "The fix for 'address book' is in use already\n",
    ],
)
def test_near_misses(judge_report: Judge, report: str) -> None:
    assert "port-in-use" not in [each.cause for each in judge_report(report).findings]


def test_a_port_left_behind_by_an_earlier_failure_comes_second(judge_report: Judge, finding: Find) -> None:
    bound = UVICORN.splitlines(keepends=True)[2]
    report = f'Traceback (most recent call last):\n  File "serve.py", line 3, in <module>\nValueError: no such model\n{bound}'
    assert finding(judge_report(report), "port-in-use").certainty is Certainty.POSSIBLE

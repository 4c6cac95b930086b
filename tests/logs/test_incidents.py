"""From events to the incident: lives, what came before, and the primary event."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gpuwhy.logs import find_incidents, kernel_lines, open_log, read_bytes
from gpuwhy.model.event import Event, Log
from gpuwhy.model.incident import Incident

DATA = Path(__file__).parents[1] / "data" / "logs"


def log(text: str, name: str = "x") -> Log:
    return read_bytes(textwrap.dedent(text).encode(), name)


def incident(*texts: str) -> Incident:
    return find_incidents([log(text, f"log {at}") for at, text in enumerate(texts)])


def primary(*texts: str) -> Event:
    event = incident(*texts).primary_event
    assert event is not None
    return event


def test_the_seed() -> None:
    found = find_incidents([open_log(DATA / "sglang.log")])
    event = found.primary_event
    assert event is not None
    assert (event.kind, event.text, len(event.repeats)) == (
        "warning",
        "Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
        17,
    )
    assert event.detail["surfaced_as"] == "RuntimeError: FlashInfer requires GPUs with sm75 or higher"
    fatal = next(one for one in found.events if one.is_fatal)
    assert fatal.text == event.detail["surfaced_as"]
    assert (fatal.span.first, fatal.span.last, fatal.place.line, len(fatal.repeats)) == (38, 67, 67, 1)
    assert fatal.process is not None
    assert fatal.process.rank == 0
    assert len(fatal.exceptions[0].frames) == 14
    assert fatal.exceptions[0].frames[-1].function == "check_cuda_arch"
    assert event.exceptions == fatal.exceptions, "the reason takes the frames of the failure along"
    assert (found.engine, found.lives, found.is_failure) == ("sglang", 1, True)


def test_the_seed_in_a_journal_with_the_other_unit_killed_before() -> None:
    found = find_incidents([open_log(DATA / "incident.export")])
    event = found.primary_event
    assert event is not None
    assert event.detail["surfaced_as"] == "RuntimeError: FlashInfer requires GPUs with sm75 or higher"
    assert (found.unit, found.lives, found.engine) == ("sglang.service", 3, "sglang")
    assert event.place.line is not None
    assert event.place.line > 216, "the last of the three lives"
    before = [found.event(identity) for identity in found.before]
    assert [(one.kind, one.unit) for one in before][:2] == [
        ("kernel", "sglang-eagle3.service"),
        ("unit", "sglang-eagle3.service"),
    ]
    assert before[0].detail["process"] == "sglang::schedul"
    assert event.id not in found.before
    numbers = {line.number for line in found.logs[0].lines}
    assert 46 not in numbers, "lines of earlier lives are left out"
    assert {3, 4, 217, 254} <= numbers
    assert "other lives" in found.logs[0].notes[-1]


def test_single_life_after_another_unit_was_killed() -> None:
    full = open_log(DATA / "incident.export")
    one = Log(full.name, full.kind, tuple(line for line in full.lines if line.number <= 110))
    found = find_incidents([one])
    assert found.lives == 1
    assert found.primary_event is not None
    assert "FlashInfer requires GPUs" in found.primary_event.detail["surfaced_as"]
    assert found.event(found.before[0]).kind == "kernel"


def test_nothing_but_the_killed_unit() -> None:
    full = open_log(DATA / "incident.export")
    found = find_incidents([Log(full.name, full.kind, full.lines[:7])])
    assert found.unit == "sglang-eagle3.service"
    assert found.primary_event is not None
    assert (found.primary_event.kind, found.primary_event.tool) == ("kernel", "oom")


def test_healthy_log() -> None:
    found = incident(
        """\
        [2026-11-29 10:04:09] server_args=ServerArgs(model_path='/m')
        WARNING 11-29 10:04:10 [x.py:1] User-specified max_model_len is large
        [2026-11-29 10:07:39] The server is fired up and ready to roll!
        INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK
        """
    )
    assert found.primary is None
    assert not found.is_failure


def test_an_exception_that_the_server_survived() -> None:
    served = 'INFO:     127.0.0.1:1 - "POST /v1/chat HTTP/1.1" 200 OK\n' * 9
    found = find_incidents([log("INFO:     Application startup complete.\nValueError: prompt too long\n" + served)])
    assert not found.is_failure


def test_lives_of_a_container() -> None:
    life = """\
INFO 04-19 17:2{n}:10 api_server.py:149] vLLM API server version 0.9.0
WARNING 04-19 17:2{n}:11 [x.py:1] warning of life {n}
ValueError: error of life {n}
"""
    found = find_incidents([log(life.format(n=1) + life.format(n=2) + life.format(n=3))])
    assert found.lives == 3
    assert found.primary_event is not None
    assert found.primary_event.text == "ValueError: error of life 3"
    assert all("life 1" not in event.text and "life 2" not in event.text for event in found.events)


def test_the_last_life_that_failed_when_the_newest_is_healthy() -> None:
    found = incident(
        """\
        INFO 04-19 17:20:10 api_server.py:149] vLLM API server version 0.9.0
        ValueError: error of the first life
        INFO 04-19 17:30:10 api_server.py:149] vLLM API server version 0.9.0
        INFO:     Application startup complete.
        """
    )
    assert found.lives == 2
    assert found.primary_event is not None
    assert found.primary_event.text == "ValueError: error of the first life"


def test_earliest_in_time_over_all_logs() -> None:
    event = primary(
        "(Worker_TP15 pid=2) ERROR 08-10 23:02:38 [m.py:1] RuntimeError: something closed\n",
        "(Worker_TP12 pid=1) ERROR 08-10 23:02:36 [m.py:1] zmq.error.ZMQError: Address already in use\n",
    )
    assert event.text == "zmq.error.ZMQError: Address already in use"


def test_kernel_outranks_the_program() -> None:
    text = "CUDA error: unspecified launch failure\n"
    kernel = kernel_lines("[ 2882.1] x\n[ 2882.100153] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n")
    found = find_incidents([log(text), kernel])
    assert found.primary_event is not None
    assert found.primary_event.detail["number"] == "79"


def test_a_kernel_message_long_after_the_failure_does_not() -> None:
    found = incident(
        """\
        [2026-11-29 10:00:00] ValueError: bad
        [Sun Nov 29 10:05:00 2026] NVRM: Xid (PCI:0000:01:00): 43, pid=1, name=python3, Ch 1
        """
    )
    assert found.primary_event is not None
    assert found.primary_event.kind == "exception"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            """\
            subprocess.CalledProcessError: Command '['ninja']' returned non-zero exit status 1.
            RuntimeError: Ninja build failed. Ninja output:
            FAILED: x.o
            nvcc fatal   : Unsupported gpu architecture 'compute_120'
            ninja: build stopped: subcommand failed.
            RuntimeError: Engine core initialization failed. See root cause above.
            """,
            "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
        ),
        (
            """\
            ImportError:
            [sgl_kernel] CRITICAL: Could not load any common_ops library!

            Error details from previous import attempts:
            - ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory
            - ModuleNotFoundError: No module named 'common_ops'
            """,
            "ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory",
        ),
        (
            """\
            The repository x contains custom code which must be executed to load the model.
            You can avoid this prompt in future by passing the argument `trust_remote_code=True`.
            EOFError: EOF when reading a line
            """,
            "You can avoid this prompt in future by passing the argument `trust_remote_code=True`.",
        ),
        (
            """\
            (W pid=1) worker-0:1:2 [0] misc/ibvwrap.cc:217 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory
            (W pid=1) RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)
            (E pid=2) ERROR EngineCore failed to start.
            """,
            "misc/ibvwrap.cc:217 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
        ),
        (
            """\
            kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid 149
            kernel: NVRM: Xid (PCI:0000:ed:00): 145, NVLINK: RLW_REMAP Nonfatal
            """,
            "NVRM: Xid (PCI:0000:ed:00): 145, NVLINK: RLW_REMAP Nonfatal",
        ),
        (
            """\
            (E pid=1) ERROR 09-10 09:37:41 [m.py:3] Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down
            """,
            "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down",
        ),
    ],
    ids=[
        "build inside wrappers",
        "inner import error",
        "prompt before EOF",
        "NCCL warning",
        "Xid echo",
        "nothing but an echo",
    ],
)
def test_primary(text: str, expected: str) -> None:
    assert primary(text).text == expected


def test_no_logs_and_empty_logs() -> None:
    assert find_incidents([]).primary is None
    assert find_incidents([Log("x", "log", ())]).is_failure is False


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("vllm: error: unrecognized arguments: serve /m\n", "vllm"),
        ('  File "/opt/lib/sglang/srt/x.py", line 1, in f\nRuntimeError: x\n', "sglang"),
        ("ggml_cuda_compute_forward: ADD failed\nCUDA error: no\n", "llama.cpp"),
        ("ollama.service: State 'stop-sigterm' timed out. Killing.\nggml-cuda.cu: CUDA error: x\n", "ollama"),
        (
            (
                'time=2025-08-09T10:11:12.881+02:00 level=INFO source=server.go:168 msg="model wants flash attention"\n'
                "llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'glm4moe'\n"
            ),
            "ollama",
        ),
        (
            "CUDA error: no kernel image\n  current device: 0, in function f at //ml/backend/ggml/ggml/src/ggml-cuda/ggml-cuda.cu:1\n",
            "ollama",
        ),
        ("[TensorRT-LLM][ERROR] Assertion failed: x\n", "tensorrt-llm"),
        ("RuntimeError: x\n", ""),
    ],
)
def test_engine(text: str, engine: str) -> None:
    assert incident(text).engine == engine


def test_a_healthy_start_with_all_the_usual_noise() -> None:
    found = incident(
        """\
        INFO 08-03 17:45:41 [api_server.py:149] vLLM API server version 0.10.0
        WARNING 08-03 17:45:42 [custom_all_reduce.py:144] Setup Custom allreduce failed with peer access is not supported
        node1:1:2 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation
        node1:1:2 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.2<40001> failed : retrying
        ERROR 08-03 17:45:43 [plugins.py:1] Failed to load plugin foo
        x.py:3: FutureWarning: The pynvml package is deprecated.
          import pynvml
        INFO 08-03 17:45:44 [pynccl.py:58] Found nccl from library libnccl.so.2
        INFO 08-03 17:45:45 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.
        Capturing CUDA graphs (PIECEWISE): 100%|##########| 7/7 [00:04<00:00, 1.64it/s]
        INFO:     Application startup complete.
        INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK
        """
    )
    assert not found.is_failure


def test_only_a_message_that_points_backwards() -> None:
    event = primary("Capture cuda graph failed: PassManager::run failed\n")
    assert event.is_echo
    event = primary(
        """\
        WARNING 09-10 09:37:41 [interface.py:1] Failed to import from vllm._C with ImportError('libcudart.so.12: cannot open shared object file')
        AttributeError: '_OpNamespace' '_C' object has no attribute 'silu_and_mul'
        """
    )
    assert event.text == "ImportError: libcudart.so.12: cannot open shared object file"


def test_a_version_that_stands_far_to_the_right_is_no_banner_of_vllm() -> None:
    text = "ERROR: This container was built for NVIDIA Driver Release 555.42 or later, but\n       version 470.199.02 was detected and compatibility mode is UNAVAILABLE.\n"
    assert incident(text).engine == ""


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        ("We serve it with SGLang on two cards.", "sglang"),
        ("vLLM works, SGLang does not.", ""),
        ("We serve it.", ""),
    ],
)
def test_the_words_of_a_person_name_the_engine_where_no_line_of_a_program_does(words: str, engine: str) -> None:
    assert incident(f"{words}\nRuntimeError: CUDA error: out of memory\n").engine == engine


def test_the_kernel_s_log_names_the_engine_only_where_nothing_else_is_there() -> None:
    kernel = read_bytes(b"2026-11-30T14:13:42+0000 gpu kernel: sglang::schedul invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n", "kernel log")  # fmt: skip
    own = read_bytes(b"RuntimeError: CUDA error: no kernel image is available for execution on the device\n", "docker logs x")  # fmt: skip
    assert find_incidents([own, kernel]).engine == ""
    assert find_incidents([kernel]).engine == "sglang"

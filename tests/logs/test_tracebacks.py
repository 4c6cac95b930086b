"""Python tracebacks in all their shapes."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from gpuwhy.logs import find_events, read_bytes
from gpuwhy.model.event import Event, Frame


def events(text: str) -> tuple[Event, ...]:
    return find_events(read_bytes(textwrap.dedent(text).encode(), "x"))


def only(text: str) -> Event:
    found = [event for event in events(text) if event.kind == "exception"]
    assert len(found) == 1, [event.text for event in found]
    return found[0]


def printed_by(program: str) -> str:
    """What a real interpreter prints for ``program``."""
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    return ran.stderr


PLAIN = """\
    Traceback (most recent call last):
      File "/opt/flashinfer/jit/core.py", line 413, in gen_jit_spec
        check_cuda_arch()
        ~~~~~~~~~~~~~~~^^
      File "/opt/flashinfer/jit/core.py", line 108, in check_cuda_arch
        raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")
    RuntimeError: FlashInfer requires GPUs with sm75 or higher
"""


def test_plain() -> None:
    event = only(PLAIN)
    (block,) = event.exceptions
    assert (block.type, block.message) == ("RuntimeError", "FlashInfer requires GPUs with sm75 or higher")
    assert block.frames == (
        Frame("/opt/flashinfer/jit/core.py", 413, "gen_jit_spec", "check_cuda_arch()"),
        Frame(
            "/opt/flashinfer/jit/core.py",
            108,
            "check_cuda_arch",
            'raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")',
        ),
    )
    assert (event.span.first, event.span.last, event.place.line) == (1, 7, 7)
    assert event.text == "RuntimeError: FlashInfer requires GPUs with sm75 or higher"
    assert event.is_fatal
    assert not event.is_echo


def test_real_chain_of_three() -> None:
    event = only(
        printed_by(
            """
            try:
                try:
                    raise OSError(13, "Permission denied", "/cache")
                except OSError as error:
                    raise RuntimeError("cannot build") from error
            except RuntimeError:
                raise ValueError("no kernel")
            """
        )
    )
    assert [(block.type, block.link) for block in event.exceptions] == [
        ("PermissionError", ""),
        ("RuntimeError", "cause"),
        ("ValueError", "during"),
    ]
    assert event.text == "PermissionError: [Errno 13] Permission denied: '/cache'"


def test_a_failed_look_up_is_not_the_headline() -> None:
    event = only(
        printed_by(
            """
            try:
                {}["gpt-oss"]
            except KeyError:
                raise ValueError("unknown model architecture: gpt-oss")
            """
        )
    )
    assert event.text == "ValueError: unknown model architecture: gpt-oss"
    assert event.exceptions[0].type == "KeyError"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups and notes came with 3.11")
def test_real_exception_group_and_note() -> None:
    event = only(
        printed_by(
            """
            inner = ValueError("worker 0 failed")
            inner.add_note("seen on rank 0")
            raise ExceptionGroup("workers", [inner, TypeError("worker 1 failed")])
            """
        )
    )
    assert [block.type for block in event.exceptions] == ["ValueError", "TypeError", "ExceptionGroup"]
    assert event.exceptions[0].message == "worker 0 failed\nseen on rank 0"
    assert event.exceptions[-1].message == "workers (2 sub-exceptions)"


def test_real_recursion_and_syntax_error() -> None:
    event = only(printed_by("def f():\n    f()\nf()"))
    assert event.exceptions[0].type == "RecursionError"
    event = only(printed_by("exec('x = = 1')"))
    assert event.text == "SyntaxError: invalid syntax"
    assert event.exceptions[0].frames[-1].code == "x = = 1"


def test_inside_a_log_message_with_bare_frames() -> None:
    event = only(
        """\
        [2026-11-29 10:07:46 TP3] Scheduler hit an exception: Traceback (most recent call last):
          File "a.py", line 1, in run
            go()
        RuntimeError: boom

        [2026-11-29 10:07:46] SIGQUIT received.
        """
    )
    assert event.process is not None
    assert (event.process.name, event.process.rank) == ("TP3", 3)
    assert (event.span.first, event.span.last) == (1, 4)


def interleaved(*streams: str) -> str:
    rows = [stream.splitlines() for stream in streams]
    longest = max(map(len, rows))
    return "\n".join(row[at] for at in range(longest) for row in rows if at < len(row))


def test_interleaved_ranks_come_out_whole() -> None:
    def rank(number: int) -> str:
        body = textwrap.dedent(PLAIN).replace("sm75", f"sm7{number}")
        return textwrap.indent(
            body, f"(Worker_TP{number} pid=10{number}) ERROR 08-03 17:45:4{number} [core.py:700] ", lambda _: True
        )

    found = [event for event in events(interleaved(rank(0), rank(1), rank(2))) if event.kind == "exception"]
    assert [len(event.exceptions[0].frames) for event in found] == [2, 2, 2]
    assert [event.process and event.process.rank for event in found] == [0, 1, 2]


def test_identical_tracebacks_of_ranks_fold_to_the_first_in_time() -> None:
    def rank(number: int, second: int) -> str:
        return textwrap.indent(
            textwrap.dedent(PLAIN),
            f"(Worker_TP{number} pid=10{number}) ERROR 08-03 17:45:{second} [core.py:700] ",
            lambda _: True,
        )

    event = only(interleaved(rank(0, 48), rank(1, 41), rank(2, 48)))
    assert event.process is not None
    assert event.process.rank == 1
    assert len(event.repeats) == 2


def test_blank_lines_between_all_lines() -> None:
    event = only("\n\n".join(f"(Proc pid=8) {line}" for line in textwrap.dedent(PLAIN).splitlines()))
    assert len(event.exceptions[0].frames) == 2
    assert event.exceptions[0].frames[1].code.startswith("raise RuntimeError")


@pytest.mark.parametrize("cut", range(1, 6))
def test_head_cut_off(cut: int) -> None:
    lines = textwrap.dedent(PLAIN).splitlines()[cut:]
    event = only("\n".join(lines))
    assert event.text == "RuntimeError: FlashInfer requires GPUs with sm75 or higher"


def test_tail_cut_off() -> None:
    event = only("\n".join(textwrap.dedent(PLAIN).splitlines()[:5]))
    assert event.exceptions[0].type == ""
    assert event.text == "traceback cut off in check_cuda_arch"


def test_lost_indentation() -> None:
    event = only("\n".join(line.strip() for line in PLAIN.splitlines()))
    assert len(event.exceptions[0].frames) == 2
    assert event.exceptions[0].type == "RuntimeError"


def test_frames_left_out_by_hand() -> None:
    text = textwrap.dedent(PLAIN).splitlines()
    event = only("\n".join([*text[:3], "...", *text[4:]]))
    assert len(event.exceptions[0].frames) == 2


def test_chain_in_a_prefixed_stream_keeps_what_the_message_carries() -> None:
    found = events(
        """\
        (W pid=3)   File "compiler.py", line 297, in make_cubin
        (W pid=3)     raise RuntimeError(f'error: {log}')
        (W pid=3) RuntimeError: Internal Triton PTX codegen error:
        (W pid=3) ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'
        (W pid=3)
        (W pid=3)
        (W pid=3) During handling of the above exception, another exception occurred:
        (W pid=3)
        (W pid=3) Traceback (most recent call last):
        (W pid=3)   File "runner.py", line 338, in __init__
        (W pid=3)     raise Exception(
        (W pid=3) Exception: Capture cuda graph failed: Internal Triton PTX codegen error:
        """
    )
    exception = next(event for event in found if event.kind == "exception")
    assert [(block.type, block.link) for block in exception.exceptions] == [
        ("RuntimeError", ""),
        ("Exception", "during"),
    ]
    assert "ptxas fatal" in exception.exceptions[0].message
    build = next(event for event in found if event.kind == "build")
    assert (build.tool, build.span.first) == ("ptxas", 4)


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("RuntimeError: boom", "RuntimeError", "boom"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried", "torch.OutOfMemoryError", "CUDA out of memory. Tried"),
        ("E   ImportError: libnuma.so.1: cannot open", "ImportError", "libnuma.so.1: cannot open"),
        ("- ImportError: libnvrtc.so.12: cannot open", "ImportError", "libnvrtc.so.12: cannot open"),
        ("1. ValueError: bad", "ValueError", "bad"),
        (
            "ERROR 10-17 12:43:16 engine.py:160] RuntimeError('CUDA error: x\\nmore')",
            "RuntimeError",
            "CUDA error: x\nmore",
        ),
        ('ValueError("type fp8e4nv not supported")', "ValueError", "type fp8e4nv not supported"),
        ("I get `RuntimeError: boom` after the update", "RuntimeError", "boom` after the update"),
        (
            "Failed to load pipeline: CalledProcessError: Command '['gcc']' returned",
            "CalledProcessError",
            "Command '['gcc']' returned",
        ),
        ("zmq.error.ZMQError: Address already in use", "zmq.error.ZMQError", "Address already in use"),
    ],
)
def test_stated_without_a_traceback(line: str, kind: str, message: str) -> None:
    event = only(line)
    assert (event.exceptions[0].type, event.exceptions[0].message) == (kind, message)


@pytest.mark.parametrize(
    "line",
    [
        'raise RuntimeError("x")',
        "    raise RuntimeError(msg) from e",
        "except ValueError: pass",
        "INFO 08-03 17:45:53 [x.py:1] retrying after RuntimeError: busy",
        "class MyError(RuntimeError):",
        "from foo import BarError",
    ],
)
def test_code_and_information_are_no_exceptions(line: str) -> None:
    assert [event for event in events(line) if event.kind == "exception"] == []


def test_a_message_of_several_lines() -> None:
    event = only(
        """\
        ValueError: To serve at least one request with the model's max seq len (1048576),
        22.5 GiB KV cache is needed, which is larger than the available KV cache memory (17.39 GiB).
        Based on the available memory, the estimated maximum model length is 810208.

        unrelated text
        """
    )
    assert event.text.count("\n") == 2
    assert event.span.last == 3


def test_a_message_ends_where_another_level_begins() -> None:
    found = events(
        """\
        (E pid=1) ERROR 08-03 17:45:41 [core.py:7] ValueError: a
        (E pid=1) ERROR 08-03 17:45:41 [core.py:7] second line
        (E pid=1) INFO 08-03 17:45:41 [core.py:7] going on
        """
    )
    assert found[0].text == "ValueError: a\nsecond line"


def test_notebook_traceback() -> None:
    event = only(
        """\
        /usr/lib/python3.11/dist-packages/unsloth_zoo/vllm_utils.py in patch()
            189     a = 1
            190
        --> 191     import vllm.x

        ModuleNotFoundError: No module named 'vllm.x'
        """
    )
    assert event.exceptions[0].type == "ModuleNotFoundError"


def test_warning_level_traceback_is_not_fatal() -> None:
    text = "\n".join(f"WARNING 08-03 17:45:41 [x.py:1] {line}" for line in textwrap.dedent(PLAIN).splitlines())
    assert not only(text).is_fatal


@pytest.mark.parametrize(
    ("last", "kind", "message"),
    [
        ("ray.exceptions.RayTaskError(OutOfMemoryError)", "ray.exceptions.RayTaskError(OutOfMemoryError)", ""),
        (
            "ray.exceptions.RayTaskError(torch.OutOfMemoryError): \x1b[36mray::W.load()\x1b[39m (pid=5, ip=10.0.0.2)",
            "ray.exceptions.RayTaskError(torch.OutOfMemoryError)",
            "ray::W.load() (pid=5, ip=10.0.0.2)",
        ),
        (
            "grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:",
            "grpc._channel._InactiveRpcError",
            "<_InactiveRpcError of RPC that terminated with:",
        ),
        ("_InactiveRpcError: <_InactiveRpcError of RPC>", "_InactiveRpcError", "<_InactiveRpcError of RPC>"),
        (
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
            "",
        ),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError", ""),
    ],
)  # fmt: skip
def test_last_lines_of_launchers_and_remote_calls(last: str, kind: str, message: str) -> None:
    head = "Traceback (most recent call last):\n  File \"/opt/v/lib/python3.11/site-packages/ray/_private/worker.py\", line 2782, in get\n    values = worker.get_objects(refs)\n"  # fmt: skip
    (block,) = only(head + last + "\n").exceptions
    assert (block.type, block.message, len(block.frames)) == (kind, message, 1)


def test_ray_carries_the_frames_of_the_worker_behind_its_own_line() -> None:
    found = events(
        "Traceback (most recent call last):\n"
        '  File "/opt/v/ray/_private/worker.py", line 2782, in get\n'
        "    values = worker.get_objects(refs)\n"
        "ray.exceptions.RayTaskError(RuntimeError): ray::X.y() (pid=12, ip=10.0.0.1)\n"
        '  File "/opt/app/x.py", line 3, in y\n'
        "    raise RuntimeError('boom')\n"
        "RuntimeError: boom\n"
    )
    assert [(event.exceptions[-1].type, event.is_echo) for event in found] == [
        ("ray.exceptions.RayTaskError(RuntimeError)", True),
        ("RuntimeError", False),
    ]

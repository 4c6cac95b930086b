"""Ends of native programs: C++, Rust, glibc, signals, ggml, TensorRT-LLM."""

from __future__ import annotations

import pytest
from tests.logs.recognisers.reading import events, only, primary, sample


def test_a_panic_has_its_message_and_its_place() -> None:
    thread, main = sample("rust-panic.txt").events
    assert thread.text.endswith('called `Result::unwrap()` on an `Err` value: "CUDA driver not found"')
    assert (thread.tool, thread.detail["site"]) == ("rust", "p.rs:3")
    assert main.text.endswith("index out of bounds: the len is 0 but the index is 3")
    assert (main.span.first, main.span.last) == (14, 15)


def test_what_real_programs_print_when_they_end() -> None:
    found = sample("native-ends.txt").events
    assert [(event.tool, event.text.partition("\n")[0][:40]) for event in found] == [
        ("c++", "terminate called after throwing an insta"),
        ("glibc", "free(): invalid pointer"),
        ("glibc", "*** stack smashing detected ***: termina"),
        ("assert", "t: t.cpp:13: int main(int, char**): Asse"),
        ("c++", "terminate called without an active excep"),
        ("c++", "terminate called after throwing an insta"),
        ("c++", "terminate called after throwing an insta"),
    ]
    assert found[0].detail == {"thrown": "std::runtime_error"}
    assert "[json.exception.parse_error.101]" in found[0].text
    assert found[3].detail == {"site": "t.cpp:13"}
    assert all(event.is_fatal for event in found)


@pytest.mark.parametrize(
    "line",
    [
        "free(): invalid next size (normal)",
        "double free or corruption (top)",
        "free(): double free detected in tcache 2",
        "realloc(): invalid pointer",
        "malloc(): corrupted top size",
        "corrupted size vs. prev_size",
        "*** buffer overflow detected ***: terminated",
    ],
)
def test_aborts_of_glibc(line: str) -> None:
    event = only(line)
    assert (event.kind, event.tool, event.is_fatal, event.is_echo) == ("crash", "glibc", True, False)


@pytest.mark.parametrize(
    ("line", "signal"),
    [
        ("bash: line 1:  7887 Segmentation fault      ./t 9", "11"),
        ("bash: 21378 Segmentation fault      python -c 'import ctypes; ctypes.string_at(0)'", "11"),
        ("scripts/start.sh: line 16:  2205 Bus error               env $E $R > run.log 2>&1", "7"),
        ("Illegal instruction (core dumped)", "4"),
        ("SIGSEGV: segmentation violation", "11"),
        ("!!!!!!! Segfault encountered !!!!!!!", "11"),
    ],
)
def test_signals(line: str, signal: str) -> None:
    event = only(line)
    assert (event.kind, event.tool, event.detail["signal"], event.is_echo) == ("crash", "signal", signal, False)


def test_a_shells_word_on_an_abort_says_nothing_of_the_reason() -> None:
    assert only("bash:  7874 Aborted                 ./server").is_echo


C10 = """\
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.

Exception raised from c10_cuda_check_implementation at /pytorch/c10/cuda/CUDAException.cpp:43 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f8f in /opt/venv/lib/python3.12/site-packages/torch/lib/libc10.so)
frame #1: c10::detail::torchCheckFail(char const*, char const*, unsigned int, std::string const&) + 0xe0 (0x7f8f in libc10.so)
frame #2: <unknown function> + 0x1fffff (0x7f8f in libtorch_cuda.so)

Fatal Python error: Aborted
"""


def test_an_error_of_pytorchs_core_takes_its_backtrace_along() -> None:
    error, abort = events(C10)
    assert (error.tool, error.span.first, error.span.last) == ("c++", 1, 10)
    assert error.detail["thrown"] == "c10::DistBackendError"
    assert abort.is_echo
    assert primary(C10).text == error.text


def test_a_lone_frame_of_a_native_backtrace_is_no_event() -> None:
    assert events("frame #48: sglang::scheduler_TP10() [0x509a7e] error") == ()


def test_ggml() -> None:
    found = events(
        """\
        /build/ggml/src/ggml-cuda/ggml-cuda.cu:88: CUDA error
        CUDA error: out of memory
          current device: 0, in function alloc at /build/ggml/src/ggml-cuda/ggml-cuda.cu:532
          cuMemCreate(&handle, reserve_size, &prop, 0)
        """
    )
    assert [event.is_echo for event in found] == [True, False]
    assert found[1].detail == {
        "code": "2",
        "name": "cudaErrorMemoryAllocation",
        "call": "alloc",
        "site": "/build/ggml/src/ggml-cuda/ggml-cuda.cu:532",
    }
    event = only("/build/ggml/src/ggml.c:3450: GGML_ASSERT(a->ne[2] == b->ne[0]) failed")
    assert (event.tool, event.detail) == ("ggml", {"site": "/build/ggml/src/ggml.c:3450"})
    event = only(
        "/build/ggml/src/ggml-backend.cpp:1540: pre-allocated tensor (k) in a buffer (CUDA0) that cannot run it"
    )
    assert (event.tool, event.is_fatal) == ("ggml", True)


def test_tensorrt_llm() -> None:
    event = only("[TensorRT-LLM][ERROR] Assertion failed: Unsupported head size (/src/kernels/x.cpp:87)")
    assert (event.tool, event.detail) == ("tensorrt-llm", {"site": "/src/kernels/x.cpp:87"})
    event = only(
        "[TensorRT-LLM][ERROR] CUDA runtime error in cudaMallocAsync(p, n, s): out of memory (/src/alloc.h:47)"
    )
    assert event.detail == {
        "code": "2",
        "name": "cudaErrorMemoryAllocation",
        "call": "cudaMallocAsync",
        "site": "/src/alloc.h:47",
    }


@pytest.mark.parametrize(
    "line",
    [
        "vllm: error: unrecognized arguments: --swap-space 4",
        "launch_server.py: error: argument --attention-backend: invalid choice: 'fa9' (choose from 'triton')",
        "api_server.py: error: the following arguments are required: --model",
        "error: unexpected argument '--flash' found",
        "error: invalid argument: --n-gpu-layer",
        "Error: No such option: --kv_fraction",
        "unknown flag: --gpus",
        "error while handling argument \"-fa\": error: unknown value for --flash-attn: '--port'",
    ],
)
def test_a_refused_command_line_ends_the_program(line: str) -> None:
    event = primary(f"usage: program [-h]\n{line}\n")
    assert (event.kind, event.tool, event.is_fatal) == ("crash", "arguments", True)


def test_errors_of_tensorrt_are_failures_but_for_its_clearing_up() -> None:
    text = (
        "[07/12/2025-10:11:12] [TRT] [E] IRuntime::deserializeCudaEngine: Error Code 6: API Usage Error (The engine plan file is not compatible)\n"
        "[07/12/2025-10:11:13] [TRT] [E] 3: [runtime.cpp::~Runtime::399] Error Code 3: Destroying a runtime before destroying deserialized engines\n"
    )
    first, second = events(text)
    assert [(each.kind, each.tool, each.is_echo) for each in (first, second)] == [
        ("crash", "tensorrt", False),
        ("crash", "tensorrt", True),
    ]

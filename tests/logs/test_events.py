"""What lines say: builds, crashes, the kernel, units, deaths, warnings; echoes and what is fatal."""

from __future__ import annotations

import textwrap

import pytest

from gpuwhy.logs import echoes, find_events, read_bytes
from gpuwhy.model.event import Event


def events(text: str) -> tuple[Event, ...]:
    return find_events(read_bytes(textwrap.dedent(text).encode(), "x"))


def first(text: str) -> Event:
    found = events(text)
    assert found, text
    return found[0]


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", "nvcc"),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "nvcc"),
        ("NVCC compilation failed: nvcc fatal   : Unsupported gpu architecture 'sm_100f'", "nvcc"),
        ("#error -- unsupported GNU version! gcc versions later than 13 are not supported!", "nvcc"),
        ("ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'", "ptxas"),
        ("ptxas-blackwell fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", "ptxas-blackwell"),
        ("ptxas /tmp/x.ptx, line 14; error   : Feature '.bf16' requires .target sm_80 or higher", "ptxas"),
        ("nvlink error   : Undefined reference to 'x' in 'y.o'", "nvlink"),
        ("nvrtc: error: invalid value for --gpu-architecture (-arch)", "nvrtc"),
        ("/tmp/cuda_utils.c:5:10: fatal error: Python.h: No such file or directory", "gcc"),
        ("fatal error: curand_kernel.h: No such file or directory", "gcc"),
        ('kernel.cu(12): error: identifier "foo" is undefined', "gcc"),
        ("csrc/x.cuh(40): error #20: identifier undefined", "gcc"),
        ("gcc: fatal error: Killed signal terminated program cc1plus", "gcc"),
        ("c++: internal compiler error: Segmentation fault signal terminated program cc1plus", "gcc"),
        ("/usr/bin/gcc-99: No such file or directory", "gcc"),
        ("<built-in>: fatal error: when writing output to /tmp/x.ii: No space left on device", "gcc"),
        ("/tmp/ccqr.s: Fatal error: can't write 8 bytes to section .text of x.o: 'No space left on device'", "as"),
        ("/usr/bin/ld: cannot find -lcuda: No such file or directory", "ld"),
        ("x.o: undefined reference to `cuInit'", "ld"),
        ("CMake Error at CMakeLists.txt:12 (find_package):", "cmake"),
        ("/bin/sh: 1: :/usr/local/cuda-12.8/bin/nvcc: not found", "sh"),
        ("bash: line 3: ninja: command not found", "sh"),
    ],
)
def test_builds(line: str, tool: str) -> None:
    event = first(line)
    assert (event.kind, event.tool, event.is_fatal, event.is_echo) == ("build", tool, True, False)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ninja: build stopped: subcommand failed.", "build"),
        ("FAILED: [code=1] /x/csrc_renorm.cuda.o", "build"),
        ("FAILED: sampling.cuda.o", "build"),
        ("gmake[2]: *** [build.make:752: x.cu.o] Error 1", "build"),
        ("collect2: error: ld returned 1 exit status", "build"),
        ("compilation terminated.", "build"),
        ("error: command '/usr/local/cuda/bin/nvcc' failed with exit code 1", "build"),
        ("error: subprocess-exited-with-error", "build"),
        ("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}", "exception"),
        ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", "exception"),
        ("subprocess.CalledProcessError: Command '['ninja']' returned non-zero exit status 1.", "exception"),
        ("RuntimeError: Ninja build failed. Ninja output:", "exception"),
        ("RuntimeError: Connection closed by peer", "exception"),
        ("EOFError: EOF when reading a line", "exception"),
        ("(E pid=1) ERROR 09-10 09:37:41 [m.py:314] Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down", "death"),
        ("Received sigquit from a child process. It usually means the child failed.", "death"),
        ("exit status: 1", "death"),
        ("Aborted (core dumped)", "crash"),
        ("kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=python3, Ch 00000001", "kernel"),
        ("python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0", "kernel"),
        ("sglang.service: Main process exited, code=killed, status=9/KILL", "unit"),
    ],
)  # fmt: skip
def test_echoes(line: str, kind: str) -> None:
    event = first(line)
    assert (event.kind, event.is_echo) == (kind, True), event


def test_a_compiler_killed_by_a_signal_is_no_echo() -> None:
    event = first("FAILED: [code=137] sampling.cuda.o")
    assert (event.kind, event.is_echo, event.detail) == ("build", False, {"exit_code": "137"})


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:164 'invalid argument'", "cuda"),
        ("CUDA error 35 at ggml-cuda.cu:4236: CUDA driver version is insufficient for CUDA runtime version", "cuda"),
        ("CUDA error at bandwidthTest.cu:256 code=802(cudaErrorSystemNotReady)", "cuda"),
        ("no kernel image is available for execution on the device", "cuda"),
        ("Fatal Python error: Bus error", "python"),
        ("terminate called after throwing an instance of 'c10::Error'", "c++"),
        ("Segmentation fault (core dumped)", "signal"),
        ("Bus error (core dumped)", "signal"),
        ('GGML_ASSERT: ggml-cuda.cu:60: !"CUDA error"', "ggml"),
        ("[TensorRT-LLM][ERROR] Assertion failed: Unsupported architecture (fmhaRunner.cpp:87)", "tensorrt-llm"),
        ("thread 'main' panicked at src/main.rs:12:5:", "rust"),
        ("free(): invalid pointer", "glibc"),
        ("Assertion `index out of bounds: 0 <= tmp16 < 40960` failed.", "assert"),
        ("python: symbol lookup error: /x.so: undefined symbol: cuFoo", "loader"),
        (
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            "container",
        ),
        ("Failed to initialize NVML: Driver/library version mismatch", "nvml"),
        ("llama_model_load: error loading model: unknown model architecture: 'gpt-oss'", "llama.cpp"),
        (
            "[rank5]:[E901 04:21:02 P.cpp:685] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)",
            "nccl",
        ),
    ],
)
def test_crashes(line: str, tool: str) -> None:
    event = first(line)
    assert (event.kind, event.tool, event.is_fatal, event.is_echo) == ("crash", tool, True, False)


def test_which_cuda_error_stands_in_the_next_line() -> None:
    found = events("/src/ggml-cuda.cu:72: CUDA error\n0.17.512.848 E CUDA error: no kernel image is available\n")
    assert [event.is_echo for event in found] == [True, False]


def test_oom_kill_in_two_lines_is_one_event() -> None:
    (event,) = events(
        """\
        oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,task_memcg=/system.slice/docker-9769992dadc2.scope,task=vllm,pid=18,uid=0
        Memory cgroup out of memory: Killed process 18 (vllm) total-vm:702kB, anon-rss:65024kB, file-rss:1kB
        """
    )
    assert (event.kind, event.tool, event.unit) == ("kernel", "oom", "docker-9769992dadc2.scope")
    assert event.text.startswith("Memory cgroup out of memory: Killed process 18 (vllm)")
    assert event.detail["anon_rss_bytes"] == str(65024 * 1024)
    assert event.detail["container"] == "9769992dadc2"
    assert event.detail["scope"] == "cgroup"
    assert (event.span.first, event.span.last) == (1, 2)


def test_xid() -> None:
    event = first(
        "[Fri Mar  3 04:44:24 2023] NVRM: Xid (PCI:0000:61:00): 119, pid=1365232, name=nvidia-smi, Timeout waiting for RPC from GSP!"
    )
    assert (event.kind, event.tool, event.is_fatal) == ("kernel", "xid", True)
    assert event.detail == {
        "number": "119",
        "device": "PCI:0000:61:00",
        "pid": "1365232",
        "process": "nvidia-smi",
        "meaning": "the GPU's system processor (GSP) does not answer",
    }
    event = first(
        "kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid 149"
    )
    assert event.detail["previous_xid"] == "149"
    event = first("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.")
    assert event.detail == {"number": "79", "device": "PCI:0000:01:00", "meaning": "the GPU has fallen off the bus"}


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "sxid"),
        ("NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY]", "nvrm"),
        ("AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0 address=0x1]", "iommu"),
        ("python3[4711]: segfault at 0 ip 00007f1 sp 00007f2 error 4 in libcuda.so.1[7f00]", "segfault"),
        ("pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0", "aer"),
    ],
)
def test_other_kernel_messages(line: str, tool: str) -> None:
    event = first(line)
    assert (event.kind, event.tool, event.is_fatal) == ("kernel", tool, True)


def test_units() -> None:
    found = events(
        """\
        Started sglang.service - SGLang Kimi K2.6.
        sglang.service: Main process exited, code=exited, status=1/FAILURE
        sglang.service: Failed with result 'exit-code'.
        sglang.service: Scheduled restart job, restart counter is at 2.
        sglang.service: Start request repeated too quickly.
        ollama.service: Processes still around after SIGKILL. Ignoring.
        """
    )
    assert [(event.unit, event.detail["state"]) for event in found] == [
        ("sglang.service", "started"),
        ("sglang.service", "exited"),
        ("sglang.service", "failed"),
        ("sglang.service", "restarting"),
        ("sglang.service", "failed"),
        ("ollama.service", "unkillable"),
    ]
    assert found[1].detail == {"state": "exited", "code": "exited", "status": "1", "status_name": "FAILURE"}
    assert found[3].detail["restarts"] == "2"


def test_deaths() -> None:
    assert first("Killed").detail == {"exit_code": "137", "signal": "9"}
    assert not first("Killed").is_echo
    assert first("container exited with exit code 137").detail == {"exit_code": "137", "signal": "9"}
    assert first("Worker died unexpectedly (exit code: -11)").detail == {"exit_code": "-11", "signal": "11"}
    assert events("finished with exit code 0") == ()


def test_python_warning_takes_its_text_and_source_line() -> None:
    (event,) = events(
        """\
        /opt/torch/cuda/__init__.py:287: UserWarning:
        NVIDIA GeForce RTX 5070 Ti with CUDA capability sm_120 is not compatible with the current PyTorch installation.
        The current PyTorch install supports CUDA capabilities sm_50 sm_60.

          warnings.warn(
        """
    )
    assert (event.kind, event.tool, event.span.last) == ("warning", "python", 5)
    assert "sm_120 is not compatible" in event.text
    assert not event.is_fatal


def test_a_warning_without_level_or_prefix() -> None:
    (event,) = events("Failed to get device capability: SM 12.x requires CUDA >= 12.9.\n" * 3)
    assert (event.kind, event.is_fatal, event.is_echo) == ("warning", False, False)
    assert [place.line for place in event.repeats] == [2, 3]


def test_an_indented_block_belongs_to_its_warning() -> None:
    event = first(
        "WARNING[XFORMERS]: xFormers can't load C++ extensions, error:\n    PyTorch 2.3.0 (you have 2.1.0)\nnext\n"
    )
    assert (event.span.first, event.span.last) == (1, 2)


@pytest.mark.parametrize(
    "line",
    [
        "worker-0:1:2 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so).",
        "x.py:3: SyntaxWarning: invalid escape sequence",
        "WARNING 09-06 23:24:51 [_ipex_ops.py:16] Import error msg: No module named 'intel_extension_for_pytorch'",
        "(APIServer pid=1) Warning: You are sending unauthenticated requests to the HF Hub. failed",
    ],
)
def test_noise_is_never_a_cause(line: str) -> None:
    assert all(event.is_echo for event in events(line))


@pytest.mark.parametrize(
    "line",
    [
        "INFO 08-03 17:45:41 [x.py:1] Using max model len 40960",
        '(APIServer pid=7) INFO:     192.0.2.13:46482 - "GET /metrics HTTP/1.1" 200 OK',
        "[2026-11-29 10:04:24 TP0] Load weight begin. avail mem=93.78 GB",
        "Capturing CUDA graphs (PIECEWISE): 100%|##########| 7/7 [00:04<00:00, 1.64it/s]",
        "Loading safetensors checkpoint shards:   0% Completed | 0/2 [00:00<?, ?it/s]",
        "   ^^^^^^^^^^^^^",
    ],
)
def test_ordinary_lines_say_nothing(line: str) -> None:
    assert [event for event in events(line) if event.kind not in ("start", "ready")] == []


def test_start_and_ready() -> None:
    found = events(
        """\
        [2026-11-29 10:04:09] server_args=ServerArgs(model_path='/m')
        [2026-11-29 10:07:39] The server is fired up and ready to roll!
        INFO 04-19 17:25:10 api_server.py:149] vLLM API server version 0.4.0.post1
        INFO:     Application startup complete.
        """
    )
    assert [event.kind for event in found] == ["start", "ready", "start", "ready"]
    assert found[0].detail == {"engine": "sglang"}
    assert found[2].detail == {"engine": "vllm"}


def test_what_points_backwards_and_what_does_not() -> None:
    assert echoes.points_backwards("ninja: build stopped: subcommand failed.")
    assert not echoes.points_backwards("RuntimeError: FlashInfer requires GPUs with sm75 or higher")
    assert not echoes.points_backwards("FAILED: [code=137]")
    assert not echoes.is_noise("Failed to get device capability: SM 12.x requires CUDA >= 12.9.")


def test_faulthandler_frames_are_no_exception() -> None:
    found = events(
        """\
        Fatal Python error: Bus error

        Current thread 0x00007f3b8b419b80 (most recent call first):
          File "a.py", line 474 in load_module
          File "b.py", line 8 in <module>
        """
    )
    assert [event.kind for event in found] == ["crash"]


def test_an_event_keeps_the_severity_of_its_line() -> None:
    event = first("2025-08-12 10:00:00 | ERROR | x:f:1 - CUDA error: out of memory")
    assert (event.kind, event.detail["level"]) == ("crash", "error")
    event = first("ERROR 09-10 09:37:41 [core.py:708] ValueError: unsupported head dim 80")
    assert (event.kind, event.detail["level"]) == ("exception", "error")
    assert "level" not in first("ValueError: unsupported head dim 80").detail

"""ptxas-too-old-for-arch: the bundled assembler refuses, and messages that look alike."""

from __future__ import annotations

from collections.abc import Callable

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "ptxas-too-old-for-arch"

SPARK = """\
[2026-02-11 09:14:02 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=38.91 GB
[2026-02-11 09:14:11 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/triton/backends/nvidia/compiler.py", line 459, in make_cubin
    raise PTXASError(error)
triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error
`ptxas` stderr:
ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'

Repro command: /opt/venv/lib/python3.12/site-packages/triton/backends/nvidia/bin/ptxas -lineinfo -v --gpu-name=sm_121a /tmp/tmpv2f1.ptx -o /tmp/tmpv2f1.ptx.o

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_executor/cuda_graph_runner.py", line 388, in __init__
    raise Exception(f"Capture cuda graph failed: {e}\\n{CUDA_GRAPH_CAPTURE_FAILED_MSG}")
Exception: Capture cuda graph failed: PTXAS error: Internal Triton PTX codegen error
"""


def test_the_assembler_is_named_behind_the_graph_capture(judge_report: Judge, finding: Find) -> None:
    judged = judge_report(SPARK)
    first = judged.findings[0]
    assert (first.cause, first.component, first.certainty) == (CAUSE, "triton", Certainty.PROVEN)
    assert first.evidence[0].quote == "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"
    assert [r.name for r in first.remedies[:2]] == ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"]
    assert ("package", "triton", ">=3.6.0") in [(r.kind, r.name, r.value) for r in first.remedies]


def test_an_installed_toolkit_gives_the_path(judge_report: Judge) -> None:
    facts = {"cc": "12.1", "packages.triton": "3.5.1", "other_toolkits./usr/local/cuda-13.0": "13.0"}
    first = judge_report(SPARK, facts).findings[0]
    assert (first.remedies[0].name, first.remedies[0].value) == (
        "TRITON_PTXAS_PATH",
        "/usr/local/cuda-13.0/bin/ptxas",
    )


def test_the_programs_name_selects_the_variable(judge_report: Judge) -> None:
    text = (
        "RuntimeError: Internal Triton PTX codegen error\n"
        "ptxas-blackwell fatal   : Value 'sm_110a' is not defined for option 'gpu-name'\n"
    )
    first = judge_report(text).findings[0]
    assert first.cause == CAUSE
    assert [r.name for r in first.remedies if r.kind == "env"] == ["TRITON_PTXAS_BLACKWELL_PATH"]


def test_a_triton_that_refuses_the_newer_ptxas_is_not_given_one(judge_report: Judge) -> None:
    facts = {"cc": "11.0", "packages.triton": "3.3.1"}
    first = judge_report(SPARK.replace("sm_121a", "sm_110a"), facts).findings[0]
    assert first.cause == CAUSE
    assert not [r for r in first.remedies if r.kind == "env" and r.value != "unset"]


def test_the_wrapper_alone_is_only_possible(judge_report: Judge, finding: Find) -> None:
    text = "torch._inductor.exc.InductorError: NoTritonConfigsError: No valid triton configs. PTXASError: PTXAS error: Internal Triton PTX codegen error\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"packages.triton", "cc"} <= {m.key for m in found.missing}


def test_the_wrapper_with_the_release_and_the_gpu(judge_report: Judge, finding: Find) -> None:
    text = "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error\n"
    found = finding(judge_report(text, {"cc": "12.1", "packages.triton": "3.4.0"}), CAUSE)
    assert found.certainty is Certainty.LIKELY


def test_nvcc_that_refuses_is_another_cause(judge_report: Judge) -> None:
    text = "nvcc fatal   : Unsupported gpu architecture 'compute_121'\nninja: build stopped: subcommand failed.\n"
    assert CAUSE not in [f.cause for f in judge_report(text, {"cc": "12.1"}).findings]


def test_a_number_format_that_needs_a_newer_gpu_is_another_cause(judge_report: Judge) -> None:
    text = (
        "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error\n"
        "`ptxas` stderr:\n"
        "ptxas /tmp/tmp1.ptx, line 210; error   : Feature '.e4m3x2' requires .target sm_89 or higher\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
    )
    assert CAUSE not in [f.cause for f in judge_report(text, {"cc": "8.6"}).findings]


def test_a_dropped_target_is_ruled_out(judge_report: Judge) -> None:
    text = SPARK.replace("sm_121a", "sm_70")
    judged = judge_report(text, {"cc": "7.0"})
    assert CAUSE in [x.cause for x in judged.ruled_out]


def test_a_target_of_no_gpu_here_is_ruled_out(judge_report: Judge) -> None:
    assert CAUSE in [x.cause for x in judge_report(SPARK, {"cc": "8.9"}).ruled_out]


def test_inside_an_nvcc_build_it_is_only_possible(judge_report: Judge, finding: Find) -> None:
    text = (
        "[3/9] /usr/local/cuda/bin/nvcc --generate-dependencies-with-compile -gencode=arch=compute_120f,code=sm_120f -c a.cu\n"
        "ptxas fatal   : Value 'sm_120f' is not defined for option 'gpu-name'\n"
        "ninja: build stopped: subcommand failed.\n"
    )
    assert finding(judge_report(text), CAUSE).certainty is Certainty.POSSIBLE


def test_xla_gets_its_own_remedies(judge_report: Judge) -> None:
    text = (
        "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: ptxas exited with non-zero error code 65280, output: "
        "ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (CAUSE, "jax")
    assert "nvidia-cuda-nvcc-cu12" in [r.name for r in first.remedies]

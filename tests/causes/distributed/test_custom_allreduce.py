"""The engines' own all-reduce: refused handles, fall-backs, and what NCCL says instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

ONE_LINE = """\
Capturing CUDA graphs (FULL): 100%|██████████| 2/2 [00:00<00:00, 6.23it/s]
Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:164 'invalid argument'
(EngineCore pid=77) ERROR 09-10 09:37:41 [multiproc_executor.py:314] Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor.
"""
CUDART = """\
ERROR 10-10 10:10:10 multiproc_worker_utils.py:231]   File "/usr/lib/python3.12/site-packages/vllm/distributed/device_communicators/cuda_wrapper.py", line 127, in CUDART_CHECK
ERROR 10-10 10:10:10 multiproc_worker_utils.py:231] RuntimeError: CUDART error: invalid argument
"""
GRAPH_BUFFERS = """\
Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/distributed/device_communicators/custom_all_reduce.py", line 300, in register_graph_buffers
    handle, offset = ops.get_graph_buffer_ipc_meta(self._ptr)
RuntimeError: CUDA error: invalid argument
"""
TRT_LLM = "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaIpcOpenMemHandle(&buffer, handle, flags): peer access is not supported between these two devices (/src/tensorrt_llm/runtime/ipcUtils.cpp:100)\n"
EXPANDABLE = {"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:512"}


def test_the_bare_line_is_the_evidence_and_the_allocator_is_asked_after(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(ONE_LINE), "custom-allreduce")
    assert found.certainty is Certainty.LIKELY
    assert found.component == "vllm"
    assert found.evidence[0].quote.startswith("Failed: Cuda error")
    assert found.missing[0].key == "env.PYTORCH_CUDA_ALLOC_CONF"
    assert [each.name for each in found.remedies] == ["PYTORCH_CUDA_ALLOC_CONF", "--disable-custom-all-reduce"]


def test_expandable_segments_prove_it_and_the_rest_of_the_setting_stays(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(ONE_LINE, EXPANDABLE), "custom-allreduce")
    assert found.certainty is Certainty.PROVEN
    assert found.remedies[0].value == "max_split_size_mb:512"
    assert not found.missing


def test_the_name_of_the_variable_since_torch_2_9(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(ONE_LINE, {"env.PYTORCH_ALLOC_CONF": "expandable_segments:True"}), "custom-allreduce")
    assert (found.remedies[0].name, found.remedies[0].value) == ("PYTORCH_ALLOC_CONF", "unset")


def test_without_expandable_segments_the_peer_path_is_in_doubt(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(ONE_LINE, {"env.PYTORCH_CUDA_ALLOC_CONF": None}), "custom-allreduce")
    assert found.certainty is Certainty.POSSIBLE
    assert found.missing[0].key == "p2p_test"
    assert "p2p-iommu" in found.rivals
    assert [each.name for each in found.remedies] == ["--disable-custom-all-reduce"]


@pytest.mark.parametrize(
    ("report", "component"),
    [(CUDART, "vllm"), (GRAPH_BUFFERS, "sglang"), (TRT_LLM, "tensorrt-llm")],
)
def test_other_programs_words(judge_report: Judge, finding: Find, report: str, component: str) -> None:
    assert finding(judge_report(report), "custom-allreduce").component == component


def test_tensorrt_llm_has_an_option_of_its_own(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(TRT_LLM), "custom-allreduce")
    assert [each.name for each in found.remedies] == ["--use_custom_all_reduce"]


@pytest.mark.parametrize(
    "report",
    [
        "WARNING [custom_all_reduce.py:152] Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs.\n",
        "WARNING parallel_state.py: Setup Custom allreduce failed with peer access is not supported between these two devices.\nRuntimeError: x\n",
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:219, unhandled cuda error, NCCL version 2.20.5\nLast error:\nCuda failure 'invalid argument'\n",
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    y = x.cuda()\nRuntimeError: CUDA error: invalid argument\n',
    ],
)
def test_near_misses(judge_report: Judge, report: str) -> None:
    assert "custom-allreduce" not in [each.cause for each in judge_report(report).findings]


def test_a_cure_that_the_reporter_names(judge_report: Judge, finding: Find) -> None:
    report = "vllm with two GPUs hangs at the first request. With --disable-custom-all-reduce it works fine.\n"
    judgement = judge_report(report)
    assert judgement.findings[0].cause == "custom-allreduce"
    assert finding(judgement, "custom-allreduce").certainty is Certainty.LIKELY


@pytest.mark.parametrize(
    "report",
    [
        "vllm hangs. --disable-custom-all-reduce does not help, it still hangs.\n",
        "vllm hangs. NCCL_P2P_DISABLE=1 and --disable-custom-all-reduce works.\n",
    ],
)
def test_what_helps_only_with_more_is_no_cure(judge_report: Judge, report: str) -> None:
    assert "custom-allreduce" not in [each.cause for each in judge_report(report).findings]


def test_the_frames_of_a_library_name_it(judge_report: Judge, finding: Find) -> None:
    report = (
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.12/site-packages/flashinfer/comm/trtllm_ar.py", line 400, in trtllm_create_ipc_workspace\n'
        "    ipc_handles.append(create_shared_buffer(size, group))\n"
        "RuntimeError: CUDART error: invalid argument\n"
    )
    assert finding(judge_report(report), "custom-allreduce").component == "flashinfer"


def test_tensorrt_llms_exchange_of_handles(judge_report: Judge, finding: Find) -> None:
    report = "[TensorRT-LLM][ERROR] CUDA runtime error in cudaIpcOpenMemHandle(reinterpret_cast<void**>(&foreignPtr), handle, cudaIpcMemLazyEnablePeerAccess): peer access is not supported between these two devices\n"
    assert finding(judge_report(report), "custom-allreduce").component == "tensorrt-llm"


def test_the_check_in_another_file_of_the_all_reduce(judge_report: Judge, finding: Find) -> None:
    line = "Failed: Cuda error /s/sgl-kernel/csrc/trt_reduce_internal.cuh:186 'peer mapping resources exhausted'"
    found = finding(judge_report(line + "\nWorks with --disable-custom-all-reduce\n"), "custom-allreduce")
    assert found.evidence[0].quote == line

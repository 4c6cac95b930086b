"""process-start-method: forked after CUDA, spawned without a guard."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "process-start-method"
FORKED = "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method\n"
TORCH = """\
Traceback (most recent call last):
  File "/usr/local/lib/python3.12/dist-packages/torch/cuda/__init__.py", line 305, in _lazy_init
    raise RuntimeError(
"""
VLLM = 'Traceback (most recent call last):\n  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py", line 140, in init_device\n    torch.cuda.set_device(self.device)\n'
UNGUARDED = """\
Traceback (most recent call last):
  File "/app/run.py", line 4, in <module>
    llm = LLM(model="Qwen/Qwen2.5-7B-Instruct", tensor_parallel_size=2)
  File "/usr/lib/python3.12/multiprocessing/spawn.py", line 164, in get_preparation_data
    _check_not_importing_main()
RuntimeError:
        An attempt has been made to start a new process before the
        current process has finished its bootstrapping phase.

        This probably means that you are not using fork to start your
        child processes and you have forgotten to use the proper idiom
        in the main module:
"""


def test_a_forked_worker(judge_report: Judge) -> None:
    first = judge_report(TORCH + FORKED).findings[0]
    assert (first.cause, first.certainty, first.component) == (CAUSE, Certainty.PROVEN, "user-program")
    assert "spawn" in order(first.remedies)[0].value


def test_vllm_has_a_variable_for_it(judge_report: Judge) -> None:
    first = judge_report("INFO 03-11 02:02:11 [api_server.py:912] vLLM API server version 0.8.1\n" + VLLM + FORKED).findings[0]  # fmt: skip
    assert (first.cause, first.component) == (CAUSE, "vllm")
    assert next((r.kind, r.name, r.value) for r in order(first.remedies)) == ("env", "VLLM_WORKER_MULTIPROC_METHOD", "spawn")  # fmt: skip


def test_a_script_without_a_guard(judge_report: Judge) -> None:
    first = judge_report(UNGUARDED).findings[0]
    assert (first.cause, first.component) == (CAUSE, "user-program")
    assert [r.value for r in order(first.remedies)] == ['if __name__ == "__main__":']


def test_a_swallowed_one_explains_what_flashinfer_says_of_the_gpu(judge_report: Judge, finding: Find) -> None:
    text = "Failed to get device capability: Cannot re-initialize CUDA in forked subprocess.\nRuntimeError: FlashInfer requires GPUs with sm75 or higher\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert any(link.is_swallowed for link in found.chain)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: No CUDA GPUs are available\n",
        "INFO: We must use the `spawn` multiprocessing start method. Overriding VLLM_WORKER_MULTIPROC_METHOD to 'spawn'.\nRuntimeError: CUDA error: out of memory\n",
        "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to avoid deadlocks...\n",
    ],
)
def test_near_misses(judge_report: Judge, text: str) -> None:
    assert CAUSE not in [found.cause for found in judge_report(text).findings]

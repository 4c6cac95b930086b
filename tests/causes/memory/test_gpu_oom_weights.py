"""gpu-oom-weights: it stops while loading."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies.ordering import order

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "gpu-oom-weights"
GIB = 1 << 30
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 462.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 211.88 MiB is free. "
    "Process 233 has 78.89 GiB memory in use. Of the allocated memory 78.20 GiB is allocated by PyTorch, and 20.95 MiB is reserved by PyTorch but unallocated."
)


def traceback(path: str, function: str, message: str = FULL) -> str:
    return f'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.12/site-packages/{path}", line 10, in {function}\n{message}\n'


@pytest.mark.parametrize(
    ("path", "function", "component"),
    [
        ("vllm/v1/worker/gpu_model_runner.py", "load_model", "vllm"),
        ("vllm/model_executor/layers/linear.py", "create_weights", "vllm"),
        ("sglang/srt/model_loader/loader.py", "load_weights_and_postprocess", "sglang"),
        ("transformers/modeling_utils.py", "from_pretrained", "transformers"),
        ("accelerate/utils/modeling.py", "set_module_tensor_to_device", "transformers"),
    ],
)
def test_frames_show_that_weights_were_loaded(judge_report: Judge, path: str, function: str, component: str) -> None:
    """The only process that the driver lists holds what torch has: it is the failing one, seen from outside its container."""
    first = judge_report(traceback(path, function)).findings[0]
    assert (first.cause, first.component, first.certainty) == (CAUSE, component, Certainty.PROVEN)
    assert function in first.evidence[0].quote


@pytest.mark.parametrize(
    ("line", "component"),
    [
        ("llama_model_load: error loading model: unable to allocate CUDA0 buffer", "llama.cpp"),
        ("Error: llama runner process has terminated: error loading model: unable to allocate CUDA0 buffer", "ollama"),
        ("The following component could not be created: Model engine (main)", "tensorrt-llm"),
        ("RuntimeError: Insufficient VRAM for model and cache", "torch"),
    ],
)
def test_messages_that_name_the_stage(judge_report: Judge, line: str, component: str) -> None:
    first = judge_report(line + "\n").findings[0]
    assert (first.cause, first.component) == (CAUSE, component)


def test_the_last_progress_line_shows_the_stage(judge_report: Judge) -> None:
    text = (
        "[2025-10-02 09:12:01 TP1] Load weight begin. avail mem=23.02 GB\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB.\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


def test_the_frame_of_a_draft_leads_to_its_removal(judge_report: Judge) -> None:
    text = traceback("vllm/model_executor/models/deepseek_mtp.py", "__init__").replace(
        "torch.OutOf",
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/model_executor/layers/vocab_parallel_embedding.py", line 50, in create_weights\ntorch.OutOf',
    )
    first = judge_report(text).findings[0]
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("--speculative-config", "remove")
    assert "deepseek_mtp.py" in first.evidence[0].quote


def test_the_number_of_gpus_follows_from_the_size(judge_report: Judge) -> None:
    """141 GiB on cards of 79.11 GiB with a tenth to spare: two."""
    first = judge_report(
        traceback("vllm/v1/worker/gpu_model_runner.py", "load_model"), {"model_bytes": 141 * GIB}
    ).findings[0]
    assert [r.value for r in first.remedies if r.name == "--tensor-parallel-size"] == ["2"]


def test_llama_cpp_leaves_layers_on_the_host(judge_report: Judge) -> None:
    text = "load_tensors: offloading 64 repeating layers to GPU\nllama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
    first = judge_report(text).findings[0]
    assert (order(first.remedies)[0].name, order(first.remedies)[0].value) == ("--n-gpu-layers", "lower")


def test_the_driver_s_word_counts_while_weights_are_loaded(judge_report: Judge) -> None:
    """Unified memory: there is no message of CUDA's allocator."""
    text = (
        "Starting to load model /models/m on a GB10\n"
        "kernel: NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)\n"
        "(EngineCore) ERROR EngineCore failed to start.\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert "host-oom-kill" in first.rivals


def test_an_unknown_stage_is_only_possible(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert {"gpu_processes", "model_bytes"} <= {missing.key for missing in found.missing}


def test_other_processes_on_the_card_rule_it_out(judge_report: Judge) -> None:
    message = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 189.81 MiB is free. "
        "Process 1213 has 71.20 GiB memory in use. Including non-PyTorch memory, this process has 7.68 GiB memory in use."
    )
    judgement = judge_report(
        traceback("vllm/v1/worker/gpu_model_runner.py", "load_model", message),
        {"gpu_processes": ["GPU 0: process 1213 (python train.py) holds 72909 MiB"]},
    )
    assert judgement.findings[0].cause == "gpu-memory-taken"
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


def test_near_miss_the_cache_of_llama_cpp(judge_report: Judge) -> None:
    text = (
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 16384.00 MiB on device 0: cudaMalloc failed: out of memory\n"
        "alloc_tensor_range: failed to allocate CUDA0 buffer of size 17179869184\n"
        "llama_kv_cache_init: failed to allocate buffer for kv cache\n"
    )
    judgement = judge_report(text)
    assert judgement.findings[0].cause == "gpu-oom-kv-cache"
    assert CAUSE not in [found.cause for found in judgement.findings]


def test_near_miss_the_kernel_s_killer_on_unified_memory(judge_report: Judge) -> None:
    text = "[TP0] Load weight begin.\nOut of memory: Killed process 12 (sglang::schedul) total-vm:1kB, anon-rss:1kB\n"
    assert judge_report(text).findings[0].cause == "host-oom-kill"


def test_near_miss_a_driver_that_is_short_outside_of_loading(judge_report: Judge) -> None:
    text = "kernel: NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY]\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_ollama_s_layout_that_cannot_be_allocated_is_one_of_weights(judge_report: Judge) -> None:
    text = (
        'time=2025-10-01T10:00:00Z level=INFO source=server.go:1271 msg="loading model"\n'
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0: cudaMalloc failed: out of memory\n"
        "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 9437184000\n"
        'time=2025-10-01T10:00:01Z level=INFO source=sched.go:450 msg="Load failed" error="memory layout cannot be allocated with num_gpu = 65"\n'
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (CAUSE, "ollama")


def test_an_out_of_memory_that_torch_masks(judge_report: Judge) -> None:
    """Without NVML the allocator cannot write its report, and fails at an assertion of its own."""
    message = 'RuntimeError: NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":830'
    first = judge_report(traceback("transformers/modeling_utils.py", "from_pretrained", message)).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)


def test_quantising_while_loading_is_noted(judge_report: Judge) -> None:
    first = judge_report(
        traceback("vllm/model_executor/layers/quantization/fp8.py", "process_weights_after_loading")
    ).findings[0]
    assert any("unquantised weights" in note for note in first.notes)


def test_a_draft_that_is_loaded_after_the_cache_needs_a_lower_fraction(judge_report: Judge) -> None:
    """SGLang before 0.5.14 sizes the cache before the draft exists: an old recipe's fraction leaves it no room."""
    text = (
        "[2026-03-01 10:02:00 TP0] Load weight end. elapsed=120 s, type=X, avail mem=22.40 GB, mem usage=71.71 GB.\n"
        "[2026-03-01 10:02:00 TP0] KV Cache is allocated. #tokens: 150000, KV size: 21.00 GB\n"
        "[2026-03-01 10:02:01 TP0] Load weight begin. avail mem=0.60 GB\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB.\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (CAUSE, "sglang")
    assert "draft model" in first.title
    assert {"--speculative-algorithm": "remove", "--mem-fraction-static": "lower"}.items() <= {
        remedy.name: remedy.value for remedy in first.remedies
    }.items()


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.",
        "ValueError: The current `device_map` had weights offloaded to the disk. Please provide an `offload_folder` for them.",
        "ValueError: You are trying to offload the whole model to the disk. Please use the `disk_offload` function instead.",
    ],
)
def test_accelerate_finds_no_room_on_the_gpu(judge_report: Judge, line: str) -> None:
    text = f'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.12/site-packages/transformers/modeling_utils.py", line 10, in from_pretrained\n    x()\n{line}\n'
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (CAUSE, "transformers")


def test_tensorrt_cannot_read_an_engine_into_memory(judge_report: Judge) -> None:
    text = (
        "[06/21/2024-09:10:11] [TRT] [E] 2: [defaultAllocator.cpp::allocate::20] Error Code 2: OutOfMemory (no further information)\n"
        "[06/21/2024-09:10:11] [TRT] [W] Requested amount of GPU memory (68720525312 bytes) could not be allocated.\n"
        "[06/21/2024-09:10:11] [TRT] [E] 2: [runtime.cpp::deserializeCudaEngine::50] Error Code 2: OutOfMemory (no further information)\n"
    )
    first = judge_report(text).findings[0]
    assert first.cause == CAUSE
    assert "defaultAllocator" in first.evidence[0].quote


@pytest.mark.parametrize(
    ("text", "component"),
    [
        (
            'Traceback (most recent call last):\n  File "/app/exllamav3/exllamav3/model/model.py", line 210, in load_gen\nAssertionError: Insufficient space in device allocation\n',
            "exllamav3",
        ),
        (
            "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Status Message: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory for requested buffer of size 2147483648\n",
            "onnxruntime",
        ),
    ],
)
def test_allocators_of_other_libraries(judge_report: Judge, finding: Find, text: str, component: str) -> None:
    assert finding(judge_report(text), CAUSE).component == component

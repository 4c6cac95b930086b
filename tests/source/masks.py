"""Symptoms with a hidden cause, from real reports: what is asked, and what the answer has to hold.

``finds`` are texts that stand in the answer's swallowed handlers, switches or origin; all of them must.
"""

from __future__ import annotations

import msgspec
from tests.source.asking import all_steps

from gpuwhy.model.event import Frame, RaisedException
from gpuwhy.source.answers import Trace
from gpuwhy.source.tracing import Question

FLASHINFER, NEWER = "flashinfer-python==0.6.18.post1", "flashinfer-python==0.7.4"
NINJA_KEPT = "flashinfer-python==0.6.11"
"""The last release whose file for ninja is only written when there is none."""
SGLANG_NEW = "sglang==0.5.23"
SGLANG, VLLM, TORCH, TRITON, KERNEL = "sglang==0.5.10.post1", "vllm==0.33.0", "torch==2.13.0", "triton==3.9.0", "sgl-kernel==0.3.21"  # fmt: skip


class Mask(msgspec.Struct, frozen=True):
    """``number`` is that of the collection of masks; ``symptom`` is what a person sees."""

    number: int
    symptom: str
    release: str
    question: Question
    finds: tuple[str, ...]

    @property
    def releases(self) -> tuple[str, ...]:
        """``release`` may be several, joined by blanks."""
        return tuple(self.release.split())

    def is_found(self, answer: Trace) -> bool:
        told = "\n".join(_told(answer))
        return all(text in told for text in self.finds)


def _told(answer: Trace) -> list[str]:
    lines = [f"switch {each.kind} {each.name}" for each in answer.switches]
    for swallow in answer.swallowed:
        lines.append(f"swallow {swallow.spot.path} {swallow.spot.function} {' '.join(swallow.catches)}")
        lines += [f"in process {swallow.process} prints {log.message.shown}" for log in swallow.logs if swallow.process]
        lines += [f"prints {log.message.shown}" for log in swallow.logs]
        lines += [f"silenced at {spot.path} {spot.code}" for log in swallow.logs for spot in log.silenced_by]
        lines += [f"hides {each.type} {each.message.shown}" for each in swallow.hides]
        lines += [f"may hide {each}" for each in swallow.may_hide]
    if answer.guard:
        lines += [f"requires {each.text}" for each in answer.guard.requires]
        lines += [f"if {each.source} {' '.join(each.values)} {each.outcome}" for each in answer.guard.what_ifs]
    for step in all_steps(answer):
        lines.append(f"step {step.kind} {step.text} when {' and '.join(each.text for each in step.requires)}")
    return lines


def traceback(error: str, *frames: str) -> Question:
    """A traceback as ``path:line:function`` of each frame, outermost first."""
    made = []
    for frame in frames:
        path, line, function = frame.split(":")
        made.append(Frame(path, int(line), function, ""))
    name, _, message = error.partition(": ")
    return Question(raised=RaisedException(name, message, tuple(made)))


CHECK = Question(symbol="flashinfer.jit.core:check_cuda_arch")
FLAGS = Question(symbol="flashinfer.compilation_context:CompilationContext.get_nvcc_flags_list")
MASKS = (
    Mask(1, "FlashInfer requires GPUs with sm75 or higher: nvcc is too old", FLASHINFER, CHECK, ("prints Failed to get device capability", "hides RuntimeError SM 12.x requires CUDA >= 12.9")),
    Mask(2, "the same: no device is visible", FLASHINFER, CHECK, ("switch external torch.cuda.device_count()", "TARGET_CUDA_ARCHS empty always")),
    Mask(3, "the same: CUDA cannot be initialised", FLASHINFER, CHECK, ("may hide torch.cuda.get_device_capability",)),
    Mask(4, "the same: nvcc may not be run", FLASHINFER, CHECK, ("swallow flashinfer/compilation_context.py", "switch subprocess {nvcc} --version")),
    Mask(5, "No supported CUDA architectures found", FLASHINFER, FLAGS, ("hides RuntimeError SM 12.x requires CUDA >= 12.9",)),
    Mask(6, "nvcc not found: torch's version answered in its place", FLASHINFER, FLAGS, ("swallow flashinfer/jit/cpp_ext.py get_cuda_version", "switch external torch.version.cuda")),
    Mask(7, "Unsupported gpu architecture compute_120f after another one was listed", FLASHINFER, traceback("RuntimeError: Ninja build failed.", "flashinfer/quantization/fp4_quantization.py:1007:_fp4_quantize_sm100", "flashinfer/quantization/fp4_quantization.py:261:get_fp4_quantization_module", "flashinfer/jit/core.py:320:build_and_load", "flashinfer/jit/core.py:427:build", "flashinfer/jit/cpp_ext.py:382:run_ninja"), ('backend = "120f" when version_at_least(torch.version.cuda, "12.9")', "switch external torch.version.cuda")),
    Mask(8, "the build still asks the nvcc of before", NINJA_KEPT, traceback("RuntimeError: Ninja build failed.", "flashinfer/jit/core.py:304:build", "flashinfer/jit/cpp_ext.py:354:run_ninja"), ("the file at .ninja_path: write_if_different", "caller self.write_ninja() when not self.is_ninja_generated", "switch file self.ninja_path.exists()")),
    Mask(9, "too many values to unpack on import", FLASHINFER, Question(place="flashinfer/compilation_context.py:92"), ("switch environment FLASHINFER_CUDA_ARCH_LIST",)),
    Mask(10, "a kernel could not be downloaded", FLASHINFER, Question(place="flashinfer/jit/cubin_loader.py:222"), ("swallow flashinfer/jit/cubin_loader.py", "FLASHINFER_CUBIN_DIR")),
    Mask(11, "a compiled kernel could not be loaded, so it is built", FLASHINFER, Question(place="flashinfer/jit/core.py:403"), ("prints Failed to load AOT artifact",)),
    Mask(12, "the same, and no line of it in the log", f"{FLASHINFER} {SGLANG_NEW}", Question(place="flashinfer/jit/core.py:403", follow=("sglang",)), ("prints Failed to load AOT artifact", "silenced at sglang/srt/utils/common.py flashinfer_logger.setLevel(logging.ERROR)")),
    Mask(13, "Model architectures are not supported", SGLANG, Question(place="sglang/srt/models/registry.py:48"), ("prints Ignore import error when loading", "may hide importlib.import_module")),
    Mask(14, "NoneType is not callable: fp4_quantize", SGLANG, Question(symbol="sglang.srt.layers.quantization.modelopt_quant:fp4_quantize"), ("may hide from flashinfer import fp4_quantize",)),
    Mask(15, "DeepEP is not installed", SGLANG, Question(place="sglang/srt/layers/moe/token_dispatcher/deepep.py:304"), ("may hide from deep_ep import",)),
    Mask(16, "another GEMM runs than expected", SGLANG, Question(symbol="sglang.srt.layers.deep_gemm_wrapper.configurer:ENABLE_JIT_DEEPGEMM"), ("may hide import deep_gemm", "SGLANG_ENABLE_JIT_DEEPGEMM")),
    Mask(17, "Capture cuda graph failed", SGLANG, Question(place="sglang/srt/model_executor/cuda_graph_runner.py:655"), ("swallow sglang/srt/model_executor/cuda_graph_runner.py", "hides RuntimeError This should not happen.")),
    Mask(18, "Initialization failed. warmup error: connection refused", SGLANG, Question(place="sglang/srt/entrypoints/http_server.py:1778"), ("in process run_scheduler_process prints Scheduler hit an exception: {}",)),
    Mask(19, "Received sigquit from a child process", SGLANG, Question(place="sglang/srt/entrypoints/engine.py:1152"), ("runs on SIGQUIT", "sender parent_process.send_signal(signal.SIGQUIT) when", "in process run_scheduler_process prints Scheduler hit an exception: {}")),
    Mask(20, "the container ended with 137", SGLANG, Question(signal="SIGKILL"), ("sender itself.kill()", "sender kill_process_tree(os.getpid())", "in process run_scheduler_process prints Scheduler hit an exception: {}")),
    Mask(21, "Could not load any common_ops library", KERNEL, Question(symbol="sgl_kernel.load_utils:_load_architecture_specific_ops", number=3), ("swallow sgl_kernel/load_utils.py",)),
    Mask(22, "custom all-reduce is off", SGLANG, Question(symbol="sglang.srt.distributed.device_communicators.custom_all_reduce_ops:IS_CUSTOM_AR_AVAILABLE"), ("prints Failed to import from custom_ar with", "may hide import sgl_kernel.allreduce")),
    Mask(23, "the draft model runs without its auxiliary layers", SGLANG, Question(symbol="sglang.srt.model_executor.model_runner:ModelRunner.eagle_aux_hidden_state_layer_ids"), ("swallow sglang/srt/model_executor/model_runner.py ModelRunner.__init__ *", 'may hide eagle_config["eagle_aux_hidden_state_layer_ids"]')),
    Mask(24, "no attribute rms_norm of _C", VLLM, Question(place="vllm/platforms/cuda.py:242"), ("prints Failed to import from vllm._C_stable_libtorch",)),
    Mask(25, "no operator of _moe_C", VLLM, Question(place="vllm/platforms/cuda.py:248"), ("swallow vllm/platforms/cuda.py", "may hide import vllm._moe_C_stable_libtorch")),
    Mask(26, "Failed to infer device type", VLLM, Question(place="vllm/config/device.py:55"), ("swallow vllm/platforms/__init__.py resolve_current_platform_cls_qualname",)),
    Mask(27, "Engine core initialization failed", VLLM, Question(place="vllm/v1/engine/utils.py:1474"), ("in process EngineCoreProc.run_engine_core prints EngineCore failed to start.",)),
    Mask(28, "WorkerProc initialization failed", VLLM, traceback("Exception: WorkerProc initialization failed due to an exception in a background process.", "vllm/v1/executor/multiproc_executor.py:914:wait_for_ready"), ("in process WorkerProc.worker_main prints WorkerProc failed to start.",)),
    Mask(29, "Model architectures failed to be inspected", VLLM, Question(place="vllm/model_executor/models/registry.py:1225"), ("swallow vllm/model_executor/models/registry.py", "Error in inspecting model architecture")),
    Mask(30, "FlashInfer backend is not available", VLLM, Question(symbol="vllm.utils.flashinfer:_missing"), ("may hide importlib.import_module", "switch subprocess which nvcc")),
    Mask(31, "No valid attention backend found", VLLM, Question(place="vllm/platforms/cuda.py:472"), ("swallow vllm/platforms/cuda.py", "ImportError OSError")),
    Mask(32, "NCCL is not used", VLLM, Question(symbol="vllm.distributed.device_communicators.pynccl:PyNcclCommunicator.available"), ("swallow vllm/distributed/device_communicators/pynccl.py", "VLLM_NCCL_SO_PATH")),
    Mask(33, "list index out of range in _get_cuda_arch_flags", TORCH, Question(place="torch/utils/cpp_extension.py:2714"), ("switch environment TORCH_CUDA_ARCH_LIST", "range(torch.cuda.device_count())")),
    Mask(34, "no kernel image: an extension was built for a lower architecture", TORCH, Question(place="torch/utils/cpp_extension.py:2746"), ("capability = min(max_supported_sm, capability)", "for arch in torch.cuda.get_arch_list()", "switch environment TORCH_CUDA_ARCH_LIST")),
    Mask(35, "CUDA_HOME environment variable is not set", TORCH, Question(place="torch/utils/cpp_extension.py:3302"), ("switch subprocess which nvcc", "torch.version.cuda) else None")),
    Mask(36, "0 active drivers", TRITON, Question(place="triton/runtime/driver.py:20"), ("switch external torch.cuda.is_available()",)),
    Mask(37, "a configuration that failed was left out", TRITON, Question(place="triton/runtime/autotuner.py:187"), ("swallow triton/runtime/autotuner.py", "PTXASError")),
    Mask(38, "TRITON_PTXAS_PATH is not used", TRITON, Question(symbol="triton.backends.nvidia.compiler:get_ptxas"), ("ptxas_blackwell",)),
    Mask(39, "No valid triton configs", TORCH, Question(place="torch/_inductor/runtime/triton_heuristics.py:691"), ("swallow torch/_inductor/runtime/triton_heuristics.py", "PTXASError")),
    Mask(101, "the newer FlashInfer says the same", NEWER, CHECK, ("prints Failed to get device capability", "requires CUDA >= 12.9")),
)  # fmt: skip
"""Numbers below 100 are those of the collection."""
IN_CI = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 22, 24, 25, 28, 30, 31, 34, 35, 36)
"""Those that need no more than seconds."""

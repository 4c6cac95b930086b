"""A judgement that turns on binaries asks for them: real files, the collector's own answers, and what becomes proven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.binaries import linking
from tests.investigate.host_of_binaries import Answer, Host, coded, diagnosed

from gpuwhy import snapshot
from gpuwhy.diagnosis import sign_literals
from gpuwhy.investigate.binaries_wanted import places_of
from gpuwhy.investigate.target import examine
from gpuwhy.logs import read_bytes
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.snapshot.given import given
from gpuwhy.targets import Ask, Reply
from gpuwhy.targets.file import PathTarget
from gpuwhy.targets.local import LocalTarget

NO_IMAGE = "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"
OTHER_PTX = "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain."
ON_BLACKWELL = {"cc": "12.0", "gpu": "NVIDIA RTX PRO 6000 Blackwell Server Edition", "torch": "2.9.1", "torch_cuda": "12.8"}  # fmt: skip


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    return linking.environment(tmp_path)


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def failing_kernel(packages: Path, message: str) -> str:
    """SGLang's scheduler while an operation of sgl_kernel runs."""
    return f"""[2026-07-27 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "{packages}/sglang/srt/managers/scheduler.py", line 2600, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "{packages}/sglang/srt/layers/attention/flashattention_backend.py", line 900, in forward_extend
    result = flash_attn_with_kvcache(
  File "{packages}/sgl_kernel/flash_attn.py", line 250, in flash_attn_with_kvcache
    out, softmax_lse, *rest = torch.ops.sgl_kernel.fwd.default(
  File "{packages}/torch/_ops.py", line 829, in __call__
    return self._op(*args, **kwargs)
{message}
"""


def failing_import(packages: Path, message: str) -> str:
    """SGLang's server while sgl_kernel is imported."""
    return f"""Traceback (most recent call last):
  File "{packages}/sglang/launch_server.py", line 7, in <module>
    from sglang.srt.server_args import prepare_server_args
  File "{packages}/sgl_kernel/__init__.py", line 5, in <module>
    from sgl_kernel import common_ops
ImportError: {message}
"""


def from_binary(finding: Finding) -> Evidence:
    """The evidence that a binary gave."""
    return next(each for each in finding.evidence if each.place is not None and each.place.source == "binary")


def assert_proven(answer: Answer, cause: str, component: str | None = None) -> Evidence:
    assert (answer.leader.cause, answer.leader.certainty) == (cause, Certainty.PROVEN)
    assert component is None or answer.leader.component == component
    return from_binary(answer.leader)


def test_a_library_without_code_for_the_gpu_is_read(packages: Path) -> None:
    library = write(packages / "sgl_kernel/flash_ops.abi3.so", coded("sm_80", "sm_86", "sm_90a", containers=182))
    write(packages / "torch/lib/libtorch_cuda.so", coded("sm_75", "sm_80", "sm_90", "sm_100", "sm_120"))
    answer = diagnosed(Host(packages), failing_kernel(packages, NO_IMAGE), **ON_BLACKWELL, driver="580.65")
    assert answer.before.findings[0].certainty is not Certainty.PROVEN
    shown = assert_proven(answer, "binary-lacks-arch", "sgl-kernel")
    assert shown.place is not None
    assert shown.place.path == str(library)
    assert ".nv_fatbin: 182 containers, the first at 0x" in shown.quote
    assert "torch-lacks-arch" in answer.excluded
    assert answer.facts.value("binary_runs.sgl-kernel") == "none"


def test_a_library_that_has_the_gpu_is_not_to_blame(packages: Path) -> None:
    write(packages / "sgl_kernel/flash_ops.abi3.so", coded("sm_80", "sm_90a", "sm_120"))
    answer = diagnosed(Host(packages), failing_kernel(packages, NO_IMAGE), **ON_BLACKWELL)
    assert "binary-lacks-arch" in answer.excluded


def test_of_files_for_several_generations_the_one_that_lacks_the_gpu_proves_nothing(packages: Path) -> None:
    write(packages / "vllm/_C.abi3.so", coded("sm_80", "sm_90", "sm_120"))
    write(packages / "vllm/_vllm_fa3_C.abi3.so", coded("sm_90a"))
    log = failing_kernel(packages, NO_IMAGE).replace("sgl_kernel/flash_attn.py", "vllm/_custom_ops.py").replace("torch.ops.sgl_kernel.fwd.default(", "torch.ops._C.rms_norm(out, input)")  # fmt: skip
    answer = diagnosed(Host(packages), log, **ON_BLACKWELL)
    assert set(answer.facts.group("binary_archs")) == {"vllm _C", "vllm _vllm_fa3_C"}
    assert all(finding.certainty is not Certainty.PROVEN for finding in answer.after.findings)


def test_a_library_of_which_only_lines_nearby_speak_is_likely_at_most(packages: Path) -> None:
    write(packages / "flash_attn_2_cuda.so", coded("sm_80", "sm_90"))
    log = f"""INFO 07-27 10:00:00 loaded {packages}/flash_attn/flash_attn_interface.py
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""
    answer = diagnosed(Host(packages), log, **ON_BLACKWELL)
    assert answer.facts.value("binary_archs.flash-attn") == ["sm_80", "sm_90"]
    assert answer.finding("binary-lacks-arch").certainty is Certainty.LIKELY


def test_torch_without_the_gpu_is_read(packages: Path) -> None:
    write(packages / "torch/lib/libtorch_cuda.so", coded("sm_75", "sm_80", "sm_90", containers=475))
    log = f"""Traceback (most recent call last):
  File "/opt/service/serve.py", line 10, in main
    x = torch.ones(1, device="cuda") + 1
{NO_IMAGE}
"""
    answer = diagnosed(Host(packages), log, cc="12.0", torch="2.6.0", torch_cuda="12.4")
    assert answer.facts.value("torch_arch_list") == ["sm_75", "sm_80", "sm_90"]
    link = answer.leader.chain[0].evidence
    assert (answer.leader.cause, answer.leader.certainty) == ("torch-lacks-arch", Certainty.PROVEN)
    assert link is not None
    assert "475 containers" in link.quote


def test_the_targets_of_torch_are_those_that_every_part_has(packages: Path) -> None:
    """Single kernels have further targets, and are no sign that the others have them."""
    some = coded("sm_80", "sm_90a", "sm_120")
    write(packages / "torch/lib/libtorch_cuda.so", some)
    log = failing_kernel(packages, NO_IMAGE)
    answer = diagnosed(Host(packages), log, **ON_BLACKWELL)
    assert answer.facts.value("torch_arch_list") == ["sm_80", "sm_90a", "sm_120"]


def test_ptx_that_is_too_new_for_the_driver_is_read(packages: Path) -> None:
    write(packages / "sgl_kernel/flash_ops.abi3.so", coded("sm_80", "compute_90", ptx=(8, 8)))
    answer = diagnosed(Host(packages), failing_kernel(packages, OTHER_PTX), **ON_BLACKWELL, driver="570.86")
    shown = assert_proven(answer, "ptx-newer-than-driver")
    assert "3 with PTX that is too new" in shown.quote
    newer = diagnosed(Host(packages), failing_kernel(packages, OTHER_PTX), **ON_BLACKWELL, driver="580.65")
    assert newer.facts.value("binary_runs.sgl-kernel") == "jit"
    assert newer.leader.certainty is not Certainty.PROVEN


def test_a_module_compiled_here_for_another_gpu(packages: Path, tmp_path: Path) -> None:
    operations = tmp_path / "home/.cache/flashinfer/0.6.12/90a/cached_ops"
    write(operations / "sampling/sampling.so", coded("sm_90a", containers=1))
    caches = {"flashinfer": {"levels": [{"path": str(operations.parent), "modified": 1.0}]}}
    log = failing_kernel(packages, NO_IMAGE).replace("sgl_kernel/flash_attn.py", "flashinfer/sampling.py").replace("torch.ops.sgl_kernel.fwd.default(", "module.top_k_top_p_sampling_from_probs(")  # fmt: skip
    answer = diagnosed(Host(packages, caches=caches), log, **ON_BLACKWELL)
    assert answer.facts.value("jit_targets") == ["sm_90a"]
    assert_wrong_target(answer)


def assert_wrong_target(answer: Answer) -> None:
    finding = answer.finding("build-target-wrong")
    assert finding.certainty is Certainty.PROVEN
    assert "binary-lacks-arch" in answer.excluded


def test_a_list_of_targets_in_the_environment_is_held_against_what_was_built(packages: Path) -> None:
    write(packages / "sgl_kernel/flash_ops.abi3.so", coded("sm_90a"))
    facts: dict[str, Any] = {**ON_BLACKWELL, "env__TORCH_CUDA_ARCH_LIST": "9.0a", "packages__sgl-kernel": "0.3.21, built from /src/sgl-kernel"}  # fmt: skip
    answer = diagnosed(Host(packages), failing_kernel(packages, NO_IMAGE), **facts)
    assert (answer.leader.cause, answer.leader.certainty) == ("arch-list-override", Certainty.PROVEN)


def test_a_symbol_of_another_torch(packages: Path) -> None:
    lib = linking.torch(packages)
    linking.distribution(packages, "torch", "2.14.1", (lib / "libc10.so",))
    symbol = f"{linking.CUDA_CHECK}ib"
    library = linking.library(packages / "sgl_kernel/common_ops.abi3.so", f"void {symbol}(void); void f(void) {{ {symbol}(); }}", (lib / "libc10_cuda.so",))  # fmt: skip
    answer = diagnosed(
        Host(packages), failing_import(packages, f"{library}: undefined symbol: {symbol}"), torch="2.14.1"
    )
    shown = assert_proven(answer, "abi-mismatch", "sgl-kernel")
    assert "libc10_cuda.so of torch 2.9.1 or earlier defines it, installed is torch 2.14.1" in shown.statement
    assert shown.quote == f".dynsym: undefined {symbol}"


def test_a_symbol_that_is_defined_by_now_speaks_against_it(packages: Path) -> None:
    lib = linking.torch(packages)
    symbol = f"{linking.CUDA_CHECK}jb"
    library = linking.library(packages / "sgl_kernel/common_ops.abi3.so", f"void {symbol}(void); void f(void) {{ {symbol}(); }}", (lib / "libc10_cuda.so",))  # fmt: skip
    answer = diagnosed(
        Host(packages), failing_import(packages, f"{library}: undefined symbol: {symbol}"), torch="2.12.0"
    )
    assert (answer.leader.cause, answer.leader.certainty) == ("abi-mismatch", Certainty.LIKELY)
    assert answer.leader.against[0].statement == f"{library} loads"


def test_a_snapshot_that_was_not_asked_says_nothing_of_a_file(packages: Path) -> None:
    class Unasked(Host):
        def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]:
            return [Reply(status="absent", reason="not in this snapshot") for _ in asks]

    log = failing_import(packages, f"{packages}/sgl_kernel/common_ops.abi3.so: file too short")
    answer = diagnosed(Unasked(packages), log)
    assert len(answer.facts) == 0
    gone = diagnosed(Host(packages), log)
    assert list(gone.facts.group("files")) == [f"{packages}/sgl_kernel/common_ops.abi3.so"]


def test_a_symbol_of_nobodys_library_is_proven_by_looking(packages: Path) -> None:
    other = linking.library(packages / "kernels/libhalf.so", "void other(void) {}")
    source = "void quantize_rows(int); void f(void) { quantize_rows(1); }"
    library = linking.library(packages / "kernels/ext.so", source, (other,), runpath="$ORIGIN")
    log = failing_import(packages, f"{library}: undefined symbol: quantize_rows")
    answer = diagnosed(Host(packages), log, torch="2.9.1")
    assert answer.before.findings[0].certainty is Certainty.POSSIBLE
    assert_proven(answer, "abi-mismatch")


def test_a_library_of_another_cuda(packages: Path, tmp_path: Path) -> None:
    linking.library(packages / "nvidia/cu13/lib/libcudart.so.13")
    gone = linking.library(tmp_path / "gone/libcudart.so.12")
    library = linking.library(packages / "sgl_kernel/common_ops.abi3.so", "", (gone,))
    gone.unlink()
    log = failing_import(packages, "libcudart.so.12: cannot open shared object file: No such file or directory")
    answer = diagnosed(Host(packages), log, torch="2.14.1")
    assert answer.before.findings[0].certainty is not Certainty.PROVEN
    assert_proven(answer, "cuda-major-mismatch", "sgl-kernel")
    statements = [(each.statement, each.place.path if each.place else "") for each in answer.leader.evidence]
    assert any("no folder that the loader searches" in said and path == str(library) for said, path in statements)
    assert any("libcudart.so.13" in each.quote for each in answer.leader.evidence)


def test_a_cuda_library_that_lies_where_nobody_looks(packages: Path, tmp_path: Path) -> None:
    cublas = linking.library(packages / "nvidia/cublas/lib/libcublas.so.12")
    linking.library(packages / "sgl_kernel/common_ops.abi3.so", "", (cublas,))
    log = failing_import(packages, "libcublas.so.12: cannot open shared object file: No such file or directory")
    answer = diagnosed(Host(packages), log, torch="2.9.1", torch_cuda="12.8")
    assert_proven(answer, "library-missing")
    assert answer.leader.remedies[0].name == "LD_LIBRARY_PATH"
    assert answer.leader.remedies[0].value == str(cublas.parent)


def test_a_library_of_the_system_that_is_missing_with_where_it_was_looked_for(packages: Path, tmp_path: Path) -> None:
    gone = linking.library(tmp_path / "gone/libnobodyknows.so.3")
    linking.library(packages / "sgl_kernel/common_ops.abi3.so", "", (gone,), runpath="/opt/none")
    gone.unlink()
    log = failing_import(packages, "libnobodyknows.so.3: cannot open shared object file: No such file or directory")
    answer = diagnosed(Host(packages, {"LD_LIBRARY_PATH": "/opt/somewhere"}), log)
    shown = assert_proven(answer, "library-missing")
    assert "/opt/somewhere" in shown.quote
    assert "/opt/none" in shown.quote


def test_one_that_the_services_search_path_has_is_not_missing(packages: Path, tmp_path: Path) -> None:
    there = linking.library(tmp_path / "opt/libnobodyknows.so.3")
    linking.library(packages / "sgl_kernel/common_ops.abi3.so", "", (there,))
    log = failing_import(packages, "libnobodyknows.so.3: cannot open shared object file: No such file or directory")
    answer = diagnosed(Host(packages, {"LD_LIBRARY_PATH": str(there.parent)}), log)
    assert "library-missing" in answer.excluded


def test_a_c_run_time_that_is_too_old(packages: Path, tmp_path: Path) -> None:
    newer = linking.library(tmp_path / "new/libstdc++.so.6", "int fresh(void) { return 2; }", versions="GLIBCXX_3.4.99 { global: fresh; };")  # fmt: skip
    library = linking.library(
        packages / "vllm/_C.abi3.so", "int fresh(void); int o(void) { return fresh(); }", (newer,)
    )
    log = failing_import(packages, f"/usr/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.99' not found (required by {library})")  # fmt: skip
    shown = assert_proven(diagnosed(Host(packages), log), "libc-too-old", "vllm")
    assert "has GLIBCXX up to 3.4." in shown.statement


@pytest.mark.parametrize("message", ["file too short", "invalid ELF header"])
def test_a_library_that_was_cut(message: str, packages: Path) -> None:
    library = linking.library(packages / "sgl_kernel/common_ops.abi3.so")
    linking.distribution(packages, "sgl-kernel", "0.3.21", (library,))
    library.write_bytes(library.read_bytes()[:3000])
    answer = diagnosed(Host(packages), failing_import(packages, f"{library}: {message}"))
    shown = assert_proven(answer, "library-corrupt", "sgl-kernel")
    assert "truncated: 3000 bytes, and sgl-kernel 0.3.21 installed" in shown.statement


def test_a_library_that_is_whole_again_is_not_corrupt(packages: Path) -> None:
    library = linking.library(packages / "sgl_kernel/common_ops.abi3.so")
    answer = diagnosed(Host(packages), failing_import(packages, f"{library}: file too short"))
    assert "library-corrupt" in answer.excluded


def test_a_module_in_a_cache_of_another_torch(packages: Path, tmp_path: Path) -> None:
    lib = linking.torch(packages)
    symbol = f"{linking.CUDA_CHECK}ib"
    module = linking.library(tmp_path / "home/.cache/flashinfer/0.6.12/120a/cached_ops/sampling/sampling.so", f"void {symbol}(void); void f(void) {{ {symbol}(); }}", (lib / "libc10_cuda.so",))  # fmt: skip
    answer = diagnosed(
        Host(packages), failing_import(packages, f"{module}: undefined symbol: {symbol}"), torch="2.14.1"
    )
    assert_proven(answer, "jit-cache-stale", "flashinfer")


def test_half_a_module_in_a_cache(packages: Path, tmp_path: Path) -> None:
    module = linking.library(tmp_path / "home/.cache/flashinfer/0.6.12/120a/cached_ops/sampling/sampling.so")
    module.write_bytes(module.read_bytes()[:3000])
    answer = diagnosed(Host(packages), failing_import(packages, f"{module}: file too short"))
    assert "ends at 3000" in assert_proven(answer, "jit-cache-stale", "flashinfer").statement


def test_which_libcuda_the_service_would_get(packages: Path, tmp_path: Path) -> None:
    linking.library(packages / "torch/lib/libtorch_cuda.so")
    compat = linking.library(tmp_path / "cuda/compat/libcuda.so.1")
    log = f"""Traceback (most recent call last):
  File "{packages}/torch/cuda/__init__.py", line 319, in _lazy_init
    torch._C._cuda_init()
RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination
"""
    answer = diagnosed(Host(packages, {"LD_LIBRARY_PATH": str(compat.parent)}), log, torch="2.14.1", driver="580.65")
    shown = assert_proven(answer, "libcuda-shadowed", "cuda-compat")
    assert shown.quote == str(compat)
    assert "LD_LIBRARY_PATH" in shown.statement


def test_a_diagnosis_over_a_connection_and_again_from_its_snapshot(packages: Path, tmp_path: Path) -> None:
    """The real program on this machine: the failing frames say where its packages lie, whatever Python is found here."""
    write(packages / "sgl_kernel/flash_ops.abi3.so", coded("sm_80", "sm_86", "sm_90a"))
    log = read_bytes(failing_kernel(packages, NO_IMAGE).encode(), "journal", sign_literals())
    told = given({"cc": "12.0", "torch": "2.9.1"}).facts
    taken = examine(LocalTarget(), logs=[log], facts=told)
    assert taken.snapshot is not None
    assert {each.ask for each in taken.snapshot.excerpts} >= {"list", "inspect"}
    snapshot.write(taken.snapshot, tmp_path / "host.gpuwhy")
    again = examine(PathTarget(str(tmp_path / "host.gpuwhy")), logs=[log], facts=told)
    for diagnosis in (taken.diagnosis, again.diagnosis):
        finding = diagnosis.findings[0]
        assert (finding.cause, finding.certainty) == ("binary-lacks-arch", Certainty.PROVEN)
        assert from_binary(finding).place is not None
    assert any("what does the binary hold" in step.question for step in taken.diagnosis.investigation.steps)


def test_a_program_of_its_own_and_the_libraries_beside_it(packages: Path, tmp_path: Path) -> None:
    server = write(tmp_path / "opt/llama/bin/llama-server", Path("/bin/true").read_bytes())
    write(server.parent / "libggml-cuda.so", coded("sm_75", "compute_75", "sm_80", "sm_90", containers=137))
    log = "CUDA error: no kernel image is available for execution on the device\n  current device: 0, in function ggml_cuda_compute_forward at /src/ggml/src/ggml-cuda/ggml-cuda.cu:2400\n  err\n/src/ggml/src/ggml-cuda/ggml-cuda.cu:84: CUDA error\n"  # fmt: skip
    answer = diagnosed(Host(packages), log, cc="6.1", command=f"{server} -m /models/m.gguf -ngl 99")
    assert answer.facts.value("binary_archs.llama.cpp") == ["sm_75", "sm_80", "sm_90", "compute_75"]
    assert answer.facts.value("binary_runs.llama.cpp") == "none"


def test_a_program_that_misses_a_library(packages: Path, tmp_path: Path) -> None:
    gone = linking.library(tmp_path / "gone/libnobodyknows.so.3")
    server = linking.program(tmp_path / "opt/llama/bin/llama-server", (gone,))
    gone.unlink()
    log = f"{server}: error while loading shared libraries: libnobodyknows.so.3: cannot open shared object file: No such file or directory"  # fmt: skip
    answer = diagnosed(Host(packages), log, command=f"{server} -m /models/m.gguf")
    assert f"loading.{server}" in answer.facts
    assert "libnobodyknows.so.3" in from_binary(answer.leader).statement


def test_a_failure_that_no_binary_decides_asks_for_none(packages: Path) -> None:
    host = Host(packages)
    diagnosed(host, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.10 GiB")  # fmt: skip
    assert host.asked == []


def test_paths_of_the_log_that_are_private_are_not_read(packages: Path, tmp_path: Path) -> None:
    log = failing_import(packages, "/home/x/.ssh/agent.so: undefined symbol: _ZN3c105ErrorD1Ev")
    answer = diagnosed(Host(packages), log, torch="2.9.1")
    assert not answer.facts.group("files")


def test_the_files_of_a_component_among_the_names_of_a_folder() -> None:
    names = ["flash_attn/", "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so", "flash_attn-2.8.3.dist-info/", "sgl_kernel/", "torch/", "six.py"]  # fmt: skip
    assert places_of("flash-attn", "/p", names) == ("/p/flash_attn", f"/p/{names[1]}")
    assert places_of("sgl-kernel", "/p", names) == ("/p/sgl_kernel",)

"""The case that started it: FlashInfer says that the GPUs are too old, and means that nvcc is. No rule is involved."""

from __future__ import annotations

import pytest
from tests.source.asking import all_steps, names, swallow_at, switch, traced

from gpuwhy.source.tracing import Question

OLD, NEW = "flashinfer-python==0.6.18.post1", "flashinfer-python==0.7.4"
ASKED = Question(symbol="flashinfer.jit.core:check_cuda_arch")
SET = "current_compilation_context.TARGET_CUDA_ARCHS"


def test_guard_and_the_empty_set() -> None:
    guard = traced(ASKED, OLD).guard
    assert guard is not None
    assert (guard.spot.path, guard.spot.line) == ("flashinfer/jit/core.py", 109)
    assert [each.text for each in guard.requires] == ["not eligible"]
    assert [(each.source, each.values, each.outcome) for each in guard.what_ifs] == [(SET, ("empty",), "always")]


def test_both_writes_of_the_set_and_their_conditions() -> None:
    writes = {step.spot.line: step for step in all_steps(traced(ASKED, OLD)) if step.kind == "write" and step.spot}
    assert set(writes) == {89, 97, 99, 106}
    assert '"FLASHINFER_CUDA_ARCH_LIST" in os.environ' in [each.text for each in writes[97].requires]
    assert '"FLASHINFER_CUDA_ARCH_LIST" not in os.environ' in [each.text for each in writes[106].requires]


@pytest.mark.parametrize("release", [OLD, NEW])
def test_switches(release: str) -> None:
    answer = traced(ASKED, release)
    assert names(answer, "environment") >= {"FLASHINFER_CUDA_ARCH_LIST", "CUDA_HOME", "CUDA_PATH"}
    assert names(answer, "subprocess") == {"which nvcc", "{nvcc} --version"}
    assert names(answer, "external") >= {
        "torch.version.cuda",
        "torch.cuda.get_device_capability()",
        "torch.cuda.device_count()",
    }
    assert "get_cuda_version" in switch(answer, "subprocess", "{nvcc} --version").cached_by
    assert "on import of flashinfer.jit.core" in switch(answer, "environment", "CUDA_HOME").read_when
    assert switch(answer, "environment", "CUDA_PATH").consulted_if


def test_what_the_handler_swallows() -> None:
    swallow = swallow_at(traced(ASKED, OLD), "flashinfer/compilation_context.py", 107)
    assert swallow.catches == ("Exception",)
    assert "TARGET_CUDA_ARCHS.add" in swallow.skips
    assert [(log.level, log.message.pieces) for log in swallow.logs] == [
        ("warning", ("Failed to get device capability: ", "."))
    ]
    hidden = {(each.spot.path, each.spot.line) for each in swallow.hides}
    assert hidden == {("flashinfer/compilation_context.py", 83), ("flashinfer/jit/cpp_ext.py", 61), ("flashinfer/jit/cpp_ext.py", 76), ("flashinfer/jit/cpp_ext.py", 83)}  # fmt: skip
    first = next(each for each in swallow.hides if each.spot.line == 83 and "compilation_context" in each.spot.path)
    assert 'not is_cuda_version_at_least("12.9")' in [each.text for each in first.requires]
    assert first.via == ("CompilationContext._normalize_cuda_arch",)


def test_the_newer_release_swallows_the_same() -> None:
    answer = traced(ASKED, NEW)
    told = [
        each
        for each in answer.swallowed
        if any("Failed to get device capability" in log.message.shown for log in each.logs)
    ]
    assert any("requires CUDA >= 12.9" in hidden.message.shown for each in told for hidden in each.hides)


def test_a_log_line_leads_to_the_raise_that_it_hides() -> None:
    swallow = swallow_at(traced(ASKED, OLD), "flashinfer/compilation_context.py", 107)
    line = "2026-05-01 WARNING Failed to get device capability: SM 12.x requires CUDA >= 12.9."
    values = swallow.logs[0].message.values_in(line)
    assert values == ("SM 12.x requires CUDA >= 12.9",)
    assert [each.spot.line for each in swallow.hides if each.message.values_in(values[0]) is not None] == [83]


def test_everyone_who_reads_or_writes_the_set() -> None:
    (radius,) = traced(ASKED, OLD).users
    assert radius.value.endswith("CompilationContext.TARGET_CUDA_ARCHS")
    writes = [line for use in radius.uses if use.kind == "write" for line in use.lines]
    reads = [line for use in radius.uses if use.kind == "read" for line in use.lines]
    assert (len(writes), len(reads)) == (4, 20)
    readers = {(use.path.removeprefix("flashinfer/"), use.function) for use in radius.uses if use.kind == "read"}
    assert readers >= {
        ("compilation_context.py", "CompilationContext.get_nvcc_flags_list"),
        ("jit/env.py", "_get_workspace_dir_name"),
        ("jit/core.py", "check_cuda_arch"),
        ("jit/xqa.py", "_has_sm90_target"),
        ("jit/attention/fmha_v2/fmha_library.py", "generate_jit_sources"),
        ("aot.py", "gen_attention"),
    }


def test_the_other_way_to_the_set_is_not_protected() -> None:
    unprotected = {each.spot.line: each.unprotected for each in traced(ASKED, OLD).bypasses}
    assert unprotected == {97: 0, 99: 4}

"""libc-too-old: a version of glibc or libstdc++ that is not there, and installers that see it beforehand."""

from __future__ import annotations

import pytest
from tests.causes.packages.texts import SITE, Find, Judge, names, remedies, ruled_out

from gpuwhy.model.finding import Certainty

CAUSE = "libc-too-old"
GLIBC = f"ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by {SITE}/sgl_kernel/common_ops.abi3.so)\n"
CONDA = "ImportError: /opt/conda/envs/x/bin/../lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /opt/user/.cache/flashinfer/0.2.5/90/cached_ops/norm/norm.so)\n"


@pytest.mark.parametrize(("text", "component"), [
    (GLIBC, "sgl-kernel"),
    ("./llama-server: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./llama-server)\n", "llama.cpp"),
    ("/usr/local/bin/ollama: /lib64/libc.so.6: version `GLIBC_2.27' not found (required by /usr/local/bin/ollama)\n", "ollama"),
    (f"OSError: /lib64/libstdc++.so.6: version `CXXABI_1.3.13' not found (required by {SITE}/tensorrt_llm/libs/libth_common.so)\n", "tensorrt-llm"),
    (CONDA, "flashinfer"),
])  # fmt: skip
def test_a_version_that_is_not_found(judge_report: Judge, finding: Find, text: str, component: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert found.component == component
    assert "not found" in found.evidence[0].quote


def test_glibc_is_met_by_another_distribution_or_build(judge_report: Judge, finding: Find) -> None:
    proposed = remedies(finding(judge_report(GLIBC), CAUSE))
    assert proposed[0] == ("container", "image", "distribution with glibc >= 2.34")
    assert ("package", "sgl-kernel", "rebuild") in proposed
    assert ("system-package", "glibc", ">=2.34") in proposed


def test_the_run_time_of_an_environment_is_brought_up_to_date(judge_report: Judge, finding: Find) -> None:
    proposed = remedies(finding(judge_report(CONDA), CAUSE))
    assert ("package", "libstdcxx-ng", "newer") in proposed
    assert proposed[0][:2] == ("env", "LD_LIBRARY_PATH")


def test_a_symbol_of_the_standard_library_is_likely(judge_report: Judge, finding: Find) -> None:
    found = finding(
        judge_report(f"ImportError: {SITE}/vllm/_C.abi3.so: undefined symbol: _ZSt28__throw_bad_array_new_lengthv\n"),
        CAUSE,
    )
    assert found.certainty is Certainty.LIKELY
    assert found.rivals == ("abi-mismatch",)


def test_an_installer_that_finds_newer_wheels_only(judge_report: Judge, finding: Find) -> None:
    text = (
        "  x No solution found when resolving dependencies:\n"
        "      hint: You're on Linux (`manylinux_2_31_x86_64`), but `sgl-kernel` (v0.3.14) only has wheels for the following platforms: `manylinux_2_34_x86_64`\n"
    )
    judgement = judge_report(text)
    assert names(judgement)[0] == CAUSE
    assert finding(judgement, CAUSE).component == "sgl-kernel"


def test_a_wheel_that_does_not_fit_the_platform_may_fail_for_other_reasons(judge_report: Judge, finding: Find) -> None:
    text = "ERROR: sgl_kernel-0.3.5-cp39-abi3-manylinux_2_35_x86_64.whl is not a supported wheel on this platform.\n"
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "glibc" in [missing.key for missing in found.missing]
    assert CAUSE in ruled_out(judge_report(text, {"glibc": "2.39"}))


def test_a_newer_glibc_rules_it_out(judge_report: Judge) -> None:
    assert CAUSE in ruled_out(judge_report(GLIBC, {"glibc": "2.35"}))
    assert CAUSE not in ruled_out(judge_report(GLIBC, {"glibc": "2.31"}))


@pytest.mark.parametrize("text", [
    f"ImportError: {SITE}/x/_C.so: undefined symbol: _ZN3c105ErrorC1Ei\n",
    "ImportError: libstdc++.so.6: cannot open shared object file: No such file or directory\n",
    "ldd (Ubuntu GLIBC 2.31-0ubuntu9.16) 2.31\n",
])  # fmt: skip
def test_near_misses_are_others(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_unloaded_operators_on_an_old_system(judge_report: Judge) -> None:
    text = "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'\n"
    assert names(judge_report(text, {"glibc": "2.17"}))[0] == CAUSE
    assert CAUSE not in names(judge_report(text, {"glibc": "2.35"}))
    assert CAUSE not in names(judge_report(text))

"""Which release has which variable and option; the rows are those that the wheels themselves show."""

from __future__ import annotations

import pytest

from gpuwhy.knowledge import renamed_switches, switches


@pytest.mark.parametrize(
    ("package", "version", "name", "has"),
    [
        ("vllm", "0.9.2", "VLLM_USE_V1", True),
        ("vllm", "0.33.0", "VLLM_USE_V1", False),
        ("vllm", "0.7.3", "VLLM_USE_DEEP_GEMM", False),
        ("vllm", "0.11.0", "VLLM_USE_DEEP_GEMM", True),
        ("vllm", "0.33.0", "VLLM_USE_FLASHINFER_SAMPLER", True),
        ("sglang", "0.5.23", "SGLANG_CACHE_DIR", True),
        ("sglang", "0.4.6", "SGLANG_DG_CACHE_DIR", False),
        ("flashinfer-python", "0.6.6", "FLASHINFER_NO_DOWNLOAD", False),
        ("flashinfer-python", "0.6.9", "FLASHINFER_NO_DOWNLOAD", True),
        ("triton", "3.9.0", "TRITON_PTXAS_BLACKWELL_PATH", True),
        ("triton", "3.2.0", "TRITON_PTXAS_PATH", True),
    ],
)
def test_variables(package: str, version: str, name: str, has: bool) -> None:
    answer = switches.has_variable(package, version, name)
    assert answer.value is has
    assert answer.provenance.startswith("measured: ")
    assert name in answer.why


@pytest.mark.parametrize(
    ("server", "version", "option", "has"),
    [
        ("vllm", "0.10.0", "--max-model-len", True),
        ("vllm", "0.10.0", "--max_model_len", True),
        ("vllm", "0.10.0", "--no-enable-prefix-caching", True),
        ("vllm", "0.10.0", "--mem-fraction-static", False),
        ("vllm", "0.10.0", "--compilation-config.level", True),
        ("sglang", "0.5.23", "--mem-fraction-static", True),
        ("sglang", "0.5.23", "--disable-cuda-graph", True),
        ("sglang", "0.4.6", "--tp", True),
        ("sglang", "0.4.6", "--moe-a2a-backend", False),
    ],
)
def test_options(server: str, version: str, option: str, has: bool) -> None:
    assert switches.has_option(server, version, option).value is has


def test_the_reason_says_when_it_came_or_went() -> None:
    assert switches.has_variable("vllm", "0.7.3", "VLLM_USE_DEEP_GEMM").why.startswith(
        "vllm 0.7.3 has no VLLM_USE_DEEP_GEMM: it came with 0.8."
    )
    assert "was the last with it" in switches.has_variable("vllm", "0.33.0", "VLLM_USE_V1").why


@pytest.mark.parametrize("version", ["0.1.0", "99.0", "not a version", "", "1" * 5000])
def test_nothing_is_said_of_releases_that_were_not_read(version: str) -> None:
    assert switches.has_variable("vllm", version, "VLLM_USE_V1").value is None


def test_a_build_between_two_releases_is_judged_where_both_agree() -> None:
    assert switches.has_variable("vllm", "0.10.1.dev55+gabc", "VLLM_USE_V1").value is True
    assert switches.has_variable("vllm", "0.11.0+cu128", "VLLM_USE_V1").value is True


def test_what_no_file_that_was_read_names_is_not_known() -> None:
    assert switches.has_variable("vllm", "0.11.0", "VLLM_NEVER_WAS").value is None
    assert switches.has_variable("llama.cpp", "1.0", "GGML_X").value is None
    assert switches.has_option("ollama", "1.0", "--x").value is None
    assert switches.has_option("vllm", "0.11.0", "--never-was").value is False


def test_a_variable_belongs_to_the_package_of_its_prefix() -> None:
    assert switches.owner_of("SGL_ENABLE_X") == switches.owner_of("SGLANG_X") == "sglang"
    assert switches.owner_of("CUDA_HOME") is None


def test_switches_and_other_spellings() -> None:
    assert switches.is_switch("--enforce-eager")
    assert switches.is_switch("--disable_radix_cache")
    assert not switches.is_switch("--max-model-len")
    assert "-tp" in switches.same_argument("--tensor-parallel-size")
    assert switches.is_short_for("--tp", "--tp-size")
    assert not switches.is_short_for("--model", "--model-impl")  # an option of its own


@pytest.mark.parametrize(("package", "spellings"), renamed_switches.groups())
def test_every_spelling_that_is_kept_by_hand_is_one_of_some_release(
    package: str, spellings: tuple[tuple[str, str, str], ...]
) -> None:
    """And no group is for nothing: in some release one of its spellings is missing while another is there."""
    releases = switches.releases_of(package)
    has = {
        name: [
            (switches.has_variable if kind == "env" else switches.has_option)(package, release, name).value
            for release in releases
        ]
        for kind, name, _ in spellings
    }
    assert all(any(values) for values in has.values()), has.keys()
    assert any(len(set(values)) > 1 for values in zip(*has.values(), strict=True))


def test_a_value_becomes_what_the_other_spelling_takes() -> None:
    (other,) = renamed_switches.other_spellings("sglang", "--enable-deepep-moe", "")
    assert (other.name, other.value) == ("--moe-a2a-backend", "deepep")
    assert not list(renamed_switches.other_spellings("sglang", "--moe-a2a-backend", "none"))
    assert next(renamed_switches.other_spellings("sglang", "SGL_X", "1")).name == "SGLANG_X"

"""cache-dir-unusable: folders that refuse, and refusals that have nothing to do with a cache."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "cache-dir-unusable"


@pytest.mark.parametrize(
    ("line", "component", "variable"),
    [
        ("PermissionError: [Errno 13] Permission denied: '/.triton'", "triton", "TRITON_CACHE_DIR"),
        ("OSError: [Errno 30] Read-only file system: '/root/.cache/flashinfer'", "flashinfer", "FLASHINFER_WORKSPACE_BASE"),
        ("PermissionError: [Errno 13] Permission denied: '/tmp/torchinductor_root/fxgraph'", "torch", "TORCHINDUCTOR_CACHE_DIR"),
        ("PermissionError: [Errno 13] Permission denied: '/.cache/vllm'", "vllm", "VLLM_CACHE_ROOT"),
        ("PermissionError: [Errno 13] Permission denied: '/nonexistent/.deep_gemm/tmp'", "deepgemm", "DG_JIT_CACHE_DIR"),
        ("RuntimeError: filesystem error: cannot create directories: Permission denied [/.deep_gemm/cache]", "deepgemm", "DG_JIT_CACHE_DIR"),
        ("NotADirectoryError: [Errno 20] Not a directory: '/home/svc/.triton/cache'", "triton", "TRITON_CACHE_DIR"),
        ("RuntimeError: cannot cache function '__shear_dense': no locator available for file '/usr/lib/python3/dist-packages/librosa/util/utils.py'", "numba", "NUMBA_CACHE_DIR"),
    ],
)  # fmt: skip
def test_wordings(judge_report: Judge, line: str, component: str, variable: str) -> None:
    first = judge_report(line + "\n").findings[0]
    assert (first.cause, first.component) == (CAUSE, component)
    assert (first.remedies[0].kind, first.remedies[0].name) == ("env", variable)
    assert first.evidence[0].quote == line


def test_the_path_and_the_error_prove_it(judge_report: Judge) -> None:
    first = judge_report("PermissionError: [Errno 13] Permission denied: '/.triton'\n").findings[0]
    assert first.certainty is Certainty.PROVEN


def test_a_user_without_a_name(judge_report: Judge) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/usr/local/lib/python3.12/dist-packages/torch/_inductor/runtime/cache_dir_utils.py", line 22, in default_cache_dir\n'
        '    sanitized_username = re.sub(r\'[\\\\/:*?"<>|]\', "_", getpass.getuser())\n'
        '  File "/usr/lib/python3.12/getpass.py", line 169, in getuser\n'
        "    return pwd.getpwuid(os.getuid())[0]\n"
        "KeyError: 'getpwuid(): uid not found: 1000'\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.component) == (CAUSE, "torch")
    assert first.remedies[0].name == "TORCHINDUCTOR_CACHE_DIR"


MAP = "ImportError: /scratch/jit/.triton/cache/5a1f/cuda_utils.so: failed to map segment from shared object\n"


def test_noexec_is_proven_by_the_mount(judge_report: Judge) -> None:
    first = judge_report(MAP, {"mount./scratch": "rw,nosuid,nodev,noexec,relatime"}).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.PROVEN)
    assert "chmod" in [n.what for n in first.not_remedies]


def test_noexec_without_the_mount_is_not_proven(judge_report: Judge) -> None:
    first = judge_report(MAP).findings[0]
    assert (first.cause, first.certainty) == (CAUSE, Certainty.LIKELY)
    assert [m.key for m in first.missing] == ["mount./scratch/jit/.triton/cache/5a1f/cuda_utils.so"]


def test_a_mount_that_allows_execution_rules_it_out(judge_report: Judge) -> None:
    assert CAUSE in [x.cause for x in judge_report(MAP, {"mount./scratch": "rw,relatime"}).ruled_out]


def test_the_hubs_warning_is_only_possible(judge_report: Judge, finding: Find) -> None:
    text = "There was a problem when trying to write in your cache folder (/.cache/huggingface/hub). You should set the environment variable TRANSFORMERS_CACHE to a writable directory.\n"
    assert finding(judge_report(text), CAUSE).certainty is Certainty.POSSIBLE


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 28] No space left on device: '/root/.triton/cache/ab12/kernel.cubin'",
        "ImportError: /usr/lib/libfoo.so.2: failed to map segment from shared object",
        "PermissionError: [Errno 13] Permission denied: '/models/llama/config.json'",
        "Failed to get device capability: [Errno 13] Permission denied: '/usr/local/cuda/bin/nvcc'",
        "docker: permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "ImportError: /root/.triton/cache/5a1f/cuda_utils.so: file too short",
    ],
)
def test_near_misses(judge_report: Judge, line: str) -> None:
    assert CAUSE not in [f.cause for f in judge_report(line + "\n").findings]


def test_a_name_that_is_too_long_for_the_file_system(judge_report: Judge, finding: Find) -> None:
    text = (
        "OSError: [Errno 36] File name too long: '/home/u/.triton/cache/HY5G/__grp__triton_per_fused_add_0.json.tmp'\n"
    )
    assert finding(judge_report(text), CAUSE).component == "triton"


def test_near_miss_cuda_home_is_no_home(judge_report: Judge) -> None:
    text = "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.\n"
    assert CAUSE not in [found.cause for found in judge_report(text).findings]


def test_the_hub_names_the_folder_that_it_may_not_write(judge_report: Judge, finding: Find) -> None:
    text = "OSError: PermissionError at /data/hub/models--Qwen--Qwen2.5-7B when downloading Qwen/Qwen2.5-7B. Check cache directory permissions.\n"
    found = finding(judge_report(text), CAUSE)
    assert (found.component, found.remedies[0].name) == ("huggingface-hub", "HF_HOME")

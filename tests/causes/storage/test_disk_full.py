"""disk-full: a file system without space."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "disk-full"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


HUB = "UserWarning: Not enough free disk space to download the file. The expected file size is: 3945.44 MB. The target location /root/.cache/huggingface/hub/models--Q--Q/blobs only has 3421.60 MB free disk space.\n"


@pytest.mark.parametrize(("text", "remedy"), [
    ("OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/models--d--V3/blobs/abc.incomplete'\n", ("env", "HF_HOME", "larger volume")),
    ("RuntimeError: Data processing error: CAS service error : IO Error: No space left on device (os error 28)\n", ("env", "HF_HOME", "larger volume")),
    ("Error: write /root/.ollama/models/blobs/sha256-aaa-partial-0: no space left on device\n", ("env", "OLLAMA_MODELS", "larger volume")),
    ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n", ("env", "TMPDIR", "larger volume")),
    ("nvcc fatal   : Could not open output file '/tmp/tmpxft_0000': No space left on device\n", ("env", "TMPDIR", "larger volume")),
    ("docker: failed to register layer: write /usr/local/lib/libtorch_cuda.so: no space left on device.\n", ("container", "image", "prune")),
    ("OSError: [Errno 122] Disk quota exceeded: '/home/u/.cache/vllm/torch_compile_cache/x'\n", ("env", "VLLM_CACHE_ROOT", "larger volume")),
    ("Status: Failed  Reason: Evicted  Message: The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 3Gi.\n", ("config", "ephemeral-storage", "higher")),
    (HUB, ("env", "HF_HOME", "larger volume")),
])  # fmt: skip
def test_what_writes_there_is_moved(judge_report: Judge, finding: Find, text: str, remedy: tuple[str, str, str]) -> None:  # fmt: skip
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.PROVEN
    assert found.component == "storage"
    assert remedy in proposed(found)
    assert any(kind == "files" for kind, _, _ in proposed(found))


def test_the_sizes_of_the_hubs_warning_decide(judge_report: Judge, finding: Find) -> None:
    roomy = HUB.replace("3421.60", "93421.60")
    assert finding(judge_report(roomy), CAUSE).certainty is Certainty.POSSIBLE


def test_without_a_path_it_may_be_shared_memory(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("OSError: [Errno 28] No space left on device\n"), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert "shm-too-small" in found.rivals
    assert "df./dev/shm" in [missing.key for missing in found.missing]


def test_a_small_shared_memory_speaks_against_it(judge_report: Judge, finding: Find) -> None:
    facts = {"df./dev/shm": {"size_bytes": 67108864, "avail_bytes": 0}}
    found = finding(judge_report("OSError: [Errno 28] No space left on device\n", facts), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert found.against


def test_room_on_the_path_rules_it_out(judge_report: Judge) -> None:
    text = "OSError: [Errno 28] No space left on device: '/data/hub/blobs/x'\n"
    judgement = judge_report(text, {"df./data": {"size_bytes": 4 * 10**12, "avail_bytes": 10**12}})
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


def test_a_full_mount_stands_in_the_title(judge_report: Judge, finding: Find) -> None:
    text = "OSError: [Errno 28] No space left on device: '/data/hub/blobs/x'\n"
    facts = {"df./data": {"size_bytes": 10**11, "avail_bytes": 0}, "df./": {"size_bytes": 10**12, "avail_bytes": 10**11}}  # fmt: skip
    assert finding(judge_report(text, facts), CAUSE).title.startswith("/data is full")


@pytest.mark.parametrize("text", [
    "RuntimeError: [enforce fail at inline_container.cc:778] . PytorchStreamWriter failed writing file data/12: file write failed\n",
    "FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp', '/var/tmp', '/usr/tmp', '/app']\n",
    "file_system_monitor.cc:111: /tmp/ray/session_2025 is over 95% full, available space: 0.12 GB; capacity: 48 GB. Object creation will fail if spilling is required.\n",
])  # fmt: skip
def test_what_only_points_at_it_asks(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is not Certainty.PROVEN
    assert any(missing.key.startswith("df.") for missing in found.missing)


@pytest.mark.parametrize("text", [
    "[3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n",
    "OSError: [Errno 28] No space left on device: '/psm_4f1c'\n",
    "Error: ENOSPC: System limit for number of file watchers reached, watch '/app'\n",
    "OSError: [Errno 30] Read-only file system: '/root/.cache/huggingface'\n",
    "file_system_monitor.cc:111: /tmp/ray/session_2025 is over 95% full, available space: 92160000000; capacity: 1900000000000. Object creation will fail if spilling is required.\n",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
])  # fmt: skip
def test_near_misses(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_where_the_program_says_it_is_no_place_that_is_full(judge_report: Judge, finding: Find) -> None:
    warned = (
        "/opt/venv/lib/python3.12/site-packages/huggingface_hub/file_download.py:651: UserWarning: Not enough free disk space to download the file. "
        "The expected file size is: 3945.44 MB. The target location /cache/hub/models--a--b/blobs only has 3421.60 MB free disk space.\n"
    )
    assert (
        finding(judge_report(warned), "disk-full").title == "The file system of /cache/hub/models--a--b/blobs is full"
    )

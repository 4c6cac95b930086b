"""shm-too-small: /dev/shm has no room for what is shared."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "shm-too-small"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


NCCL = "[3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n[3] NCCL INFO include/shm.h:41 -> 2\n[3] include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-14-1-2-3 (size 9637888)\n"
SEGMENT = """Traceback (most recent call last):
  File "/usr/lib/python3.12/site-packages/vllm/distributed/device_communicators/shm_broadcast.py", line 230, in __init__
    self.shared_memory = shared_memory.SharedMemory(create=True, size=self.total_bytes_of_buffer)
  File "/usr/lib/python3.12/multiprocessing/shared_memory.py", line 104, in __init__
    os.ftruncate(self._fd, size)
OSError: [Errno 28] No space left on device
"""


@pytest.mark.parametrize("text", [
    NCCL,
    "node:1:99 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Fhz3pR to 9637892 bytes, error: No space left on device (28)\n",
    "Last error:\nError while creating shared memory segment /dev/shm/nccl-2yCEFM (size 33030528)\n",
    "RuntimeError: unable to write to file </torch_19_3817723142_0>: No space left on device (28)\n",
    "Unable to initialize shared memory key 'triton_python_backend_shm_region_1' to requested size (67108864 bytes). If you are running Triton inside docker, use '--shm-size' flag to control the shared memory region size. Error: No space left on device\n",
    SEGMENT,
])  # fmt: skip
def test_shared_memorys_own_code_says_it(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.PROVEN
    assert found.component == "dev-shm"
    assert "disk-full" not in names(judgement)
    assert ("flag", "--ipc", "host") in proposed(found)


def test_the_line_that_names_the_segment_is_quoted_with_its_size(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(NCCL), CAUSE)
    assert "(size 9637888)" in found.evidence[0].quote
    assert "9 MiB" in found.title


@pytest.mark.parametrize("text", [
    "RuntimeError: DataLoader worker (pid 2711) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.\n",
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n",
])  # fmt: skip
def test_a_guess_of_torch_is_likely(judge_report: Judge, finding: Find, text: str) -> None:
    assert finding(judge_report(text), CAUSE).certainty is Certainty.LIKELY


@pytest.mark.parametrize("text", ["Bus error (core dumped)\n", "Fatal Python error: Bus error\n", "[gpu02:12] Signal: Bus error (7)\n"])  # fmt: skip
def test_a_bare_bus_error_asks_for_the_size(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert [missing.key for missing in found.missing] == ["df./dev/shm"]
    assert "library-corrupt" in found.rivals


def test_a_small_one_makes_the_bus_error_likely(judge_report: Judge, finding: Find) -> None:
    facts = {"df./dev/shm": {"size_bytes": 67108864, "avail_bytes": 0}}
    found = finding(judge_report("Bus error (core dumped)\n", facts), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert "64 MiB" in found.title
    assert found.missing == ()


def test_room_rules_a_bus_error_out_and_leaves_it_to_the_library(judge_report: Judge) -> None:
    text = "Loading /usr/lib/x86_64-linux-gnu/libfoo.so.1\nBus error (core dumped)\n"
    judgement = judge_report(text, {"df./dev/shm": {"size_bytes": 68719476736, "avail_bytes": 68000000000}})
    assert names(judgement)[0] == "library-corrupt"
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


def test_a_pod_gets_a_volume_and_no_flag(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("$ kubectl logs llm-0\n" + NCCL), CAUSE)
    assert proposed(found)[0] == ("config", "/dev/shm", "emptyDir with medium: Memory")
    assert not any(kind == "flag" for kind, _, _ in proposed(found))


def test_a_large_one_that_is_full_has_stale_segments(judge_report: Judge, finding: Find) -> None:
    facts = {"df./dev/shm": {"size_bytes": 135 * 2**30, "avail_bytes": 0}}
    assert proposed(finding(judge_report(NCCL, facts), CAUSE))[0] == ("files", "/dev/shm/nccl-*", "delete stale segments")  # fmt: skip


@pytest.mark.parametrize("text", [
    "OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/x'\n",
    "RuntimeError: unable to open shared memory object </torch_32_1_2> in read-write mode: Too many open files (24)\n",
    "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\n",
    "resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown\nRuntimeError: x\n",
    "docker run --gpus all --shm-size 32g vllm/vllm-openai\nImportError: x\n",
    "Out of memory: Killed process 18231 (python3) total-vm:702345120kB, anon-rss:431992012kB, file-rss:0kB, shmem-rss:1234kB\n",
])  # fmt: skip
def test_near_misses(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_engines_that_map_their_model_come_last(judge_report: Judge, finding: Find) -> None:
    text = "ollama serve\nllama runner started\nSIGBUS: bus error\nPC=0x7f m=5 sigcode=2 addr=0x7f\n"
    assert finding(judge_report(text), CAUSE).strength < 40


NGC = "NOTE: The SHMEM allocation limit is set to the default of 64MB.  This may be\n   insufficient for PyTorch.  NVIDIA recommends the use of the following flags:\n   docker run --gpus all --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 ...\n"


def test_the_banner_of_an_image_counts_beside_a_bus_error_only(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(NGC + "Bus error (core dumped)\n"), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert any("SHMEM" in evidence.quote for evidence in found.evidence)
    assert CAUSE not in names(judge_report(NGC + "ImportError: cannot import name 'x' from 'vllm'\n"))


@pytest.mark.parametrize("text", [
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.\n",
    "RuntimeError: Failed to allocate dynamic shared memory for kernel: 166912 bytes\n",
])  # fmt: skip
def test_shared_memory_on_the_chip_is_another_thing(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_torch_cannot_write_its_segment_without_saying_why(judge_report: Judge, finding: Find) -> None:
    text = '  File "/opt/conda/lib/python3.8/site-packages/torch/multiprocessing/reductions.py", line 321, in reduce_storage\n    fd, size = storage._share_fd_()\nRuntimeError: unable to write to file </torch_1021_3344>\n'
    judgement = judge_report(text)
    assert judgement.findings[0].cause == "shm-too-small"

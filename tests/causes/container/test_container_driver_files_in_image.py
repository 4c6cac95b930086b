"""container-driver-files-in-image: files that are in the way of the hook's mounts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "container-driver-files-in-image"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


HOOK = "OCI runtime create failed: error running hook: exit status 1, stderr: nvidia-container-cli: mount error: file creation failed: /var/lib/docker/overlay2/bd4f/merged%s: file exists: unknown\n"


@pytest.mark.parametrize("path", [
    "/usr/bin/nvidia-smi",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libnvcuvid.so.535.104.05",
])  # fmt: skip
def test_the_hook_names_the_file(judge_report: Judge, finding: Find, path: str) -> None:
    found = finding(judge_report(HOOK % path), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert path.rpartition("/")[2] in found.title
    assert found.component == "container-image"
    assert ("container", "image", "rebuild without driver packages") in proposed(found)


def test_cdi_hooks_stumble_over_links(judge_report: Judge, finding: Find) -> None:
    text = "nvidia-ctk: failed to create symlinks: failed to create link [libcuda.so.1 /usr/lib/libcuda.so]: symlink libcuda.so.1 /var/lib/containers/storage/overlay/x/merged/usr/lib/libcuda.so: file exists\n"
    assert finding(judge_report(text), CAUSE).certainty is Certainty.PROVEN


def test_an_empty_libcuda_is_only_possible(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("ImportError: /usr/lib/x86_64-linux-gnu/libcuda.so.1: file too short\n"), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "container.gpus" in {missing.key for missing in found.missing}
    assert ("flag", "--gpus", "all") in proposed(found)


def test_a_container_whose_cuda_starts_has_no_such_file(judge_report: Judge) -> None:
    text = "ldconfig: File /usr/lib/x86_64-linux-gnu/libcuda.so.470.82.01 is empty, not checked.\n"
    judgement = judge_report(text, {"cuinit.container": "0"})
    assert CAUSE not in names(judgement)


@pytest.mark.parametrize("text", [
    "FileExistsError: [Errno 17] File exists: '/root/.cache/huggingface/hub'\n",
    "nvidia-container-cli: mount error: failed to add device rules: bpf_prog_query(BPF_CGROUP_DEVICE) failed\n",
    "Failed to initialize NVML: Driver/library version mismatch\n",
    "RuntimeError: Error 803: system has unsupported display driver / cuda driver combination\n",
    "OSError: /opt/venv/lib/libtorch_cuda.so: file too short\n",
])  # fmt: skip
def test_neighbours_are_left_alone(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_an_empty_libcuda_is_not_a_damaged_package(judge_report: Judge, finding: Find) -> None:
    committed = "I committed the container with docker commit and started the image elsewhere.\n"
    judged = judge_report(committed + "ImportError: /usr/lib/x86_64-linux-gnu/libcuda.so.1: file too short\n")
    assert judged.findings[0].cause == CAUSE
    assert judged.findings[0].certainty is Certainty.LIKELY
    assert Certainty.PROVEN not in [found.certainty for found in judged.findings]

"""container-toolkit-missing: who refuses, which daemon answers, and what has to be configured."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "container-toolkit-missing"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


SELECT = 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n'
HOOK = "OCI runtime create failed: error running hook #0: exit status 1, stderr: nvidia-container-cli: "


@pytest.mark.parametrize("text", [
    SELECT,
    "docker: Error response from daemon: unknown or invalid runtime name: nvidia.\n",
    "Error response from daemon: Unknown runtime specified nvidia\n",
    'Failed to create pod sandbox: failed to get sandbox runtime: no runtime for "nvidia" is configured\n',
    'Error response from daemon: exec: "nvidia-container-runtime-hook": executable file not found in $PATH.\n',
    "OCI runtime create failed: fork/exec /usr/bin/nvidia-container-runtime: no such file or directory: unknown.\n",
    "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all\n",
])  # fmt: skip
def test_the_engine_says_that_it_has_no_runtime(judge_report: Judge, finding: Find, text: str) -> None:
    found = finding(judge_report(text), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert "nvidia-container-toolkit" in [name for _, name, _ in proposed(found)]


def test_docker_is_configured_and_restarted(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(SELECT), CAUSE)
    assert found.component == "container-engine"
    assert proposed(found)[0] == ("config", "docker runtime nvidia", "nvidia-ctk runtime configure")
    assert ("service", "docker", "restart") in proposed(found)


def test_the_snap_of_docker_is_recognised(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(SELECT + "$ snap list docker\ndocker 20.10.17 2285 latest/stable\n"), CAUSE)
    assert "snap" in found.title
    assert ("system-package", "docker snap", "remove (use docker-ce)") in proposed(found)


def test_podman_needs_a_description_of_the_devices(judge_report: Judge, finding: Find) -> None:
    text = "$ podman run --device nvidia.com/gpu=all ubuntu\nError: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all\n"
    assert proposed(finding(judge_report(text), CAUSE))[0] == ("config", "CDI specification", "nvidia-ctk cdi generate")


def test_kubernetes_is_containerd(judge_report: Judge, finding: Find) -> None:
    text = 'kubelet: Failed to create pod sandbox: no runtime for "nvidia" is configured\n'
    assert proposed(finding(judge_report(text), CAUSE))[0][1] == "containerd runtime nvidia"


@pytest.mark.parametrize(("said", "name"), [
    ("mount error: failed to add device rules: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted", "nvidia-container-cli.no-cgroups"),
    ("container error: cgroup subsystem devices not found: unknown", "nvidia-container-cli.no-cgroups"),
    ("ldcache error: open failed: /sbin/ldconfig.real: no such file or directory", "nvidia-container-cli.ldconfig"),
])  # fmt: skip
def test_settings_of_the_hook(judge_report: Judge, finding: Find, said: str, name: str) -> None:
    found = finding(judge_report(HOOK + said + "\n"), CAUSE)
    assert found.certainty is Certainty.LIKELY
    assert found.component == "nvidia-container-toolkit"
    assert proposed(found)[0][1] == name


def test_a_device_plugin_without_nvml(judge_report: Judge, finding: Find) -> None:
    text = "I0101 factory.go:104] Detected non-NVML platform: could not load NVML library: libnvidia-ml.so.1: cannot open shared object file\nE0101 factory.go:113] If this is a GPU node, did you configure the NVIDIA Container Toolkit?\n"
    judgement = judge_report(text)
    assert names(judgement)[0] == CAUSE
    assert finding(judgement, CAUSE).certainty is Certainty.LIKELY


def test_a_pod_that_finds_no_node_asks_why(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.\n"), CAUSE)
    assert found.certainty is Certainty.POSSIBLE
    assert "container.runtime" in {missing.key for missing in found.missing}


def test_an_engine_that_has_the_runtime_is_not_without_it(judge_report: Judge) -> None:
    judgement = judge_report(SELECT, {"container.runtime": "runc nvidia"})
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]


@pytest.mark.parametrize("text", [
    HOOK + "requirement error: unsatisfied condition: cuda>=12.9, please update your driver\n",
    HOOK + "initialization error: nvml error: driver/library version mismatch: unknown\n",
    HOOK + "mount error: file creation failed: /var/lib/docker/overlay2/x/merged/usr/bin/nvidia-smi: file exists\n",
    "RuntimeError: Found no NVIDIA driver on your system.\n",
    "INFO nvidia-container-runtime 1.17.4 is used\n",
])  # fmt: skip
def test_neighbours_are_left_alone(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_a_start_that_asked_for_the_runtime_does_not_contradict_the_daemon(judge_report: Judge, finding: Find) -> None:
    report = "$ docker run --runtime nvidia --gpus all IMAGE\ndocker: Error response from daemon: unknown or invalid runtime name: nvidia.\n"
    assert finding(judge_report(report), CAUSE).certainty is Certainty.PROVEN


def test_a_list_of_runtimes_with_it_does(judge_report: Judge) -> None:
    judged = judge_report(SELECT, {"container.runtime": "io.containerd.runc.v2 nvidia runc"})
    assert CAUSE in [each.cause for each in judged.ruled_out]


def test_docker_that_looks_for_gpus_by_cdi(judge_report: Judge, finding: Find) -> None:
    report = "docker: Error response from daemon: failed to discover GPU vendor from CDI: no known GPU vendor found\n"
    assert finding(judge_report(report), CAUSE).certainty is Certainty.PROVEN


def test_a_pod_that_waited_for_a_gpu_and_got_one(judge_report: Judge) -> None:
    waiting = (
        "Warning  FailedScheduling  6m  default-scheduler  0/5 nodes are available: 5 Insufficient nvidia.com/gpu.\n"
    )
    placed = "Normal  Scheduled  4m  default-scheduler  Successfully assigned llm/vllm-0 to gpu-node-2\n"
    assert CAUSE in names(judge_report(waiting))
    assert CAUSE not in names(judge_report(waiting + placed))


def test_a_cdi_specification_of_an_older_driver(judge_report: Judge, finding: Find) -> None:
    text = "Error: OCI runtime error: crun: cannot stat `/usr/lib64/libEGL_nvidia.so.550.90.07`: No such file or directory\n"
    found = finding(judge_report(text), "container-toolkit-missing")
    assert "CDI specification" in [each.name for each in found.remedies]


def test_a_cluster_whose_nodes_offer_no_gpu_is_asked_for_its_device_plugin(judge_report: Judge, finding: Find) -> None:
    text = (
        "Warning  FailedScheduling  18s  default-scheduler  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.\n"
    )
    found = finding(judge_report(text), CAUSE)
    assert found.remedies[0].name == "NVIDIA device plugin"
    assert not any("docker" in remedy.name for remedy in found.remedies)

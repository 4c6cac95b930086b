"""`gpuwhy diagnose` on a live host, from outside over ssh and from inside, and on a journal from the past."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.lab.examine import Examined, diagnose_inside, diagnose_over_ssh
from tests.lab.gpu_host import GpuHost, wait_for
from tests.patience import BUSY

pytestmark = pytest.mark.lab

JOURNAL_INSIDE = "/opt/lab/journal"
SECRET = "hf_LabLabLabLabLabLabLabLabLabLabLabL"

LIST_FILES = (
    "find / /tmp /dev/shm -xdev -path /var/log -prune -o -path /run -prune -o "
    r"\( -type f -o -type d -o -type l \) -printf '%p %s %T@\n' | sort -u"
)


@pytest.fixture(scope="module")
def over_ssh(gpu_host: GpuHost) -> Examined:
    """The diagnosis of the seed's unit, made once."""
    return diagnose_over_ssh(gpu_host, "--unit", "sglang.service")


def assert_seed_diagnosis(examined: Examined) -> None:
    first = examined.first
    assert examined.status == 1
    assert (first["cause"], first["component"]) == ("toolkit-too-old-for-arch", "flashinfer")
    assert first["certainty"] == "proven"
    remedy = first["remedies"][0]
    assert (remedy["kind"], remedy["name"], remedy["value"]) == ("env", "FLASHINFER_CUDA_ARCH_LIST", "12.0a")


def test_over_ssh_the_cause_is_proven_and_the_smallest_remedy_first(over_ssh: Examined) -> None:
    assert_seed_diagnosis(over_ssh)


def test_inside_the_host_the_answer_is_the_same(gpu_host: GpuHost, over_ssh: Examined) -> None:
    inside = diagnose_inside(gpu_host, "--unit", "sglang.service")
    assert_seed_diagnosis(inside)
    assert inside.first["remedies"] == over_ssh.first["remedies"]


def test_the_chain_runs_from_the_gpu_to_the_misleading_message(over_ssh: Examined) -> None:
    chain = [link["statement"] for link in over_ssh.first["chain"]]
    for part in ("12.0", "12.8", "_normalize_cuda_arch", "TARGET_CUDA_ARCHS", "check_cuda_arch"):
        assert any(part in statement for statement in chain), (part, chain)


def test_the_installed_source_shows_the_condition_and_what_was_swallowed(over_ssh: Examined) -> None:
    source = over_ssh.document["source"]
    assert (source["place"]["path"], source["place"]["function"]) == ("flashinfer/jit/core.py", "check_cuda_arch")
    assert [each["text"] for each in source["conditions"]] == ["not eligible"]
    seen = [seen for each in source["swallowed"] for seen in each.get("seen", ())]
    assert seen[0]["value"].startswith("SM 12.x requires CUDA >= 12.9")
    assert seen[0]["raised_at"]["place"]["function"] == "CompilationContext._normalize_cuda_arch"
    assert {"FLASHINFER_CUDA_ARCH_LIST", "CUDA_HOME"} <= {each["name"] for each in source["switches"]}
    assert not source.get("disagreements")


def test_the_facts_of_the_host_lead_to_what_the_log_shows(over_ssh: Examined) -> None:
    replay = over_ssh.document["source"]["replay"]
    assert (replay["entry"], replay["agreement"]) == ("flashinfer.jit.core:check_cuda_arch()", "same"), replay["why"]
    assert [each["message"] for each in replay["swallowed"]] == ["SM 12.x requires CUDA >= 12.9"]
    assert any(line["level"] == "warning" and line.get("seen") for line in replay["lines"])


def test_the_remedies_are_ordered_and_complete(over_ssh: Examined) -> None:
    remedies = over_ssh.first["remedies"]
    kinds = [remedy["kind"] for remedy in remedies]
    assert kinds[0] == "env"
    assert kinds[-1] == "patch"
    assert kinds.index("flag") < kinds.index("package") < kinds.index("toolkit") < kinds.index("patch")
    for remedy in remedies:
        assert remedy["commands"] or remedy["kind"] in {"toolkit", "patch"}, remedy
        assert remedy["cost"], remedy
        assert remedy["survives"], remedy
        assert remedy["check"], remedy


def test_values_known_not_to_work_are_named(over_ssh: Examined) -> None:
    refused = [each["what"] for each in over_ssh.first["not_remedies"]]
    for value in ("=12.0", "=12.0f", ";"):
        assert any(what.endswith(value) or (value == ";" and value in what) for what in refused), (value, refused)


def test_nvcc_12_4_has_the_same_cause_and_no_architecture_list(gpu_host: GpuHost) -> None:
    examined = diagnose_over_ssh(gpu_host, "--unit", "sglang-124.service")
    assert (examined.first["cause"], examined.first["component"]) == ("toolkit-too-old-for-arch", "flashinfer")
    assert examined.first["certainty"] == "proven"
    offered = [remedy for remedy in examined.first["remedies"] if remedy["name"] == "FLASHINFER_CUDA_ARCH_LIST"]
    assert not offered


def test_a_healthy_unit_has_no_failure(gpu_host: GpuHost) -> None:
    examined = diagnose_over_ssh(gpu_host, "--unit", "sglang-ok.service")
    assert examined.status == 0
    assert examined.document["findings"] == []


def test_one_diagnosis_is_one_connection(gpu_host: GpuHost) -> None:
    before = gpu_host.logins()
    diagnose_over_ssh(gpu_host, "--unit", "sglang.service")
    assert gpu_host.logins() == before + 1


def test_nothing_is_written_on_the_target_and_no_process_stays(gpu_host: GpuHost) -> None:
    files = gpu_host.run(LIST_FILES).stdout.splitlines()
    processes = gpu_host.processes()
    diagnose_over_ssh(gpu_host, "--unit", "sglang.service")
    assert gpu_host.run(LIST_FILES).stdout.splitlines() == files
    wait_for(lambda: gpu_host.processes() <= processes, 5, "the processes of the diagnosis ended")


def test_the_secret_in_the_unit_stays_there(over_ssh: Examined) -> None:
    assert SECRET not in over_ssh.text


def test_facts_come_with_what_the_service_resolves(over_ssh: Examined) -> None:
    facts = {fact["key"]: fact["value"] for fact in over_ssh.document["facts"]}
    assert facts["env.CUDA_HOME"] == "/usr/local/cuda-12.8"
    assert facts["packages.flashinfer-python"] == "0.6.18.post1"
    assert facts["toolkit_resolved.flashinfer"]["version"] == "12.8"


@pytest.fixture
def hanging_nvidia_smi(gpu_host: GpuHost) -> Iterator[GpuHost]:
    """The host with an nvidia-smi that never ends, and without the library that would answer in its place."""
    library = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
    gpu_host.run(f"install -m 755 /opt/lab/nvidia-smi-hanging /usr/bin/nvidia-smi && mv {library} {library}.away")
    yield gpu_host
    gpu_host.run(f"rm /usr/bin/nvidia-smi && mv {library}.away {library}")


@pytest.mark.parametrize("diagnose", [diagnose_over_ssh, diagnose_inside])
def test_a_hanging_nvidia_smi_costs_seconds(hanging_nvidia_smi: GpuHost, diagnose: Callable[..., Examined]) -> None:
    host = hanging_nvidia_smi
    processes = host.processes()
    examined = diagnose(host, "--unit", "sglang.service")
    assert examined.seconds <= 10 * BUSY
    assert examined.first["cause"] == "toolkit-too-old-for-arch"
    wait_for(lambda: host.processes() <= processes, 5, "nvidia-smi and its children ended")


def came_before(document: dict[str, Any]) -> str:
    """What the diagnosis tells of the time before the crash, and the chain, as text."""
    return json.dumps([document["before"], document["findings"][0]["chain"]])


def test_the_kill_of_the_other_service_came_before_and_is_not_the_cause(gpu_host: GpuHost, over_ssh: Examined) -> None:
    # The kernel log holds the kills of earlier runs too: the last one is this host's.
    killed = re.findall(r"Killed process \d+ \(sglang::schedul\)", gpu_host.kernel_log())[-1]
    assert killed in came_before(over_ssh.document)


def assert_incident(examined: Examined) -> None:
    assert (examined.first["cause"], examined.first["component"]) == ("toolkit-too-old-for-arch", "flashinfer")
    assert "Killed process 18231" in came_before(examined.document)
    assert not [finding for finding in examined.document["findings"] if "oom" in finding["cause"]]


def test_a_journal_from_another_time_by_its_folder(gpu_host: GpuHost) -> None:
    assert_incident(diagnose_inside(gpu_host, "--unit", "sglang.service", GPUWHY_JOURNAL_DIRECTORY=JOURNAL_INSIDE))


def test_a_host_whose_journal_holds_the_incident(journal_host: GpuHost) -> None:
    assert_incident(diagnose_over_ssh(journal_host, "--unit", "sglang.service"))

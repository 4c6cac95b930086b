"""`gpuwhy diagnose k8s:...` with a stand-in for kubectl, which answers from documents and runs `exec` on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import LOGS, Done, gpuwhy
from tests.collector import pod_documents as documents

KUBECTL = """#!/bin/sh
echo "$@" >>{folder}/asked
case "$*" in
"get pod vllm-0 -o json --namespace llm") cat {folder}/pod ;;
"get pod "*) echo 'Error from server (NotFound): pods "'$3'" not found' >&2; exit 1 ;;
"get pods -o name"*) echo pod/vllm-0 ;;
"get events "*) cat {folder}/events ;;
"logs "*--previous*) [ -s {folder}/previous ] || {{ echo 'Error from server (BadRequest): previous terminated container "engine" in pod "vllm-0" not found' >&2; exit 1; }}
    sed 's/^/2026-05-08T14:02:10Z /' {folder}/previous ;;
"logs "*) sed 's/^/2026-05-08T14:03:00Z /' {folder}/log ;;
"exec -i vllm-0 --namespace llm --container engine -- "*) shift 8; exec "$@" ;;
*) echo "error: unknown command $*" >&2; exit 9 ;;
esac
"""


class Cluster:
    """What the stand-in answers, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "kubectl").write_text(KUBECTL.format(folder=folder))
        (folder / "kubectl").chmod(0o755)
        self.answer(documents.crash_looping(), [])

    def answer(
        self, pod: dict[str, Any], events: list[tuple[str, str, str, str]], previous: str = "", log: str = ""
    ) -> None:
        for name, text in (
            ("pod", json.dumps(pod)),
            ("events", json.dumps(documents.events(*events))),
            ("previous", previous),
            ("log", log),
        ):
            (self.folder / name).write_text(text)

    def diagnose(self, where: str = "k8s:llm/vllm-0") -> Done:
        return gpuwhy("diagnose", where, "--format", "json", env={"PATH": f"{self.folder}:/usr/bin:/bin"})

    @property
    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def facts(done: Done) -> dict[str, Any]:
    return {each["key"]: each["value"] for each in json.loads(done.out)["facts"]}


def causes(done: Done) -> list[str]:
    return [each["cause"] for each in json.loads(done.out)["findings"]]


def test_a_crash_loop_is_diagnosed_by_the_log_of_the_life_before(cluster: Cluster) -> None:
    seed = (LOGS / "seed_crash_fake128.log").read_text()
    cluster.answer(documents.crash_looping(), [documents.BACK_OFF], previous=seed, log="INFO starting\n")
    done = cluster.diagnose()
    assert done.status == 1, done.err
    assert causes(done)[0] == "toolkit-too-old-for-arch"
    known = facts(done)
    assert (known["container.exit_code"], known["container.restarts"]) == (1, 7)
    assert (known["memory_limit_bytes"], known["shm_bytes"]) == (64 << 30, 16 << 30)
    notes = " ".join(json.loads(done.out)["notes"])
    assert "The node (gpu-node-3) was not visible" in notes
    assert not any(line.startswith("exec") for line in cluster.asked), "nothing can be run in it"


def test_a_kill_for_memory_is_known_by_its_reason(cluster: Cluster) -> None:
    cluster.answer(documents.crash_looping(documents.KILLED), [], previous="INFO loading weights\n", log="")
    done = cluster.diagnose()
    assert causes(done)[0] == "host-oom-kill"
    assert facts(done)["container.oom_killed"] is True


def test_a_pod_that_no_node_takes_is_explained_by_its_events(cluster: Cluster) -> None:
    cluster.answer(documents.unschedulable(), [documents.NO_ROOM])
    done = cluster.diagnose()
    assert done.status == 1, done.err
    assert "Insufficient nvidia.com/gpu" in done.out
    assert causes(done)[0] == "container-toolkit-missing"


def test_an_image_that_cannot_be_pulled_is_named(cluster: Cluster) -> None:
    cluster.answer(documents.without_image(), [documents.NO_IMAGE])
    done = cluster.diagnose()
    assert done.status == 1, done.err
    assert documents.IMAGE in done.out


def test_a_running_pod_is_seen_from_inside(cluster: Cluster) -> None:
    cluster.answer(documents.pod(documents.RUNNING), [], log="INFO serving\n")
    done = cluster.diagnose()
    assert done.status == 0, done.err
    assert facts(done)["kernel_release"]
    asked = [line.split(" -- ")[0] for line in cluster.asked if line.startswith("exec")]
    assert asked == ["exec -i vllm-0 --namespace llm --container engine"]


def test_each_question_names_namespace_and_container(cluster: Cluster) -> None:
    cluster.answer(documents.crash_looping(), [])
    cluster.diagnose("k8s:llm/vllm-0/proxy")
    logs = [line for line in cluster.asked if line.startswith("logs")]
    assert len(logs) == 2
    for line in logs:
        assert "--namespace llm --container proxy vllm-0" in line
        assert "--timestamps" in line


def test_a_missing_pod_is_answered_with_similar_ones(cluster: Cluster) -> None:
    done = cluster.diagnose("k8s:llm/vllm")
    assert done.status == 3
    assert "there is no pod vllm in namespace llm; it knows vllm-0" in done.err
    assert "kubectl get pods -A" in done.err

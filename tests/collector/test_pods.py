"""What is read of a pod, from the documents that Kubernetes' API defines (see pod_documents)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collector import pod_documents as documents

from gpuwhy.collector import pods
from gpuwhy.collector.engines import Container
from gpuwhy.collector.probing import Absent, Failed, Notes


def described(document: dict[str, Any], inner: str = "") -> dict[str, Any]:
    return pods.described(Container("k8s", "vllm-0", "", inner), document, Notes())


def test_a_crash_loop_tells_how_the_last_life_ended() -> None:
    found = described(documents.crash_looping())
    state = found["state"]
    assert (found["container"], found["namespace"], found["node"]) == ("engine", "llm", "gpu-node-3")
    assert (state["status"], state["waiting"], state["exit_code"], state["restarts"]) == ("waiting", "CrashLoopBackOff", 1, 7)  # fmt: skip
    assert not state["is_running"]
    assert state["finished_at"] - state["started_at"] == 131


def test_a_kill_for_memory_is_told_apart_from_an_error() -> None:
    assert described(documents.crash_looping(documents.KILLED))["state"]["oom_killed"] is True
    assert described(documents.crash_looping())["state"]["oom_killed"] is False
    assert described(documents.pod(documents.RUNNING))["state"]["oom_killed"] is None


def test_a_running_container_has_no_exit_code_but_that_of_its_life_before() -> None:
    assert described(documents.pod(documents.RUNNING))["state"]["exit_code"] is None
    restarted = described(documents.pod(documents.RUNNING, documents.ENDED, restarts=1))["state"]
    assert (restarted["is_running"], restarted["exit_code"], restarted["restarts"]) == (True, 1, 1)


def test_limits_gpus_and_mounts_are_read() -> None:
    found = described(documents.crash_looping())
    assert found["limits"] == {"memory": 64 << 30, "cpus": 1.5, "storage": None, "shm": 16 << 30, "ulimits": {}}
    assert found["gpus"]["limits"] == {"nvidia.com/gpu": "8"}
    assert found["mounts"][0] == {
        "kind": "persistentVolumeClaim",
        "source": "models-nfs",
        "destination": "/models",
        "is_writable": False,
        "options": None,
    }


def test_values_of_secrets_stay_away_and_their_names_are_kept() -> None:
    notes = Notes()
    found = pods.described(Container("k8s", "vllm-0"), documents.crash_looping(), notes)
    assert found["variables"] == {"NCCL_DEBUG": "INFO"}
    assert found["other_names"] == ["API_KEY", "HF_TOKEN"]
    assert notes.secrets == ["sk-not-to-be-shown-0123456789"]


def test_an_unscheduled_pod_says_why() -> None:
    found = described(documents.unschedulable())
    assert (found["phase"], found["node"], found["state"]["status"]) == ("Pending", None, "unknown")
    assert found["conditions"][0]["reason"] == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in found["conditions"][0]["message"]


def test_the_container_that_fails_is_chosen_and_a_named_one_kept() -> None:
    assert described(documents.crash_looping())["container"] == "engine"
    assert described(documents.crash_looping(), "proxy")["container"] == "proxy"
    notes = Notes()
    with pytest.raises(Absent, match="not found in the pod"):
        pods.described(Container("k8s", "vllm-0", "", "engin"), documents.crash_looping(), notes)
    assert notes.remarks == ["it knows engine, proxy"]


def test_an_init_container_that_fails_holds_up_all_others() -> None:
    document = documents.pod({"waiting": {"reason": "PodInitializing"}})
    document["spec"] = {**document["spec"], "initContainers": [{"name": "download", "image": "a"}]}
    document["status"]["initContainerStatuses"] = [{"name": "download", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]  # fmt: skip
    found = described(document)
    assert (found["container"], found["state"]["exit_code"]) == ("download", 2)


@pytest.mark.parametrize(
    ("text", "value"),
    [("64Gi", 64 << 30), ("2e9", 2_000_000_000), ("500M", 500_000_000), (4, 4), ("1.5Ki", 1536), ("many", None), (None, None), (True, None), ("9" * 400 + "E", None), ("inf", None)],
)  # fmt: skip
def test_a_quantity_is_read_as_kubernetes_writes_it(text: Any, value: int | None) -> None:
    assert pods.quantity(text) == value


def test_events_come_oldest_first_with_their_time() -> None:
    found = pods.events_in(documents.events(documents.NO_ROOM, documents.BACK_OFF))
    assert [each["reason"] for each in found] == ["FailedScheduling", "BackOff"]
    assert found[0]["by"] == "default-scheduler"
    assert found[1]["time"] - found[0]["time"] == 60
    newer = {"items": [{"type": "Warning", "reason": "X", "eventTime": "2026-05-08T14:00:00.123456Z", "reportingComponent": "k", "series": {"count": 9, "lastObservedTime": "2026-05-08T15:00:00.000000Z"}}]}  # fmt: skip
    assert [(each["count"], each["by"]) for each in pods.events_in(newer)] == [(9, "k")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("state", "terminated", "name", "env", "value", "resources", "limits", "memory", "volumes", "volumeMounts", "mountPath")), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(status=JSON, spec=JSON, item=JSON)
def test_a_document_of_any_shape_is_read_or_refused(status: Any, spec: Any, item: Any) -> None:
    containers = {"containers": [item, {"name": "engine", "env": item, "resources": item, "volumeMounts": item}]}
    for document in (
        {"metadata": item, "spec": spec, "status": status},
        {
            "spec": containers,
            "status": {"containerStatuses": [item, {"name": "engine", "state": item, "lastState": item}]},
        },
    ):
        try:
            pods.described(Container("k8s", "vllm-0"), document, Notes())
        except (Absent, Failed):
            continue
    pods.events_in({"items": [item, {"series": item, "source": item}]})

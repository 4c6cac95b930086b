"""systemd, supervisord, container engines and Kubernetes: how a service ended and why it did not start."""

from __future__ import annotations

import pytest
from tests.logs.recognisers.reading import events, incident, only, sample


@pytest.mark.parametrize(
    ("line", "state", "result"),
    [
        ("vllm.service: start operation timed out. Terminating.", "trouble", "timeout"),
        ("vllm.service: Watchdog timeout (limit 30s)!", "trouble", "watchdog"),
        ("vllm.service: Failed with result 'oom-kill'.", "failed", "oom-kill"),
        ("vllm.service: Start request repeated too quickly.", "failed", "start-limit-hit"),
    ],
)
def test_results_of_systemd(line: str, state: str, result: str) -> None:
    event = only(line)
    assert (event.kind, event.tool, event.unit) == ("unit", "systemd", "vllm.service")
    assert (event.detail["state"], event.detail["result"]) == (state, result)


def test_a_program_that_is_not_there() -> None:
    event = only("vllm.service: Failed at step EXEC spawning /opt/venv/bin/vllm: No such file or directory")
    assert event.detail == {
        "state": "failed",
        "path": "/opt/venv/bin/vllm",
        "error": "No such file or directory",
        "step": "EXEC",
    }
    assert (event.is_fatal, event.is_echo) == (True, False)


def test_oomd_names_the_unit_that_it_killed() -> None:
    event = only(
        "Killed /system.slice/vllm.service due to memory pressure for /system.slice being 81.32% > 50.00% for > 20s with reclaim activity"
    )
    assert (event.tool, event.unit, event.is_echo) == ("systemd-oomd", "vllm.service", False)
    assert event.detail["why"].startswith("memory pressure for /system.slice being 81.32%")


def test_a_stop_that_took_long_is_no_failure_of_its_own() -> None:
    assert not only("ollama.service: State 'stop-sigterm' timed out. Killing.").is_fatal


def test_a_core_dump_and_supervisord() -> None:
    event = only("Process 4711 (python3) of user 1000 dumped core.")
    assert (event.detail["pid"], event.is_echo) == ("4711", True)
    event = only("exited: vllm (terminated by SIGKILL; not expected)")
    assert (event.tool, event.unit, event.detail["status"]) == ("supervisord", "vllm", "SIGKILL")


def test_kubectl_describe() -> None:
    found = sample("kubectl-describe.txt")
    event = found.primary_event
    assert event is not None
    assert (event.tool, event.detail["result"], event.place.line) == ("kubernetes", "oom-kill", 12)
    assert event.detail["exit_code"] == "137"
    assert event.detail["finished"] == "Tue, 12 Aug 2025 10:03:11 +0200"
    results = {event.detail.get("result"): event for event in found.events}
    assert results["FailedScheduling"].detail["insufficient"] == "nvidia.com/gpu"
    assert results["BackOff"].is_echo
    assert results["BackOff"].detail["pod"] == "vllm-7c9d8f-abcde"
    assert not results["Evicted"].is_echo
    assert any('no runtime for "nvidia" is configured' in event.text for event in found.events)
    assert any("Failed to pull image" in event.text for event in found.events)


@pytest.mark.parametrize(
    ("line", "result", "is_echo"),
    [
        ("vllm-0   0/1     CrashLoopBackOff   7 (2m ago)   15m", "CrashLoopBackOff", True),
        ("vllm-0   0/1     OOMKilled   3   15m", "oom-kill", False),
        ("2m    Warning   Evicted   pod/vllm-0   The node was low on resource: memory.", "Evicted", False),
        (
            "35s  Warning  FailedScheduling  pod/vllm-0  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
            "FailedScheduling",
            False,
        ),
    ],
)
def test_kubectl_get(line: str, result: str, is_echo: bool) -> None:
    event = only(line)
    assert (event.detail["result"], event.is_echo, event.is_fatal) == (result, is_echo, True)


def test_a_model_that_loads_for_long_is_not_ready_and_not_failed() -> None:
    event = only("  Warning  Unhealthy  5m  kubelet  Readiness probe failed: Get http://10.0.0.5:8000/health: refused")
    assert not event.is_fatal


def test_container_engines() -> None:
    found = sample("engines.txt").events
    texts = [event.text.partition("\n")[0] for event in found if event.tool == "container" and event.kind == "crash"]
    assert [text[:60] for text in texts] == [
        'docker: Error response from daemon: could not select device ',
        "docker: Error response from daemon: Unknown runtime specifie",
        'docker: Error response from daemon: could not select device ',
        "docker: Error response from daemon: error gathering device i",
        "OCI runtime exec failed: exec failed: unable to start contai",
        "Error response from daemon: No such container: nosuch",
        "Error: setting up CDI devices: unresolvable CDI devices nvid",
        "Error: stat /dev/nvidia0: no such file or directory",
    ]  # fmt: skip


def test_a_hook_that_failed() -> None:
    event = only(
        """\
        docker: Error response from daemon: failed to create task for container: OCI runtime create failed: error during container init: error running prestart hook #0: exit status 1, stderr: Auto-detected mode as 'legacy'
        nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: unknown.
        """
    )
    assert event.detail == {"hook": "prestart", "exit_code": "1"}
    assert "libnvidia-ml.so.1" in event.text


def test_ends_of_containers() -> None:
    found = events(
        """\
        0123456789ab   vllm      "vllm"     2 minutes ago   Exited (137) 1 minute ago              vllm-1
        vllm-1 exited with code 139
        """
    )
    assert [(event.kind, event.detail["signal"]) for event in found] == [("death", "9"), ("death", "11")]
    event = only('"OOMKilled": true,')
    assert (event.tool, event.detail["result"], event.is_echo) == ("docker", "oom-kill", False)
    assert events('"OOMKilled": false,\n"ExitCode": 0,') == ()
    found_incident = incident('level=info msg="TaskOOM event container_id:\\"0123456789ab\\""')
    assert found_incident.primary_event is not None
    assert found_incident.primary_event.detail["container"] == "0123456789ab"

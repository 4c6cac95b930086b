"""What a snapshot tells of the service's manager, its log files, the devices, and of what could not be read."""

from __future__ import annotations

from typing import Any

from gpuwhy.investigate.examined_service import notes_on_services
from gpuwhy.investigate.log_files import log_files
from gpuwhy.model.fact import Unknown
from gpuwhy.snapshot import Probe, Snapshot, Subject, denials, facts_of, failing_services, service_logs
from gpuwhy.snapshot.document import Denial

CRASH = 'Traceback (most recent call last):\n  File "/srv/a.py", line 1, in <module>\nRuntimeError: no\n'


def snapshot_of(*probes: Probe) -> Snapshot:
    return Snapshot(target=Subject("ssh", "gpu-host"), started=0.0, probes=probes)


def probe(name: str, value: Any, **more: Any) -> Probe:
    return Probe(name, "ok", value, **more)


def unit(manager: str, **properties: str) -> Probe:
    return probe(
        "unit",
        {
            "name": "vllm.service",
            "manager": manager,
            "properties": {"ActiveState": "failed", **properties},
            "commands": [["/opt/venv/bin/vllm", "serve", "M"]],
            "environment_files": [],
        },
    )


def test_a_unit_of_a_user_is_one_and_runs_as_that_user() -> None:
    facts = facts_of(snapshot_of(unit("user:alice")))
    assert facts.value("service.is_user") is True
    assert facts.value("service.user") == "alice"
    assert facts_of(snapshot_of(unit("system", User="serve"))).value("service.is_user") is False


def test_a_program_of_supervisord_is_no_unit_and_its_command_is_known() -> None:
    facts = facts_of(snapshot_of(unit("supervisord", User="serve")))
    assert facts.value("service.supervisor_program") == "vllm.service"
    assert facts.value("service.unit") is None
    assert facts.value("command") == "/opt/venv/bin/vllm serve M"


def test_a_log_file_is_read_with_its_gap_and_ends_when_it_was_last_written() -> None:
    files = [
        {"path": "/var/log/vllm.log", "head": "start\n", "tail": CRASH, "left_out": 512, "modified": 1795946280.5},
        {"path": 7, "head": "", "tail": ""},
        "no file",
    ]
    taken = snapshot_of(probe("service_log", {"service": "vllm", "files": files}))
    (file,) = service_logs(taken)
    assert file.text == "start\n[gpuwhy: 512 bytes are left out here]\n" + CRASH
    (log,) = log_files(taken)
    assert log.name == "/var/log/vllm.log"
    assert {line.time for line in log.lines} == {1795946280.5}
    assert any("RuntimeError: no" in line.text for line in log.lines)


def test_a_snapshot_without_log_files_has_none() -> None:
    assert service_logs(snapshot_of(probe("service_log", {"files": "none"}))) == ()
    assert service_logs(snapshot_of(Probe("service_log", "denied", reason="no"))) == ()


def test_who_was_examined_is_told_with_what_else_fails() -> None:
    failing = {"kind": "user unit", "name": "vllm.service", "selector": "user:alice/vllm.service", "state": "failed"}
    runs = {
        "kind": "process",
        "name": "process 5 (vllm)",
        "selector": "pid:5",
        "is_failing": False,
        "note": "thrown away",
    }
    (only,) = notes_on_services(failing_services(snapshot_of(probe("failing_services", [failing, runs]))))
    assert only == "vllm.service was examined: it is the service that fails here."
    (both,) = notes_on_services(
        failing_services(snapshot_of(probe("failing_services", [{**failing, "name": "a"}, failing])))
    )
    assert "also failing here: user:alice/vllm.service (failed)" in both
    (healthy,) = notes_on_services(failing_services(snapshot_of(probe("failing_services", [runs]))))
    assert healthy.startswith("No service was found failing. process 5 (vllm) was examined, which runs (thrown away)")
    assert notes_on_services(()) == []


def test_what_was_denied_is_told_with_every_command_that_would_allow_it() -> None:
    taken = snapshot_of(
        Probe(
            "journal", "denied", reason="hidden", denied=(Denial("hidden", ("sudo usermod -aG adm alice", "--sudo")),)
        ),
        probe("process", {}, denied=(Denial("its libraries", ("--sudo",)), Denial("its libraries", ("--sudo",)))),
        probe("environment", {}, denied=(Denial("its variables"),)),
    )
    journal, process, environment = denials(taken)
    assert journal == (
        "journal: hidden. Not readable by this account; it would be by `sudo usermod -aG adm alice` or gpuwhy with --sudo"
        " (a new group counts from the next login on)."
    )
    assert process.startswith("process: its libraries.")
    assert "root either" in environment
    missing = facts_of(snapshot_of(Probe("pci_bridges", "denied", reason="x", denied=(Denial("x", ("--sudo",)),))))
    unknown = missing.get("pci_acs")
    assert isinstance(unknown, Unknown)
    assert "allowed by --sudo" in unknown.why
    assert unknown.command


def test_devices_become_facts() -> None:
    bridges = [
        {"address": "0000:16:01.0", "gpus": [], "has_acs": True, "on": ["SrcValid", "ReqRedir"], "acs": "SrcValid+ ReqRedir+"},
        {"address": "0000:15:00.0", "gpus": [], "has_acs": True, "on": ["UpstreamFwd"], "acs": "UpstreamFwd+"},
    ]  # fmt: skip
    start = {"library": "libcuda.so.1", "code": 802, "name": "CUDA_ERROR_SYSTEM_NOT_READY", "devices": None}
    gpus = [
        {"gpu": 0, "state": "completed", "status": "success"},
        {"gpu": 1, "state": "in progress", "status": "success"},
    ]
    process = {"pid": 7, "user": "serve", "elapsed": 60.0, "cpu": 2.0, "command": ["nvcc", "-c", "x.cu"]}
    torch = {"library": "/l.so", "targets": ["sm_90"], "containers": 475, "agree": True, "complete": True}
    facts = facts_of(
        snapshot_of(
            probe("pci_bridges", {"bridges": bridges, "unread": []}),
            probe("cuda_start", start),
            probe("fabric", {"version": "570.86.10", "state": None, "gpus": gpus}),
            probe("at_work", {"processes": [process], "complete": True}),
            probe("torch_targets", torch),
        )
    )
    assert facts.value("pci_acs") == ["0000:16:01.0: SrcValid+ ReqRedir+"]
    assert facts.value("cuinit.host") == "802"
    assert facts.value("system_packages.nvidia-fabricmanager") == "570.86.10"
    assert facts.value("fabric_state")[1] == "GPU 1: in progress, success"
    assert facts.value("processes") == ["process 7 (serve; 60 s, 2 s of CPU): nvcc -c x.cu"]
    assert facts.value("torch_arch_list") == ["sm_90"]
    clean = facts_of(snapshot_of(probe("pci_bridges", {"bridges": bridges[1:], "unread": []})))
    assert clean.value("pci_acs", "unknown") == []
    partly = facts_of(snapshot_of(probe("pci_bridges", {"bridges": bridges[1:], "unread": ["0000:14:00.0"]})))
    assert isinstance(partly.get("pci_acs"), Unknown)
    inside = probe("container", {"inside": True, "marks": []})
    assert facts_of(snapshot_of(inside, probe("cuda_start", start))).value("cuinit.container") == "802"

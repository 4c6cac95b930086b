"""A service that is named beside a container, a snapshot or a log means one in it, or is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpuwhy
from gpuwhy.collector import choosing
from gpuwhy.investigate.examined_service import expect_inside, expect_written
from gpuwhy.snapshot import Snapshot, encode
from gpuwhy.snapshot.document import Probe, Subject
from gpuwhy.targets import TargetError

PROGRAM = Probe(name="unit", status="ok", value={"name": "vllm", "manager": "supervisord"})
STATE = Probe(name="container_state", status="ok", value={"name": "web", "engine": "docker"})


def taken(unit: str, *probes: Probe, kind: str = "docker") -> Snapshot:
    return Snapshot(target=Subject(kind, f"{kind}:web", unit), started=1795946290.0, probes=(STATE, *probes))


@pytest.mark.parametrize("kind", ["docker", "podman", "nerdctl", "k8s"])
def test_a_unit_that_is_not_in_the_container_is_refused_with_what_can_be_named(kind: str) -> None:
    absent = Probe(name="unit", status="absent", reason="there is no supervisord on this host")
    inside = Probe(name="inside", status="ok", value={"is_complete": True})
    with pytest.raises(TargetError) as refused:
        expect_inside(taken("vllm.service", inside, absent, kind=kind), f"{kind}:web")
    assert str(refused.value).startswith(
        f"{kind}:web: there is no vllm.service to be seen in this container: there is no"
    )
    assert "supervisor:NAME" in refused.value.advice


def test_of_a_container_that_does_not_run_nothing_inside_can_be_named() -> None:
    inside = Probe(name="inside", status="absent", reason="it does not run: it is exited")
    with pytest.raises(TargetError, match="to be seen in this container: it does not run: it is exited"):
        expect_inside(taken("supervisor:vllm", inside), "docker:web")


@pytest.mark.parametrize(
    ("unit", "seen"),
    [
        ("vllm", PROGRAM),
        ("supervisor:vllm", PROGRAM),
        ("pid:7", Probe(name="process", status="ok", value={"pid": 7})),
        ("/var/log/vllm.log", Probe(name="service_log", status="ok", value={"service": "/var/log/vllm.log"})),
    ],
)
def test_what_is_in_the_container_is_examined(unit: str, seen: Probe) -> None:
    expect_inside(taken(unit, seen), "docker:web")


def test_without_a_name_and_on_a_host_nothing_is_refused() -> None:
    expect_inside(taken(""), "docker:web")
    expect_inside(taken("vllm", kind="ssh"), "gpu-host")


def test_a_plain_name_in_a_container_without_systemd_is_a_program_of_supervisord(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(choosing, "BOOTED", str(tmp_path / "none"))
    asked = {"unit": "vllm", "is_inside": True}
    assert choosing.chosen(asked, None).selector == "supervisor:vllm"
    assert choosing.chosen({"unit": "vllm"}, None).selector == "vllm.service"
    monkeypatch.setattr(choosing, "BOOTED", str(tmp_path))
    assert choosing.chosen(asked, None).selector == "vllm.service"


@pytest.mark.parametrize("asked", ["", "vllm", "vllm.service"])
def test_the_unit_of_a_snapshot_may_be_named(asked: str) -> None:
    journal = Probe(name="journal", status="ok", value={"unit": "vllm.service", "entries": []})
    expect_written(taken("", journal, kind="ssh"), asked, "host.gpuwhy")


@pytest.mark.parametrize("command", [gpuwhy.diagnose, gpuwhy.check])
def test_another_unit_than_that_of_a_snapshot_is_refused(command: object, tmp_path: Path) -> None:
    file = tmp_path / "host.gpuwhy"
    file.write_bytes(encode(taken("sglang.service", PROGRAM, kind="ssh")))
    with pytest.raises(gpuwhy.UnusableError, match=r"was taken of sglang\.service: it holds nothing of other"):
        command(file, unit="other")  # type: ignore[operator]


JOURNAL = (
    "Nov 29 10:00:01 gpu-host systemd[1]: Started sglang.service - SGLang.\n"
    "Nov 29 10:00:07 gpu-host systemd[1]: sglang.service: Main process exited, code=killed, status=9/KILL\n"
    "Nov 29 10:00:07 gpu-host systemd[1]: sglang.service: Failed with result 'signal'.\n"
)


def test_a_unit_of_which_a_log_tells_nothing_is_refused_with_those_it_speaks_of(tmp_path: Path) -> None:
    log = tmp_path / "journal.log"
    log.write_text(JOURNAL)
    with pytest.raises(gpuwhy.UnusableError, match=r"tells nothing of vllm: it speaks of sglang\.service"):
        gpuwhy.diagnose(log, unit="vllm")
    named = gpuwhy.diagnose(log, unit="sglang")
    assert named.incident.unit == "sglang.service"
    assert named.incident.primary_event is not None


def test_a_log_that_names_no_unit_is_taken_for_the_named_one_s(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("RuntimeError: CUDA error: no kernel image is available for execution on the device\n")
    assert gpuwhy.diagnose(log, unit="vllm.service").incident.unit == "vllm.service"

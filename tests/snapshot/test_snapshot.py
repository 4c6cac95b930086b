"""The document: taken, kept, read again; hostile files; what it says of logs and of facts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwhy import snapshot
from gpuwhy.model.evidence import Standing
from gpuwhy.model.fact import Fact, Unknown
from gpuwhy.model.host import Environment, Gpus, Packages, Resolution, Toolkits, Torch
from gpuwhy.snapshot import Probe, Snapshot, SnapshotError, Subject, facts_of
from gpuwhy.targets import Ask, Reply, TargetError
from gpuwhy.targets.local import LocalTarget

ROOT = "/usr/local/cuda-12.8"
ENTRIES = [
    [1795946280.5, 1, "systemd", 6, "systemd", "Started sglang.service."],
    [1795946281.000001, 77, "python", 6, "stdout", "hello"],
]
VALUES: dict[str, Any] = {
    "gpus": {
        "source": "nvml",
        "driver": "580.95.05",
        "driver_cuda": "13.0",
        "gpus": [
            {"index": n, "name": "RTX PRO 6000", "compute_capability": "12.0", "memory_total": 96 << 30} for n in range(2)
        ],
        "processes": [{"gpu": 0, "pid": 7, "memory": 1 << 30, "command": ["python", "x"]}],
    },
    "toolkits": [
        {"root": ROOT, "version": "12.8", "has_nvcc": True, "has_headers": True, "has_curand": False, "aliases": [], "note": ""}
    ],
    "resolutions": {
        "nvcc_on_path": None,
        "consumers": {
            "flashinfer": {"root": ROOT, "version": "12.8", "by": "CUDA_HOME", "steps": [f"CUDA_HOME={ROOT}"]},
            "torch": {"root": ROOT, "version": "12.8", "by": "CUDA_HOME", "steps": []},
        },
    },
    "packages": [
        {
            "prefix": "/opt/venv",
            "versions": {"flashinfer-python": "0.6.12", "torch": "2.11.0+cu130"},
            "origins": {},
            "shadowed": [],
            "torch": {"version": "2.11.0+cu130", "cuda": "13.0", "path": "/opt/venv/torch/version.py"},
        }
    ],
    "environment": {"source": "unit", "complete": True, "variables": {"CUDA_HOME": ROOT}, "other_names": ["EDITOR"], "steps": []},
    "journal": {"unit": "sglang.service", "fields": [], "entries": ENTRIES, "cut": "", "gap_after": None},
    "kernel_log": {"entries": [[1795946270.0, None, "kernel", 4, "kernel", "Out of memory: Killed process 1"]], "scanned": 9},
    "disks": [
        {"path": "/dev/shm", "why": "shared memory", "exists": True, "size": 64 << 20, "available": 1 << 20, "options": "rw", "file_system": "tmpfs", "mount_point": "/dev/shm"},
        {"path": "/models/x", "why": "model (--model)", "exists": False, "size": 1, "available": 1, "options": "rw", "file_system": "ext4", "mount_point": "/"},
    ],
    "jit_cache": {"flashinfer": {"root": "/c", "levels": [{"path": "/c/0.6.12", "version": "0.6.12", "architectures": None, "modules": [{"name": "sampling", "state": "truncated", "size": 20}]}]}},
}  # fmt: skip


def of(values: Mapping[str, Any], *others: Probe) -> Snapshot:
    probes = tuple(Probe(name=name, status="ok", value=value, sources=("/proc/x",)) for name, value in values.items())
    return Snapshot(target=Subject("ssh", "gpu-host", "sglang.service"), started=1795946300.0, probes=probes + others)


SEED = of(
    VALUES,
    Probe(name="driver", status="absent", reason="no NVIDIA driver"),
    Probe(name="memory", status="timed out", reason="no answer in 5.0 s"),
)


def test_facts_stand_under_the_keys_of_given_facts_with_their_evidence() -> None:
    facts = facts_of(SEED)
    assert facts.value("cc") == "12.0"
    assert facts.value("cuda_toolkit") == "12.8"
    assert facts.value("packages.flashinfer-python") == "0.6.12"
    assert facts.value("shm_bytes") == 64 << 20
    assert facts.value("df./dev/shm") == {"size_bytes": 64 << 20, "avail_bytes": 1 << 20}
    assert "truncated" in facts.value("files./c/0.6.12/cached_ops/sampling/sampling.so")
    assert facts.value("files./models/x", "unset") is None
    for fact in facts:
        assert fact.evidence.statement
        assert fact.evidence.place is not None
        assert fact.evidence.standing is Standing.OBSERVED


def test_the_typed_views_read_them() -> None:
    facts = facts_of(SEED)
    gpus, toolkits, torch = Gpus.of(facts), Toolkits.of(facts), Torch.of(facts)
    packages, environment = Packages.of(facts), Environment.of(facts)
    assert isinstance(gpus, Gpus)
    assert gpus.capability == "12.0"
    assert isinstance(toolkits, Toolkits)
    resolved = toolkits.resolved_by("flashinfer")
    assert isinstance(resolved, Resolution)
    assert (resolved.version, resolved.by) == ("12.8", "CUDA_HOME")
    assert toolkits.installs[0].root == ROOT
    assert toolkits.is_complete
    assert isinstance(torch, Torch)
    assert (torch.version, torch.cuda) == ("2.11.0+cu130", "13.0")
    assert isinstance(packages, Packages)
    assert packages.version("torch") == "2.11.0+cu130"
    assert isinstance(environment, Environment)
    assert environment.get("CUDA_HOME") == ROOT
    assert environment.get("CUDA_PATH") is None


def test_what_could_not_be_looked_at_is_unknown_with_its_reason_and_never_absent() -> None:
    facts = facts_of(SEED)
    memory = facts.get("mem_total_bytes")
    assert isinstance(memory, Unknown)
    assert memory.why == "no answer in 5.0 s (timed out)"
    assert "mem_total_bytes" not in facts
    assert isinstance(facts.get("env.EDITOR"), Unknown)
    assert isinstance(facts_of(of({})).get("cc"), Unknown)


def test_a_driver_that_is_not_there_is_a_known_absence() -> None:
    alone = of({}, Probe(name="driver", status="absent", reason="no NVIDIA driver"))
    fact = facts_of(alone).get("driver")
    assert isinstance(fact, Fact)
    assert fact.value is None


def test_the_driver_that_nvml_names_wins_over_the_absence_of_proc() -> None:
    assert facts_of(SEED).value("driver") == "580.95.05"


def test_gpus_that_differ_have_no_common_capability() -> None:
    mixed = json.loads(json.dumps(VALUES["gpus"]))
    mixed["gpus"][1] |= {"name": "H100", "compute_capability": "9.0"}
    facts = facts_of(of({"gpus": mixed}))
    assert "cc" not in facts
    assert "gpu" not in facts
    gpus = Gpus.of(facts)
    assert isinstance(gpus, Gpus)
    assert gpus.capabilities == ("12.0", "9.0")


def test_nvcc_that_gave_way_to_torch_is_no_toolkit() -> None:
    value = json.loads(json.dumps(VALUES["resolutions"]))
    value["consumers"]["flashinfer"] |= {"by": "torch.version.cuda", "version": "13.0"}
    facts = facts_of(of({"resolutions": value}))
    assert facts.value("cuda_toolkit", "unset") is None
    assert facts.value("toolkit_resolved.flashinfer").version == "13.0"


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                *VALUES,
                "unit",
                "process",
                "memory",
                "system",
                "container",
                "limits",
                "compilers",
                "pci",
                "nvidia_smi",
                "driver",
                "failing_services",
            ]
        ),
        JSON,
    )
)
def test_a_snapshot_that_was_tampered_with_never_breaks_its_readers(values: dict[str, Any]) -> None:
    edited = of({**VALUES, **values})
    facts_of(edited)
    list(snapshot.journal_entries(edited))
    list(snapshot.kernel_entries(edited))
    snapshot.failing_services(edited)


def test_the_journal_comes_as_the_log_reader_takes_it() -> None:
    first, second = snapshot.journal_entries(SEED)
    assert first == {"MESSAGE": "Started sglang.service.", "SYSLOG_IDENTIFIER": "systemd", "__REALTIME_TIMESTAMP": "1795946280500000", "_PID": "1", "PRIORITY": "6", "_TRANSPORT": "journal", "UNIT": "sglang.service"}  # fmt: skip
    assert second["_SYSTEMD_UNIT"] == "sglang.service"
    assert second["__REALTIME_TIMESTAMP"] == "1795946281000001"
    assert [entry["_TRANSPORT"] for entry in snapshot.kernel_entries(SEED)] == ["kernel"]


def test_a_file_brings_back_the_same_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "host.gpuwhy"
    snapshot.write(SEED, path)
    assert snapshot.read(path) == SEED
    assert path.stat().st_mode & 0o077 == 0
    assert [each.name for each in tmp_path.iterdir()] == ["host.gpuwhy"]
    assert snapshot.is_snapshot(path.read_bytes())
    assert snapshot.is_snapshot(snapshot.encode(SEED))
    assert snapshot.decode(snapshot.encode(SEED)) == SEED


def test_secrets_that_a_file_still_holds_go_when_it_is_read() -> None:
    careless = of({"environment": {"variables": {"HF_TOKEN": "correct-horse"}}, "kernel_log": "said correct-horse"})
    read = snapshot.decode(snapshot.encode(careless))
    assert b"correct-horse" not in snapshot.encode(read)
    assert sum(read.redacted.values()) == 2


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"[]", b"null", b"{}", b'{"schema_version": "9.0"}', b'{"schema_version": 1}', b'{"schema_version": "0.1"}', b'{"schema_version": "0.1", "target": 5, "started": "x"}', b"[" * 100_000, b"\x28\xb5\x2f\xfdgarbage", b"\x00" * 100, b"\xff\xfe", b'{"schema_version": "0.1", "target": ' + b'{"a":' * 5000],
)  # fmt: skip
def test_what_is_no_snapshot_is_refused_in_words(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.gpuwhy"
    path.write_bytes(data)
    with pytest.raises(SnapshotError):
        snapshot.read(path)


def test_a_file_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot.file, "MOST_BYTES", 1 << 20)
    with pytest.raises(SnapshotError, match="unpacks to more"):
        snapshot.decode(zstandard.ZstdCompressor().compress(b" " * (2 << 20)))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="No such file"):
        snapshot.read(tmp_path / "none.gpuwhy")


class PreparedTarget:
    """A target whose collector says what a test wants, and counts what it is asked."""

    kind, name = "ssh", "gpu-host"

    def __init__(self, results: Iterable[dict[str, Any]], end: dict[str, Any]) -> None:
        self.results, self.end = list(results), end
        self.asked: list[Ask] = []
        self.request: dict[str, Any] = {}
        self.opened = self.closed = 0

    def open(self, program: str) -> PreparedTarget:
        self.opened += 1
        return self

    def collect(
        self, request: Mapping[str, Any], on_result: Callable[[dict[str, Any]], None], deadline: float
    ) -> dict[str, Any]:
        self.request = dict(request)
        if not self.results:
            raise TargetError("unreachable")
        for result in self.results:
            on_result(result)
        return self.end

    def ask(self, asks: Iterable[Ask], deadline: float = 10.0) -> list[Reply]:
        wanted = list(asks)
        self.asked += wanted
        return [Reply(status="ok", value={"path": ask.path}) for ask in wanted]

    def close(self) -> None:
        self.closed += 1


def test_a_session_keeps_what_it_asked_and_asks_nothing_twice() -> None:
    target = PreparedTarget(
        [{"probe": "memory", "status": "ok", "value": {"total": 1}}], {"python": "3.6.15", "redacted": {"by name": 1}}
    )
    seen: list[str] = []
    with snapshot.Session(target, "sglang") as session:
        taken = session.collect(lambda probe: seen.append(probe.name))
        replies = session.ask([Ask("read", "/a.py", 1, 5), Ask("stat", "/b")])
        session.ask([Ask("read", "/a.py", 1, 5)])
        kept = session.snapshot
    assert seen == ["memory"]
    assert target.request["unit"] == "sglang"
    assert (taken.is_complete, taken.target_python, taken.redacted) == (True, "3.6.15", {"by name": 1})
    assert [reply.value["path"] for reply in replies] == ["/a.py", "/b"]
    assert len(target.asked) == 2
    assert [(each.path, each.first, each.last) for each in kept.excerpts] == [("/a.py", 1, 5), ("/b", None, None)]
    assert snapshot.decode(snapshot.encode(kept)) == kept
    assert (target.opened, target.closed) == (1, 1)


def test_a_collection_that_was_cut_says_so_and_keeps_the_rest() -> None:
    results: list[dict[str, Any]] = [{"probe": "memory", "status": "ok", "value": 1}, {"probe": 5}, {"status": "ok"}]
    taken = snapshot.collect(PreparedTarget(results, {}))
    assert taken.is_complete is False
    assert [probe.name for probe in taken.probes] == ["memory"]


def test_a_target_that_cannot_be_reached_is_closed_and_the_error_passes_on() -> None:
    target = PreparedTarget([], {})
    with pytest.raises(TargetError):
        snapshot.collect(target)
    assert target.closed == 1


def test_this_machine_gives_a_snapshot_within_three_seconds() -> None:
    taken = snapshot.collect(LocalTarget())
    assert taken.is_complete
    assert taken.duration <= 3
    assert taken.value("memory")["total"] > 0
    assert facts_of(taken).value("mem_total_bytes") == taken.value("memory")["total"]


def test_the_folder_of_a_journal_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWHY_JOURNAL_DIRECTORY", "/var/tmp/journal")
    target = PreparedTarget([{"probe": "memory", "status": "ok"}], {})
    snapshot.collect(target)
    assert target.request["journal_directory"] == "/var/tmp/journal"


def test_the_schema_can_be_published() -> None:
    schema = msgspec.json.schema(Snapshot)
    assert "Probe" in schema["$defs"]


def test_after_the_time_of_the_whole_run_nothing_is_asked_and_every_answer_says_so() -> None:
    target = PreparedTarget([{"probe": "memory", "status": "ok", "value": {"total": 1}}], {})
    with snapshot.Session(target, timeout=0.2) as session:
        session.collect()
        time.sleep(0.3)
        replies = session.ask([Ask("read", "/a.py", 1, 5), Ask("stat", "/b")])
    assert [reply.status for reply in replies] == ["timed out", "timed out"]
    assert target.asked == []
    assert target.closed == 1


def test_a_short_time_leaves_the_collector_some_of_it_to_say_what_did_not_answer() -> None:
    target = PreparedTarget([{"probe": "memory", "status": "ok", "value": 1}], {})
    snapshot.collect(target, timeout=4.0)
    assert 0 < target.request["deadline"] <= 3.0
    assert 13.0 < target.request["life"] <= 14.0
    snapshot.collect(target)
    assert target.request["deadline"] == snapshot.collecting.DEADLINE


def test_an_empty_file_is_said_to_be_empty() -> None:
    with pytest.raises(SnapshotError, match="x is no snapshot: it is empty"):
        snapshot.decode(b"", "x")

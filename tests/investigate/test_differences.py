"""It worked yesterday: what changed, and which change accounts for the failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwhy.causes import catalogue
from gpuwhy.investigate.change_kinds import KINDS, kind_of
from gpuwhy.investigate.differences import Change, Comparison, compare
from gpuwhy.reports import differences as report
from gpuwhy.snapshot import Probe, Snapshot, Subject, read

CRASH = Path(__file__).parents[1] / "data" / "logs" / "seed_crash.log"
SCHEMA = Path(__file__).parents[2] / "docs" / "diff.schema.json"
KEPT = Path(__file__).parents[1] / "data" / "snapshots" / "schema-0.1.json"
OLD, NEW = "/usr/local/cuda-12.9", "/usr/local/cuda-12.8"


def host(toolkit: str, log: str = "", **changed: Any) -> Snapshot:
    """The same host on two days: its toolkit, what its service wrote, and the values of further probes."""
    version = toolkit.rpartition("-")[2]
    entries = [[1796000000.0 + n, 7, "python", 6, "stdout", line] for n, line in enumerate(log.splitlines())]
    chosen = {"root": toolkit, "version": version, "by": "CUDA_HOME", "steps": [f"CUDA_HOME={toolkit}"]}
    values: dict[str, Any] = {
        "gpus": {"driver": "580.95.05", "driver_cuda": "13.0", "gpus": [{"index": 0, "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition", "compute_capability": "12.0", "memory_total": 96 << 30}], "processes": []},
        "toolkits": [{"root": root, "version": root.rpartition("-")[2], "has_nvcc": True} for root in (OLD, NEW)],
        "resolutions": {"nvcc_on_path": None, "consumers": {"flashinfer": chosen, "torch": chosen}},
        "packages": [{"prefix": "/opt/venv", "versions": {"flashinfer-python": "0.6.12", "torch": "2.11.0+cu130"}, "origins": {}, "shadowed": [], "torch": None}],
        "environment": {"source": "unit", "complete": True, "variables": {"CUDA_HOME": toolkit}, "other_names": [], "steps": []},
        "journal": {"unit": "sglang.service", "fields": [], "entries": entries, "cut": "", "gap_after": None},
        "memory": {"total": 512 << 30, "available": 400 << 30, "group": None},
        "limits": {"memlock": "unlimited", "nofile": "1048576"},
        "unit": {"name": "sglang.service", "properties": {"ActiveState": "active"}, "commands": [["sglang", "--port", "1"]], "environment_files": [], "files": [{"path": "/etc/systemd/system/sglang.service", "text": f"[Service]\nEnvironment=CUDA_HOME={toolkit}\nExecStart=sglang\n"}]},
        "jit_cache": {"flashinfer": {"root": "/c", "levels": [{"path": "/c/0.6.12/120f", "architectures": "120f", "modules": [{"name": "sampling", "state": "built", "size": 5}]}]}},
        **changed,
    }  # fmt: skip
    probes = tuple(
        Probe(name=name, status="failed", reason=str(value), sources=("/x",))
        if isinstance(value, Exception)
        else Probe(name=name, status="ok", value=value, sources=(f"/from/{name}",))
        for name, value in values.items()
    )
    return Snapshot(target=Subject("ssh", "gpu-host", "sglang.service"), started=1796000000.0, probes=probes)


@pytest.fixture(scope="module")
def yesterday_and_today() -> Comparison:
    today = host(NEW, CRASH.read_text(), limits={"memlock": "65536", "nofile": "1048576"}, memory={"total": 512 << 30, "available": 100 << 30, "group": None})  # fmt: skip
    return compare(host(OLD), today)


def change(comparison: Comparison, key: str) -> Change:
    return next(each for each in comparison.changes if each.key == key)


def test_the_change_that_accounts_for_the_failure_comes_first(yesterday_and_today: Comparison) -> None:
    assert yesterday_and_today.before.cause == ""
    assert yesterday_and_today.after.cause
    first = yesterday_and_today.changes[0]
    assert first.key == "toolkit_resolved.flashinfer"
    assert first.undoes == yesterday_and_today.after.cause
    assert (first.before, first.after) == (f"12.9 ({OLD}, by CUDA_HOME)", f"12.8 ({NEW}, by CUDA_HOME)")


def test_the_variable_that_made_the_choice_is_named_beside_it(yesterday_and_today: Comparison) -> None:
    assert change(yesterday_and_today, "env.CUDA_HOME").undoes == yesterday_and_today.after.cause


def test_a_change_beside_the_failure_is_listed_and_not_accused(yesterday_and_today: Comparison) -> None:
    limit = change(yesterday_and_today, "memlock")
    assert (limit.before, limit.after, limit.undoes) == ("unlimited", "65536", "")
    assert limit.causes == ("ulimit",)
    assert not limit.is_suspected
    assert change(yesterday_and_today, "mem_available_bytes").is_outcome
    assert yesterday_and_today.changes[-1].is_outcome


def test_unit_files_are_compared_line_by_line(yesterday_and_today: Comparison) -> None:
    unit = change(yesterday_and_today, "unit_file./etc/systemd/system/sglang.service")
    assert unit.lines == (f"- Environment=CUDA_HOME={OLD}", f"+ Environment=CUDA_HOME={NEW}")


def test_the_report_gives_the_answer_before_the_rest(yesterday_and_today: Comparison) -> None:
    text = report.render(yesterday_and_today)
    assert text.startswith("before: gpu-host (ssh, unit sglang.service) at 2026-11-30")
    assert "no failure in its logs" in text.splitlines()[0]
    assert f"undone alone, {yesterday_and_today.after.cause} no longer stands:\n  toolkit_resolved.flashinfer" in text
    assert text.index("undone alone") < text.index("changed as well") < text.index("follows rather than leads")
    assert f"facts compared: {len(yesterday_and_today.changes)} differ" in text


def test_equal_snapshots_say_so_and_how_much_was_compared() -> None:
    same = compare(host(OLD), host(OLD))
    assert same.changes == ()
    assert same.compared == same.equal > 20
    assert f"{same.compared} facts compared: all are equal" in report.render(same)


def test_what_moves_all_the_time_is_no_difference() -> None:
    def busy(pid: int, available: int) -> Snapshot:
        gpus = {"gpus": [{"index": 0, "name": "H100", "compute_capability": "9.0"}], "processes": [{"gpu": 0, "pid": pid, "memory": pid << 20, "command": ["python"]}]}  # fmt: skip
        return host(OLD, gpus=gpus, memory={"total": 512 << 30, "available": available, "group": None})

    assert compare(busy(7, 400 << 30), busy(9, 390 << 30)).changes == ()


def test_the_same_programs_at_another_time_are_no_difference_and_another_one_is() -> None:
    def running(pid: int, elapsed: float, *commands: str) -> Snapshot:
        each = {"pid": pid, "ppid": 1, "user": "root", "elapsed": elapsed, "cpu": elapsed / 2, "state": "S"}
        return host(OLD, at_work={"processes": [{**each, "command": [command]} for command in commands]})

    assert compare(running(7, 20, "vllm"), running(9, 2000, "vllm")).changes == ()
    changed = compare(running(7, 20, "vllm"), running(7, 20, "vllm", "ollama")).changes
    assert [each.key for each in changed] == ["processes"]


def test_what_one_side_could_not_see_is_not_compared_and_says_why() -> None:
    blind = compare(host(OLD), host(OLD, packages=PermissionError("not allowed")))
    assert blind.changes == ()
    unseen = next(each for each in blind.uncompared if each.key == "packages.flashinfer-python")
    assert (unseen.side, unseen.why) == ("after", "not allowed (failed)")
    assert "packages.flashinfer-python" in report.render(blind, verbose=True)


def test_a_question_that_could_not_be_put_is_no_absence() -> None:
    lost = tuple(
        msgspec.structs.replace(each, status="absent", value=None, reason="the environment is not known")
        if each.name in ("resolutions", "packages")
        else each
        for each in host(OLD).probes
    )
    blind = compare(host(OLD), msgspec.structs.replace(host(OLD), probes=lost))
    assert blind.changes == ()
    assert {"packages.torch", "toolkit_resolved.torch"} <= {each.key for each in blind.uncompared}


def test_sizes_are_told_in_units() -> None:
    def with_shm(size: int) -> Snapshot:
        return host(OLD, disks=[{"path": "/dev/shm", "why": "shared memory", "exists": True, "size": size, "available": size, "options": "rw", "file_system": "tmpfs", "mount_point": "/dev/shm"}])  # fmt: skip

    small = change(compare(with_shm(64 << 30), with_shm(64 << 20)), "shm_bytes")
    assert (small.before, small.after, small.causes) == ("64 GiB", "64 MiB", ("shm-too-small",))


def test_a_variable_is_gone_only_where_the_whole_environment_is_known() -> None:
    def with_variables(complete: bool, **variables: str) -> Snapshot:
        return host(OLD, environment={"complete": complete, "variables": variables, "other_names": [], "steps": []})

    known = compare(with_variables(True, NCCL_DEBUG="INFO"), with_variables(True))
    gone = change(known, "env.NCCL_DEBUG")
    assert (gone.before, gone.after) == ("INFO", "not there")
    unknown = compare(with_variables(True, NCCL_DEBUG="INFO"), with_variables(False))
    assert "env.NCCL_DEBUG" not in [each.key for each in unknown.changes]


def test_the_state_of_a_cache_is_compared_and_not_its_size() -> None:
    def with_module(state: str, size: int) -> Snapshot:
        level = {"path": "/c/0.6.12/120f", "architectures": "120f", "modules": [{"name": "sampling", "state": state, "size": size}]}  # fmt: skip
        return host(OLD, jit_cache={"flashinfer": {"root": "/c", "levels": [level]}})

    assert compare(with_module("built", 5), with_module("built", 6)).changes == ()
    broken = compare(with_module("built", 5), with_module("empty", 0))
    assert change(broken, "jit_cache./c/0.6.12/120f").lines == ("- sampling: built", "+ sampling: empty")


def test_the_number_of_a_secret_is_no_difference() -> None:
    def with_token(number: int, option: str = "") -> Snapshot:
        variables = {"HF_TOKEN": f"<redacted:{number}>", "VLLM_ARGS": f"--api-key <redacted:{number}>{option}"}
        return host(OLD, environment={"complete": True, "variables": variables, "other_names": [], "steps": []})

    assert compare(with_token(1), with_token(5)).changes == ()
    assert [each.key for each in compare(with_token(1), with_token(5, " -v")).changes] == ["env.VLLM_ARGS"]


def test_a_kept_snapshot_compares_with_itself() -> None:
    assert compare(read(KEPT), read(KEPT)).changes == ()


def test_every_cause_that_a_kind_names_is_in_the_catalogue() -> None:
    assert {cause for kind in KINDS for cause in kind.causes} <= catalogue().keys()
    assert kind_of("packages.torch").name == "torch"
    assert kind_of("packages.flashinfer-python").name == "engine or kernel library"
    assert kind_of("env.EDITOR").name == "variable"
    assert kind_of("strange\nkey").name == "other"


def test_the_document_follows_its_schema(yesterday_and_today: Comparison) -> None:
    document = json.loads(report.render_json(yesterday_and_today))
    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert msgspec.convert(document, report.DifferenceDocument).comparison == yesterday_and_today


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "files", "levels", "modules", "path", "size", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)
PROBES = [
    "gpus",
    "unit",
    "jit_cache",
    "disks",
    "memory",
    "toolkits",
    "packages",
    "environment",
    "resolutions",
    "limits",
]


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(PROBES), JSON))
def test_a_snapshot_that_was_tampered_with_is_compared_all_the_same(values: dict[str, Any]) -> None:
    for comparison in (compare(host(OLD), host(OLD, **values)), compare(host(OLD, **values), host(OLD))):
        report.render(comparison, verbose=True)
        report.render_json(comparison)


def test_room_on_a_disk_matters_when_it_runs_out() -> None:
    def with_room(available: int) -> Snapshot:
        return host(OLD, disks=[{"path": "/models", "why": "HF_HOME", "exists": True, "size": 1000 << 30, "available": available << 30, "options": "rw", "file_system": "ext4", "mount_point": "/"}])  # fmt: skip

    assert compare(with_room(600), with_room(200)).changes == ()
    full = change(compare(with_room(600), with_room(2)), "df./models")
    assert full.after == "2 GiB of 1000 GiB available"
    assert full.causes == ("disk-full",)


def test_what_the_kernel_did_to_others_is_no_failure_of_a_unit_that_is_not_there() -> None:
    text = "Memory cgroup out of memory: Killed process 7 (python3) total-vm:9kB, anon-rss:9kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0"  # fmt: skip
    kernel = {"entries": [[1796000000.0, None, "kernel", 3, "kernel", text]], "scanned": 1}
    unknown = Probe(name="unit", status="absent", reason="systemd knows no unit vlm.service")
    killed = Probe(name="kernel_log", status="ok", value=kernel)
    seen = Snapshot(target=Subject("ssh", "gpu-host", "vlm"), started=1796000010.0, probes=(unknown, killed))
    after = compare(seen, seen).after
    assert (after.is_failure, after.cause) == (False, "")

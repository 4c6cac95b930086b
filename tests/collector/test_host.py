"""GPUs, driver, journal, kernel log, disks, memory, JIT caches: each from the raw material it is read from."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.collector.conftest import executable

from gpuwhy.collector import commands, disks, gpus, jit_cache, journal, kernel_log, memory, nvml, serving
from gpuwhy.collector.probing import Absent, Denied, Failed, Notes, NoValue, TimedOut
from gpuwhy.collector.reading import read_bytes

GIB = 1 << 30


class Library:
    """libnvidia-ml as far as two GPUs go: one healthy, one that the driver has lost. Codes as in nvml.h."""

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Callable[..., int]] = {
            "nvmlDeviceGetCount_v2": lambda count: self._set(count, 2),
            "nvmlDeviceGetHandleByIndex_v2": lambda index, handle: 15 if index.value else self._set(handle, 1),
            "nvmlDeviceGetName": lambda _, text, __: self._text(text, b"NVIDIA H100 80GB HBM3"),
            "nvmlDeviceGetCudaComputeCapability": lambda _, major, minor: self._set(major, 9) or self._set(minor, 0),
            "nvmlDeviceGetMemoryInfo": self._memory,
            "nvmlDeviceGetComputeRunningProcesses_v3": self._processes,
        }
        if name == "nvmlErrorString":
            return lambda _: b"GPU is lost"
        if name not in answers:
            raise AttributeError(name)
        function = answers[name]
        return type("Function", (), {"__call__": staticmethod(function), "restype": None})()

    @staticmethod
    def _set(reference: Any, value: int) -> int:
        reference._obj.value = value
        return 0

    @staticmethod
    def _text(buffer: Any, value: bytes) -> int:
        buffer.value = value
        return 0

    @staticmethod
    def _memory(_: Any, reference: Any) -> int:
        reference._obj.total, reference._obj.used = 80 * GIB, 5 * GIB
        return 0

    @staticmethod
    def _processes(_: Any, count: Any, table: Any) -> int:
        table[0].pid, table[0].used = 4711, 4 * GIB
        table[1].pid, table[1].used = 4712, ctypes.c_ulonglong(-1).value
        count._obj.value = 2
        return 0


def test_nvml_tells_the_gpus_and_who_holds_their_memory() -> None:
    listed, processes = nvml.gpus(nvml.Nvml(Library()))
    assert listed[0]["name"] == "NVIDIA H100 80GB HBM3"
    assert (listed[0]["compute_capability"], listed[0]["memory_total"]) == ("9.0", 80 * GIB)
    assert listed[1] == {"index": 1, "error": "GPU is lost (NVML error 15)"}
    assert processes == [{"gpu": 0, "pid": 4711, "memory": 4 * GIB}, {"gpu": 0, "pid": 4712, "memory": None}]


def test_nvidia_smi_s_table_is_read_also_with_fields_that_it_does_not_support() -> None:
    text = "0, NVIDIA GeForce RTX 5090, GPU-1, 00000000:01:00.0, 12.0, 32607, 10, 570.86.10\n1, Odd, Name, x\n2, Tesla K80, GPU-2, 00000000:02:00.0, [N/A], [N/A], 4, 570.86.10\n"
    found = gpus._from_csv(text, list(gpus.QUERY))
    assert [each["index"] for each in found["gpus"]] == [0, 2]
    assert found["gpus"][0]["memory_total"] == 32607 << 20
    assert "compute_capability" not in found["gpus"][1]
    assert found["driver"] == "570.86.10"


def entry(**fields: Any) -> bytes:
    return json.dumps({"__REALTIME_TIMESTAMP": "1795946280000001", **fields}).encode()


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("plain", "plain"),
        ([27, 91, 51, 49, 109, 120], "\x1b[31mx"),
        (["first", "second"], "first\nsecond"),
        ([255, 254], "\ufffd\ufffd"),
        ([], ""),
    ],
)
def test_a_message_of_the_journal_comes_in_several_forms(message: Any, text: str) -> None:
    parsed = journal.parse(
        entry(MESSAGE=message, _PID="7", PRIORITY="3", _TRANSPORT="stdout", SYSLOG_IDENTIFIER="python")
    )
    assert parsed is not None
    assert parsed[0] == [1795946280.000001, 7, "python", 3, "stdout", text]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"x",
        b"[]",
        b"{}",
        b"null",
        b'{"__REALTIME_TIMESTAMP":"x","MESSAGE":"y"}',
        entry(MESSAGE=None),
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_entry_is_passed_over(raw: bytes) -> None:
    assert journal.parse(raw) is None


def test_systemd_s_own_lines_about_a_unit_are_marked() -> None:
    parsed = journal.parse(entry(MESSAGE="Started x.", UNIT="x.service", _PID="1", MESSAGE_ID=journal.STARTED))
    assert parsed is not None
    assert (parsed[0][4], parsed[1]) == ("systemd", journal.STARTED)


class Journalctl:
    """A journal of one unit: an old start, `before` lines after it, and `tail` newest lines."""

    def __init__(self, lines: int) -> None:
        start = entry(MESSAGE="Starting x...", UNIT="x.service", _PID="1", MESSAGE_ID=journal.STARTING)
        rest = [
            json.dumps({"__REALTIME_TIMESTAMP": str(1795946280000001 + n), "MESSAGE": f"line {n}"}).encode()
            for n in range(1, lines)
        ]
        self.entries = [start, *rest]

    def run(self, _: str, arguments: Sequence[str] = (), on_line: Any = None, **__: Any) -> commands.Output:
        listed = list(arguments)
        chosen = self.entries
        if "--lines" in listed:
            chosen = self.entries[-int(listed[listed.index("--lines") + 1]) :]
        if any(word.startswith("MESSAGE_ID=") for word in listed):
            chosen = self.entries[:1]
        for line in chosen:
            if not on_line(line):
                break
        return commands.Output("journalctl", 0, "", "")


def test_a_long_journal_keeps_its_newest_lines_and_the_start_of_the_last_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "run", Journalctl(9000).run)
    found = journal.journal({"unit": "x", "journal_lines": 1000}, Notes(), None, None)
    texts = [each[5] for each in found["entries"]]
    assert texts[0] == "Starting x..."
    assert texts[-1] == "line 8999"
    assert found["gap_after"] == journal.HEAD_LINES
    assert texts[found["gap_after"]] == "line 8000"
    assert "newest 1000 lines" in found["cut"]


def test_a_journal_of_few_and_long_lines_is_cut_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "run", Journalctl(100).run)
    found = journal.journal({"unit": "x", "journal_bytes": 2000}, Notes(), None, None)
    assert found["entries"][-1][5] == "line 99"
    assert found["cut"]


def test_a_short_journal_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "run", Journalctl(10).run)
    found = journal.journal({"unit": "x"}, Notes(), None, None)
    assert (len(found["entries"]), found["cut"], found["gap_after"]) == (10, "", None)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [("No journal files were opened due to insufficient permissions.", Denied), ("Failed to parse timestamp", Failed)],
)
def test_a_journal_that_cannot_be_read_says_why(
    error: str, outcome: type[NoValue], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "run", lambda *_, **__: commands.Output("journalctl", 1, "", error))
    with pytest.raises(outcome, match=error.split(maxsplit=1)[0]):
        journal.journal({"unit": "x"}, Notes(), None, None)


def test_a_record_of_the_kernel_is_read_with_its_time() -> None:
    record = "4,2411,1500000,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus. \\x1b[31m\n SUBSYSTEM=pci\n"
    assert kernel_log.parse_record(record, 1000.0) == [
        1001.5,
        None,
        "kernel",
        4,
        "kernel",
        "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus. \x1b[31m",
    ]
    assert kernel_log.parse_record("12,1,1,-;written by a program", 0.0) is None
    assert kernel_log.parse_record("nonsense", 0.0) is None


@pytest.mark.parametrize(
    "line",
    [
        "Out of memory: Killed process 18231 (sglang::schedul) total-vm:702345120kB",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
        "nvidia-nvswitch0: SXid (PCI:0000:07:00.0): 12028, Non-fatal",
        "pcieport 0000:00:01.0: AER: Corrected error received",
        "AMD-Vi: Event logged [IO_PAGE_FAULT device=01:00.0]",
        "python[4242]: segfault at 0 ip 00007f error 4 in libc.so.6",
        "traps: python3[7] trap invalid opcode ip:55",
        "mce: [Hardware Error]: Machine check events logged",
    ],
)
def test_lines_of_the_kernel_that_can_matter_are_kept(line: str) -> None:
    assert kernel_log.is_interesting(line)


@pytest.mark.parametrize(
    "line",
    [
        "eth0: link becomes ready",
        "systemd[1]: Started cron",
        "Freeing unused kernel memory",
        "iommu: Default domain type: Translated",
        "pci 0000:00:01.0: Adding to iommu group 3",
    ],
)
def test_lines_of_the_kernel_that_cannot_are_not(line: str) -> None:
    assert not kernel_log.is_interesting(line)


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 0:26 / /dev/shm rw,nosuid shared:2 - tmpfs tmpfs rw,size=65536k
31 22 0:27 / /models\\040big ro,noexec - nfs4 server:/models rw,soft
32 22 0:28 / /models\\040big rw - tmpfs cover rw
"""


def test_a_path_lies_on_the_longest_and_last_mount_above_it() -> None:
    mounts = disks._mounts(MOUNTS)
    assert disks._mount_of("/dev/shm/x", mounts)[:3] == ("/dev/shm", "tmpfs", "rw,nosuid,size=65536k")
    assert disks._mount_of("/dev/shmx", mounts)[0] == "/"
    assert disks._mount_of("/models big/kimi", mounts)[3] == "cover"


def test_the_places_that_a_service_names_are_measured(tmp_path: Path) -> None:
    unit = {"commands": [["vllm", "serve", str(tmp_path), "--download-dir=/nowhere/models"]], "properties": {}}
    found = {
        each["path"]: each for each in disks.disks({}, Notes(), unit, None, {"variables": {"HOME": str(tmp_path)}})
    }
    assert found[str(tmp_path)]["available"] > 0
    assert found["/nowhere/models"]["exists"] is False
    assert found["/dev/shm"]["why"] == "shared memory"


def test_the_limit_of_a_control_group_is_read_on_either_version(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5\n")
    (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert memory._limits(str(tmp_path), Notes()) | {"folder": ""} == {
        "folder": "",
        "limit": None,
        "used": 5,
        "peak": None,
        "oom_kills": 2,
    }
    old = tmp_path / "old"
    old.mkdir()
    (old / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert memory._limits(str(old), Notes())["limit"] is None
    (old / "memory.limit_in_bytes").write_text("650117120\n")
    assert memory._limits(str(old), Notes())["limit"] == 650117120


def test_the_layout_of_flashinfer_s_cache_shows_a_missing_level(tmp_path: Path) -> None:
    base = tmp_path / ".cache/flashinfer"
    (base / "0.6.18.post1/cached_ops").mkdir(parents=True)
    (base / "0.6.18.post1/flashinfer_jit.log").write_text("")
    sampling = base / "0.6.17/120a/cached_ops/sampling"
    sampling.mkdir(parents=True)
    (sampling / "build.ninja").write_text(
        "ninja_required_version = 1.3\ncuda_home = /usr/local/cuda-12.8\nnvcc = $cuda_home/bin/nvcc\ncuda_cflags = -gencode=arch=compute_120a,code=sm_120a\n"
    )
    (sampling / "sampling.so").write_bytes(b"")
    (base / "cubins").mkdir()
    found = jit_cache.jit_cache({}, Notes(), {"variables": {"HOME": str(tmp_path)}})["flashinfer"]
    levels = {level["version"]: level for level in found["levels"]}
    assert levels["0.6.18.post1"]["architectures"] is None
    assert levels["0.6.17"]["architectures"] == "120a"
    module = levels["0.6.17"]["modules"][0]
    assert (module["state"], module["cuda_home"], module["targets"]) == (
        "empty",
        "/usr/local/cuda-12.8",
        ["compute_120a"],
    )


def test_the_state_of_a_built_library_is_told_from_its_head(tmp_path: Path) -> None:
    import sys

    whole = Path(sys.executable).resolve().read_bytes()
    library = tmp_path / "x.so"
    for content, state in (
        (whole, "built"),
        (whole[: len(whole) // 2], "truncated"),
        (b"garbage", "not a library"),
        (b"", "empty"),
    ):
        library.write_bytes(content)
        assert jit_cache._state(str(library), len(content)) == state


def test_a_tool_that_leaves_a_child_with_its_pipes_does_not_hold_us(tmp_path: Path) -> None:
    tool = executable(tmp_path / "tool", "#!/bin/sh\nsleep 600 &\necho done\n")
    assert commands.run(str(tool), timeout=60).out == "done\n"


def test_a_tool_that_floods_is_cut_and_one_that_is_missing_is_absent(tmp_path: Path) -> None:
    flood = executable(tmp_path / "flood", "#!/bin/sh\nyes | head -c 3000000\n")
    assert len(commands.run(str(flood), timeout=60, most=1 << 16).out) <= 2 << 16
    with pytest.raises(Absent):
        commands.run("no-such-tool-anywhere")
    with pytest.raises(TimedOut):
        commands.run(str(executable(tmp_path / "slow", "#!/bin/sh\nsleep 60\n")), timeout=0.2)


def test_pipes_and_devices_are_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero", str(tmp_path)):
        with pytest.raises(NoValue):
            read_bytes(path)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "/root/.ssh/id_rsa",
        "/root/.ssh/config.py",
        "/home/u/.aws/credentials.json",
        "/root/.cache/huggingface/token",
        "/proc/1/environ",
        "/run/secrets/db.txt",
        "/opt/app/.env",
        "relative.py",
        "/x\0.py",
        "/opt/../etc/shadow",
    ],
)
def test_a_path_that_a_hostile_log_may_name_is_not_read(path: str) -> None:
    assert serving.answer({"id": 1, "ask": "read", "path": path})["status"] in ("denied", "failed")


def test_a_harmless_name_that_leads_to_a_private_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/key.txt").write_text("private")
    (tmp_path / "module.py").symlink_to(tmp_path / ".ssh/key.txt")
    answered = serving.answer({"id": 1, "ask": "read", "path": str(tmp_path / "module.py")})
    assert (answered["status"], answered["value"]) == ("denied", None)


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"ask": "read"},
        {"ask": None, "path": "/x.py"},
        {"ask": "read", "path": 5},
        {"ask": "read", "path": "/nowhere.py", "first": "x"},
        {"ask": "list", "path": "/nowhere"},
    ],
)
def test_requests_that_make_no_sense_are_answered_in_words(request_: dict[str, Any]) -> None:
    answered = serving.answer(request_)
    assert answered["status"] != "ok"
    assert answered["reason"]

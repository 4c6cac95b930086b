"""What stands around the GPUs: bridges, the fabric, CUDA's start, what runs beside the service, what torch was compiled for."""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.collector.conftest import executable
from tests.investigate.host_of_binaries import coded
from tests.patience import BUSY

from gpuwhy.collector import at_work, commands, cuda_start, fabric, pci_bridges, torch_targets
from gpuwhy.collector.probing import Absent, Denied, Failed, Notes, TimedOut

ROOT_PORT, SWITCH, GPUS = "0000:15:00.0", "0000:16:01.0", ("0000:17:00.0", "0000:18:00.0")


def space(acs: int | None, size: int = 4096) -> bytes:
    """A configuration space with AER at 0x100, and ACS behind it at 0x148 where it has that."""
    data = bytearray(size)
    struct.pack_into("<I", data, 0x100, 0x0001 | 2 << 16 | (0x148 if acs is not None else 0) << 20)
    if acs is not None:
        struct.pack_into("<IHH", data, 0x148, 0x000D | 1 << 16, 0x7F, acs)
    return bytes(data)


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two GPUs behind a switch and a root port, as ``/sys`` lays them out."""
    tree = tmp_path / "devices/pci0000:15"
    (tmp_path / "bus").mkdir()
    for gpu in GPUS:
        below = tree / ROOT_PORT / SWITCH / gpu
        below.mkdir(parents=True)
        (below / "vendor").write_text("0x10de\n")
        (below / "class").write_text("0x030200\n")
        (tmp_path / "bus" / gpu).symlink_to(below)
    for bridge, folder in ((ROOT_PORT, tree / ROOT_PORT), (SWITCH, tree / ROOT_PORT / SWITCH)):
        (tmp_path / "bus" / bridge).symlink_to(folder)
        (folder / "config").write_bytes(space(None))
    monkeypatch.setattr(pci_bridges, "DEVICES", str(tmp_path / "bus"))
    return tmp_path / "bus"


def test_the_bits_of_every_bridge_above_a_gpu_are_read(bus: Path) -> None:
    (bus / SWITCH / "config").write_bytes(space(0b0011101))
    found = {each["address"]: each for each in pci_bridges.pci_bridges({}, Notes())["bridges"]}
    assert set(found) == {ROOT_PORT, SWITCH}
    assert found[SWITCH]["gpus"] == list(GPUS)
    assert found[SWITCH]["on"] == ["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"]
    assert found[SWITCH]["acs"].startswith("SrcValid+ TransBlk- ReqRedir+ CmpltRedir+")
    assert found[ROOT_PORT]["has_acs"] is False


def test_what_only_root_may_read_is_denied_and_a_part_of_it_named(bus: Path) -> None:
    for bridge in (ROOT_PORT, SWITCH):
        (bus / bridge / "config").write_bytes(space(1)[:64])
    with pytest.raises(Denied, match="configuration space"):
        pci_bridges.pci_bridges({}, Notes())
    (bus / SWITCH / "config").write_bytes(space(0))
    notes = Notes()
    assert pci_bridges.pci_bridges({}, notes)["unread"] == [ROOT_PORT]
    assert notes.denied


def test_a_hostile_configuration_space_ends_the_search() -> None:
    circle = bytearray(4096)
    struct.pack_into("<I", circle, 0x100, 0x0001 | 0x100 << 20)
    assert pci_bridges.acs_control(bytes(circle)) is None
    assert pci_bridges.acs_control(b"\xff" * 4096) is None
    assert pci_bridges.acs_control(b"") is None


STUB = """\
#include <stdlib.h>
#include <unistd.h>
int cuInit(unsigned flags) { const char *code = getenv("LD_LIBRARY_PATH"); (void)flags; ACTION; return (int)code[0] & 0 | RESULT; }
int cuDeviceGetCount(int *count) { *count = 8; return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
"""


def libcuda(folder: Path, result: int = 0, action: str = "") -> None:
    """A real shared library in the place of the driver's, whose cuInit does and returns what a test wants."""
    source = folder / "stub.c"
    source.write_text(STUB.replace("RESULT", str(result)).replace("ACTION", action))
    command = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(folder / "libcuda.so.1"), str(source)]
    subprocess.run(command, check=True)


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cuda_start, "LIBRARIES", (str(tmp_path / "libcuda.so.1"),))
    monkeypatch.setattr(cuda_start, "NODES", (str(tmp_path),))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    return tmp_path


def test_cuda_is_started_in_a_process_of_its_own_and_its_code_named(driver: Path) -> None:
    libcuda(driver)
    found = cuda_start.cuda_start({}, Notes())
    assert (found["code"], found["name"], found["devices"], found["cuda"]) == (0, "CUDA_SUCCESS", 8, "13.0")
    libcuda(driver, 802)
    found = cuda_start.cuda_start({}, Notes())
    assert (found["code"], found["name"], found["devices"]) == (802, "CUDA_ERROR_SYSTEM_NOT_READY", None)


def test_a_driver_that_hangs_or_crashes_costs_only_this_answer(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_start, "TIMEOUT", 0.5)
    libcuda(driver, action="for (;;) pause()")
    started = time.monotonic()
    with pytest.raises(TimedOut):
        cuda_start.cuda_start({}, Notes())
    assert time.monotonic() - started < 3 * BUSY
    libcuda(driver, action="abort()")
    with pytest.raises(Failed, match="ended its process"):
        cuda_start.cuda_start({}, Notes())


def test_cuda_is_not_started_where_that_would_make_device_nodes(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libcuda(driver, action="abort()")
    monkeypatch.setattr(cuda_start, "NODES", (str(driver / "nvidia-uvm"),))
    with pytest.raises(Absent, match=r"nvidia-uvm is not there; CUDA was not started"):
        cuda_start.cuda_start({}, Notes())


def test_fabric_manager_tells_its_version_and_the_gpus_their_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "nv-fabricmanager", "#!/bin/sh\necho 'Fabric Manager version is : 570.86.10'\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    gpus = {"gpus": [{"index": 0, "fabric": {"state": "in progress", "status": "success"}}, {"index": 1}]}
    services = {"nvidia-fabricmanager.service": {"ActiveState": "failed", "SubState": "failed", "Result": "exit-code"}}
    found = fabric.fabric({}, Notes(), gpus, services, {"nvswitches": 4})
    assert (found["version"], found["state"], found["result"]) == ("570.86.10", "failed (failed)", "exit-code")
    assert found["gpus"] == [{"gpu": 0, "state": "in progress", "status": "success"}]


def test_a_machine_without_a_fabric_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(commands, "DIRECTORIES", (str(tmp_path),))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Absent, match="no Fabric Manager"):
        fabric.fabric({}, Notes(), None, None, None)


def test_a_compiler_that_runs_is_listed_with_its_times(tmp_path: Path) -> None:
    (tmp_path / "cicc").symlink_to(sys.executable)
    process = subprocess.Popen(
        [tmp_path / "cicc", "-ISBc", "import time; print(flush=True); time.sleep(60)"], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        found = at_work.at_work({}, Notes(), None)["processes"]
    finally:
        process.kill()
        process.communicate()
    mine = next(each for each in found if each["pid"] == process.pid)
    assert mine["command"][0].endswith("/cicc")
    assert mine["elapsed"] is not None
    assert mine["cpu"] is not None


@pytest.mark.parametrize(
    ("command", "matters"),
    [
        (["/usr/local/cuda/bin/nvcc", "-c", "x.cu"], True),
        (["/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "-quiet"], True),
        (["sglang::scheduler_TP0"], True),
        (["ray::EngineCore"], True),
        (["VLLM::Worker_TP1"], True),
        (["/usr/bin/vim", "vllm.py"], False),
        (["/usr/sbin/sshd"], False),
    ],
)
def test_engines_their_parts_and_compilers_matter(command: list[str], matters: bool) -> None:
    assert at_work.matters(command) is matters


def test_the_targets_of_torch_are_read_from_its_library(tmp_path: Path) -> None:
    (tmp_path / "torch/lib").mkdir(parents=True)
    (tmp_path / "torch/version.py").write_text("cuda = '12.8'\n")
    packages = [{"prefix": "/opt/venv", "torch": {"path": str(tmp_path / "torch/version.py")}}]
    with pytest.raises(Absent, match="no library for CUDA"):
        torch_targets.torch_targets({}, Notes(), packages)
    (tmp_path / "torch/lib/libtorch_cuda.so").write_bytes(coded("sm_75", "sm_90", "compute_120", containers=20))
    found = torch_targets.torch_targets({}, Notes(), packages)
    assert found["targets"] == ["sm_75", "sm_90", "compute_120"]
    assert (found["containers"], found["agree"]) == (20, True)
    (tmp_path / "torch/lib/libtorch_cuda.so").write_bytes(b"")
    with pytest.raises(Failed):
        torch_targets.torch_targets({}, Notes(), packages)

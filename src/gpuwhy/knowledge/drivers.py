"""NVIDIA drivers: which CUDA release and PTX version a driver supports, and which driver a release needs."""

from __future__ import annotations

import functools
import re

from msgspec import Struct

from gpuwhy.knowledge.answers import NO_SOURCE, Answer, TextAnswer, unknown
from gpuwhy.knowledge.releases import cuda_release, cuda_text
from gpuwhy.knowledge.tables import read_table


class ToolkitDriver(Struct, frozen=True):
    """The Linux driver that came with a toolkit release ("12.8u1" is update 1)."""

    cuda: str
    driver: str
    provenance: str


class DriverFloor(Struct, frozen=True):
    """Oldest driver that runs programs of any minor release of a CUDA major version."""

    cuda_major: int
    driver: str
    provenance: str


class DriverBranch(Struct, frozen=True):
    branch: str
    cuda: str
    ptx_isa_max: str
    provenance: str


class DriverTable(Struct, frozen=True):
    toolkit_drivers: tuple[ToolkitDriver, ...]
    floors: tuple[DriverFloor, ...]
    branches: tuple[DriverBranch, ...]


DriverVersion = tuple[int, ...]

#: branch numbers are multiples of five, so a number further above the newest known one is of an unknown branch
_BRANCH_WIDTH = 5


@functools.cache
def _table() -> DriverTable:
    return read_table("drivers", DriverTable)


def driver_version(text: str) -> DriverVersion | None:
    """("570.124.06") -> (570, 124, 6), for comparison; None if it is no driver version.

    A bare branch ("570", as people say) counts as the newest driver of it.
    """
    if re.fullmatch(r"\s*\d{3}\s*", text[:40], re.ASCII):
        return int(text), 9999
    found = re.fullmatch(r"\s*(\d{2,4})\.(\d{1,4})(?:\.(\d{1,4}))?\s*", text[:40], re.ASCII)
    return tuple(int(part) for part in found.groups() if part is not None) if found else None


def branch_of(driver: str) -> DriverBranch | None:
    """The branch of a driver: the newest one that is not newer than it, so that 572 counts as 570.

    None for drivers before branch 450, and for those whose branch is newer than every known one.
    """
    version = driver_version(driver)
    branches = _table().branches
    if version is None or version[0] >= int(branches[-1].branch) + _BRANCH_WIDTH:
        return None
    fitting = [row for row in branches if int(row.branch) <= version[0]]
    return fitting[-1] if fitting else None


def cuda_of(driver: str) -> str | None:
    """Highest CUDA release of a driver, as nvidia-smi prints it ("570.124.06" -> "12.8"); None if unknown."""
    branch = branch_of(driver)
    if branch:
        return branch.cuda
    version = driver_version(driver)
    if version is None or version[0] >= int(_table().branches[0].branch):
        return None
    fitting = [row for row in _table().toolkit_drivers if (driver_version(row.driver) or (0,)) <= version]
    newest = max(fitting, key=lambda row: driver_version(row.driver) or (0,), default=None)
    return newest.cuda.partition("u")[0] if newest else None


def required_for(cuda: str) -> str | None:
    """Oldest Linux driver on which programs of a CUDA release run: the floor of its major version.

    This is enough for machine code. PTX written by a toolkit newer than the driver still fails there.
    """
    release = cuda_release(cuda)
    if release is None:
        return None
    return next((row.driver for row in _table().floors if row.cuda_major == release[0]), None)


def shipped_with(cuda: str) -> str | None:
    """The Linux driver that came with the first issue of a release ("12.8" -> "570.26"): it has every feature of it."""
    release = cuda_release(cuda)
    name = cuda_text(release) if release else None
    return next((row.driver for row in _table().toolkit_drivers if row.cuda == name), None)


def runs(driver: str, cuda: str) -> Answer:
    """Whether programs built with a CUDA release run on a driver."""
    release, version = cuda_release(cuda), driver_version(driver)
    supported = cuda_release(cuda_of(driver) or "")
    if release is None or version is None or supported is None:
        return unknown(f"driver {driver[:40]} or CUDA {cuda[:40]} is not in the tables")
    branch = branch_of(driver)
    source = branch.provenance if branch else _table().toolkit_drivers[0].provenance
    if supported >= release:
        return Answer(True, f"driver {driver} supports CUDA {cuda_text(supported)}", source)
    floor = next((row for row in _table().floors if row.cuda_major == release[0]), None)
    if floor is None:
        return unknown(f"no driver floor known for CUDA {release[0]}.x", source)
    if version >= (driver_version(floor.driver) or (0,)):
        why = (
            f"driver {driver} is for CUDA {cuda_text(supported)}, but at least {floor.driver}, the floor of CUDA "
            f"{release[0]}.x: machine code runs, PTX of CUDA {cuda_text(release)} does not"
        )
        return Answer(True, why, floor.provenance)
    why = f"CUDA {cuda_text(release)} needs driver {floor.driver} or newer, {driver} supports {cuda_text(supported)}"
    return Answer(False, why, floor.provenance)


def ptx_isa_max(driver: str) -> TextAnswer:
    """Highest PTX version that a driver compiles; PTX above it gives "unsupported toolchain"."""
    branch = branch_of(driver)
    if branch is None:
        return TextAnswer(None, f"the branch of driver {driver[:40]} is not in the table", NO_SOURCE)
    return TextAnswer(branch.ptx_isa_max, f"branch {branch.branch} is of CUDA {branch.cuda}", branch.provenance)


def cuda_of_ptx(ptx_isa: str) -> TextAnswer:
    """The first CUDA release whose driver compiles a PTX version ("8.7" -> "12.8"): an older driver refuses it."""
    wanted = cuda_release(ptx_isa)
    fitting = [row for row in _table().branches if (cuda_release(row.ptx_isa_max) or (0, 0)) >= (wanted or (99, 0))]
    if not fitting or wanted is None:
        return TextAnswer(None, f"PTX {ptx_isa[:20]} is newer than every driver in the table", NO_SOURCE)
    row = fitting[0]
    return TextAnswer(row.cuda, f"PTX {ptx_isa} needs a driver of branch {row.branch}, CUDA {row.cuda}", row.provenance)


def decode_cuda_version_number(number: int) -> str | None:
    """The number that cudaDriverGetVersion returns and torch prints: 12040 -> "12.4"."""
    major, minor = divmod(number, 1000)
    return f"{major}.{minor // 10}" if 1 <= major < 100 and minor < 1000 else None

"""Compute capabilities, GPU targets, and which machine code runs on which GPU."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.knowledge.answers import Answer, unknown

RULES = "documented:CUDA C++ Programming Guide, application compatibility and family-specific features"
FAMILIES = "measured: ptxas 12.9.86, 13.0.88, 13.5.37 assemble f targets for their family only"

#: integrated (Tegra) chips: code of the same major version for other chips is not promised to run on them
TEGRA = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)})
#: sm_101 of CUDA 12.8 and 12.9 is the chip that later toolkits call sm_110
RENAMED = {(10, 1): (11, 0)}

_DOTTED = re.compile(r"(?:sm|compute|cc)?[\s_]*(\d{1,2})\.(\d)([a-z]?)(?:\+ptx)?", re.IGNORECASE | re.ASCII)
_PACKED = re.compile(r"(?:sm|compute|lto)?[\s_]*(\d{1,2})(\d)([a-z]?)(?:\+ptx)?", re.IGNORECASE | re.ASCII)


class ComputeCapability(Struct, frozen=True, order=True):
    """A compute capability, or the GPU target of one: 12.0, sm_120a, compute_120f.

    `suffix` is "" for a plain target, "a" for one that is exact to the chip, "f" for one of the chip's family.
    """

    major: int
    minor: int
    suffix: str = ""

    @property
    def number(self) -> int:
        """120 for 12.0."""
        return self.major * 10 + self.minor

    @property
    def plain(self) -> ComputeCapability:
        """The capability without a suffix."""
        return ComputeCapability(self.major, self.minor)

    @property
    def dotted(self) -> str:
        """ "12.0a", as arch list variables spell it."""
        return f"{self.major}.{self.minor}{self.suffix}"

    @property
    def target(self) -> str:
        """ "sm_120a", as compilers spell it."""
        return f"sm_{self.number}{self.suffix}"

    @property
    def virtual_target(self) -> str:
        """ "compute_120a", the PTX target."""
        return f"compute_{self.number}{self.suffix}"

    def __str__(self) -> str:
        return self.dotted


Capability = ComputeCapability | str | tuple[int, int] | int | float


def parse(value: object) -> ComputeCapability | None:
    """Read "12.0", "12.0a", "sm_120a", "compute_90", "SM 8.9", "12.0+PTX", (12, 0), 120 or 8.9; None for others.

    A suffix other than "a" and "f" is not a target of any toolkit, so it is not read as one.
    """
    if isinstance(value, ComputeCapability):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, tuple):
        return _from_pair(value)
    if isinstance(value, int):
        return _from_text(str(value), _PACKED) if 10 <= value < 1000 else None
    if isinstance(value, float):
        return _from_text(str(value), _DOTTED)
    if isinstance(value, str):
        text = value.strip()
        return (_from_text(text, _DOTTED) or _from_text(text, _PACKED)) if len(text) < 32 else None
    return None


def _from_pair(pair: tuple[object, ...]) -> ComputeCapability | None:
    if len(pair) != 2 or not all(isinstance(part, int) for part in pair):
        return None
    major, minor = int(str(pair[0])), int(str(pair[1]))
    return ComputeCapability(major, minor) if 0 < major < 100 and 0 <= minor < 10 else None


def _from_text(text: str, pattern: re.Pattern[str]) -> ComputeCapability | None:
    found = pattern.fullmatch(text)
    if not found:
        return None
    suffix = found[3].lower()
    if suffix not in ("", "a", "f") or int(found[1]) < 2:  # "12" means 12.0 to some and 1.2 to others
        return None
    return ComputeCapability(int(found[1]), int(found[2]), suffix)


def runs_on(target: Capability, capability: Capability, has_ptx: bool = False) -> Answer:
    """Whether code built for `target` runs on a GPU of `capability`.

    `target` names machine code (cubin); "compute_N" names PTX only. With `has_ptx` the PTX of the same target is
    there as well, which a new enough driver compiles for a newer GPU.
    """
    built, gpu = parse(target), parse(capability)
    if built is None or gpu is None:
        return unknown(f"{target if built is None else capability!s:.40} is not a GPU target")
    gpu = gpu.plain
    is_ptx_only = isinstance(target, str) and target.strip().lower().startswith("compute")
    if not is_ptx_only:
        machine_code = _machine_code_runs(built, gpu)
        if machine_code.value is True or not has_ptx:
            return machine_code
    return _ptx_runs(built, gpu)


def _machine_code_runs(built: ComputeCapability, gpu: ComputeCapability) -> Answer:
    if built.plain == gpu:
        return Answer(True, f"{built.target} is the GPU's own target", RULES)
    if RENAMED.get((built.major, built.minor)) == (gpu.major, gpu.minor):
        return unknown(f"sm_{built.number} is the earlier name of sm_{gpu.number}; not tried", RULES)
    if built.suffix == "a":
        return Answer(False, f"{built.target} runs on compute capability {built.plain} only", RULES)
    if built.major != gpu.major:
        return Answer(False, f"machine code for {built.target} does not run on another major version ({gpu})", RULES)
    if built.minor > gpu.minor:
        return Answer(False, f"machine code for {built.target} does not run on an older minor version ({gpu})", RULES)
    if (gpu.major, gpu.minor) in TEGRA or (built.major, built.minor) in TEGRA:
        return unknown(f"between {built.plain} and {gpu}, one of them integrated, nothing is promised", RULES)
    if built.suffix == "f":
        return Answer(True, f"{gpu} is in the family of {built.target}", FAMILIES)
    return Answer(True, f"machine code for {built.target} runs on later minor versions, so on {gpu}", RULES)


def _ptx_runs(built: ComputeCapability, gpu: ComputeCapability) -> Answer:
    if built.suffix == "a" and built.plain != gpu:
        return Answer(False, f"PTX for {built.virtual_target} is compiled for {built.plain} only", RULES)
    if built.suffix == "f" and (built.major != gpu.major or built.minor > gpu.minor):
        return Answer(False, f"{gpu} is not in the family of {built.virtual_target}", FAMILIES)
    if (built.major, built.minor) > (gpu.major, gpu.minor):
        return Answer(False, f"PTX for {built.virtual_target} is newer than {gpu}", RULES)
    return Answer(
        True, f"the driver can compile the PTX for {built.virtual_target} for {gpu}, if it is new enough", RULES
    )

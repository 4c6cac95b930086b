"""The table that ``nvidia-smi`` prints: driver, GPUs, their memory, and the processes on them. Layouts since driver 418.

| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|   0  NVIDIA H100 PCIe               On  |   00000000:01:00.0 Off |                    0 |
| N/A   36C    P0             48W /  350W |       1MiB /  81559MiB |      0%      Default |
|    0   N/A  N/A      2310      C   python3                                      45MiB |

``CUDA Version`` there is the highest one of the driver, never a toolkit. Names longer than the column are cut
(``NVIDIA A100-SXM...``); such a name counts less than a whole one.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength

LITERALS = ("NVIDIA-SMI ", "|   ", "| NVIDIA", "Failed to initialize NVML", "NVML library version", "Unable to determine the device handle", "couldn't communicate with the NVIDIA driver")  # fmt: skip
OPENING = ("|   ", "Process name")
_HEAD = Pattern(
    r"\| NVIDIA-SMI (?:version )?[\d.]{1,20} +(?:Driver|KMD) Version: (?P<driver>\d{3}\.[\d.]{1,12}) +(?:CUDA|CUDA UMD) Version: (?P<cuda>\d{1,2}\.\d{1,2}|N/A|ERR!)"
)
_ROW = Pattern(
    r"^\s*\|\s{1,6}(?P<index>\d{1,3})\s{1,4}(?P<name>\S[^|]{2,60}?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM|Default)?\s*\|\s+[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:"
    r"(?:[0-9A-Fa-f]{2}\.\d(?:[^|]{0,30}\|\s{0,24}(?P<uncorrected>\d{1,9}|N/A|Off|ERR!)\s{0,3}\|)?)?"
)
_UNREADABLE = Pattern(r"^\s*\|[^|]{0,60}\bERR!")
_MEMORY = Pattern(r"^\s*\|[^|]{10,60}\|\s{0,12}(?P<used>\d{1,9})MiB\s{0,3}/\s{0,8}(?P<total>\d{1,9})MiB\s{0,4}\|")
_PROCESS = Pattern(
    r"^\s*\|\s{1,8}(?P<gpu>\d{1,3})\s{1,6}(?:(?:N/A|\d{1,3})\s{1,6}(?:N/A|\d{1,3})\s{1,16})?(?P<pid>\d{1,9})\s{1,8}(?P<type>C|G|C\+G|M\+C)\s{1,6}(?P<name>\S.{0,60}?)\s{1,60}(?P<used>\d{1,9})MiB\s{0,4}\|"
)
_LIBRARY = Pattern(r"^NVML library version: (?P<version>\d{3}\.[\d.]{1,10})$")
_BROKEN = Pattern(
    r"^(?:Failed to initialize NVML: .{1,120}|Unable to determine the device handle for .{1,160}|NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver\..{0,160})$"
)
_CUT = (
    (Pattern(r"(?<=RTX PRO \d000) Bl\w{0,8}$"), " Blackwell"),
    (Pattern(r"(?<=RTX \d000) Ada(?: G\w{0,10})?$"), " Ada Generation"),
)
_VOLATILE = "Volatile Uncorrectable ECC errors"
_ERR = "nvidia-smi cannot read it (ERR!)"
LONGEST = 400


def read(text: str) -> Iterator[Statement]:
    shown = text[:LONGEST].rstrip()
    head = _HEAD.search(shown) if "NVIDIA-SMI" in shown else None
    if head is not None:
        yield Statement("driver", head["driver"].rstrip("."), Strength.REPORTED)
        if head["cuda"][0].isdigit():
            yield Statement("driver_cuda", head["cuda"], Strength.REPORTED)
        return
    row = _ROW.match(shown) if "|" in shown else None
    if row is not None:
        yield from _named(row["index"], row["name"].strip())
        count = row["uncorrected"] or ""
        if count.isdigit() and int(count):
            yield Statement("gpu_errors[]", f"GPU {row['index']}: {_VOLATILE}: {int(count)}", Strength.REPORTED)
        if "ERR!" in shown:
            yield Statement("gpu_errors[]", f"GPU {row['index']}: {_ERR}", Strength.REPORTED)
        return
    library = _LIBRARY.match(shown)
    if library is not None:
        yield Statement("driver_library", library["version"], Strength.REPORTED)
    elif _BROKEN.match(shown):
        yield Statement("gpu_errors[]", shown, Strength.REPORTED)


def _named(index: str, name: str) -> Iterator[Statement]:
    if not name.endswith("..."):
        if name[0].isalpha() and name != "ERR!":
            yield Statement(f"gpu@{index}", name, Strength.REPORTED)
        return
    kept = name.removesuffix("...")
    for cut, whole in _CUT:
        if cut.search(kept):
            yield Statement(f"gpu@{index}", cut.sub(whole, kept), Strength.PROSE)
            return
    model, _, _ = kept.rpartition("-") if "-" in kept else ("", "", "")
    if any(character.isdigit() for character in model):  # "NVIDIA A100-SXM...": the model itself is whole
        yield Statement(f"gpu@{index}", model, Strength.PROSE)


def opened(text: str) -> Block | None:
    shown = text[:LONGEST]
    row = _ROW.match(shown)
    if row is not None:
        return _Table(row["index"])
    return _Table("") if "PID" in shown and "Process name" in shown and "|" in shown else None


class _Table:
    shares = True

    def __init__(self, index: str) -> None:
        self._index = index

    def read(self, text: str) -> list[Statement] | None:
        shown = text[:LONGEST].strip()
        if not shown.startswith(("|", "+")):
            return [] if not shown and not self._index else None
        row = _ROW.match(shown)
        if row is not None:
            self._index = row["index"]
            return []
        if self._index and _UNREADABLE.match(shown):
            index, self._index = self._index, ""
            return [Statement("gpu_errors[]", f"GPU {index}: {_ERR}", Strength.REPORTED)]
        memory = _MEMORY.match(shown) if self._index else None
        if memory is not None:
            said = f"GPU {self._index}: {memory['used']} of {memory['total']} MiB in use"
            self._index = ""
            return [Statement("gpu_memory[]", said, Strength.REPORTED)]
        process = _PROCESS.match(shown)
        if process is None:
            return []
        said = f"GPU {process['gpu']}: process {process['pid']} ({process['name']}) holds {process['used']} MiB"
        return [Statement("gpu_processes[]", said, Strength.REPORTED)]

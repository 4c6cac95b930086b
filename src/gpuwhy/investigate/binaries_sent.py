"""What a target answers about its binaries, back in the readers' own types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gpuwhy.binaries.code_sets import CodeSet, loaded_sets
from gpuwhy.binaries.examining import CUBIN, Binary
from gpuwhy.binaries.fatbin import Code
from gpuwhy.binaries.runtime import CudaRuntime, TorchAbi
from gpuwhy.investigate.binary_verdict import verdict
from gpuwhy.knowledge.capability import ComputeCapability
from gpuwhy.model.inspection import Verdict


class SentBinary(msgspec.Struct, frozen=True):
    """A file of the target. ``needed`` are its DT_NEEDED names; ``installed_size`` what its package's RECORD says."""

    path: str
    binary: Binary
    sets: tuple[CodeSet, ...]
    needed: tuple[str, ...]
    package: str
    package_version: str
    installed_size: int | None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """``flash_ops`` of flash_ops.abi3.so."""
        return self.name.partition(".")[0]

    @property
    def loaded(self) -> tuple[CodeSet, ...]:
        """The sets that decide whether it runs."""
        return loaded_sets(self.sets)

    @property
    def containers(self) -> int:
        return sum(each.containers for each in self.loaded)

    @property
    def architectures(self) -> tuple[str, ...]:
        """What any of its containers holds: machine code first, by number."""
        codes = {code for each in self.loaded for code in each.codes}
        return tuple(dict.fromkeys(code.architecture for code in sorted(codes, key=_rank)))

    @property
    def common_architectures(self) -> tuple[str, ...]:
        """What every container holds that holds device code: the list that the file was compiled with."""
        sets = [frozenset(code.architecture for code in each.codes) for each in self.loaded if each.codes]
        shared = frozenset.intersection(*sets) if sets else frozenset()
        return tuple(each for each in self.architectures if each in shared)

    @property
    def place(self) -> str:
        """``.nv_fatbin: 182 containers, the first at 0x1a40``."""
        first = min(self.loaded, key=lambda each: each.offset, default=None)
        if first is None:
            return f"{self.binary.kind}, {self.binary.size} bytes, no device code"
        where = first.section or "the file"
        return f"{where}: {self.containers} containers, the first at 0x{first.offset:x}"

    def verdict(self, gpu: ComputeCapability, driver: str) -> Verdict:
        """What each container comes to on a GPU with a driver, and the sum."""
        return verdict(self.binary, self.sets, gpu, driver)


def sent_binaries(value: Any) -> Iterator[SentBinary]:
    """The files of an ``inspect`` reply; one that is not shaped as the collector writes it is left out."""
    files = value.get("files") if isinstance(value, dict) else None
    for told in files if isinstance(files, list) else ():
        try:
            yield _binary(told)
        except (TypeError, ValueError, KeyError, AttributeError):
            continue


def _binary(told: Mapping[str, Any]) -> SentBinary:
    path, problems = str(told["path"]), tuple(str(each) for each in told["problems"])
    if not told["complete"] and not problems:
        problems = ("not read in full",)
    binary = Binary(
        path,
        str(told["kind"]),
        str(told["machine"]),
        int(told["size"]),
        runtime=CudaRuntime(**told["runtime"]),
        torch=TorchAbi(**told["torch"]),
        other_gpus=tuple(str(each) for each in told["other_gpus"]),
        problems=problems,
    )
    owner = told.get("owner") or {}
    return SentBinary(
        path,
        binary,
        tuple(_code_set(each) for each in told["sets"]),
        tuple(str(each) for each in told["dynamic"]["needed"]),
        str(owner.get("name") or ""),
        str(owner.get("version") or ""),
        msgspec.convert(owner.get("size"), int | None),
    )


def _code_set(told: Mapping[str, Any]) -> CodeSet:
    codes = tuple(Code(*msgspec.convert(row, tuple[str, int, str, str, str, bool, bool])) for row in told["images"])
    return CodeSet(
        str(told["member"]),
        str(told["section"]),
        str(told["role"]),
        codes,
        int(told["containers"]),
        int(told["offset"]),
    )


def _rank(code: Code) -> tuple[bool, int, str]:
    return (code.kind != CUBIN, code.arch, code.suffix)

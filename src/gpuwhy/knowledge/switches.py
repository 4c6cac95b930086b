"""Which environment variables and options a release of vLLM, SGLang, FlashInfer or Triton has.

Read in the sources of the released wheels (``scripts/make_switches.py``): a variable is one that the release's own code
names, an option one that its server adds to its command line. A variable belongs to the package of its prefix; those
without one (``CUDA_HOME``, ``NCCL_P2P_DISABLE``) are no release's, and nothing is said of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from functools import cache

from msgspec import Struct
from packaging.version import Version

from gpuwhy.knowledge.answers import Answer, unknown
from gpuwhy.knowledge.releases import public_version
from gpuwhy.knowledge.tables import read_table

SERVERS = ("sglang", "vllm")
"""Packages whose options are in the table."""
_PREFIXES = {
    "VLLM_": "vllm",
    "SGLANG_": "sglang",
    "SGL_": "sglang",
    "FLASHINFER_": "flashinfer-python",
    "TRITON_": "triton",
}


class PackageSwitches(Struct, frozen=True):
    """One package. ``releases`` oldest first; names with the runs of releases that have them: first and last of each.

    ``without_value`` are the options that are switches in every release; ``aliases`` other spellings of one argument.
    """

    name: str
    provenance: str
    releases: tuple[str, ...]
    variables: Mapping[str, tuple[int, ...]]
    options: Mapping[str, tuple[int, ...]] = {}
    without_value: tuple[str, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = {}


class StoredSwitches(Struct, frozen=True):
    """The whole table."""

    packages: tuple[PackageSwitches, ...]


@cache
def _tables() -> dict[str, PackageSwitches]:
    return {package.name: package for package in read_table("switches", StoredSwitches).packages}


def owner_of(variable: str) -> str | None:
    """The package that a variable belongs to by its prefix.

    >>> owner_of("VLLM_USE_DEEP_GEMM")
    'vllm'
    """
    return next((package for prefix, package in _PREFIXES.items() if variable.startswith(prefix)), None)


def releases_of(package: str) -> tuple[str, ...]:
    """The releases that were read, oldest first; empty for a package that is not in the table."""
    table = _tables().get(package)
    return () if table is None else table.releases


def has_variable(package: str, version: str, name: str) -> Answer:
    """Whether this release reads an environment variable; None also for one that no release was found to read.

    >>> has_variable("vllm", "0.9.2", "VLLM_USE_V1").value
    True
    """
    table = _tables().get(package)
    if table is None:
        return unknown(f"the variables of {package} are not recorded")
    return _has(package, version, name, table, table.variables)


def has_option(server: str, version: str, option: str) -> Answer:
    """Whether the server of this release has an option; dashes and underscores count as one.

    The ``--no-`` form is there where the positive one is, a beginning where the whole is. Options that nest (``--json.key``) count by their first part.
    """
    table = _tables().get(server)
    if table is None or not table.options:
        return unknown(f"the options of {server} are not recorded")
    return _has(server, version, _recorded_as(_normal(option), table), table, table.options)


def is_switch(option: str) -> bool:
    """True for an option that takes no value in any release of any server that has it."""
    name = _normal(option)
    return any(name in table.without_value for table in _tables().values())


def is_option_of(server: str, option: str) -> bool | None:
    """Whether any release that was read has the option; None for a server whose options are not recorded."""
    table = _tables().get(server)
    if table is None or not table.options:
        return None
    return _recorded_as(_normal(option), table) in table.options


def releases_with(server: str, option: str) -> tuple[str, str] | None:
    """The first and the last release, of those that were read, that have the option; None for an option of none.

    >>> releases_with("vllm", "--num-scheduler-steps")[1] < "0.12"
    True
    """
    table = _tables().get(server)
    spans = table.options.get(_recorded_as(_normal(option), table)) if table is not None else None
    return (table.releases[spans[0]], table.releases[spans[-1]]) if table is not None and spans else None


def similar_option(server: str, option: str) -> str | None:
    """The option of the server whose name is next to a misspelled one; None when none is near.

    >>> similar_option("vllm", "--max-model-length")
    '--max-model-len'
    """
    table = _tables().get(server)
    near = difflib.get_close_matches(_normal(option)[:80], table.options, 1, 0.8) if table is not None else []
    return near[0] if near else None


def same_argument(option: str) -> frozenset[str]:
    """Other spellings of one argument: ``-tp`` and ``--tp-size`` of ``--tensor-parallel-size``."""
    name = _normal(option)
    of_llama = next((each for each in _OF_LLAMA if name in each), frozenset[str]())
    recorded = (spelling for table in _tables().values() for spelling in table.aliases.get(name, ()))
    return frozenset(spelling for spelling in (*recorded, *of_llama) if spelling != name)


_OF_LLAMA = tuple(
    frozenset(spellings.split())
    for spellings in (
        "-c --ctx-size", "-ub --ubatch-size", "-b --batch-size", "-np --parallel", "-ngl --gpu-layers --n-gpu-layers",
        "-ctk --cache-type-k", "-ctv --cache-type-v", "-md --model-draft", "-fa --flash-attn",
    )
)  # fmt: skip
"""One argument each of llama.cpp, whose options are not in the tables. Kept by hand, from its help text."""


def is_short_for(word: str, option: str) -> bool:
    """Whether argparse takes a word for the option because it begins it: SGLang's ``--tp`` for ``--tp-size``."""
    return len(word) > 3 and option.startswith(word) and not any(word in t.options for t in _tables().values())


def _recorded_as(name: str, table: PackageSwitches) -> str:
    """The recorded option that a spelling means: itself, that of a ``--no-`` form, or the one that it begins."""
    if name in table.options:
        return name
    positive = "--" + name.removeprefix("--no-")
    if name.startswith("--no-") and positive in table.options:
        return positive
    return next((option for option in table.options if is_short_for(name, option)), name)


def _has(
    package: str, version: str, name: str, table: PackageSwitches, recorded: Mapping[str, tuple[int, ...]]
) -> Answer:
    wanted = public_version(version)
    numbers = None if wanted is None else _numbers(table.releases, wanted)
    if numbers is None:
        return unknown(f"{package} {version} is not among the releases that were read")
    provenance = table.provenance
    spans = recorded.get(name)
    if spans is None and name.isupper():
        # Files of single models and of tools were not read: a variable of theirs is in no release here.
        return unknown(f"{name} is not in the files of {package} that were read", provenance)
    if spans is None:
        why = f"no release of {package} from {table.releases[0]} to {table.releases[-1]} has {name}"
        return Answer(False, why, provenance)
    there = [_is_within(number, spans) for number in numbers]
    if all(there):
        return Answer(True, f"{package} {version} has {name}", provenance)
    if any(there):
        return unknown(f"{package} {version} lies between a release with {name} and one without", provenance)
    return Answer(False, f"{package} {version} has no {name}{_since(numbers[0], spans, table.releases)}", provenance)


def _numbers(releases: Sequence[str], wanted: Version) -> tuple[int, ...] | None:
    """The release itself, or those on both sides of a build in between; None before the first and after the last."""
    versions = _versions(tuple(releases))
    if wanted in versions:
        return (versions.index(wanted),)
    above = sum(version < wanted for version in versions)
    return (above - 1, above) if 0 < above < len(versions) else None


@cache
def _versions(releases: tuple[str, ...]) -> tuple[Version, ...]:
    return tuple(map(Version, releases))


def _is_within(number: int, spans: Sequence[int]) -> bool:
    return any(first <= number <= last for first, last in zip(spans[::2], spans[1::2], strict=True))


def _since(number: int, spans: Sequence[int], releases: Sequence[str]) -> str:
    """When the name came, or when it went."""
    later = [first for first in spans[::2] if first > number]
    if later:
        return f": it came with {releases[later[0]]}"
    return f" any more: {releases[spans[-1]]} was the last with it"


def _normal(option: str) -> str:
    name, _, _ = option.partition(".")
    return name.replace("_", "-") if name.startswith("--") else name

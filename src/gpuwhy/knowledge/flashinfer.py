"""FlashInfer: its compute capability gate, its arch list variable, the age of a traceback, who reads the targets.

FlashInfer asks a toolkit for its version before it compiles for a GPU. Where the toolkit is too old, the refusal
is swallowed, the set of targets stays empty, and a later check reports something else.
"""

from __future__ import annotations

import functools
import re

from msgspec import Struct
from packaging.version import Version

from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import toolkits
from gpuwhy.knowledge.answers import Answer, unknown
from gpuwhy.knowledge.capability import Capability, ComputeCapability
from gpuwhy.knowledge.releases import cuda_release, neighbours, public_version
from gpuwhy.knowledge.tables import read_table

ARCH_LIST_VARIABLE = "FLASHINFER_CUDA_ARCH_LIST"
#: no real list is longer
_LONGEST_LIST = 1000


class ToolkitStep(Struct, frozen=True):
    """With at least this toolkit a GPU becomes this target ("{number}" is its capability times ten)."""

    minimum_toolkit: str
    target: str


class GateRule(Struct, frozen=True):
    """A refusal for the capabilities major.minor_from to major.minor_to (None: no upper end).

    `steps` are tried in their order, the newest toolkit first.
    """

    major: int
    minor_from: int
    minor_to: int | None
    message: str
    steps: tuple[ToolkitStep, ...]


class Epoch(Struct, frozen=True):
    """Releases with the same detection code. `wheels_read` names those whose source was read for this table."""

    first: str
    last: str
    list_variable: str
    rules: tuple[GateRule, ...]
    default_suffix: str
    raised_in: str | None
    swallowed_in: str | None
    warning: str | None
    check_raises: str
    wheels_read: tuple[str, ...]
    provenance: str


class Reader(Struct, frozen=True):
    """A place that reads the set of targets, so that a patch of it must be judged by all of them."""

    file: str
    function: str
    what: str
    provenance: str


class Variable(Struct, frozen=True):
    name: str
    first: str
    last: str | None
    effect: str
    provenance: str


class IndependentTarget(Struct, frozen=True):
    """A module that chooses its target without the set of targets."""

    file: str
    decided_by: str
    target: str
    first: str
    last: str
    what: str
    provenance: str


class SourceLines(Struct, frozen=True):
    """Lines of one release at which a frame of `function` can stand (its calls, raises and assignments)."""

    file: str
    function: str
    lines: tuple[int, ...]


class ReadRelease(Struct, frozen=True):
    """A release whose source was read.

    `nvcc_options` are those of its options that not every toolkit knows; None if only some lines were read.
    `layout` is the place of its lines in the list of layouts: many releases share one.
    """

    version: str
    nvcc_options: tuple[str, ...] | None
    layout: int
    provenance: str


class FlashinferTable(Struct, frozen=True):
    epochs: tuple[Epoch, ...]
    readers: tuple[Reader, ...]
    variables: tuple[Variable, ...]
    independent_targets: tuple[IndependentTarget, ...]
    releases: tuple[ReadRelease, ...]
    layouts: tuple[tuple[SourceLines, ...], ...]


class Gate(Struct, frozen=True):
    """What a release demands for a GPU.

    `minimum_toolkit` None: no demand of its own, nvcc decides. `message` is the refusal, `where` raises it,
    `swallowed_in` hides it as `warning`, and `visible_error` is what is seen in the end. `list_variable` passes
    the gate when its entry has a suffix.
    """

    version: str
    compute_capability: str
    minimum_toolkit: str | None
    message: str | None
    where: str | None
    swallowed_in: str | None
    warning: str | None
    visible_error: str
    list_variable: str
    provenance: str


class FrameDating(Struct, frozen=True):
    """Releases in which a frame can stand: those that were read and have the line. Unread ones may lie between."""

    releases: tuple[str, ...]
    first: str
    last: str
    provenance: str


class BuildRequirement(Struct, frozen=True):
    """An nvcc option that every build of a release passes, and the first toolkit that knows it."""

    option: str
    minimum_toolkit: str
    provenance: str


@functools.cache
def _table() -> FlashinferTable:
    return read_table("flashinfer", FlashinferTable)


def _epoch(version: str) -> Epoch | None:
    wanted = public_version(version)
    for epoch in _table().epochs:
        if wanted and Version(epoch.first) <= wanted <= Version(epoch.last):
            return epoch
    return None


def _rule(epoch: Epoch, gpu: ComputeCapability) -> GateRule | None:
    for rule in epoch.rules:
        in_range = rule.minor_from <= gpu.minor and (rule.minor_to is None or gpu.minor <= rule.minor_to)
        if rule.major == gpu.major and in_range:
            return rule
    return None


def gate(version: str, capability: Capability) -> Gate | None:
    """The demand of a FlashInfer release for a GPU; None if the release is not in the table."""
    epoch, gpu = _epoch(version), capabilities.parse(capability)
    if epoch is None or gpu is None:
        return None
    rule = _rule(epoch, gpu)
    wanted = public_version(version)
    was_read = wanted is not None and any(Version(read) == wanted for read in epoch.wheels_read)
    source = epoch.provenance if was_read else f"{epoch.provenance} of this range, not of {wanted} itself"
    return Gate(
        version=version,
        compute_capability=gpu.plain.dotted,
        minimum_toolkit=rule.steps[-1].minimum_toolkit if rule else None,
        message=rule.message if rule else None,
        where=epoch.raised_in if rule else None,
        swallowed_in=epoch.swallowed_in,
        warning=epoch.warning,
        visible_error=epoch.check_raises,
        list_variable=epoch.list_variable,
        provenance=source,
    )


def passes_gate(version: str, capability: Capability, toolkit: str) -> Answer:
    """Whether a release lets a toolkit build for a GPU; whether nvcc then succeeds is another question."""
    found, release = gate(version, capability), cuda_release(toolkit)
    if found is None or release is None:
        return unknown(f"FlashInfer {version[:40]} or toolkit {toolkit[:40]} is not in the tables")
    minimum = cuda_release(found.minimum_toolkit or "")
    if minimum is None:
        return Answer(
            True, f"FlashInfer {version} asks for no toolkit version for {found.compute_capability}", found.provenance
        )
    passes = release >= minimum
    verb = "is enough" if passes else "is not enough"
    why = f"FlashInfer {version} wants CUDA >= {found.minimum_toolkit} for {found.compute_capability}: {toolkit} {verb}"
    return Answer(passes, why, found.provenance)


def versions_with_gate(capability: Capability, toolkit: str) -> tuple[tuple[str, str], ...]:
    """Ranges (first, last) of releases that refuse a toolkit for a GPU; neighbouring ranges are joined."""
    gpu, release = capabilities.parse(capability), cuda_release(toolkit)
    ranges: list[tuple[str, str]] = []
    previous_refused = False
    for epoch in _table().epochs:
        refused = bool(gpu and release) and passes_gate(epoch.first, gpu or "", toolkit).value is False
        if refused and previous_refused:
            ranges[-1] = (ranges[-1][0], epoch.last)
        elif refused:
            ranges.append((epoch.first, epoch.last))
        previous_refused = refused
    return tuple(ranges)


def detected_target(version: str, capability: Capability, toolkit: str) -> str | None:
    """The target that detection gives, as "sm_120f"; None if refused or not known."""
    epoch, gpu, release = _epoch(version), capabilities.parse(capability), cuda_release(toolkit)
    if epoch is None or gpu is None or release is None or epoch.default_suffix == "torch":
        return None
    rule = _rule(epoch, gpu)
    if rule is None:
        return ComputeCapability(gpu.major, gpu.minor, epoch.default_suffix if gpu.major >= 9 else "").target
    for step in rule.steps:
        if release >= (cuda_release(step.minimum_toolkit) or release):
            found = capabilities.parse("sm_" + step.target.format(number=gpu.number))
            return found.target if found else None
    return None


def arch_list_problem(value: str, version: str | None = None, toolkit: str | None = None) -> str | None:
    """Why a value of FLASHINFER_CUDA_ARCH_LIST does not work, in one sentence; None if it does.

    Entries are MAJOR.MINOR with an optional "a" or "f", separated by one space each. With `toolkit` it is also
    checked that nvcc knows each target; without `version` the rules that all releases share are applied.
    """
    epoch = _epoch(version) if version else None
    if epoch is not None and epoch.list_variable != ARCH_LIST_VARIABLE:
        return f"FlashInfer {version} does not read {ARCH_LIST_VARIABLE} but {epoch.list_variable}"
    targets = []
    for entry in value[:_LONGEST_LIST].split(" "):
        problem = _syntax_problem(entry)
        if problem:
            return problem
        targets.append(capabilities.parse(entry))
    named = [target for target in targets if target]
    if all(target.number < 75 for target in named):
        return "every entry is below 7.5, which FlashInfer does not support"
    return next((problem for target in named if (problem := _target_problem(target, epoch, toolkit))), None)


def _syntax_problem(entry: str) -> str | None:
    shown = repr(entry[:40])
    parts = entry.split(".")
    if len(parts) < 2:
        return (
            f"entry {shown} is not MAJOR.MINOR: ValueError at import (an empty value or a double blank is an entry too)"
        )
    if len(parts) > 2:
        return f"{shown} is read as one entry, since entries are separated by one space: ValueError at import"
    if not re.fullmatch(r"\d{1,2}", parts[0], re.ASCII):
        return f"the major version in {shown} is no number: ValueError at import"
    if not re.fullmatch(r"\d[af]?", parts[1], re.ASCII) or int(parts[0]) < 2:
        return f"{shown} names no target that nvcc knows"
    return None


def _target_problem(target: ComputeCapability, epoch: Epoch | None, toolkit: str | None) -> str | None:
    release = cuda_release(toolkit or "")
    if toolkit is None or release is None:
        return None
    rule = _rule(epoch, target) if epoch and not target.suffix else None
    if rule and epoch:
        passing = [step for step in rule.steps if release >= (cuda_release(step.minimum_toolkit) or release)]
        if not passing:
            return f"{target} without a suffix goes through the same check: {rule.message}, raised at import"
        return None
    if toolkits.accepts(toolkit, target).value is False:
        return f"nvcc {toolkit} does not know {target.virtual_target}"
    return None


def arch_list_value(version: str, capability: Capability, toolkit: str) -> str | None:
    """The entry that makes a release build for a GPU with a toolkit, past its gate ("12.0a"); None if there is none.

    The suffix is what passes the gate; it is chosen from what nvcc knows, exact ("a") first.
    """
    epoch, gpu = _epoch(version), capabilities.parse(capability)
    if epoch is None or gpu is None or epoch.list_variable != ARCH_LIST_VARIABLE:
        return None
    for suffix in ("a", "f") if gpu.major >= 9 else ("",):
        candidate = ComputeCapability(gpu.major, gpu.minor, suffix)
        if toolkits.accepts(toolkit, candidate).value is True:
            return candidate.dotted
    return None


def build_requirements(version: str) -> tuple[BuildRequirement, ...] | None:
    """nvcc options that every JIT build of a release passes and that some toolkits do not know; None if not read.

    A release between two that were read is answered where both agree.
    """
    wanted = public_version(version)
    if wanted is None:
        return None
    read = {Version(row.version): row for row in _table().releases if row.nvcc_options is not None}
    row = read.get(wanted)
    if row is None:
        below, above = neighbours(list(read), wanted)
        if below is None or above is None or read[below].nvcc_options != read[above].nvcc_options:
            return None
        row = read[below]
    found = []
    for option in row.nvcc_options or ():
        minimum = toolkits.first_release_with_option(option)
        if minimum:
            found.append(BuildRequirement(option, minimum, row.provenance))
    return tuple(found)


def frame_versions(function: str, line: int, file: str | None = None) -> FrameDating | None:
    """Releases in which a traceback frame of FlashInfer can stand; None if the function is not in the table.

    `file` is its path, if known; only its last parts are compared. An empty result (no release has the line) means
    a release that was not read, or an edited file: also None.
    """
    matching = {
        index
        for index, layout in enumerate(_table().layouts)
        for row in layout
        if row.function.rpartition(".")[2] == function.rpartition(".")[2]
        and (file is None or file.replace("\\", "/").endswith("flashinfer/" + row.file))
        and line in row.lines
    }
    found = [row for row in _table().releases if row.layout in matching]
    if not found:
        return None
    return FrameDating(tuple(row.version for row in found), found[0].version, found[-1].version, found[0].provenance)


def intersect_frames(frames: list[tuple[str, int, str | None]]) -> tuple[str, ...]:
    """Releases that fit every datable frame (function, line, file) of one traceback; empty if none is datable."""
    datings = [dating for frame in frames if (dating := frame_versions(*frame))]
    if not datings:
        return ()
    return tuple(version for version in datings[0].releases if all(version in dating.releases for dating in datings))


def readers_of_targets() -> tuple[Reader, ...]:
    """Every place that reads the set of targets: what a patch of it, or an override, reaches."""
    return _table().readers


def independent_targets(version: str) -> tuple[IndependentTarget, ...]:
    """Modules of a release that ignore the set of targets, and so the override."""
    wanted = public_version(version)
    return tuple(
        row for row in _table().independent_targets if wanted and Version(row.first) <= wanted <= Version(row.last)
    )


def override_variables(version: str | None = None) -> tuple[Variable, ...]:
    """Environment variables that change how FlashInfer builds; those of one release if a version is given."""
    wanted = public_version(version) if version else None
    return tuple(
        row
        for row in _table().variables
        if wanted is None or (Version(row.first) <= wanted and (row.last is None or wanted <= Version(row.last)))
    )


def first_release_accepting(capability: Capability, toolkit: str) -> str | None:
    """First release from which on every later known one accepts a toolkit for a GPU ("12.0", "12.8" -> "0.7.1")."""
    first: str | None = None
    for epoch in _table().epochs:
        if passes_gate(epoch.first, capability, toolkit).value is not True:
            first = None
        elif first is None:
            first = epoch.first
    return first

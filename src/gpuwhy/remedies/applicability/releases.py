"""Variables and options that the installed release has."""

from __future__ import annotations

import msgspec

from gpuwhy.knowledge import switches
from gpuwhy.knowledge.answers import Answer
from gpuwhy.knowledge.renamed_switches import Renamed, change_of, other_spellings
from gpuwhy.model.remedy import NotARemedy, Remedy
from gpuwhy.remedies.circumstances import Circumstances
from gpuwhy.remedies.container_run import is_option_of_run
from gpuwhy.remedies.values import is_option, is_variable

_TITLES = {"vllm": "vLLM", "sglang": "SGLang", "flashinfer-python": "FlashInfer", "triton": "Triton"}
_OF_LAUNCHERS = frozenset({"--master-port", "--master-addr", "--nnodes", "--node-rank", "--nproc-per-node"})
"""Options of torchrun and its like, which newer engines have as well: whose is meant is not known."""


def of_release(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    """A variable or an option is replaced by the spelling that the release has, or taken out when it has none.

    Taking one away is never refused: what is set in vain does no harm, and the cause saw it set.
    """
    if remedy.value in ("unset", "remove"):
        return remedy
    if remedy.kind == "env" and is_variable(remedy.name):
        return _variable(remedy, known)
    if remedy.kind == "flag" and is_option(remedy.name) and not is_option_of_run(remedy.name, remedy.value):
        return _option(remedy, known)
    return remedy


def _variable(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    package = switches.owner_of(remedy.name)
    if package is None:
        return remedy
    if package in switches.SERVERS and known.engine and package != known.engine and not known.version(package):
        return NotARemedy(
            shown(remedy), f"it is a variable of {_TITLES[package]}; {_TITLES[known.engine]} does not read it"
        )
    return _spelled_as(remedy, known, package)


def _option(remedy: Remedy, known: Circumstances) -> Remedy | NotARemedy:
    if not known.engine or remedy.name.replace("_", "-") in _OF_LAUNCHERS:
        return remedy
    if switches.is_option_of(known.engine, remedy.name) or _is_renamed(remedy, known.engine):
        return _spelled_as(remedy, known, known.engine)
    owners = [server for server in switches.SERVERS if switches.is_option_of(server, remedy.name)]
    if owners:  # an option of the other server; of neither: it belongs to another program of this host
        titles = _TITLES[owners[0]], _TITLES[known.engine]
        why = f"it is an option of {titles[0]}; {titles[1]} does not have it"
        return NotARemedy(shown(remedy), why + _instead(known.engine, remedy.name))
    return remedy


def _is_renamed(remedy: Remedy, server: str) -> bool:
    return any(other_spellings(server, remedy.name, remedy.value))


def _spelled_as(remedy: Remedy, known: Circumstances, package: str) -> Remedy | NotARemedy:
    version = known.version(package)
    if not version:
        return remedy
    has = _has(package, version, remedy.kind, remedy.name)
    if has.value is not False:
        return remedy
    for other in other_spellings(package, remedy.name, remedy.value):
        if _has(package, version, other.kind, other.name).value:
            return _renamed(remedy, other, f"{package} {version}")
    return NotARemedy(shown(remedy), has.why + _instead(package, remedy.name))


def _instead(package: str, name: str) -> str:
    """What does the same work there, where that is recorded."""
    change = change_of(package, name)
    if change is None or not change.instead:
        return ""
    return f" (there: {change.instead})"


def _has(package: str, version: str, kind: str, name: str) -> Answer:
    return (switches.has_variable if kind == "env" else switches.has_option)(package, version, name)


def _renamed(remedy: Remedy, other: Renamed, release: str) -> Remedy:
    return msgspec.structs.replace(
        remedy,
        kind=other.kind,
        name=other.name,
        value=other.value,
        summary=remedy.summary.replace(remedy.name, other.name),
        commands=(),
        limits=(*remedy.limits, f"{release} has no {remedy.name}; there it is {other.name}"),
    )


def shown(remedy: Remedy) -> str:
    """A remedy in a few words: ``VLLM_USE_V1=0``, ``--max-num-seqs 64``, ``torch >=2.7``."""
    if remedy.kind == "env" and remedy.value not in ("unset", ""):
        return f"{remedy.name}={remedy.value}"
    return f"{remedy.name} {remedy.value}".strip()

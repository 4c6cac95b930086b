"""Whether a proposed remedy is one that a case calls useless: ``truth.wrong_fixes``, in prose.

Read conservatively: the prose must name the very variable, option, package or thing, with a value or a direction that
is the remedy's, and must not only say that it is not enough "alone" or in one place "only".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpuwhy.model.remedy import Remedy

_NOT_ENOUGH = re.compile(r"\b(?:alone|only|without|in that image)\b", re.IGNORECASE)
_LOWERS = re.compile(r"\b(?:lower|reduc|smaller|less|decreas)\w{0,4}\b", re.IGNORECASE)
_RAISES = re.compile(r"\b(?:rais|increas|larger|higher|more|doubl)\w{0,4}\b", re.IGNORECASE)
_UPGRADES = re.compile(r"\b(?:upgrad\w{1,4}|newer|--upgrade)\b", re.IGNORECASE)
_INSTALLS_AGAIN = re.compile(r"\b(?:re-?install\w{0,4}|again)\b", re.IGNORECASE)
_CHANGES = re.compile(r"\b(?:install|chang|reinstall|upgrad|build|choos|download)\w{0,4}\b", re.IGNORECASE)
_TOOLKIT = re.compile(r"\b(?:CUDA toolkit|the toolkit|CUDA version)\b", re.IGNORECASE)
_DRIVER = re.compile(r"\bdrivers?\b", re.IGNORECASE)
_REBOOTS = re.compile(r"\breboot", re.IGNORECASE)
_RESTARTS = re.compile(r"\brestart", re.IGNORECASE)
_SERVICES = {"nvidia-fabricmanager": re.compile(r"fabric[ -]?manager", re.IGNORECASE)}


def is_useless(remedy: Remedy, fixes: Iterable[str]) -> bool:
    """Whether one of the sentences speaks of this remedy."""
    return any(_speaks_of(remedy, fix) for fix in fixes if not _NOT_ENOUGH.search(fix) and not _is_said(remedy, fix))


def _is_said(remedy: Remedy, fix: str) -> bool:
    """Whether the case finds that it helps for a while, and the remedy itself says as much."""
    return "comes back" in fix and "not what caused it" in remedy.summary


def _speaks_of(remedy: Remedy, fix: str) -> bool:
    match remedy.kind:
        case "env" | "flag":
            return _names(fix, remedy.name) and _agrees(remedy, fix)
        case "package":
            return _names(fix, remedy.name) and _CHANGES.search(fix) is not None and _is_that_change(remedy, fix)
        case "toolkit":
            return _TOOLKIT.search(fix) is not None and _CHANGES.search(fix) is not None
        case "driver":
            return remedy.value == "reinstall" and _DRIVER.search(fix) is not None and bool(_INSTALLS_AGAIN.search(fix))
        case "service":
            return _is_that_service(remedy, fix)
        case _:
            return False


def _names(fix: str, name: str) -> bool:
    spelled = re.escape(name.lower()).replace("_", "[-_]").replace(r"\-", "[-_]")
    return re.search(rf"(?<![\w-]){spelled}(?![\w-])", fix.lower()) is not None


def _agrees(remedy: Remedy, fix: str) -> bool:
    """The stated value or direction is the remedy's; a sentence without either speaks of any value."""
    stated = re.search(rf"{re.escape(remedy.name)}[= ]['\"]?(?!\()([\w.+-]+)", fix)
    if stated is not None and re.search(r"\d|_", stated.group(1)):
        return stated.group(1) == remedy.value
    if remedy.value in ("unset", "remove", "higher") or _RAISES.search(fix):
        return remedy.value == "higher" and _RAISES.search(fix) is not None
    return not _LOWERS.search(fix) or remedy.value == "lower" or bool(re.match(r"\d", remedy.value))


def _is_that_change(remedy: Remedy, fix: str) -> bool:
    if _UPGRADES.search(fix):
        return remedy.value in ("", "newer") or remedy.value.startswith(">=")
    if _INSTALLS_AGAIN.search(fix):
        return remedy.value in ("", "reinstall")
    return remedy.value not in ("remove", "older", "rebuild")


def _is_that_service(remedy: Remedy, fix: str) -> bool:
    if remedy.value == "reboot":
        return _REBOOTS.search(fix) is not None
    named = _SERVICES.get(remedy.name)
    return (
        remedy.value == "restart"
        and _RESTARTS.search(fix) is not None
        and named is not None
        and bool(named.search(fix))
    )

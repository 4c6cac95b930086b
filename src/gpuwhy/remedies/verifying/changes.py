"""What a remedy changes, in the words of the facts and of a process's environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.values import is_literal, is_variable

_RELEASE = re.compile(r"(?:==|>=|~=)?\s{0,4}(\d[A-Za-z0-9.+!_-]{0,60})")


class Changed(msgspec.Struct, frozen=True):
    """``facts`` by the keys of docs/facts.md, ``variables`` of the process; None: no longer there."""

    facts: Mapping[str, Any]
    variables: Mapping[str, str | None]


def changes_of(remedy: Remedy) -> Changed | None:
    """What is otherwise once the remedy is carried out; None where that cannot be said of facts."""
    if remedy.kind == "env" and is_variable(remedy.name):
        if remedy.value == "unset":
            return Changed({f"env.{remedy.name}": None}, {remedy.name: None})
        if is_literal(remedy.name, remedy.value):
            return Changed({f"env.{remedy.name}": remedy.value}, {remedy.name: remedy.value})
    if remedy.kind == "package":
        release = _RELEASE.fullmatch(remedy.value)
        if remedy.value == "remove":
            return Changed({f"packages.{remedy.name}": None}, {})
        if release is not None:
            return Changed({f"packages.{remedy.name}": release.group(1)}, {})
    return None

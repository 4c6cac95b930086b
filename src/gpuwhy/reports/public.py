"""An answer as strangers may read it: without secrets, and without the names of hosts, addresses, users and folders.

Identifiers of the catalogue, versions, packages and what lies below ``site-packages`` stay, as an answer is nothing without them.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.fleet import FleetReport
from gpuwhy.redaction import Redactor
from gpuwhy.snapshot.anonymising import stand_ins

T = TypeVar("T")

_OUR_WORDS = frozenset({"cause", "family", "component", "kind", "standing", "certainty", "consequence_of", "rivals", "causes", "undoes", "source", "outcome", "tool", "engine"})  # fmt: skip
"""Fields that hold words of ours: a host that is called like one of them must not change them."""


def public(answer: T) -> T:
    """The same answer without secrets and names. The lines of whole logs are left out; what is quoted of them stays."""
    shown: Any = answer
    logs = _Logs(shown)
    if isinstance(shown, Diagnosis):
        shown = msgspec.structs.replace(shown, incident=msgspec.structs.replace(shown.incident, logs=()))
    texts = list(_texts(shown))
    redactor = Redactor()
    for text in texts:
        redactor.text(text)  # a secret that a later text gives away is then known in the earlier ones
    without_names = stand_ins(texts, hosts=_hosts(shown), versions=_versions(shown))
    changed: T = _changed(shown, lambda text: without_names(redactor.text(logs.unnamed(text))))
    return changed


class _Logs:
    """The names of the files that were read: a path can say more of a company than a host does."""

    def __init__(self, answer: Any) -> None:
        names = [log.name for log in answer.incident.logs] if isinstance(answer, Diagnosis) else []
        unordinary = list(dict.fromkeys(name for name in names if re.search(r"[/.]", name) and len(name) > 3))
        self._names = {name: f"log-{number}" if number > 1 else "log" for number, name in enumerate(unordinary, 1)}

    def unnamed(self, text: str) -> str:
        """The text with ``log`` in place of a file's name."""
        for name, stand_in in self._names.items():
            text = text.replace(name, stand_in) if name in text else text
        return text


def _hosts(answer: Any) -> Iterator[str]:
    where = getattr(answer, "where", "")
    if where and "/" not in where and "." not in where.rpartition("@")[2].rpartition(".")[2][:4]:
        yield where.rpartition("@")[2]
    if isinstance(answer, FleetReport):
        yield from (node for pool in answer.pools for group in pool.groups for node in group.nodes)
        yield from (node for each in answer.not_collected for node in each.nodes)
    if isinstance(answer, Diagnosis):
        yield from {
            event.process.host for event in answer.incident.events if event.process is not None and event.process.host
        }


def _versions(answer: Any) -> Iterator[str]:
    if isinstance(answer, FleetReport):
        for each in (deviation for outlier in answer.outliers for deviation in outlier.deviations):
            if not each.key.startswith(("env.", "files.")):
                yield from (each.value, each.usual)
        return
    for fact in getattr(answer, "facts", ()):
        if isinstance(fact.value, str) and not fact.key.startswith(("env.", "files.")):
            yield fact.value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, enum.Enum):
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in _OUR_WORDS:
                yield from _texts(getattr(value, name))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, enum.Enum):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, msgspec.Struct):
        fields = [name for name in value.__struct_fields__ if name not in _OUR_WORDS]
        return msgspec.structs.replace(value, **{name: _changed(getattr(value, name), change) for name in fields})
    if isinstance(value, dict):
        return {_changed(key, change): _changed(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_changed(item, change) for item in value)
    return value

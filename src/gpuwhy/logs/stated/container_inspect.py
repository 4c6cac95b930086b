"""``docker inspect`` and ``podman inspect``: how a container ended, and with what it was started.

            "OOMKilled": true,
            "ExitCode": 137,
            "ShmSize": 67108864,
            "Env": [
                "NCCL_DEBUG=INFO",

Read line by line, because mostly a part is pasted. ``State`` on one line (``--format '{{json .State}}'``) is read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated import images
from gpuwhy.logs.stated._types import Block, Statement, Strength
from gpuwhy.logs.stated.environment import WORD_ASSIGNMENT, is_interesting, variable

LITERALS = ('"OOMKilled"', '"ShmSize"', '"DeviceRequests"')
OPENING = ('"OOMKilled"', '"ContainerIDFile"', '"NetworkMode"', '"IpcMode"', '"ShmSize"', '"Env": [', '"State": {')
_OOM = Pattern(r"\"OOMKilled\": ?(?P<value>true|false)")
_EXIT = Pattern(r"\"ExitCode\": ?(?P<value>\d{1,3})\b")
_SHM = Pattern(r"^\s{0,24}\"ShmSize\": (?P<value>\d{1,15}),?\s*$")
_PAIR = Pattern(r"^\s{0,24}\"(?P<name>\w{1,40})\": (?P<value>.{0,600}?),?\s*$")
_ITEM = Pattern(r"^\s{0,40}\"(?P<value>(?:[^\"\\]|\\.){0,4000})\",?\s*$")
_LIMIT_NAME = Pattern(r"\"Name\": ?\"(?:RLIMIT_)?(?P<name>\w{1,20})\"", re.IGNORECASE)
_LIMIT_SOFT = Pattern(r"\"Soft\": ?(?P<value>-?\d{1,15})")
MAX_LINES = 1500


def read(text: str) -> Iterator[Statement]:
    shown = text[:4000]
    oom = _OOM.search(shown)
    if oom is not None:
        yield Statement("container.oom_killed", oom["value"] == "true", Strength.REPORTED)
        code = _EXIT.search(shown)
        if code is not None:
            yield Statement("container.exit_code", int(code["value"]), Strength.REPORTED)


def opened(text: str) -> Block | None:
    shown = text[:4000]
    if _OOM.search(shown) is not None and _EXIT.search(shown) is not None:
        return None
    if '"State": {' in shown or _OOM.search(shown) is not None:
        return _Inspected("")
    pair = _PAIR.match(shown)
    if pair is None:
        return None
    if pair["name"] == "Env" and pair["value"] == "[":
        return _Inspected("Env")
    return _Inspected("", pair["value"].strip('"') if pair["name"] == "IpcMode" else "")


class _Inspected:
    """The lines behind a key that only these documents have."""

    shares = True

    def __init__(self, section: str, ipc_mode: str = "") -> None:
        self._list = section
        self._items: list[str] = []
        self._ipc_mode = ipc_mode
        self._limit = ""
        self._lines = 0

    def read(self, text: str) -> list[Statement] | None:
        self._lines += 1
        stripped = text.strip()
        if self._lines > MAX_LINES or (stripped and stripped[0] not in '"{}[],'):
            return None
        if self._list:
            return list(self._item(text, stripped))
        if self._limit or '"Name"' in stripped or '"Soft"' in stripped:
            found = list(self._limits(stripped))
            if found:
                return found
        pair = _PAIR.match(text)
        return [] if pair is None else list(self._pair(pair["name"], pair["value"]))

    def _item(self, text: str, stripped: str) -> Iterator[Statement]:
        if stripped.startswith("]"):
            name, items, self._list, self._items = self._list, self._items, "", []
            if name == "Cmd" and items:
                import shlex

                yield Statement("container.arguments", shlex.join(items[:400]), Strength.REPORTED)
            return
        item = _ITEM.match(text)
        if item is None:
            return
        value = item["value"].replace('\\"', '"').replace("\\\\", "\\")
        assigned = WORD_ASSIGNMENT.fullmatch(value) if self._list == "Env" else None
        if assigned is not None and is_interesting(assigned["name"]):
            yield from variable(assigned["name"], assigned["value"], Strength.REPORTED)
        elif self._list == "Cmd":
            self._items.append(value)

    def _limits(self, stripped: str) -> Iterator[Statement]:
        name, soft = _LIMIT_NAME.search(stripped), _LIMIT_SOFT.search(stripped)
        if name is not None:
            self._limit = name["name"].lower()
        if soft is not None and self._limit:
            limit, self._limit = self._limit, ""
            value = "unlimited" if soft["value"] == "-1" else int(soft["value"])
            yield Statement(f"ulimit.{limit}", value, Strength.REPORTED)
            if limit == "memlock":
                yield Statement("memlock", str(value), Strength.REPORTED)

    def _pair(self, name: str, value: str) -> Iterator[Statement]:
        plain = value.strip('"')
        if name in ("Env", "Cmd") and value == "[":
            self._list = name
        elif name == "ExitCode" and value.isdigit() and len(value) < 4:
            yield Statement("container.exit_code", int(value), Strength.REPORTED)
        elif name == "IpcMode":
            self._ipc_mode = plain
        elif name == "ShmSize" and value.isdigit() and self._ipc_mode != "host" and int(value):
            yield Statement("shm_bytes", int(value), Strength.REPORTED)
        elif name == "Runtime" and plain:
            yield Statement("container.runtime", plain, Strength.REPORTED)
        elif name == "Memory" and value.isdigit():
            yield Statement("memory_limit_bytes", int(value) or None, Strength.REPORTED)
        elif name == "Image" and plain and not plain.startswith("sha256:"):
            yield from images.named(plain, Strength.REPORTED)
        elif name == "DeviceRequests" and value in ("null", "[]"):
            yield Statement("container.device_requests", None, Strength.REPORTED)

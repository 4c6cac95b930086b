"""Plans for the watch: a unit that takes a snapshot and diagnoses at the moment in which another one fails."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gpuwhy.remedies.applying.plan import (
    ABSENT,
    DaemonReload,
    FileChange,
    MakeFolder,
    NotApplied,
    Plan,
    RemoveFile,
    Step,
    WriteFile,
)
from gpuwhy.remedies.applying.site import Record, SeenFile, Site

FOLDER = "/etc/systemd/system"
TEMPLATE = f"{FOLDER}/gpuwhy-watch@.service"
KEPT_BELOW = "/var/lib/gpuwhy/watch"
"""Where the snapshots and diagnoses of a unit are kept, in a folder of its name."""

WAITS = 20
"""Seconds for which the restart of a failed unit is held back, at most, so that it does not destroy the evidence."""

_UNIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9:_.\\-]{0,200}(?:@[A-Za-z0-9:_.\\-]{1,100})?\.service")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./+:=@,-]{1,400}")


class Caps(msgspec.Struct, frozen=True):
    """How much is kept of one unit, and how many times an hour one is looked at."""

    number: int = 20
    megabytes: int = 200
    hourly: int = 6


def template(words: Sequence[str], caps: Caps) -> str:
    """The unit that looks: ``words`` start gpuwhy. One at a time for each watched unit, as root, out of the way."""
    start = " ".join([*words, "watch", "record", "%i", f"--keep={caps.number}", f"--megabytes={caps.megabytes}"])
    return f"""\
# made by gpuwhy watch install; gpuwhy watch remove takes it away
[Unit]
Description=gpuwhy looks why %i failed
StartLimitIntervalSec=3600
StartLimitBurst={caps.hourly}

[Service]
Type=oneshot
ExecStart={start}
Environment=HOME=/root
StateDirectory=gpuwhy/watch
StateDirectoryMode=0700
UMask=0077
TimeoutStartSec=120
Nice=10
IOSchedulingClass=idle
MemoryMax=1G
"""


def drop_in() -> str:
    """What the watched unit gets. systemd runs ``OnFailure=`` only once it gives up restarting, so each end is told too."""
    return f"""\
[Unit]
OnFailure=gpuwhy-watch@%n.service

[Service]
ExecStopPost=-+/usr/bin/timeout {WAITS} /usr/bin/systemctl start gpuwhy-watch@%n.service
"""


def plan_install(unit: str, words: Sequence[str], caps: Caps, site: Site) -> Plan | NotApplied:
    """Hooks a unit of the system's manager. Changes nothing. Raises :class:`gpuwhy.targets.TargetError`."""
    if not _UNIT.fullmatch(unit):
        return NotApplied(f"{unit!r} is not the name of a service of systemd")
    if not all(_PLAIN_WORD.fullmatch(word) for word in words) or not words[0].startswith("/"):
        return NotApplied(f"{shlex.join(words)} cannot be named in a unit: give the absolute path of gpuwhy")
    folder, path = f"{FOLDER}/{unit}.d", drop_in_of(unit)
    look = site.look((path, TEMPLATE, words[0]), unit)
    if look.unit.get("LoadState", "not-found") == "not-found":
        return NotApplied(f"systemd knows no unit {unit} there")
    objection = next((seen.refused for each in (path, TEMPLATE) if (seen := look.files[each]).refused), None)
    if objection is not None:
        return NotApplied(f"{objection.reason}. {objection.advice}".strip())
    foreign = look.files[words[0]].refused
    if foreign is not None and "not a regular file" not in foreign.reason and "symbolic link" not in foreign.reason and "bytes" not in foreign.reason:  # fmt: skip
        # root would run what somebody else may replace
        return NotApplied(f"{words[0]} is not safe to be started as root: {foreign.reason}. {foreign.advice}".strip())
    program = look.files[words[0]]
    if program.kind == "file" and (program.mode & 0o022 or program.uid not in (0, look.uid)):
        return NotApplied(f"{words[0]} is not safe to be started as root: others than root can write to it")
    contents = {TEMPLATE: template(words, caps), path: drop_in()}
    return _plan(f"watch {unit}", unit, (MakeFolder(folder),), contents, look.files)


def plan_remove(unit: str, watched: Iterable[str], site: Site) -> Plan | NotApplied:
    """Unhooks a unit; the template goes with the last one. What was recorded stays."""
    path = drop_in_of(unit)
    look = site.look((path, TEMPLATE), unit if _UNIT.fullmatch(unit) else "")
    if look.files[path].kind != "file":
        return NotApplied(f"{unit} is not watched there")
    paths = [path, *([TEMPLATE] if set(watched) <= {unit} and look.files[TEMPLATE].kind == "file" else [])]
    return Plan(
        title=f"watch {unit} no more",
        unit=unit,
        steps=(*(RemoveFile(each, look.files[each].sha256) for each in paths), DaemonReload()),
        files=tuple(FileChange(each, look.files[each].text, None) for each in paths),
        notes=(f"what was recorded stays in {KEPT_BELOW}/{unit}",),
    )


def watched_units(records: Iterable[Record], site: Site) -> tuple[str, ...]:
    """The units that gpuwhy's journal says are watched, and that have their drop-in."""
    units = dict.fromkeys(record.unit for record in records if record.remedy.get("kind") == "watch" and record.unit)
    paths = [drop_in_of(unit) for unit in units]
    seen = site.look(paths).files if paths else {}
    return tuple(unit for unit in units if seen[drop_in_of(unit)].kind == "file")


def drop_in_of(unit: str) -> str:
    return f"{FOLDER}/{unit}.d/50-gpuwhy-watch.conf"


def _plan(
    title: str, unit: str, first: tuple[Step, ...], contents: dict[str, str], seen: Mapping[str, SeenFile]
) -> Plan:
    changed = {path: text for path, text in contents.items() if seen[path].text != text}
    return Plan(
        title=title,
        unit=unit,
        steps=(*first, *(WriteFile(path, text, seen[path].sha256 or ABSENT) for path, text in changed.items()), DaemonReload()),
        files=tuple(FileChange(path, seen[path].text if seen[path].kind == "file" else None, text) for path, text in contents.items()),
        notes=(f"what is found is kept in {KEPT_BELOW}/{json.dumps(unit)[1:-1]}",),
    )  # fmt: skip

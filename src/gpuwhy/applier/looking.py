"""What a plan needs to know before it is made: files as they are, whether they may be changed, a unit's start command."""

import re
import shlex
from typing import Any, Dict, List, Optional, Tuple

from gpuwhy.applier import commands, files, services, steps
from gpuwhy.applier.history import INTERRUPTED, History, home, summary
from gpuwhy.applier.paths import Folder, nearest_folder, split, user_name
from gpuwhy.applier.refusing import Refused
from gpuwhy.applier.speaking import Answer


def look(history: History, request: Dict[str, Any]) -> Answer:
    """``paths``: files and folders to look at; ``unit``, ``manager``: the unit. Changes nothing and takes no lock."""
    import os

    unit, manager = str(request.get("unit") or ""), str(request.get("manager") or "system")
    owners = request.get("owners") or ()
    answer: Answer = {
        "status": "ok",
        "uid": os.geteuid(),
        "user": user_name(os.geteuid()),
        "home": home(),
        "history": history.path,
        "interrupted": [summary(record) for record in history.records() if record["state"] in INTERRUPTED],
        "files": {path: _file(history.root, path, owners) for path in request.get("paths") or ()},
    }
    if unit:
        services.check_name(unit)
        found = services.properties(manager, unit)
        answer["unit"] = found
        answer["exec_start"] = _start_command(history.root, found)
        answer.update(_account(found.get("User", ""), manager))
    return answer


def version_of(request: Dict[str, Any]) -> Answer:
    """What a program says of itself, started as systemd would start it: by its absolute path, from the root folder."""
    words = [str(each) for each in request["words"]]
    if not words or not words[0].startswith("/"):
        raise Refused("a program is named by its absolute path")
    status, output = commands.run([*words, "--version"], 30.0)
    if status:
        raise Refused("%s --version ended with status %d" % (words[0], status))
    return {"status": "ok", "version": output[-200:]}


def _account(user: str, manager: str) -> Dict[str, Any]:
    """Whom the unit runs as."""
    import os
    import pwd

    try:
        entry = (
            (pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)) if user else pwd.getpwuid(os.geteuid())
        )
    except (KeyError, OverflowError):
        return {}
    return {"unit_uid": entry.pw_uid if user or manager == "user" else 0, "unit_home": entry.pw_dir}


def _file(root: str, path: str, owners: Any) -> Dict[str, Any]:
    """The file's text and fingerprint, and in ``refused`` why it may not be changed."""
    try:
        folder, name = split(path)
        with nearest_folder(root, folder, owners) as nearest:
            is_there = nearest.path == folder
            state = _state(nearest, name) if is_there else dict(files.ABSENT)
            answer = _shown(state)
            answer["folder"] = {"is_there": is_there, "nearest": nearest.path or "/"}
            try:
                files.check_room(nearest, 0)
            except Refused as error:
                answer["refused"] = {"reason": error.reason, "advice": error.advice}
            return answer
    except Refused as error:
        return {"is": "unknown", "refused": {"reason": error.reason, "advice": error.advice}}


def _state(folder: Folder, name: str) -> files.State:
    import stat

    found = folder.state(name)
    if found is not None and stat.S_ISDIR(found.st_mode):
        return {"is": "folder", "mode": stat.S_IMODE(found.st_mode), "uid": found.st_uid, "gid": found.st_gid}
    return files.read(folder, name)


def _shown(state: files.State) -> Dict[str, Any]:
    shown = {key: value for key, value in state.items() if key != "bytes"}
    if state["is"] == "file":
        text = files.content_of(state).decode("utf-8", "replace")
        shown["has_secret"] = steps.looks_secret(text)
        shown["text"] = "" if shown["has_secret"] else text
    return shown


def _start_command(root: str, found: Dict[str, str]) -> Dict[str, Any]:
    """The ``ExecStart=`` in force as its file has it: what systemctl shows has lost its quotes and its specifiers."""
    paths = [found.get("FragmentPath", "")] + _words(found.get("DropInPaths", ""))
    commands: List[Tuple[str, str]] = []
    for path in paths:
        text = _text(root, path)
        if text is None:
            return {"status": "unknown", "reason": "%s could not be read" % path}
        for value in start_commands(text):
            commands = commands + [(path, value)] if value else []
    if len(commands) != 1:
        return {"status": "unknown", "reason": "the unit has %d start commands" % len(commands)}
    path, value = commands[0]
    if steps.looks_secret(value):
        return {"status": "secret", "reason": "its start command holds what looks like a secret", "path": path}
    return {"status": "ok", "value": value, "path": path}


def start_commands(text: str) -> List[str]:
    """The values of ``ExecStart=`` in a unit file, in order; an empty one forgets those before it.

    >>> start_commands("[Service]\\nExecStart=\\nExecStart=/bin/serve \\\\\\n  --port 1\\n")
    ['', '/bin/serve    --port 1']
    """
    values: List[str] = []
    section = ""
    for line in _joined(text):
        stripped = line.strip()
        if re.match(r"^\[[^\]]{1,80}\]$", stripped):
            section = stripped
        elif section == "[Service]":
            name, sign, value = stripped.partition("=")
            if sign and name.strip() == "ExecStart":
                values.append(value.strip())
    return values


def _joined(text: str) -> List[str]:
    """Lines with their continuations; a comment between them is left out, as systemd does."""
    lines: List[str] = []
    is_open = False
    for line in text.splitlines():
        if line.lstrip().startswith(("#", ";")):
            continue
        is_continued = line.endswith("\\")
        piece = line[:-1] + " " if is_continued else line
        if is_open:
            lines[-1] += piece
        else:
            lines.append(piece)
        is_open = is_continued
    return lines


def _text(root: str, path: str) -> Optional[str]:
    try:
        with open(root + path, "rb") as stream:
            return stream.read(files.MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _words(text: str) -> List[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()

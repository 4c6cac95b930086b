"""The journal of changes, on the target: one file a change, on the disk before the step that it tells of is done.

    /var/lib/gpuwhy/history/7.json            root's
    ~/.local/state/gpuwhy/history/7.json      any other user's ($XDG_STATE_HOME is honoured)

A record holds the plan, what each step replaces, and the states it went through. ``prepared``: nothing was changed
yet. ``applying``, ``rolling-back``: on the way; found by a later run, it was interrupted. ``applied``: made, and not
proven to help. ``verified``: made, and the service runs. ``undone``. ``failed``: could not be taken back to its end.
"""

import errno
import fcntl
import json
import os
import re
import time
from typing import Any, Dict, List, Optional

from gpuwhy.applier import files
from gpuwhy.applier.paths import Folder, nearest_folder, open_folder, parts_of
from gpuwhy.applier.refusing import Missing, Refused, refused_by

PREPARED, APPLYING, APPLIED, VERIFIED = "prepared", "applying", "applied", "verified"
ROLLING_BACK, UNDONE, FAILED = "rolling-back", "undone", "failed"

IN_FORCE = (APPLYING, APPLIED, VERIFIED, ROLLING_BACK, FAILED)
"""States in which the target may hold something that the change wrote."""

INTERRUPTED = (APPLYING, ROLLING_BACK)

FORMAT = 1

Record = Dict[str, Any]

_RECORD = re.compile(r"^(\d{1,9})\.json$")


def history_path() -> str:
    """Where the records of whom we run as lie."""
    if os.geteuid() == 0:
        return "/var/lib/gpuwhy/history"
    state = os.environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        state = os.path.join(home(), ".local/state")
    return os.path.normpath(state) + "/gpuwhy/history"


def home() -> str:
    """The home folder of whom we run as, links in it resolved: it may lie on another disk."""
    found = os.environ.get("HOME", "")
    if not found.startswith("/"):
        import pwd

        found = pwd.getpwuid(os.geteuid()).pw_dir
    return os.path.realpath(found)


class History:
    """The records of one target, read and written below ``root`` (``""`` but in tests)."""

    def __init__(self, root: str = "") -> None:
        self.root = root
        self.path = history_path()

    def records(self) -> List[Record]:
        """Every record, oldest first; one that cannot be read says so in its ``reason``."""
        try:
            with open_folder(self.root, self.path) as folder:
                return [_load(folder, number) for number in _numbers(folder)]
        except Missing:
            return []

    def save(self, record: Record) -> None:
        """On the disk when this returns. Raises Refused; the record that was there before is then still whole."""
        with self._folder() as folder:
            _store(folder, record)

    def number(self, record: Record) -> None:
        """Gives a new record its id and saves it. Call with the lock held."""
        with self._folder() as folder:
            record["id"] = max(_numbers(folder), default=0) + 1
            _store(folder, record)

    def check_room(self, needed: int) -> None:
        """Raises Refused when a record of ``needed`` bytes cannot be kept: before anything is created."""
        with nearest_folder(self.root, self.path) as folder:
            files.check_room(folder, needed)

    def lock(self) -> "Lock":
        """Held while something is changed. Raises Refused when another gpuwhy holds it."""
        with self._folder() as folder:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                descriptor = os.open("lock", flags, 0o600, dir_fd=folder.descriptor)
            except OSError as error:
                raise refused_by(error, "lock", folder.path + "/lock")
        return Lock(descriptor)

    def _folder(self) -> Folder:
        try:
            return open_folder(self.root, self.path)
        except Missing:
            _create(self.root, self.path)
            return open_folder(self.root, self.path)


class Lock:
    """Keeps two gpuwhy from changing one target at the same time; the kernel frees it when the holder dies."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 200).decode("ascii", "replace").strip()
            os.close(descriptor)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise refused_by(error, "lock", "the history")
            raise Refused(
                "another gpuwhy is changing this target%s" % (" (%s)" % holder if holder else ""),
                "Wait for it to end; `gpuwhy history` then shows what it did.",
            )
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"process %d since %s" % (os.getpid(), time.strftime("%H:%M:%S").encode()), 0)
        except OSError:
            pass  # a full disk: the lock holds all the same, only its holder is not named

    def free(self) -> None:
        """Let others go on."""
        os.close(self._descriptor)


def enter(record: Record, state: str, reason: str = "") -> None:
    """The record goes into a state; when and why is kept."""
    record["state"] = state
    record["reason"] = reason
    record["states"].append({"state": state, "time": round(time.time(), 3), "reason": reason})


def summary(record: Record) -> Record:
    """The record as it is shown: without the bytes of files."""
    shown = {key: value for key, value in record.items() if key != "steps"}
    shown["steps"] = [_step_summary(step) for step in record.get("steps", [])]
    return shown


def _step_summary(step: Dict[str, Any]) -> Dict[str, Any]:
    shown = {key: value for key, value in step.items() if key not in ("content", "replaces")}
    replaces: Optional[Dict[str, Any]] = step.get("replaces")
    if replaces is not None:
        shown["replaces"] = {key: value for key, value in replaces.items() if key != "bytes"}
    return shown


def _numbers(folder: Folder) -> List[int]:
    found = (_RECORD.match(name) for name in os.listdir(folder.descriptor))
    return sorted(int(each.group(1)) for each in found if each)


def _load(folder: Folder, number: int) -> Record:
    try:
        state = files.read(folder, "%d.json" % number)
        record = json.loads(files.content_of(state).decode("utf-8")) if state["is"] == "file" else None
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ValueError("it was written by another release of gpuwhy")
    except (Refused, ValueError, KeyError) as error:
        return {"id": number, "state": "unreadable", "reason": str(error), "steps": [], "states": []}
    return record


def _store(folder: Folder, record: Record) -> None:
    data = json.dumps(record, ensure_ascii=True, indent=1).encode("ascii")
    state = {"mode": 0o600, "uid": os.geteuid(), "gid": os.getegid(), "bytes": files.encoded(data)}
    files.replace(folder, "%d.json" % record["id"], {"is": "file", **state})


def _create(root: str, path: str) -> None:
    so_far = ""
    for part in parts_of(path):
        with open_folder(root, so_far) if so_far else Folder("", os.open(root or "/", os.O_RDONLY)) as parent:
            if parent.state(part) is None:
                try:
                    os.mkdir(part, 0o700 if part in ("gpuwhy", "history") else 0o755, dir_fd=parent.descriptor)
                    parent.sync()
                except OSError as error:
                    if error.errno != errno.EEXIST:
                        raise refused_by(error, "create", so_far + "/" + part)
        so_far += "/" + part

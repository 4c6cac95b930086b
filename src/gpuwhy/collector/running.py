"""Inference engines that run here, by whom they are kept running, and where their output goes.

A service need not belong to a manager: ``nohup vllm serve M > vllm.log &``, or a command typed into screen or tmux. Its log is
then the file that its standard output is: ``/proc/PID/fd/1``.
"""

import os
import pwd
import re
import stat
from typing import Any, Dict, List, Optional

from gpuwhy.collector.choosing import PROCESS, SYSTEM, USER, Chosen
from gpuwhy.collector.probing import Notes
from gpuwhy.collector.process import ENGINE, all_processes, arguments, status_of
from gpuwhy.collector.reading import try_line, try_text

NOT_ENGINES = frozenset(
    (
        "tail", "less", "more", "cat", "vi", "vim", "nvim", "nano", "emacs", "grep", "rg", "ssh", "scp", "rsync", "sshd", "journalctl",
        "systemctl", "docker", "podman", "nerdctl", "kubectl", "containerd-shim", "containerd-shim-runc-v2", "conmon", "watch", "tmux", "screen",
        "SCREEN", "sudo", "su", "nohup", "tee", "gdb", "strace", "py-spy", "git", "pip", "uv", "curl", "wget", "du", "find", "supervisord", "supervisorctl",
        "gpuwhy", "pytest", "crond", "cron", "htop", "top", "man", "script",
    )
)  # fmt: skip
"""Programs that have an engine's name in their arguments and are none."""

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ksh"))

IN_CONTAINER = re.compile(r"docker|kubepods|libpod|containerd|/lxc|crio|machine\.slice")

UNIT_IN_GROUP = re.compile(r"/((?!user@)[^/\n]{1,250}\.service)(?=/|$)")

USER_MANAGER = re.compile(r"/user@(\d{1,9})\.service/")

MULTIPLEXERS = re.compile(r"^(?:tmux|screen|SCREEN|byobu|zellij)\b")


class Engine:
    """A process that serves a model. ``log`` is the file that its output goes to, ``output`` says where else it goes."""

    def __init__(self, pid: int, command: List[str]) -> None:
        self.pid = pid
        self.command = command
        self.user = ""
        self.log = ""
        self.output = ""
        self.chosen = Chosen(PROCESS, str(pid))

    @property
    def name(self) -> str:
        """What names it for people: its unit, else the start of its command."""
        if self.chosen.kind != PROCESS:
            return self.chosen.name
        return "process %d (%s)" % (self.pid, " ".join(self.command)[:80])


def engines(notes: Notes) -> List[Engine]:
    """Engines outside of containers, their workers left out, the newest first."""
    found: Dict[int, Engine] = {}
    for pid in all_processes():
        command = arguments(pid)
        if pid != os.getpid() and is_engine(command):
            found[pid] = Engine(pid, command)
    kept = [each for each in found.values() if not _is_worker(each.pid, found) and not _is_contained(each.pid)]
    for each in kept[-50:]:
        _place(each)
        follow_output(each, notes)
    return sorted(kept[-50:], key=lambda each: -each.pid)


def is_engine(command: List[str]) -> bool:
    """Whether a command line serves a model, and is not a tool or a shell that only names one."""
    # a word with a blank in it is a script or a sentence, not the name of a program or a module
    words = [word for word in command[:6] if not re.search(r"\s", word)]
    if not command or not ENGINE.search(" ".join(words).lower()):
        return False
    name = os.path.basename(command[0])
    if name in SHELLS or name.rstrip(":") in NOT_ENGINES:
        return False
    script = os.path.basename(command[1]) if len(command) > 1 else ""
    return not (name.startswith("python") and script in NOT_ENGINES)


def _is_worker(pid: int, others: Dict[int, Engine]) -> bool:
    parent = status_of(pid).get("PPid", "0")
    return parent.isdigit() and int(parent) in others


def _is_contained(pid: int) -> bool:
    """In a container of this host, and not in the same one as we are."""
    if not IN_CONTAINER.search(try_text("/proc/%d/cgroup" % pid, 8192) or ""):
        return False
    try:
        return os.readlink("/proc/%d/ns/pid" % pid) != os.readlink("/proc/self/ns/pid")
    except OSError:
        return True


def _place(engine: Engine) -> None:
    """Whose the process is: a unit of the system's manager, of a user's, or nobody's."""
    engine.user = account_of(engine.pid)
    unit = unit_of(engine.pid)
    if unit is not None:
        engine.chosen = unit


def unit_of(pid: int) -> Optional[Chosen]:
    """The unit in whose control group a process is; None for one that was started from a login."""
    group = try_text("/proc/%d/cgroup" % pid, 8192) or ""
    for line in group.splitlines():
        path = line.split(":", 2)[-1]
        named = UNIT_IN_GROUP.findall(path)
        if not named:
            continue
        manager = USER_MANAGER.search(path)
        if manager is not None:
            return Chosen(USER, named[-1], _account(int(manager.group(1))))
        if "session-" not in path and not named[0].startswith(("ssh", "cron", "supervisor", "getty")):
            return Chosen(SYSTEM, named[-1])
    return None


def account_of(pid: int) -> str:
    """The name of the account that a process runs as."""
    words = status_of(pid).get("Uid", "").split()
    return _account(int(words[0])) if words and words[0].isdigit() else ""


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def follow_output(engine: Engine, notes: Notes) -> None:
    """Fills in where the output of an engine goes, as its descriptors tell."""
    for descriptor in (1, 2):
        place = output_of(engine.pid, descriptor)
        if place is None:
            notes.deny("where process %d, which is another user's, writes its output" % engine.pid)
            return
        if place.startswith("/") and not place.startswith("/dev/") and not place.endswith(" (deleted)"):
            engine.log = place
            return
        if place.startswith("pipe:"):
            engine.log = _teed(place) or engine.log
        if not engine.log:
            engine.output = _in_words(place, engine.pid)


def output_of(pid: int, descriptor: int) -> Optional[str]:
    """What a descriptor of a process is: a path, ``pipe:[N]``, ``socket:[N]``; None where that may not be read."""
    try:
        return os.readlink("/proc/%d/fd/%d" % (pid, descriptor))
    except OSError:
        return None


def _teed(pipe: str) -> str:
    """``vllm serve M 2>&1 | tee vllm.log``: the file that the other end of the pipe writes."""
    for pid in all_processes():
        command = arguments(pid)
        if not command or os.path.basename(command[0]) != "tee" or output_of(pid, 0) != pipe:
            continue
        for descriptor in range(3, 10):
            place = output_of(pid, descriptor) or ""
            if place.startswith("/") and is_file(place):
                return place
    return ""


def is_file(path: str) -> bool:
    """Whether there is a regular file at the path."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _in_words(place: str, pid: int) -> str:
    if place.startswith(("/dev/pts/", "/dev/tty")):
        inside = _multiplexer(pid)
        kept = " in %s, which alone keeps it" % inside if inside else ", which keeps nothing"
        return "its output goes to the terminal %s%s" % (place, kept)
    if place == "/dev/null":
        return "its output is thrown away (/dev/null)"
    if place.endswith(" (deleted)"):
        return "its log file was deleted: %s" % place[: -len(" (deleted)")]
    return "" if place.startswith("socket:") else "its output goes to %s" % place


def _multiplexer(pid: int) -> str:
    """The tmux or screen that a process runs in, found among its ancestors."""
    for _ in range(12):
        parent = status_of(pid).get("PPid", "0")
        if not parent.isdigit() or int(parent) <= 1:
            return ""
        pid = int(parent)
        name = try_line("/proc/%d/comm" % pid) or ""
        if MULTIPLEXERS.match(name):
            return "tmux" if name.startswith("tmux") else "screen"
    return ""


def as_candidate(engine: Engine) -> Dict[str, Any]:
    """As the list of candidates has it: one that runs, and of which nobody says that it fails."""
    return {
        "kind": engine.chosen.kind,
        "name": engine.name,
        "selector": engine.chosen.selector,
        "state": "running",
        "result": "",
        "restarts": 0,
        "status": "",
        "command": " ".join(engine.command)[:1000],
        "log": engine.log,
        "note": engine.output,
        "is_engine": True,
        "is_failing": False,
        "when": None,
    }

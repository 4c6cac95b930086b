"""Programs of supervisord: what its configuration starts, what state they are in, where their output goes.

``supervisorctl status`` prints ``vllm   FATAL   Exited too quickly (process log may have details)``; where its socket may not be
used, supervisord's own log tells the same: ``2026-11-30 06:09:21,123 INFO gave up: vllm entered FATAL state, too many ...``.
The configuration is an ini file with sections ``[program:vllm]``, and more of them in the files that ``[include]`` names.
"""

import configparser
import glob
import os
import re
from typing import Any, Dict, List, Optional, Tuple

from gpuwhy.collector import commands
from gpuwhy.collector.probing import Absent, Denied, Notes, NoValue
from gpuwhy.collector.process import all_processes, arguments
from gpuwhy.collector.reading import read_bytes, read_text
from gpuwhy.collector.unit import split

CONFIGURATIONS = ("/etc/supervisor/supervisord.conf", "/etc/supervisord.conf", "/etc/supervisor.conf")
"""Where supervisord looks when it is given none, apart from the folder it was started in."""

FAILED_STATES = ("FATAL", "BACKOFF", "EXITED")

MOST_FILES = 200

MOST_PROGRAMS = 500

LOG_TAIL = 256 << 10

EVENT = re.compile(
    r"^(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{1,6} \w{2,8} (?:gave up: (?P<fatal>\S{1,200}) entered FATAL|"
    r"exited: (?P<exited>\S{1,200}) \((?P<how>[^)\n]{1,120})\)|success: (?P<running>\S{1,200}) entered RUNNING|"
    r"stopped: (?P<stopped>\S{1,200}) |spawned: '(?P<spawned>[^'\n]{1,200})' with pid (?P<pid>\d{1,9}))"
)


class Installation:
    """One supervisord: its configuration, its own process where it runs, and the folder of its client."""

    def __init__(self, configuration: str, pid: Optional[int] = None, folder: str = "") -> None:
        self.configuration = configuration
        self.pid = pid
        self.folder = folder


class Program:
    """A ``[program:NAME]`` section. ``logs`` are the files that its output goes to, standard error last; ``crashes`` how
    often supervisord's log has it ending unexpectedly since supervisord was started."""

    def __init__(self, name: str, group: str, options: Dict[str, str], installation: Installation) -> None:
        self.name = name
        self.group = group
        self.options = options
        self.installation = installation
        self.logs: List[str] = []
        self.state = ""
        self.detail = ""
        self.crashes = 0

    @property
    def is_failing(self) -> bool:
        """Given up, waiting for its next try, ended; or up again after it had died unexpectedly."""
        return self.state in FAILED_STATES or (self.crashes > 0 and self.state in ("STARTING", "RUNNING"))

    @property
    def full_name(self) -> str:
        """As ``supervisorctl`` prints it: with its group where that has another name."""
        return self.name if self.group in ("", self.name) else "%s:%s" % (self.group, self.name)

    @property
    def command(self) -> List[str]:
        return split(self.options.get("command", ""))

    @property
    def pid(self) -> int:
        found = re.search(r"\bpid (\d{1,9})", self.detail)
        return int(found.group(1)) if found and self.state in ("RUNNING", "STARTING", "STOPPING") else 0

    @property
    def changed(self) -> Optional[float]:
        """When its output last grew, in seconds since the epoch: for one that died, about the time of its death."""
        times = [os.path.getmtime(path) for path in self.logs if os.path.exists(path)]
        return round(max(times), 3) if times else None


def programs(notes: Notes) -> List[Program]:
    """All programs of every supervisord here, with their states as far as they can be had. Raises Absent."""
    found: List[Program] = []
    places = installations()
    for each in places:
        listed = _configured(each, notes)
        states = _states(each, listed, notes)
        for program in listed:
            program.state, program.detail = states.get(program.full_name, ("", ""))
        known = {program.full_name for program in listed}
        for name, (state, detail) in states.items():
            if name not in known and len(found) < MOST_PROGRAMS:
                group, _, alone = name.rpartition(":")
                hidden = Program(alone, group, {}, each)
                hidden.state, hidden.detail = state, detail
                listed.append(hidden)
        found += listed
    if not places:
        raise Absent("there is no supervisord on this host")
    return found[:MOST_PROGRAMS]


def installations() -> List[Installation]:
    """Those that run, then the configurations in the usual places."""
    found: List[Installation] = []
    for pid in all_processes():
        words = arguments(pid)[:12]
        script = next((word for word in words[:3] if os.path.basename(word) == "supervisord"), None)
        if script is None:
            continue
        path = _given(words, pid) or _default(script, pid)
        if path and all(each.configuration != path for each in found):
            found.append(Installation(path, pid, os.path.dirname(script) if script.startswith("/") else ""))
    for path in CONFIGURATIONS:
        if os.path.exists(path) and all(each.configuration != path for each in found):
            found.append(Installation(path))
    return found[:10]


def _given(words: List[str], pid: int) -> Optional[str]:
    for at, word in enumerate(words):
        if word in ("-c", "--configuration") and at + 1 < len(words):
            return _absolute(words[at + 1], pid)
        if word.startswith("--configuration="):
            return _absolute(word.partition("=")[2], pid)
        if word.startswith("-c") and len(word) > 2:
            return _absolute(word[2:], pid)
    return None


def _default(script: str, pid: int) -> Optional[str]:
    """The search of supervisord itself: beside its program, then where it was started, then /etc."""
    near = os.path.dirname(os.path.dirname(script)) if script.startswith("/") else ""
    places = [near + "/etc/supervisord.conf", near + "/supervisord.conf"] if near else []
    places += [_absolute(name, pid) for name in ("supervisord.conf", "etc/supervisord.conf")]
    places += ["/etc/supervisord.conf", "/etc/supervisor/supervisord.conf"]
    return next((path for path in places if os.path.exists(path)), None)


def _absolute(path: str, pid: int) -> str:
    if path.startswith("/"):
        return os.path.normpath(path)
    try:
        return os.path.normpath(os.path.join(os.readlink("/proc/%d/cwd" % pid), path))
    except OSError:
        return path


def _parsed(path: str, notes: Notes) -> Optional[configparser.RawConfigParser]:
    """Comments begin with a semicolon behind a blank, as supervisord has it; a file that it would refuse gives nothing."""
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";",), strict=False)
    try:
        parser.read_string(read_text(path))
    except Denied as why:
        notes.deny("supervisord's configuration: " + why.reason)
        return None
    except (NoValue, configparser.Error) as error:
        notes.remark("%s: %s" % (path, str(error).split("\n")[0][:200]))
        return None
    notes.source(path)
    return parser


def _configured(installation: Installation, notes: Notes) -> List[Program]:
    main = _parsed(installation.configuration, notes)
    if main is None:
        return []
    here = os.path.dirname(installation.configuration)
    parsers: List[Tuple[str, configparser.RawConfigParser]] = [(here, main)]
    for path in _included(main, here)[:MOST_FILES]:
        parser = _parsed(path, notes)
        if parser is not None:
            parsers.append((here, parser))
    groups: Dict[str, str] = {}
    for _, parser in parsers:
        for section in parser.sections():
            if section.startswith("group:"):
                for name in parser.get(section, "programs", fallback="").split(","):
                    groups[name.strip()] = section[6:].strip()
    folder = main.get("supervisord", "childlogdir", fallback="").strip() or "/tmp"
    found: List[Program] = []
    for _, parser in parsers:
        for section in parser.sections():
            if section.startswith("program:"):
                found += _instances(section[8:].strip(), parser, section, groups, installation, here, folder)
    return found


def _included(main: configparser.RawConfigParser, here: str) -> List[str]:
    found: List[str] = []
    for pattern in main.get("include", "files", fallback="").split():
        expanded = pattern.replace("%(here)s", here)
        found += sorted(glob.glob(expanded if expanded.startswith("/") else os.path.join(here, expanded)))[:MOST_FILES]
    return found


def _instances(
    name: str,
    parser: configparser.RawConfigParser,
    section: str,
    groups: Dict[str, str],
    installation: Installation,
    here: str,
    folder: str,
) -> List[Program]:
    """The processes of a section: one, or ``numprocs`` with names of their own in a group of the section's name."""
    count = parser.get(section, "numprocs", fallback="1").strip()
    pattern = parser.get(section, "process_name", fallback="%(program_name)s").strip()
    first = parser.get(section, "numprocs_start", fallback="0").strip()
    start = int(first) if first.isdigit() else 0
    found: List[Program] = []
    for number in range(start, start + min(int(count) if count.isdigit() else 1, 64)):
        values = {"program_name": name, "group_name": groups.get(name, name), "here": here, "process_num": number}
        own = _expanded(pattern, values)
        options = {key: _expanded(value, values) for key, value in parser.items(section)}
        program = Program(own, groups.get(name, name), options, installation)
        program.logs = _logs(program, folder)
        found.append(program)
    return found


def _expanded(text: str, values: Dict[str, Any]) -> str:
    """``%(program_name)s``, ``%(process_num)02d``, ``%(ENV_HOME)s``: what is known is put in, the rest left as it is."""

    def value(found: "re.Match[str]") -> str:
        name, form = found.group(1), found.group(2)
        if name not in values:
            return found.group()
        try:
            return str(("%" + form) % values[name])
        except (TypeError, ValueError):
            return str(values[name])

    return re.sub(r"%\((\w{1,64})\)(0?\d{0,2}[sd])", value, text).replace("%%", "%")


def _logs(program: Program, folder: str) -> List[str]:
    """Where the output goes: the files named, or those of supervisord's own choosing (``AUTO``)."""
    found: List[str] = []
    is_joined = program.options.get("redirect_stderr", "").strip().lower() in ("true", "1", "yes", "on")
    for stream in ("stdout",) if is_joined else ("stdout", "stderr"):
        path = program.options.get(stream + "_logfile", "AUTO").strip()
        if path.upper() in ("NONE", "OFF", "SYSLOG"):
            continue
        if path.upper() == "AUTO":
            pattern = "%s/%s-%s---supervisor-*.log" % (glob.escape(folder), glob.escape(program.name), stream)
            found += sorted(glob.glob(pattern), key=os.path.getmtime)[-1:]
        elif path.startswith("/") and not path.startswith("/dev/"):
            found.append(path)
        elif not path.startswith("/"):
            found.append(os.path.join(os.path.dirname(program.installation.configuration), path))
    return list(dict.fromkeys(found))


def _states(installation: Installation, listed: List[Program], notes: Notes) -> Dict[str, Tuple[str, str]]:
    """State and detail of each program by its full name, from the client, else from supervisord's log."""
    by_log = _by_log(installation, listed, notes)
    try:
        found = _by_client(installation, notes)
    except NoValue as why:
        notes.remark(why.reason)
        found = {}
    return found or by_log


def _by_client(installation: Installation, notes: Notes) -> Dict[str, Tuple[str, str]]:
    if installation.pid is None:
        return {}
    client = commands.find("supervisorctl", ([installation.folder] if installation.folder else []) + list(commands.DIRECTORIES))  # fmt: skip
    if client is None:
        raise Absent("supervisord runs, and there is no supervisorctl to ask it with")
    output = commands.run(client, ["-c", installation.configuration, "status"], timeout=2.5)
    notes.source(output.command)
    said = " ".join((output.out + output.err).split())[:300]
    if re.search(r"PermissionError|Permission denied|not permitted|requires authentication", said):
        notes.deny("the state of supervisord's programs (its socket turns this account away)")
        return {}
    found: Dict[str, Tuple[str, str]] = {}
    for line in output.out.splitlines():
        words = line.split(None, 2)
        if len(words) >= 2 and re.match(r"^[A-Z]{5,10}$", words[1]):
            found[words[0]] = (words[1], words[2] if len(words) > 2 else "")
    if not found and said:
        notes.remark("supervisorctl: " + said)
    return found


def _by_log(installation: Installation, listed: List[Program], notes: Notes) -> Dict[str, Tuple[str, str]]:
    """The last event of each program in supervisord's log; counts their crashes on the way."""
    main = _parsed(installation.configuration, notes)
    path = main.get("supervisord", "logfile", fallback="").strip() if main is not None else ""
    if not path.startswith("/"):
        return {}
    try:
        size = os.path.getsize(path)
        text = read_bytes(path, LOG_TAIL, max(0, size - LOG_TAIL)).decode("utf-8", "replace")
    except Denied as why:
        notes.deny("supervisord's log: " + why.reason)
        return {}
    except (NoValue, OSError):
        return {}
    notes.source(path)
    by_name = {program.name: program for program in listed}
    found: Dict[str, Tuple[str, str]] = {}
    for line in text.splitlines():
        if "supervisord started with pid" in line[:200]:
            for program in listed:
                program.crashes = 0
        event = EVENT.match(line[:600])
        if event is None:
            continue
        if "not expected" in (event.group("how") or "") and event.group("exited") in by_name:
            by_name[event.group("exited")].crashes += 1
        for key, state in (("fatal", "FATAL"), ("exited", "EXITED"), ("running", "RUNNING"), ("stopped", "STOPPED"), ("spawned", "STARTING")):  # fmt: skip
            name = event.group(key)
            if name:
                detail = event.group("how") or ("pid %s" % event.group("pid") if event.group("pid") else "")
                full = by_name[name].full_name if name in by_name else name
                found[full] = (state, "%s, by supervisord's log at %s" % (detail or state.lower(), event.group("time")))  # fmt: skip
    return found


def program_named(name: str, notes: Notes) -> Program:
    """The program of that name, with or without its group. Raises Absent with the names that are there."""
    known = programs(notes)
    for each in known:
        if name in (each.full_name, each.name):
            return each
    names = ", ".join(each.full_name for each in known[:20])
    raise Absent("supervisord has no program %s%s" % (name, "; it has " + names if names else ""))


def variables_of(program: Program) -> Dict[str, str]:
    """``environment=A="b",C=d``: supervisord's own quoting, pairs divided by commas."""
    pairs = re.findall(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^,\"']*))", program.options.get("environment", ""))  # fmt: skip
    return {name: double or single or plain.strip() for name, double, single, plain in pairs}

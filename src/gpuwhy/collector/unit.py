"""The service as systemd knows it: state, command, drop-ins, limits, and the environment it is given.

``systemctl show`` prints ``KEY=VALUE`` lines; a command is one line of the form
``ExecStart={ path=/opt/venv/bin/python ; argv[]=/opt/venv/bin/python -m sglang.launch_server ; ignore_errors=no ; ... }``.
"""

import difflib
import re
import shlex
from typing import Any, Dict, List, Optional

from gpuwhy.collector.choosing import USER, Chosen, chosen, is_named
from gpuwhy.collector.probing import Absent, Denied, Failed, Notes, Request
from gpuwhy.collector.reading import read_text
from gpuwhy.collector.user_managers import Manager, manager_of, systemctl

PROPERTIES = (
    "Id", "Names", "Description", "LoadState", "LoadError", "ActiveState", "SubState", "Result", "UnitFileState", "Type",
    "NRestarts", "Restart", "RestartUSec", "StartLimitBurst", "StartLimitIntervalUSec", "ExecMainStatus", "ExecMainCode",
    "ExecMainPID", "ExecMainStartTimestamp", "ExecMainExitTimestamp", "ExecStart", "ExecStartPre", "Environment",
    "EnvironmentFiles", "PassEnvironment", "UnsetEnvironment", "FragmentPath", "DropInPaths", "NeedDaemonReload", "User", "Group",
    "DynamicUser", "WorkingDirectory", "RootDirectory", "MainPID", "ControlGroup", "Slice", "MemoryMax", "MemoryHigh",
    "MemoryCurrent", "MemoryPeak", "OOMPolicy", "TasksMax", "LimitMEMLOCK", "LimitNOFILE", "LimitNPROC", "LimitSTACK", "LimitAS", "LimitMEMLOCKSoft", "LimitNOFILESoft", "LimitNPROCSoft",
    "LimitCORE", "PrivateDevices", "DevicePolicy", "DeviceAllow", "ProtectHome", "ProtectSystem", "PrivateTmp", "StateDirectory",
    "CacheDirectory", "ReadWritePaths", "NoNewPrivileges", "SystemCallFilter", "MemoryDenyWriteExecute", "TimeoutStartUSec",
    "WatchdogUSec", "ActiveEnterTimestamp", "InactiveEnterTimestamp", "StateChangeTimestamp", "StandardOutput", "StandardError",
    "InvocationID",
)  # fmt: skip

NOT_RUNNING = "not been booted with systemd"
"""Of systemctl, where another program is process 1: in most containers."""


def unit(request: Request, notes: Notes, candidates: Optional[List[Dict[str, Any]]]) -> Dict[str, Any]:
    """The unit that was named, else the most recent failing one: its properties, command, and given environment."""
    choice = _choice(request, notes, candidates)
    name = choice.name
    notes.subject = "unit:" + name
    manager = manager_of(choice.user) if choice.kind == USER else None
    output = systemctl(["show", "--no-pager", "-p", ",".join(PROPERTIES), "--", name], manager)
    notes.source("systemctl %sshow %s" % ("--user " if manager else "", name))
    properties = properties_of(output.out)
    if NOT_RUNNING in output.err:
        raise Absent("systemd does not run here, so there is no unit %s" % name)
    if output.status != 0 or not properties:
        raise Failed("systemctl show %s: %s" % (name, output.err.strip()[:300] or "exit status %d" % output.status))
    if properties.get("LoadState") == "not-found" and properties.get("ActiveState", "inactive") == "inactive":
        whose = "systemd knows no unit %s" % name if manager is None else "the systemd manager of %s knows no unit %s" % (manager.user, name)  # fmt: skip
        raise Absent(whose + _similar(name, manager))
    command = commands_of(properties.get("ExecStart", ""))
    given = _manager_environment(notes, manager)
    if manager is not None:
        properties["User"] = manager.user
    # A user's manager hands its whole environment on, the system's next to nothing.
    inherited = given if manager is not None else {}
    return {
        "name": name,
        "manager": "user:%s" % manager.user if manager else "system",
        "uid": manager.uid if manager else None,
        "properties": {key: value for key, value in properties.items() if value not in ("", "[not set]")},
        "commands": command,
        "environment": dict(inherited, **assignments(properties.get("Environment", ""))),
        "environment_files": _environment_files(properties.get("EnvironmentFiles", ""), notes),
        "manager_environment": given,
        "files": _files(properties, notes),
    }


def properties_of(text: str) -> Dict[str, str]:
    """``systemctl show``'s lines; a property with several values (``EnvironmentFiles``, ``ExecStart``) has a line for each."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        if sign:
            found[name] = found[name] + " " + value if name in found else value
    return found


def _choice(request: Request, notes: Notes, candidates: Optional[List[Dict[str, Any]]]) -> Chosen:
    choice = chosen(request, candidates)
    if not choice.is_unit:
        raise Absent("%s is no unit of systemd" % choice.name)
    if not is_named(request):
        notes.remark("no unit was named: %s is the one that failed most recently" % choice.name)
    return choice


def _similar(name: str, manager: Optional[Manager]) -> str:
    """Units of a like name, for who mistyped it."""
    stem = name.rsplit(".", 1)[0].lower()
    try:
        output = systemctl(["list-unit-files", "--type=service", "--no-legend", "--no-pager", "--full"], manager, 2.0)
    except Exception:
        return ""
    known = [line.split()[0] for line in output.out.splitlines() if line.split()]
    names = {each.rsplit(".", 1)[0].lower(): each for each in known}
    like = [name for name in names if stem in name] + difflib.get_close_matches(stem, list(names), n=3, cutoff=0.6)
    shown = [names[name] for name in dict.fromkeys(like)]
    return "; it knows " + ", ".join(shown[:5]) if shown else ""


def commands_of(text: str) -> List[List[str]]:
    """The argument lists in an ``ExecStart=`` value. systemd joins arguments by blanks, so quoting inside them is lost."""
    found: List[List[str]] = []
    for match in re.finditer(r"\{ path=(.*?) ; argv\[\]=(.*?) ; (?:ignore_errors|flags)=", text, re.DOTALL):
        found.append(split(match.group(2)) or [match.group(1)])
    return found


def split(text: str) -> List[str]:
    """A command line as its words, also when its quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def assignments(text: str) -> Dict[str, str]:
    """``Environment=`` as printed: ``A=b "C=d e"``."""
    return {name: value for name, sign, value in (word.partition("=") for word in split(text)) if sign}


def environment_file(text: str) -> Dict[str, str]:
    """The variables of an ``EnvironmentFile=``, by systemd's rules: quotes, comments, continued lines; no expansion."""
    found: Dict[str, str] = {}
    joined = re.sub(r"\\\n", "", text)
    for line in joined.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;" or "=" not in stripped:
            continue
        name, _, value = stripped.partition("=")
        name = name.strip()
        if not re.match(r"^[A-Za-z_][A-Za-z0-9_]*$", name):
            # `export A=b` is the usual mistake: systemd leaves such a line out, so it is left out here.
            continue
        found[name] = _unquote(value.strip())
    return found


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return re.sub(r'\\(["\\`$])', r"\1", value[1:-1])
    return re.sub(r"\\(.)", r"\1", value)


def _environment_files(text: str, notes: Notes) -> List[Dict[str, Any]]:
    files: List[Dict[str, Any]] = []
    for match in re.finditer(r"(/\S.*?) \(ignore_errors=(yes|no)\)", text):
        path = match.group(1)
        entry: Dict[str, Any] = {"path": path, "optional": match.group(2) == "yes"}
        try:
            entry["variables"] = environment_file(read_text(path, 1 << 16))
            notes.source(path)
        except Exception as error:
            entry["error"] = str(error)
            notes.remark("environment file not read: %s" % error)
            if isinstance(error, Denied):
                notes.deny("the environment file %s" % path)
        files.append(entry)
    return files


def _manager_environment(notes: Notes, manager: Optional[Manager]) -> Dict[str, str]:
    """What systemd hands to every service: its PATH above all."""
    try:
        output = systemctl(["show-environment"], manager, 2.0)
    except Exception as error:
        notes.remark("systemd's own environment is not known: %s" % error)
        return {}
    notes.source("systemctl show-environment")
    lines = (line.partition("=") for line in output.out.splitlines())
    return {name: _unquote(value[1:] if value.startswith("$'") else value) for name, sign, value in lines if sign}


def _files(properties: Dict[str, str], notes: Notes) -> List[Dict[str, str]]:
    """The unit file and its drop-ins, as they stand on disk."""
    paths = [properties.get("FragmentPath", "")] + split(properties.get("DropInPaths", ""))
    files: List[Dict[str, str]] = []
    for path in paths:
        if path.startswith("/"):
            try:
                files.append({"path": path, "text": read_text(path, 1 << 16)})
                notes.source(path)
            except Exception as error:
                notes.remark(str(error))
                if isinstance(error, Denied):
                    notes.deny("the unit's file %s" % path)
    return files

"""The log files of the service: those its manager's configuration, its descriptors or the user names.

A service that logs to a file has next to nothing in the journal. Of a long file the beginning and the end are taken, in whole lines.
"""

import os
import re
from typing import Any, Dict, List, Optional

from gpuwhy.collector import running
from gpuwhy.collector.choosing import LOG, PROCESS, chosen
from gpuwhy.collector.launching import expand
from gpuwhy.collector.probing import Absent, Denied, Failed, Notes, NoValue, Request, first_of
from gpuwhy.collector.process import arguments
from gpuwhy.collector.reading import read_bytes
from gpuwhy.collector.serving import PRIVATE
from gpuwhy.collector.unit import split

HEAD_BYTES = 512 << 10
"""The start of a run: the command's banner, versions, arguments."""

TAIL_BYTES = 3 << 20
"""The end of it, where it failed."""

MOST_FILES = 4

REDIRECTION = re.compile(r"(?:^|[\s\d&])>{1,2}\s*([^\s;|&<>'\"]{1,500}|\"[^\"\n]{1,500}\"|'[^'\n]{1,500}')")

TEE = re.compile(r"\|\s*tee\s+(?:-\w+\s+)*([^\s;|&<>'\"]{1,500})")


def service_log(
    request: Request,
    notes: Notes,
    candidates: Optional[List[Dict[str, Any]]],
    unit: Optional[Dict[str, Any]],
    process: Optional[Dict[str, Any]],
) -> Dict[str, Any]:
    """``service`` and ``files``, each with ``head``, ``tail`` and ``left_out`` bytes between them. Raises Absent, Denied."""
    choice = chosen(request, candidates)
    notes.subject = "unit:" + choice.name if choice.is_unit else "service:" + choice.name
    paths = _paths(choice.kind, choice.name, candidates, unit, process, notes)
    if not paths:
        raise Absent("%s writes to no file of its own%s" % (choice.name, "; " + "; ".join(notes.remarks) if notes.remarks else ""))  # fmt: skip
    files: List[Dict[str, Any]] = []
    reasons: List[NoValue] = []
    for path in paths[:MOST_FILES]:
        try:
            file = read_log(path)
        except NoValue as why:
            notes.remark(why.reason)
            reasons.append(why)
            if isinstance(why, Denied):
                notes.deny("the log " + why.reason)
            continue
        notes.source(path)
        if file["size"]:
            files.append(file)
    if not files:
        raise next((why for why in reasons if isinstance(why, Denied)), reasons[0] if reasons else Absent("its log files are empty: %s" % ", ".join(paths)))  # fmt: skip
    return {"service": choice.name, "selector": choice.selector, "files": files}


def _paths(
    kind: str,
    name: str,
    candidates: Optional[List[Dict[str, Any]]],
    unit: Optional[Dict[str, Any]],
    process: Optional[Dict[str, Any]],
    notes: Notes,
) -> List[str]:
    if kind == LOG:
        return [os.path.normpath(name)]
    found: List[str] = list(first_of(unit, "logs", []))
    if kind == PROCESS:
        engine = running.Engine(int(name), arguments(int(name)))
        running.follow_output(engine, notes)
        if engine.output:
            notes.remark(engine.output)
        found += [engine.log] if engine.log else []
    found += [each["log"] for each in candidates or [] if each.get("log") and each.get("name") == name]
    if unit is not None:
        properties: Dict[str, str] = unit["properties"]
        found += of_unit_files(unit["name"], unit["files"], unit["environment"].get("HOME", ""))
        directory = properties.get("WorkingDirectory", "").lstrip("!-") or "/"
        for command in unit["commands"]:
            found += of_command(" ".join(command), unit["environment"], directory)
    if process is not None and not found:
        own = running.output_of(process["pid"], 1) or ""
        found += [own] if own.startswith("/") and not own.startswith("/dev/") else []
    return list(dict.fromkeys(path for path in found if path))


def of_unit_files(name: str, files: List[Dict[str, str]], home: str = "") -> List[str]:
    """``StandardOutput=append:/var/log/%N.log`` in the unit's file or a drop-in, the last one of each kind.

    ``systemctl show`` prints only ``append``. Of systemd's specifiers those are put in that name the unit and the home.
    """
    given: Dict[str, str] = {}
    for file in files:
        for key, value in re.findall(r"^\s*(StandardOutput|StandardError)\s*=\s*(\S.*?)\s*$", file["text"], re.M):
            given[key] = value
    stem = name.rsplit(".", 1)[0]
    prefix, _, instance = stem.partition("@")
    values = {"n": name, "N": stem, "p": prefix, "i": instance, "I": instance, "h": home, "%": "%"}
    found: List[str] = []
    for value in given.values():
        how, _, path = value.partition(":")
        expanded = re.sub(r"%([nNpiIh%])", lambda match: values[match.group(1)], path)
        if how in ("file", "append", "truncate") and expanded.startswith("/"):
            found.append(expanded)
    return list(dict.fromkeys(found))


def of_command(line: str, variables: Dict[str, str], directory: str) -> List[str]:
    """Where a shell's line sends its output: ``exec vllm serve M >> /var/log/vllm.log 2>&1``, ``... | tee run.log``."""
    found: List[str] = []
    for target in REDIRECTION.findall(line[:20000]) + TEE.findall(line[:20000]):
        words = split(target)
        path = expand(words[0], variables) if words else None
        if path and not path.startswith(("/dev/", "&")):
            found.append(os.path.normpath(os.path.join(directory, path)))
    return found


def read_log(path: str) -> Dict[str, Any]:
    """The beginning and the end of a file. Raises Absent, Denied, Failed."""
    real = os.path.realpath(path)
    if PRIVATE.search(real):
        raise Denied("%s is not a file that this program reads" % path)
    head = read_bytes(path, HEAD_BYTES + TAIL_BYTES)
    status = os.stat(path)
    if b"\0" in head[:8192]:
        raise Failed("%s is not a text" % path)
    tail = b""
    left_out = 0
    if status.st_size > len(head):
        tail = read_bytes(path, TAIL_BYTES, max(0, status.st_size - TAIL_BYTES))
        tail = tail[tail.find(b"\n") + 1 :]
        head = head[:HEAD_BYTES]
        head = head[: head.rfind(b"\n") + 1]
        left_out = max(0, status.st_size - len(head) - len(tail))
    return {
        "path": path,
        "size": status.st_size,
        "modified": round(status.st_mtime, 3),
        "head": head.decode("utf-8", "replace"),
        "tail": tail.decode("utf-8", "replace"),
        "left_out": left_out,
    }

"""Answers to single requests after the collection: an excerpt of a file, the names in a folder, what a path is, what a
binary holds (``inspect``) and would load (``loading``), what a process waits for (``waiting``).

A request is ``{"id": 7, "ask": "read", "path": "/opt/venv/lib/.../compilation_context.py", "first": 60, "last": 130}``.
Paths come from logs, and a log can be written by anyone: what is not source, configuration or log of a GPU stack is
not read, whoever asks.
"""

import base64
import os
import re
import stat
from typing import Any, Dict, List, Optional

from gpuwhy.collector.probing import OK, Denied, Failed, NoValue, why_unreadable
from gpuwhy.collector.reading import MOST_BYTES, read_bytes

READABLE = re.compile(
    r"\.(?:py|pyi|pyx|pxd|cu|cuh|c|cc|cpp|cxx|h|hh|hpp|hxx|inl|ptx|s|ninja|log|out|err|cmake|toml|cfg|ini|conf|yaml|yml|json|txt|md|rst|version|"
    r"service|so(?:\.[0-9]+)*|cubin|fatbin|o|a|whl)$|/(?:METADATA|RECORD|WHEEL|INSTALLER|top_level\.txt|Makefile|Dockerfile|nvcc|ptxas)$"
)

PRIVATE = re.compile(
    r"/\.(?:ssh|gnupg|aws|azure|kube|docker|netrc|git-credentials|pgpass|pypirc|password-store|config/gcloud|config/gh|huggingface)(?:/|$)|"
    r"/etc/(?:shadow|gshadow|sudoers|ssl/private|ssh/)|/(?:secrets?|credentials?)(?:/|\.)|huggingface/(?:token|stored_tokens)|/proc/|/sys/|/dev/|/run/secrets"
)

MOST_LINES = 4000


def answer(request: Dict[str, Any], values: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """The reply to one request: its id, a status and reason as probes have them, and a value.

    ``values`` is what the probes brought: what a file would load depends on the service's environment.
    """
    identity = request.get("id")
    try:
        asked = request.get("ask")
        if asked == "waiting":
            return {"id": identity, "status": OK, "reason": "", "value": _waiting(request)}
        if asked not in ASKS and asked not in ASKS_OF_BINARIES:
            raise Failed("there is no request %r" % (asked,))
        path = request.get("path")
        if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
            raise Failed("a request needs an absolute path")
        path = os.path.normpath(path)
        value = (
            _of_binary(path, request, values or {}) if asked in ASKS_OF_BINARIES else ASKS[str(asked)](path, request)
        )
        return {"id": identity, "status": OK, "reason": "", "value": value}
    except NoValue as why:
        return {"id": identity, "status": why.status, "reason": why.reason, "value": None}
    except Exception as error:
        return {"id": identity, "status": "failed", "reason": "%s: %s" % (type(error).__name__, error), "value": None}


def _allow(path: str) -> None:
    for each in (path, os.path.realpath(path)):
        if PRIVATE.search(each) or not READABLE.search(each):
            raise Denied("%s is not a file that this program reads" % each)


def _read(path: str, request: Dict[str, Any]) -> Dict[str, Any]:
    """Lines ``first`` to ``last`` (from 1, inclusive) of a text file, all of it without them; at most 4000 lines."""
    _allow(path)
    first = max(1, int(request.get("first") or 1))
    last = min(int(request.get("last") or first + MOST_LINES), first + MOST_LINES)
    text = read_bytes(path, 4 * MOST_BYTES).decode("utf-8", "replace")
    if "\0" in text[:8192]:
        raise Failed("%s is not a text" % path)
    lines = text.splitlines()
    return {
        "path": path,
        "first": first,
        "lines": lines[first - 1 : last],
        "count": len(lines),
        "modified": round(os.stat(path).st_mtime, 3),
    }


def _bytes(path: str, request: Dict[str, Any]) -> Dict[str, Any]:
    """``length`` bytes from ``offset``, in base64; at most 1 MiB."""
    _allow(path)
    offset = max(0, int(request.get("offset") or 0))
    length = min(int(request.get("length") or MOST_BYTES), MOST_BYTES)
    raw = read_bytes(path, length, offset)
    return {
        "path": path,
        "offset": offset,
        "base64": base64.b64encode(raw).decode("ascii"),
        "size": os.stat(path).st_size,
    }


def _list(path: str, _request: Dict[str, Any]) -> Dict[str, Any]:
    """The names in a folder, those of folders with a slash behind them; at most 2000."""
    if PRIVATE.search(path + "/") or PRIVATE.search(os.path.realpath(path) + "/"):
        raise Denied("%s is not a folder that this program lists" % path)
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise why_unreadable(error, path)
    shown: List[str] = [name + "/" if os.path.isdir(os.path.join(path, name)) else name for name in names[:2000]]
    return {"path": path, "names": shown, "count": len(names)}


def _stat(path: str, _request: Dict[str, Any]) -> Dict[str, Any]:
    try:
        found = os.stat(path)
        is_link = os.path.islink(path)
    except OSError as error:
        raise why_unreadable(error, path)
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"))
    kind = next((name for test, name in kinds if test(found.st_mode)), "device")
    return {
        "path": path,
        "kind": kind,
        "size": found.st_size,
        "mode": "%04o" % stat.S_IMODE(found.st_mode),
        "owner": found.st_uid,
        "modified": round(found.st_mtime, 3),
        "target": os.path.realpath(path) if is_link else None,
        "real": os.path.realpath(path),
    }


def _search(path: str, request: Dict[str, Any]) -> Dict[str, Any]:
    """Which Python files of a package hold words; see :mod:`gpuwhy.collector.searching`."""
    if PRIVATE.search(path + "/") or PRIVATE.search(os.path.realpath(path) + "/"):
        raise Denied("%s is not a folder that this program searches" % path)
    # most runs search nothing
    from gpuwhy.collector import searching

    return searching.search(path, request)


def _of_binary(path: str, request: Dict[str, Any], values: Dict[str, Any]) -> Dict[str, Any]:
    """What the readers of binaries say. They tell of headers and names, so a program without a suffix may be asked too."""
    for each in (path, os.path.realpath(path)):
        if PRIVATE.search(each):
            raise Denied("%s is not a file that this program reads" % each)
    # most runs ask for no binary: the readers are compiled when one does
    from gpuwhy.collector import binaries

    ask = binaries.inspect if request["ask"] == "inspect" else binaries.loading
    return ask(path, request, values)


def _waiting(request: Dict[str, Any]) -> Dict[str, Any]:
    """What a process waits for; ``path`` is ``/proc/PID``."""
    named = re.match(r"^/proc/([1-9][0-9]{0,9})\Z", str(request.get("path")))
    if named is None:
        raise Failed("a request for what a process waits for needs /proc/PID")
    # most runs ask for no process: these readers are compiled when one does
    from gpuwhy.collector import hangs

    return hangs.look(int(named.group(1)))


ASKS_OF_BINARIES = ("inspect", "loading")

ASKS = {"read": _read, "bytes": _bytes, "list": _list, "stat": _stat, "search": _search}

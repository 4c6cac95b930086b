"""The running service asked over its own loopback port: is it healthy, and does it answer a request?"""

import http.client
import json
import os
import re
import time
from typing import Any, Dict, List, Optional, Set, Tuple

from gpuwhy.applier import services
from gpuwhy.applier.speaking import Answer

HEALTH = ("/health", "/v1/models", "/healthz", "/api/tags")

MOST_ANSWER = 1 << 20


def health(request: Dict[str, Any]) -> Answer:
    """Waits for the port, then for an answer of the health endpoint. ``seconds`` in all."""
    port, unit, manager = int(request["port"]), str(request["unit"]), str(request.get("manager") or "system")
    until = time.monotonic() + float(request["seconds"])
    last = "nothing listens on port %d" % port
    first = services.properties(manager, unit)
    while True:
        seen = services.properties(manager, unit)
        if _is_over(first, seen):
            return {"status": "failed", "reason": "%s ended before it answered: it is %s" % (unit, seen.get("ActiveState"))}  # fmt: skip
        owners = listeners(port)
        if owners is not None and owners and not owners & processes_of(unit):
            return {"status": "not possible", "reason": "port %d is another process's, not one of %s" % (port, unit)}
        answered, last = _first_answer(port)
        if answered is not None:
            return {"status": "ok", "path": answered, "reason": last}
        if time.monotonic() >= until:
            is_heard = not last.startswith("nothing listens")
            return {"status": "failed" if is_heard else "not possible", "reason": last}
        time.sleep(0.5)


def request(request: Dict[str, Any]) -> Answer:
    """One small request with sampling, and whether the service outlives it."""
    port, unit, manager = int(request["port"]), str(request["unit"]), str(request.get("manager") or "system")
    before = services.properties(manager, unit)
    sampling = {"temperature": 0.8, "top_p": 0.9}
    status, body = _asked("GET", port, "/v1/models", None, 10.0)
    model = _model_of(body) if status == 200 else ""
    asked: List[Tuple[str, Dict[str, Any]]] = [
        ("/v1/completions", dict(sampling, model=model, prompt="Hello", max_tokens=8)),
        ("/generate", {"text": "Hello", "sampling_params": dict(sampling, max_new_tokens=8)}),
    ]
    answer: Answer = {"status": "not possible", "reason": "it has neither /v1/completions nor /generate"}
    for path, document in asked:
        status, body = _asked("POST", port, path, document, float(request["seconds"]))
        if status in (404, 405):
            continue
        answer = _judged(path, status, body)
        break
    time.sleep(1.0)
    after = services.properties(manager, unit)
    if _is_over(before, after):
        return {"status": "failed", "reason": "%s did not outlive the request: %s" % (unit, answer["reason"])}
    return answer


def _judged(path: str, status: int, body: bytes) -> Answer:
    said = body.decode("utf-8", "replace")[:300]
    if status == 200:
        return {
            "status": "ok",
            "path": path,
            "reason": "POST %s with temperature 0.8 and top_p 0.9 answered 200" % path,
        }
    if status >= 500 or status == 0:
        words = "POST %s answered %d: %s" % (path, status, said) if status else "POST %s: %s" % (path, said)
        return {"status": "failed", "reason": words}
    why = "it asks for a key" if status in (401, 403) else said
    return {"status": "not possible", "reason": "POST %s answered %d: %s" % (path, status, why)}


def _is_over(before: Dict[str, str], now: Dict[str, str]) -> bool:
    if not now:
        return False
    is_other = bool(before.get("InvocationID")) and now.get("InvocationID") != before.get("InvocationID")
    return is_other or now.get("ActiveState") in ("failed", "inactive") or now.get("SubState") == "auto-restart"


def _first_answer(port: int) -> Tuple[Optional[str], str]:
    """The path that says that the service is well; a service that is still loading answers 503."""
    for path in HEALTH:
        status, body = _asked("GET", port, path, None, 5.0)
        if status == 0:
            refused = b"refused" in body
            return None, "nothing listens on port %d" % port if refused else "GET %s: %s" % (path, body.decode("utf-8", "replace"))  # fmt: skip
        if status == 200:
            return path, "GET %s answered 200" % path
        if status in (401, 403):
            return path, "GET %s answered %d: it is up, and asks for a key" % (path, status)
        if status != 404:
            return None, "GET %s answered %d" % (path, status)
    return None, "none of %s answered" % ", ".join(HEALTH)


def _asked(method: str, port: int, path: str, document: Optional[Dict[str, Any]], seconds: float) -> Tuple[int, bytes]:
    """Status and body; status 0: no answer, the body says why. Only ever this machine's own loopback."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        body = None if document is None else json.dumps(document).encode("ascii")
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        reply = connection.getresponse()
        return reply.status, reply.read(MOST_ANSWER)
    except ConnectionRefusedError:
        return 0, b"connection refused"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return 0, ("%s: %s" % (type(error).__name__, error)).encode("utf-8", "replace")
    finally:
        connection.close()


def _model_of(body: bytes) -> str:
    try:
        listed = json.loads(body.decode("utf-8"))["data"]
        return str(listed[0]["id"])
    except (ValueError, KeyError, IndexError, TypeError):
        return ""


def listeners(port: int) -> Optional[Set[int]]:
    """The processes that listen on a port; None where this user may not see whose it is, or nobody listens."""
    inodes = _inodes(port)
    if not inodes:
        return None
    wanted = {"socket:[%s]" % inode for inode in inodes}
    found = {int(name) for name in os.listdir("/proc") if name.isdigit() and wanted & _open_files(name)}
    return found or None


def _open_files(process: str) -> Set[str]:
    """What a process holds open; what it closes meanwhile, or hides from us, is left out."""
    found: Set[str] = set()
    try:
        names = os.listdir("/proc/%s/fd" % process)
    except OSError:
        return found
    for name in names:
        try:
            found.add(os.readlink("/proc/%s/fd/%s" % (process, name)))
        except OSError:
            continue
    return found


def _inodes(port: int) -> List[str]:
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as stream:
                rows = [line.split() for line in stream.readlines()[1:]]
        except OSError:
            continue
        found += [row[9] for row in rows if len(row) > 9 and row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port]  # fmt: skip
    return found


def processes_of(unit: str) -> Set[int]:
    """The processes in a unit's control group, or below it."""
    pattern = re.compile(r"/%s(?:/|$)" % re.escape(unit))
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/cgroup" % name) as stream:
                groups = [line.rstrip("\n").split(":", 2)[-1] for line in stream]
        except OSError:
            continue
        if any(pattern.search(each) for each in groups):
            found.add(int(name))
    return found

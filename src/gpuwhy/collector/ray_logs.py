"""The logs of Ray's session on this node: what its workers and drivers printed, where one of them ended in a failure.

vLLM's ranks on other nodes are Ray's actors: what they die of stands in no journal, but in ``worker-*.err`` of their node.
"""

import os
import re
from typing import Any, Dict, List, Tuple

from gpuwhy.collector.left_logs import FAILS, LOOKED_AT
from gpuwhy.collector.probing import Absent, Denied, Notes, NoValue, Request
from gpuwhy.collector.reading import read_bytes, try_list
from gpuwhy.collector.service_log import read_log

FOLDER = "/tmp/ray/session_latest/logs"

FOLDER_VARIABLE = "GPUWHY_RAY_LOGS"
"""Set by whoever started the collector inside of Ray, and knows where its session is."""

PRINTED = re.compile(r"^(?:worker-[0-9a-f-]{1,120}-\d{1,10}\.(?:err|out)|job-driver-.{1,200}\.log)$")

OWN = re.compile(r"^(?:raylet|gcs_server)(?:\.\d{1,4})?\.(?:err|out)$")
"""Ray's own: of interest where a node was lost, but full of words that sound like failures."""

MOST_FILES = 6

MOST_LOOKED_AT = 400


def ray_log(_request: Request, notes: Notes) -> Dict[str, Any]:
    """``folder``, ``failing`` (how many end in a failure) and ``files``, as ``service_log`` has them. Raises Absent, Denied."""
    folder = os.path.realpath(os.environ.get(FOLDER_VARIABLE) or FOLDER)
    names = try_list(folder, 100000)
    if not names:
        raise Absent("Ray has no logs in %s" % folder)
    notes.source(folder)
    failing = _failing(folder, names, notes)
    files: List[Dict[str, Any]] = []
    for path in failing[:MOST_FILES]:
        try:
            files.append(read_log(path))
        except NoValue as why:
            notes.remark(why.reason)
    if not files:
        raise Absent("nothing in %s ends in a failure" % folder)
    return {"folder": folder, "failing": len(failing), "files": files}


def _failing(folder: str, names: List[str], notes: Notes) -> List[str]:
    """What was printed first, then Ray's own; of each the youngest first, as a session lives for weeks."""
    found: List[Tuple[bool, float, str]] = []
    for name in names:
        if PRINTED.match(name) or OWN.match(name):
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if status.st_size:
                found.append((bool(OWN.match(name)), -status.st_mtime, path))
    failing = []
    for _is_own, _changed, path in sorted(found)[:MOST_LOOKED_AT]:
        try:
            size = os.stat(path).st_size
            tail = read_bytes(path, LOOKED_AT, max(0, size - LOOKED_AT)).decode("utf-8", "replace")
        except Denied as why:
            notes.deny(why.reason)
            continue
        except (NoValue, OSError):
            continue
        if FAILS.search(tail):
            failing.append(path)
    return failing

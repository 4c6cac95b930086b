"""Whether CUDA starts here, outside of the service: cuInit, in a process of its own that is given up when it hangs."""

import glob
import json
import os
import sys
from typing import Any, Dict

from gpuwhy.collector import commands, cuinit
from gpuwhy.collector.driver import LIBRARIES
from gpuwhy.collector.probing import Absent, Failed, Notes, Request

TIMEOUT = 6.0
"""Seconds. Without the persistence daemon the driver first wakes every GPU: up to a second for each."""

NODES = ("/dev/nvidia-uvm", "/dev/nvidiactl")


def cuda_start(_request: Request, notes: Notes) -> Dict[str, Any]:
    """``code`` and ``name`` of what cuInit returned, ``devices`` it sees. Raises Absent, TimedOut, Failed.

    Where the device nodes are missing it is not called: the library would have nvidia-modprobe load modules and make them,
    and this program changes nothing.
    """
    if not any(glob.glob(pattern) for pattern in LIBRARIES):
        raise Absent("libcuda.so.1 is not on this host")
    missing = [node for node in NODES if not os.path.exists(node)]
    if missing and not os.path.exists("/dev/dxg"):
        raise Absent("%s is not there; CUDA was not started, as that would have it made" % " and ".join(missing))
    environment = {"PATH": ":".join(commands.DIRECTORIES), "LC_ALL": "C", "CUDA_CACHE_DISABLE": "1"}
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    output = commands.run(
        sys.executable or "/usr/bin/python3",
        ["-I", "-S", "-B", "-c", _program()],
        timeout=TIMEOUT,
        environment=environment,
    )
    return answer_of(output, notes)


def answer_of(output: commands.Output, notes: Notes) -> Dict[str, Any]:
    """What the process printed; a library that ended it is an answer too."""
    try:
        found: Dict[str, Any] = json.loads(output.out.splitlines()[-1])
    except (IndexError, ValueError):
        raise Failed("cuInit ended its process with exit status %d: %s" % (output.status, output.err.strip()[-300:]))
    if "error" in found:
        raise Absent(str(found["error"]))
    notes.source("cuInit of %s" % found["library"])
    return found


def _program() -> str:
    source = cuinit.__loader__.get_source(cuinit.__name__)  # type: ignore[union-attr]
    if source is None:
        raise Failed("the text of the caller of cuInit is not at hand")
    return str(source)

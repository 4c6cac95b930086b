"""What the GPUs do over half a second: a kernel that spins keeps one at 100 % with idle memory and little power."""

import json
import sys
from typing import Any, Dict, List

from gpuwhy.collector import commands
from gpuwhy.collector.gpus import nvml_environment, nvml_program
from gpuwhy.collector.probing import Absent, Failed


def activity() -> List[Dict[str, Any]]:
    """Each GPU's utilisation, power and processes. Raises Absent without a driver, TimedOut where it does not answer."""
    output = commands.run(
        sys.executable or "/usr/bin/python3",
        ["-I", "-S", "-B", "-c", nvml_program(), "activity"],
        timeout=4.0,
        environment=nvml_environment(),
    )
    lines = [line for line in output.out.splitlines() if line.startswith("{")]
    try:
        found: Dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        raise Failed("libnvidia-ml ended its process with exit status %d" % output.status)
    if "error" in found:
        raise (Absent if found.get("status") == "absent" else Failed)(str(found["error"]))
    listed: List[Dict[str, Any]] = found["activity"]
    return listed

"""Fabric Manager, without which GPUs behind NVSwitches do not start: its version, its service, and what the GPUs say of the fabric."""

import re
from typing import Any, Dict, Optional

from gpuwhy.collector import commands
from gpuwhy.collector.probing import Absent, Notes, NoValue, Request, first_of

UNIT = "nvidia-fabricmanager.service"

VERSION = re.compile(r"(?:Fabric ?Manager|fabricmanager)\D{0,60}(\d{3}\.\d{1,4}(?:\.\d{1,4})?)", re.IGNORECASE)


def fabric(
    _request: Request,
    notes: Notes,
    gpus: Optional[Dict[str, Any]],
    services: Optional[Dict[str, Any]],
    pci: Optional[Dict[str, Any]],
) -> Dict[str, Any]:
    """``version`` of the program, ``state`` and ``result`` of its unit, ``gpus``: the state that each reports.

    Raises Absent where there is neither the program nor an NVSwitch nor a GPU that belongs to a fabric.
    """
    version = _version(notes)
    unit: Dict[str, str] = first_of(services, UNIT, {})
    states = [{"gpu": each.get("index"), **each["fabric"]} for each in first_of(gpus, "gpus", []) if each.get("fabric")]
    switches = int(first_of(pci, "nvswitches", 0))
    if version is None and not unit and not states and not switches:
        raise Absent("there is no Fabric Manager, no NVSwitch, and no GPU of a fabric")
    return {
        "version": version,
        "state": "%s (%s)" % (unit.get("ActiveState", ""), unit.get("SubState", "")) if unit else None,
        "result": unit.get("Result") or None,
        "enabled": unit.get("UnitFileState") or None,
        "switches": switches,
        "gpus": states,
    }


def _version(notes: Notes) -> Optional[str]:
    """``nv-fabricmanager --version`` prints ``Fabric Manager version is : 535.104.05``."""
    try:
        output = commands.run("nv-fabricmanager", ["--version"], timeout=2.0, most=1 << 14)
    except Absent:
        return None
    except NoValue as why:
        notes.remark(why.reason)
        return None
    notes.source("nv-fabricmanager --version")
    found = VERSION.search(output.out + output.err)
    return found.group(1) if found else None

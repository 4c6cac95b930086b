"""The GPUs as the driver lists them, and who holds their memory: NVML, else nvidia-smi."""

import csv
import json
import os
import re
import sys
from typing import Any, Dict, List, Optional

from gpuwhy.collector import commands, nvml
from gpuwhy.collector.probing import ABSENT, Absent, Failed, Notes, NoValue, Request
from gpuwhy.collector.process import arguments
from gpuwhy.collector.reading import try_line, try_list

QUERY = ("index", "name", "uuid", "pci.bus_id", "compute_cap", "memory.total", "memory.used", "driver_version")

STATUS_TIMEOUT = 4.0


def gpus(_request: Request, notes: Notes) -> Dict[str, Any]:
    """``gpus``, ``processes``, ``driver``, ``driver_cuda``; ``source`` names who answered."""
    reasons: List[NoValue] = []
    for ask in (_by_nvml, _by_nvidia_smi):
        try:
            found = ask(notes)
        except NoValue as why:
            reasons.append(why)
            notes.remark(why.reason)
            continue
        for holder in found["processes"]:
            holder["command"] = arguments(holder["pid"])[:6]
        if not found["gpus"]:
            raise Absent("the driver lists no GPU")
        return found
    raise _worst(reasons)


def _worst(reasons: List[NoValue]) -> NoValue:
    """A library that hangs or fails says more than a tool that is not installed."""
    telling = [why for why in reasons if why.status != ABSENT] or reasons
    kind = type(telling[0])
    return kind("; ".join(why.reason for why in telling))


def _by_nvml(notes: Notes) -> Dict[str, Any]:
    output = commands.run(
        sys.executable or "/usr/bin/python3",
        ["-I", "-S", "-B", "-c", nvml_program()],
        timeout=3.0,
        environment=nvml_environment(),
    )
    lines = [line for line in output.out.splitlines() if line.startswith("{")]
    try:
        found: Dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        raise Failed(
            "libnvidia-ml ended its process with exit status %d: %s" % (output.status, output.err.strip()[-300:])
        )
    if "error" in found:
        raise (Absent if found["status"] == ABSENT else Failed)(found["error"])
    notes.source(found["library"])
    found["source"] = "nvml"
    return found


def nvml_program() -> str:
    """The text of :mod:`nvml`, wherever this program was loaded from."""
    source = nvml.__loader__.get_source(nvml.__name__)  # type: ignore[union-attr]
    if source is None:
        raise Failed("the text of the NVML reader is not at hand")
    return str(source)


def nvml_environment() -> Dict[str, str]:
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return dict({"PATH": ":".join(commands.DIRECTORIES), "LC_ALL": "C"}, **kept)


def _by_nvidia_smi(notes: Notes) -> Dict[str, Any]:
    output = commands.run(
        "nvidia-smi", ["--query-gpu=" + ",".join(QUERY), "--format=csv,noheader,nounits"], timeout=3.5
    )
    notes.source(output.command)
    if output.status != 0 and "compute_cap" in output.out + output.err:
        # Drivers before 465 do not know this field.
        fields = [name for name in QUERY if name != "compute_cap"]
        output = commands.run(
            "nvidia-smi", ["--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits"], timeout=3.0
        )
        return _from_csv(output.out, fields)
    if output.status != 0:
        raise Failed("nvidia-smi: " + " ".join((output.out + output.err).split())[:400])
    return _from_csv(output.out, list(QUERY))


def _from_csv(text: str, fields: List[str]) -> Dict[str, Any]:
    """Lines such as ``0, NVIDIA H100 80GB HBM3, GPU-4e3f..., 00000000:1B:00.0, 9.0, 81559, 4, 570.86.10``."""
    listed: List[Dict[str, Any]] = []
    driver: Optional[str] = None
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != len(fields):
            continue
        named = {name: value.strip() for name, value in zip(fields, row)}
        driver = named["driver_version"] if re.match(r"^\d+\.", named["driver_version"]) else driver
        gpu: Dict[str, Any] = {"name": named["name"], "uuid": named["uuid"], "pci": named["pci.bus_id"]}
        gpu["index"] = int(named["index"]) if named["index"].isdigit() else len(listed)
        if re.match(r"^\d+\.\d+$", named.get("compute_cap", "")):
            gpu["compute_capability"] = named["compute_cap"]
        for key, field in (("memory_total", "memory.total"), ("memory_used", "memory.used")):
            if named[field].isdigit():
                gpu[key] = int(named[field]) << 20
        listed.append(gpu)
    return {"source": "nvidia-smi", "gpus": listed, "processes": [], "driver": driver, "driver_cuda": None}


def nvidia_smi(_request: Request, notes: Notes) -> Dict[str, Any]:
    """What ``nvidia-smi`` prints, as it prints it: its error text is a fact of its own."""
    output = commands.run("nvidia-smi", [], timeout=STATUS_TIMEOUT, most=1 << 16)
    notes.source(output.command)
    text = (output.out + output.err).strip()
    cuda = re.search(r"CUDA Version: (\d+\.\d+)", text)
    driver = re.search(r"Driver Version: (\d+(?:\.\d+)+)", text)
    return {
        "status": output.status,
        "verdict": "ok" if output.status == 0 else " ".join(text.split())[:500] or "exit status %d" % output.status,
        "text": text[:8000],
        "driver": driver.group(1) if driver else None,
        "driver_cuda": cuda.group(1) if cuda else None,
    }


def pci(_request: Request, notes: Notes) -> Dict[str, Any]:
    """NVIDIA devices as the PCI bus lists them: a GPU that the driver has lost is still (or no longer) here."""
    base = "/sys/bus/pci/devices"
    names = try_list(base)
    if not names:
        raise Absent("this host shows no PCI bus")
    notes.source(base)
    devices: List[Dict[str, Any]] = []
    for name in names:
        path = "%s/%s/" % (base, name)
        if try_line(path + "vendor") != "0x10de":
            continue
        kind = {"0x0300": "gpu", "0x0302": "gpu", "0x0680": "nvswitch"}.get((try_line(path + "class") or "")[:6])
        if kind is None:
            continue
        try:
            driver: Optional[str] = os.path.basename(os.readlink(path + "driver"))
        except OSError:
            driver = None
        devices.append(
            {
                "address": name,
                "kind": kind,
                "device": try_line(path + "device"),
                "driver": driver,
                "link_speed": try_line(path + "current_link_speed"),
                "link_width": try_line(path + "current_link_width"),
                "max_link_speed": try_line(path + "max_link_speed"),
                "max_link_width": try_line(path + "max_link_width"),
                "numa_node": try_line(path + "numa_node"),
                "iommu_group": os.path.exists(path + "iommu_group"),
            }
        )
    if not devices:
        raise Absent("there is no NVIDIA device on the PCI bus")
    return {"devices": devices, "nvswitches": sum(1 for each in devices if each["kind"] == "nvswitch")}

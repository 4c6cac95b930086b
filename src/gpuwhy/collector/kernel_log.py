"""What the kernel said about memory, GPUs, the PCI bus and crashed processes: from the journal, else from /dev/kmsg.

Lines of interest look like ``NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.`` and
``Out of memory: Killed process 18231 (sglang::schedul) total-vm:...``.
"""

import errno
import os
import re
from collections import deque
from typing import Any, Deque, Dict, List, Optional

from gpuwhy.collector import journal
from gpuwhy.collector.allowing import reading_kernel_log
from gpuwhy.collector.probing import Absent, Denied, Notes, NoValue, Request, why_unreadable
from gpuwhy.collector.reading import try_text

INTERESTING = re.compile(
    r"out of memory|oom[-_ ]|killed process|invoked oom-killer|memory cgroup|NVRM|\bXid\b|SXid|nvidia|nouveau|nvswitch|nvlink|"
    r"\bAER\b|pcieport|PCIe Bus Error|Surprise|link is down|IO_PAGE_FAULT|DMAR|AMD-Vi|IOMMU|segfault|general protection|trap |traps:|"
    r"Machine check|mce:|Hardware Error|EDAC|hung task|blocked for more than|soft lockup|rcu.*stall|BUG:|Oops|"
    r"I/O error|EXT4-fs error|XFS .*(?:error|shutdown)|nvme.*(?:timeout|reset|abort)|No space left|[Rr]emount.*read-only|mlx5|infiniband|"
    r"audit:.*(?:DENIED|denied)|apparmor=\"DENIED\"|tainted|module verification failed|Unknown symbol|disagrees about version",
    re.IGNORECASE,
)

DULL = re.compile(
    r"iommu: |nvidia: (?:loading out-of-tree|module license)|IOMMU.*(?:Default domain|enabled|groups?)|Adding to iommu group|DMAR: .*(?:RMRR|DRHD|Host address)",
    re.I,
)

MOST = 2000

SCANNED = 50000


def kernel_log(request: Request, notes: Notes) -> Dict[str, Any]:
    """The newest lines of interest, oldest first, with how many lines were read to find them."""
    kept: Deque[List[Any]] = deque(maxlen=MOST)
    count = 0

    def keep(entry: List[Any], _message_id: str) -> bool:
        nonlocal count
        count += 1
        if is_interesting(entry[5]):
            kept.append(entry)
        return True

    source, reason = "journal", ""
    try:
        journal.read_entries(["_TRANSPORT=kernel", "--lines", str(SCANNED)], request, notes, keep, timeout=4.0)
    except NoValue as why:
        reason = why.reason
        notes.remark(why.reason)
    if not count and not journal.directory(request):
        source = "/dev/kmsg"
        for entry in ring_buffer(notes):
            keep(entry, "")
    if not count:
        raise Absent("the kernel log is empty here%s" % ("; " + reason if reason else ""))
    return {"fields": list(journal.FIELDS), "entries": list(kept), "scanned": count, "source": source}


def is_interesting(text: str) -> bool:
    """Whether a kernel line can matter for a service that uses GPUs."""
    return bool(INTERESTING.search(text)) and not DULL.search(text)


def ring_buffer(notes: Notes) -> List[List[Any]]:
    """All records of the kernel's own buffer. Raises Absent or Denied."""
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        why = why_unreadable(error, "/dev/kmsg")
        if error.errno in (errno.EPERM, errno.EACCES):
            raise Denied(why.reason + " (root may read it)", *reading_kernel_log())
        raise why
    notes.source("/dev/kmsg")
    boot = boot_time()
    entries: List[List[Any]] = []
    try:
        while len(entries) < SCANNED:
            try:
                raw = os.read(descriptor, 8192)
            except OSError as error:
                if error.errno == errno.EPIPE:
                    continue  # the record was overwritten while we read: the next one follows
                break
            if not raw:
                break
            entry = parse_record(raw.decode("utf-8", "replace"), boot)
            if entry is not None:
                entries.append(entry)
    finally:
        os.close(descriptor)
    return entries


def parse_record(record: str, boot: float) -> Optional[List[Any]]:
    """``4,2411,1044823451,-;NVRM: Xid ...``: priority and facility, number, microseconds since boot, flags; text."""
    head, sign, text = record.partition(";")
    parts = head.split(",")
    if not sign or len(parts) < 3 or not parts[0].isdigit() or not parts[2].isdigit():
        return None
    # Only the kernel's own lines (facility 0): anyone with rights may write here as another facility.
    if int(parts[0]) >> 3:
        return None
    line = text.split("\n", 1)[0]
    unescaped = re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found.group(1), 16)), line)
    return [round(boot + int(parts[2]) / 1e6, 6), None, "kernel", int(parts[0]) & 7, "kernel", unescaped]


def boot_time() -> float:
    """When the kernel started, in seconds since the epoch; 0 when it does not tell."""
    found = re.search(r"^btime (\d+)", try_text("/proc/stat") or "", re.M)
    return float(found.group(1)) if found else 0.0

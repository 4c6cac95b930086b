"""TCP connections of a process: to whom, in which state, what lies unsent or unread, and who is at the other end.

``/proc/PID/net/tcp`` has a line for each socket of its network namespace; numbers are hexadecimal, addresses in the byte
order of the machine:

      sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
       3: 0100007F:A1B2 0100007F:7530 02 00000001:00000000 01:00000064 00000003     0        0 0 2 ...
"""

import os
import re
import socket
import struct
import sys
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from gpuwhy.collector.hangs_processes import brief
from gpuwhy.collector.process import all_processes
from gpuwhy.collector.reading import try_list, try_text

STATES = {
    1: "ESTABLISHED", 2: "SYN_SENT", 3: "SYN_RECV", 4: "FIN_WAIT1", 5: "FIN_WAIT2", 6: "TIME_WAIT", 7: "CLOSE", 8: "CLOSE_WAIT", 9: "LAST_ACK",
    10: "LISTEN", 11: "CLOSING",
}  # fmt: skip

MOST_TOLD = 40

MOST_ROWS = 20000

MOST_OPEN_FILES = 4096

Address = Tuple[str, int]


class Row:
    """A socket of the table. ``timer`` and ``retransmits`` tell of a peer that does not answer."""

    def __init__(
        self, local: Address, peer: Address, state: int, unsent: int, unread: int, retransmits: int, inode: int
    ) -> None:
        self.local = local
        self.peer = peer
        self.state = STATES.get(state, str(state))
        self.unsent = unsent
        self.unread = unread
        self.retransmits = retransmits
        self.inode = inode


def rows(text: str) -> List[Row]:
    """The sockets of ``/proc/net/tcp`` or ``tcp6``."""
    found: List[Row] = []
    for line in text.splitlines()[1 : MOST_ROWS + 1]:
        words = line.split()
        if len(words) < 10 or ":" not in words[4]:
            continue
        try:
            unsent, unread = (int(part, 16) for part in words[4].split(":"))
            row = Row(
                address(words[1]), address(words[2]), int(words[3], 16), unsent, unread, int(words[6], 16), int(words[9])
            )  # fmt: skip
        except (ValueError, struct.error, OSError):
            continue
        found.append(row)
    return found


def address(text: str) -> Address:
    """``0100007F:7530`` as ``("127.0.0.1", 30000)``; an IPv4 address in an IPv6 socket is told as IPv4."""
    host, _, port = text.partition(":")
    words = [int(host[at : at + 8], 16) for at in range(0, len(host), 8)]
    order = "<" if sys.byteorder == "little" else ">"
    raw = b"".join(struct.pack(order + "I", word) for word in words)
    if len(raw) == 16 and raw.startswith(b"\0" * 10 + b"\xff\xff"):
        raw = raw[12:]
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, raw), int(port, 16)


def connections(pids: Sequence[int]) -> List[Dict[str, Any]]:
    """The sockets of these processes, the most telling first."""
    owners: Dict[int, int] = {}
    for pid in pids[:64]:
        for inode in sockets_of(pid):
            owners.setdefault(inode, pid)
    table = _table(pids[0]) if pids else []
    mine = [row for row in table if row.inode in owners]
    ends = {(row.local, row.peer): row for row in table}
    listening = {row.local[1]: row for row in table if row.state == "LISTEN"}
    chosen = sorted(mine, key=_rank)[:MOST_TOLD]
    others = _other_ends(chosen, ends, listening)
    inside = _owners_of({row.inode for row in others.values() if row.inode and row.inode not in owners})
    found: List[Dict[str, Any]] = []
    for row in chosen:
        told = {
            "pid": owners[row.inode],
            "inode": row.inode,
            "state": row.state,
            "local": "%s:%d" % row.local,
            "peer": "%s:%d" % row.peer,
            "unsent": row.unsent,
            "unread": row.unread,
            "retransmits": row.retransmits,
        }
        other = others.get(row.inode)
        if other is not None:
            owner = owners.get(other.inode) or inside.get(other.inode)
            told["peer_is_here"] = True
            told["accepted"] = other.state != "LISTEN"
            if owner is not None:
                told["peer_process"] = dict(brief(owner), own=other.inode in owners)
        elif row.peer[0].startswith("127.") or row.peer[0] == "::1":
            told["peer_is_here"] = False
        found.append(told)
    return found


def _rank(row: Row) -> Tuple[int, int]:
    order = ["SYN_SENT", "CLOSE_WAIT", "LAST_ACK", "FIN_WAIT1", "ESTABLISHED", "LISTEN"]
    place = order.index(row.state) if row.state in order else len(order)
    return (place, -(row.unsent + row.unread))


def _other_ends(
    chosen: Sequence[Row], ends: Dict[Tuple[Address, Address], Row], listening: Dict[int, Row]
) -> Dict[int, Row]:
    """For each socket the one at its other end, where that is in the same namespace. A connection that no program has
    accepted yet has no owner: then its listening socket stands for it."""
    found: Dict[int, Row] = {}
    for row in chosen:
        if row.state == "LISTEN":
            continue
        other = ends.get((row.peer, row.local))
        if other is None:
            continue
        found[row.inode] = listening.get(other.local[1], other) if other.inode == 0 else other
    return found


def _table(pid: int) -> List[Row]:
    found: List[Row] = []
    for name in ("tcp", "tcp6"):
        found += rows(try_text("/proc/%d/net/%s" % (pid, name), 8 << 20) or "")
    return found


def sockets_of(pid: int) -> List[int]:
    """The inodes of a process' sockets; none when this user may not see them."""
    found: List[int] = []
    base = "/proc/%d/fd" % pid
    for name in try_list(base, MOST_OPEN_FILES):
        inode = _socket(os.path.join(base, name))
        if inode is not None:
            found.append(inode)
    return found


def _socket(path: str) -> Optional[int]:
    try:
        told = re.match(r"^socket:\[(\d{1,20})\]$", os.readlink(path))
    except OSError:
        return None
    return int(told.group(1)) if told else None


def _owners_of(inodes: Set[int]) -> Dict[int, int]:
    found: Dict[int, int] = {}
    if inodes:
        for pid in all_processes():
            for inode in inodes.intersection(sockets_of(pid)):
                found.setdefault(inode, pid)
    return found

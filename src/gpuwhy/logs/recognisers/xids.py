"""What the numbers of the NVIDIA driver's Xid and the NVSwitch driver's SXid messages stand for.

Facts of NVIDIA's tables of Xid messages and of the Fabric Manager's manual, in our own words. An SXid says in its line
what it is; the table helps where a log cut that off. A number that is not here has no meaning for us.
"""

from __future__ import annotations

XIDS: dict[int, str] = {
    1: "invalid or damaged command stream",
    8: "the GPU stopped processing",
    11: "invalid or damaged command stream",
    13: "a kernel raised an exception in the graphics engine: address out of range, bad instruction",
    16: "the display engine hung",
    24: "invalid or damaged command stream",
    31: "a kernel accessed an address that is not mapped (MMU fault)",
    32: "invalid or damaged push buffer stream; often the PCIe link",
    37: "the driver's firmware failed",
    38: "the driver's firmware failed",
    43: "the GPU stopped processing for one process; the GPU itself is healthy",
    45: "channels were cleaned up; follows another fault or the end of a process",
    48: "double-bit ECC error: memory is damaged",
    56: "the display engine failed",
    57: "the interface to the video memory could not be programmed",
    58: "the interface to the video memory is unstable",
    61: "an internal micro-controller stopped at a breakpoint",
    62: "an internal micro-controller halted",
    63: "a page or row of memory was retired or remapped",
    64: "a page or row of memory could not be retired or remapped",
    65: "a video processor raised an exception",
    66: "illegal access by the driver",
    67: "illegal access by the driver",
    68: "a video decoder raised an exception",
    69: "the graphics engine raised a class error",
    74: "an NVLink failed",
    78: "a vGPU could not be started",
    79: "the GPU has fallen off the bus",
    80: "damaged data reached the GPU",
    81: "the VGA subsystem failed",
    92: "many single-bit ECC errors",
    93: "the InfoROM was written more often than foreseen",
    94: "uncorrectable memory error, contained to the process that met it",
    95: "uncorrectable memory error that was not contained; the GPU needs a reset",
    109: "a context switch timed out",
    110: "security fault",
    119: "the GPU's system processor (GSP) does not answer",
    120: "the GPU's system processor (GSP) failed",
    121: "the chip-to-chip NVLink failed",
    122: "the board's flash memory could not be read",
    123: "the board's flash memory could not be written",
    124: "the board's flash memory could not be erased",
    125: "the InfoROM's file system failed",
    136: "an NVLink could not be trained",
    137: "an access of a peer over NVLink was refused or faulted",
    140: "ECC error that was not recovered",
    143: "the GPU could not be initialised",
    144: "NVLink error (SAW)",
    145: "NVLink error (RLW)",
    146: "NVLink error (TLW)",
    147: "NVLink error (TREX)",
    148: "NVLink error (NVLPW_CTRL)",
    149: "NVLink error (NETIR)",
    150: "NVLink error (MSE)",
    151: "keys of confidential computing could not be rotated",
    154: "the driver's verdict about the recovery that is needed; follows another fault",
    155: "NVLink error told by software",
    156: "a resource of the GPU was retired",
    157: "a resource of the GPU could not be retired",
    158: "the GPU met a fatal time-out",
    160: "a memory channel was retired",
    161: "a memory channel could not be retired",
    171: "more about an Xid 48: the error is in the video memory",
    172: "more about an Xid 48: the error is in on-chip memory",
}
SXIDS: dict[int, str] = {
    11001: "invalid command at the ingress",
    11009: "invalid virtual channel at the ingress",
    11013: "invalid type of address at the ingress",
    12020: "wrong sequence number at the egress",
    12022: "too many credits at the egress",
    12028: "a non-posted request was refused at the egress",
    19084: "no heartbeat on an NVLink",
    20001: "a packet on an NVLink was sent again",
    20009: "too many errors on an NVLink in a short time",
    20034: "an NVLink went down",
}


def meaning_of_xid(number: int) -> str:
    """In a few words; empty for a number that is not known."""
    return XIDS.get(number, "")


def meaning_of_sxid(number: int) -> str:
    """In a few words; empty for a number that is not known."""
    return SXIDS.get(number, "")

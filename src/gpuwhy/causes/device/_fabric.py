"""The NVSwitch fabric: signs of one that is not set up, and what is known of Fabric Manager and its versions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import says
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Missing

UNIT = "nvidia-fabricmanager"
_NUMBERED = (
    r"(?:init(?:iali[sz]ation)? failure(?: with error)?|CUDA (?:error|failure|driver error)|(?<![\w-])Error|error code|cuda runtime error|\bcu(?:da)?[A-Z]\w{2,40}(?:\(\w{0,20}\))?(?:=| returned| failed with(?: error| status| code)?)?"
    r"|get device context|CUDA status|returned|\bcode)[:=( ]{0,2} ?\(?802(?![\w]|[.,]\d)"
)
NOT_READY = says(
    "system-not-ready",
    ("system not yet initialized", "system_not_ready", "systemnotready", "802"),
    rf"system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady|{_NUMBERED}",
)
"""Error 802: GPUs behind NVSwitches that Fabric Manager has not set up (or a confidential VM that is not ready yet)."""

MISMATCH = says(
    "version-mismatch",
    ("don't match with driver", "doesn't match", "does not match", "don't match", "version mismatch", "not compatible", "incompatible", "matching nvidia driver"),
    r"fabric ?manager.{0,160}?version (?P<manager>\d{3}[\d.]{0,12}) {0,2}(?:don'?t|doesn'?t|do(?:es)? not) match.{0,40}?(?:version )?(?P<driver>\d{3}\.[\d.]{1,10}\d)?"
    r"|fabric ?manager.{0,160}?(?:don'?t match|doesn'?t match|do(?:es)? not match|version[ -]mismatch|incompatible|not compatible).{0,120}|(?:driver|version[ -]mismatch|incompatible).{0,100}?(?:don'?t match|doesn'?t match|do(?:es)? not match|mismatch).{0,60}fabric ?manager"
    r"|nvidia-nvswitch\w{0,3}: .{0,40}[Vv]ersion mismatch, kernel version (?P<kernel>[\d.]{5,16}) user version (?P<user>[\d.]{5,16})|nv-fabricmanager.{0,80}(?:API|driver|interface) version.{0,80}(?:mismatch|match)",
)  # fmt: skip

UNIT_LINE = says(
    "unit-line",
    ("fabricmanager", "fabric manager", "fabric-manager"),
    r"(?:Failed to start|Unit) (?:NVIDIA )?[Ff]abric ?[Mm]anager|nvidia-fabricmanager\.service.{0,80}(?:Failed with result|could not be found|not found|control process exited|Main process exited|inactive|masked|dead|not loaded|does not exist|failed)"
    r"|(?:fabric[ -]?manager|nv-fabricmanager)(?: service)?(?: \S{1,20})? (?:is |was )?(?:not (?:running|installed|active|started|enabled|found)|stopped|inactive|disabled|missing|down|dead)\b|[Nn]o fabric[ -]?manager\b|without fabric[ -]?manager",
)  # fmt: skip

PREREQUISITE = says(
    "prerequisite",
    ("ib_umad", "nvlsm", "nvlink subnet manager", "cx7 bridge", "sw_mng", "infiniband-diags", "libibumad"),
    r"(?:ib_umad|libibumad)\S{0,12}.{0,80}(?:not (?:loaded|found|installed|present)|fail|missing|cannot|could not|No such)|(?:fail|missing|cannot|could not|not found|require|need|unable|load).{0,80}(?:ib_umad|libibumad)"
    r"|(?:nvlsm|NVLink Subnet Manager)\b.{0,80}(?:not (?:found|installed|running|started|present)|fail|missing|No such|cannot|error)|(?:fail|missing|cannot|could not|not found|unable).{0,80}(?:\bnvlsm\b|NVLink Subnet Manager)|(?:no|find|found|missing).{0,40}(?:CX7 bridge|SW_MNG)",
)  # fmt: skip

INITIALISE = says(
    "manager-fails",
    ("fabricmanager", "fabric manager", "fabric state", "nvswitch", "nvlink5"),
    r"(?:nv-fabricmanager|fabric ?manager).{0,120}(?:failed to initiali[sz]e|failed to configure|failed to start|initiali[sz]ation (?:failed|error)|topology.{0,40}(?:not|fail|mismatch)|don't match with any supported system topology|exiting|aborting|failed with error)"
    r"|Fabric(?: State| status)?[ :]{1,40}State {0,40}: In Progress|(?:detected )?number of NVSwitch.{0,60}(?:match|expected)|failed to (?:initiali[sz]e|configure).{0,60}NVSwitch|NVSwitch driver.{0,60}(?:not loaded|is not|missing|fail)",
)  # fmt: skip

MULTICAST = says(
    "multicast",
    ("nvls", "multicast", "fabric handle", "imex", "fabric manager or"),
    r"transport/nvls\.cc.{0,80}(?:NCCL WARN|WARN)(?!.{0,80}out of memory).{0,40}(?:Cuda failure|CUDA error|failed|Failed|error)|[Ff]ailed to bind NVLink SHARP|configuration error in the Fabric Manager"
    r"|(?:cuMulticast(?:Create|AddDevice|BindMem|BindAddr)|cuMemCreate)\w{0,4}.{0,120}(?:invalid argument|system not yet|not permitted|operation not supported|error (?:1|401|800|801|802|999)\b|fail)|nvls\.cc:\d{1,5}\b.{0,20}-> ?[1-9]",
)  # fmt: skip
IMEX = says(
    "imex",
    ("imex",),
    r"(?:nvidia-)?imex\b.{0,80}(?:not (?:running|installed|ready|found|configured)|fail|unavailable|missing|error|down|inactive|timed? ?out)|(?:no|missing|without|require\w{0,2}|need\w{0,2}).{0,30}\bIMEX (?:channel|daemon|domain)|/dev/nvidia-caps-imex-channels\S{0,12}.{0,40}(?:No such|not|missing|Permission)",
)  # fmt: skip

NO_SWITCH = lazy_pattern(r"NV_WARN_NOTHING_TO_DO|Nothing to do", re.IGNORECASE)
"""What Fabric Manager says on a machine without NVSwitches: noise."""
_FULL = lazy_pattern(r"\b\d{3}\.\d{2,3}(?:\.\d{2,3})?\b")
_PACKAGE = lazy_pattern(r"fabric[-_]?manager", re.IGNORECASE)
_INSTALLED = lazy_pattern(
    r"^(?:ii|hi|iU)\s{1,6}(?:cuda-drivers-fabricmanager|nvidia-fabric-?manager)\S{0,20}\s{1,80}(?P<deb>\d{3}\.[\d.]{2,12}\d)|\bnvidia-fabric-?manager(?:-\d{3})?[-=](?P<rpm>\d{3}\.\d{2,3}(?:\.\d{2,3})?)|^Fabric Manager version is : {0,3}(?P<own>\d{3}\.[\d.]{2,12}\d)"
)
_ACTIVE = lazy_pattern(r"^active\b", re.IGNORECASE)
_FAILED = lazy_pattern(r"^(?:failed|activating|crash|error)", re.IGNORECASE)
_ABSENT = lazy_pattern(r"^(?:not[- ]?found|absent|missing|not installed|none|no such)", re.IGNORECASE)
_NEEDED = lazy_pattern(r"nvlsm|umad", re.IGNORECASE)
_STOPPED = lazy_pattern(
    r"(?:Stopped|Stopping|Restarted|restart(?:ed|ing)?)\b.{0,40}fabric ?manager|fabric ?manager.{0,60}(?:was )?(?:restarted|stopped)",
    re.IGNORECASE,
)


class Manager(Struct, frozen=True):
    """What is known of Fabric Manager. ``state``: ``active``, ``failed``, ``absent``, ``stopped``, or ``""``.

    ``version`` is that of its package, ``driver`` that of the loaded kernel module, both ``""`` when unknown. ``has_switch``
    is None when nobody looked for NVSwitches.
    """

    state: str
    said: str
    version: str
    driver: str
    has_switch: bool | None
    evidence: dict[str, Evidence]

    @property
    def differs(self) -> bool | None:
        """Whether both versions are known and differ; None when one is unknown."""
        if not self.version or not self.driver:
            return None
        length = min(self.version.count("."), self.driver.count(".")) + 1
        return self.version.split(".")[:length] != self.driver.split(".")[:length] or (
            self.version.count(".") != self.driver.count(".")
        )

    def shown(self, *keys: str) -> tuple[Evidence, ...]:
        return tuple(self.evidence[key] for key in keys if key in self.evidence)


def read_manager(case: Case) -> Manager:
    """From the facts ``unit_state.*``, ``packages.*``, ``system_packages.*``, ``driver`` and ``nvswitch``, and from listings of packages."""
    evidence: dict[str, Evidence] = {}
    said = ""
    for name in (UNIT, f"{UNIT}.service", "fabricmanager", "nvidia-fabric-manager", "nv-fabricmanager"):
        fact = case.fact(f"unit_state.{name}")
        if isinstance(fact, Fact):
            said, evidence["state"] = "not-found" if fact.value is None else str(fact.value), fact.evidence
            break
    version = _version(case, evidence)
    driver_fact = case.fact("driver")
    driver = ""
    if isinstance(driver_fact, Fact) and driver_fact.value:
        found = _FULL.search(str(driver_fact.value))
        driver, evidence["driver"] = (found[0] if found else ""), driver_fact.evidence
    switch = case.fact("nvswitch")
    has_switch: bool | None = None
    if isinstance(switch, Fact):
        has_switch, evidence["nvswitch"] = bool(switch.value), switch.evidence
    errors = case.fact("gpu_errors")
    if isinstance(errors, Fact) and "Fabric State" in str(errors.value):
        evidence["fabric"] = errors.evidence
    return Manager(_state(said), said, version, driver, has_switch, evidence)


def _state(said: str) -> str:
    text = said.strip()
    if not text:
        return ""
    if _ABSENT.search(text):
        return "absent"
    if _ACTIVE.search(text):
        return "active"
    return "failed" if _FAILED.search(text) else "stopped"


def _version(case: Case, evidence: dict[str, Evidence]) -> str:
    for group in ("packages", "system_packages"):
        for name, fact in case.facts.group(group).items():
            found = _FULL.search(str(fact.value)) if _PACKAGE.search(name) and fact.value is not None else None
            if found is not None:
                evidence["version"] = fact.evidence
                return found[0]
    for log, line in case.lines():
        text = line.text[:400]
        if "abric" not in text:
            continue
        listed = _INSTALLED.search(text)
        if listed is not None:
            evidence["version"] = Evidence("the installed Fabric Manager", text.strip(), Place(log.kind, log.name, line.number))  # fmt: skip
            return listed["deb"] or listed["rpm"] or listed["own"]
    return ""


def journal_line(case: Case, pattern: re.Pattern[str], statement: str) -> tuple[Evidence, re.Match[str]] | None:
    """The first entry of the facts ``journal`` and ``kernel_log`` that matches."""
    for text, evidence in _journal(case):
        found = pattern.search(text[:1600])
        if found is not None:
            return Evidence(statement, text[:400], evidence.place, evidence.standing), found
    return None


def _journal(case: Case) -> Iterator[tuple[str, Evidence]]:
    for key in ("journal", "kernel_log"):
        fact = case.fact(key)
        if isinstance(fact, Fact) and fact.value:
            texts = fact.value if isinstance(fact.value, list | tuple) else str(fact.value).splitlines()
            yield from ((str(text), fact.evidence) for text in texts)


def absent_prerequisite(case: Case) -> Evidence | None:
    """A package, module or device file that Fabric Manager needs from NVLink 5 on, looked for in vain."""
    for group in ("packages", "system_packages", "files"):
        for name, fact in case.facts.group(group).items():
            if _NEEDED.search(name) and (fact.value is None or _ABSENT.search(str(fact.value))):
                return Evidence(f"{name} is absent", f"{name}: {fact.value}", fact.evidence.place or Place("facts", fact.key), fact.evidence.standing)  # fmt: skip
    return None


def restarted(case: Case) -> Evidence | None:
    """Fabric Manager was stopped and started, which leaves the GPUs in the fabric of before."""
    told = journal_line(case, _STOPPED, "Fabric Manager was stopped or restarted")
    if told is not None:
        return told[0]
    for name, fact in case.facts.group("tests").items():
        if re.search(r"reset", name, re.IGNORECASE) and re.search(
            r"not done|none|without|skipped|no\b", str(fact.value), re.IGNORECASE
        ):
            return fact.evidence
    return None


def first(case: Case, *signs: str) -> Match | None:
    """The first match of these signs that is neither quoted code nor a debug line, in the order of the signs."""
    for sign in signs:
        for match in case.all(sign):
            if not match.is_code and match.line.level != "debug" and not NO_SWITCH.search(match.text):
                return match
    return None


def install(version: str) -> str:
    """The command that installs Fabric Manager of a driver's version; of the loaded one, asked there, where it is not known here."""
    if re.fullmatch(r"\d{3}\.[\d.]{1,12}", version):
        return f"apt-get install nvidia-fabricmanager-{version.partition('.')[0]}={version}-1"
    return 'v=$(cat /sys/module/nvidia/version) && apt-get install "nvidia-fabricmanager-${v%%.*}=$v*"'


def missing(case: Case, manager: Manager) -> tuple[Missing, ...]:
    """What decides between the two causes."""
    asked = (
        case.missing(f"unit_state.{UNIT}", "whether Fabric Manager runs, and what it says", f"systemctl status {UNIT}; journalctl -u {UNIT} -b"),
        None if manager.version else case.missing(f"packages.{UNIT}", "whether its version is the driver's, to the last digit", "dpkg -l '*fabric*manager*' || rpm -qa '*fabric*manager*'"),
        None if manager.driver else case.missing("driver", "the version of the loaded driver", "cat /proc/driver/nvidia/version"),
        case.missing("nvswitch", "whether the machine has NVSwitches at all", "lspci | grep -i -e nvswitch -e 'Bridge: NVIDIA'"),
        case.missing("journal", "what Fabric Manager logged", f"journalctl -u {UNIT} -b"),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


SIGNS = (NOT_READY, MISMATCH, UNIT_LINE, PREREQUISITE, INITIALISE, MULTICAST)

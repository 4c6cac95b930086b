"""The direct path between two GPUs: what host facts and pasted diagnostics say about it."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.distributed._log_lines import Seen, fact_texts, first, holding
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact

_ACS_ON = lazy_pattern(r"(?:SrcValid|ReqRedir|CmpltRedir)\+")
_TRANSLATED = lazy_pattern(r"Default domain type: Translated|DMAR: IOMMU enabled|IOMMU is (?:translated|on\b|enabled)|iommu=(?:on|force)\b|intel_iommu=on|AMD-Vi: .{0,40}enabled", re.IGNORECASE)  # fmt: skip
_FAULT = lazy_pattern(r"IO_PAGE_FAULT|DMAR: .{0,60}[Ff]ault|\[fault reason")
_WORKS_WITHOUT = lazy_pattern(
    r"(?i)NCCL_P2P_DISABLE[= ]+[\"']?1.{0,160}\b(?:works?|worked|fix\w{0,3}|solve[sd]?|resolve[sd]?|helps?|helped|complete[sd]?|completes|passes|passed|success\w{0,5}|fine|finish\w{0,2}|no (?:more )?hang)"
    r"|\b(?:works?|worked|completes?|fine|fixed|solved|resolved|passes|succeeds|finishes)\b.{0,60}(?:with|by|after|when|using|setting|if) .{0,40}NCCL_P2P_DISABLE"
)
_HANGS_ALL_THE_SAME = lazy_pattern(r"(?i)\b(?:both|also|still|either way|with and without|regardless)\b.{0,60}\b(?:hangs?|fails?|hung|stuck)|hangs? .{0,40}(?:both|either|too|as well)|(?:works|completes|passes) .{0,20}(?:both|either way|with and without)|no difference")  # fmt: skip
_SHARED_MEMORY = lazy_pattern(r"via SHM/direct|via SHM\b|Channel \d{2}.{0,60} via SHM")
_FINISHED = lazy_pattern(
    r"(?i)all_?reduce.{0,20}result ?[=:]|test complete|Avg bus bandwidth|all[_-]?reduce (?:ok|done|passed|success\w*)|PASSED"
)
_UNVERIFIED = lazy_pattern(r"Verification error @ element|Test failed!.{0,40}|P2P .{0,40}(?:data )?(?:mismatch|corrupt\w*|verification failed)|Enabling peer access .{0,200}hang", re.IGNORECASE)  # fmt: skip
IOMMU_OFF = lazy_pattern(r"(?:intel_|amd_)?iommu=(?:off|pt)\b")


class PeerPath(msgspec.Struct, frozen=True):
    """What is known. Each is None when nobody looked."""

    works_without: Evidence | None
    """A reduction completes with NCCL_P2P_DISABLE=1 and not with peer access."""
    makes_no_difference: Evidence | None
    redirected: Evidence | None
    """ACS sends peer traffic up to the root complex."""
    translated: Evidence | None
    """The IOMMU translates."""
    fault: Evidence | None
    """The IOMMU refused an access of a device."""
    unverified: Evidence | None
    """A peer-to-peer test read other data than was written."""
    is_clean: bool
    """IOMMU off or in pass-through, and no ACS redirection: looked at, and in order."""

    @property
    def mechanism(self) -> Evidence | None:
        """What stands in the way, the surest first."""
        return self.fault or self.redirected or self.translated


def read(case: Case) -> PeerPath:
    """From given or collected facts first, then from what the report pastes."""
    tested = _test(case)
    redirected = _acs(case)
    translated = _iommu(case)
    mode = case.facts.value("iommu")
    acs = case.fact("pci_acs")
    return PeerPath(
        works_without=tested[0],
        makes_no_difference=tested[1],
        redirected=redirected,
        translated=translated,
        fault=_page_fault(case),
        unverified=_seen(
            first(case, _UNVERIFIED, ("erification", "est failed", "P2P")),
            "a peer-to-peer test reads other data than was written",
        ),
        is_clean=str(mode) in ("off", "passthrough") and isinstance(acs, Fact) and redirected is None,
    )


def _test(case: Case) -> tuple[Evidence | None, Evidence | None]:
    fact = case.fact("p2p_test")
    if isinstance(fact, Fact):
        text = str(fact.value or "")
        if _HANGS_ALL_THE_SAME.search(text):
            return None, fact.evidence
        if re.search(r"(?i)P2P_DISABLE|without (?:peer|P2P)", text) and re.search(
            r"(?i)complet|works|ok|pass|fine|success|finish", text
        ):
            return fact.evidence, None
        if re.fullmatch(r"(?i)\s*(?:ok|works|passed|completes|success\w*)\b.{0,80}", text):
            return None, fact.evidence
        return None, None
    for name, tried in case.facts.group("tests").items():
        told = f"{name}={tried.value}"[:600]
        if "NCCL_P2P_DISABLE" in told and re.search(r"(?i)complet|works|\bok\b|pass|fine|succe|finish|no hang", told):
            return tried.evidence, None
    said = first(case, _WORKS_WITHOUT, ("NCCL_P2P_DISABLE",))
    if said is not None and not _HANGS_ALL_THE_SAME.search(said.text[:600]):
        return said.evidence("without peer access it works"), None
    return _shown_to_work(case), None


def _shown_to_work(case: Case) -> Evidence | None:
    """A pasted run with the variable set that goes through host memory and ends."""
    variable: Seen | None = None
    through: Seen | None = None
    for seen in holding(case, ("NCCL_P2P_DISABLE", " via ", "educe", "complete", "bandwidth", "PASSED")):
        text = seen.line.text[:400]
        if "NCCL_P2P_DISABLE" in text and re.search(
            r"NCCL_P2P_DISABLE ?(?:=|set by environment to|set to) ?[\"']?1", text
        ):
            variable = seen
        elif variable is not None and _SHARED_MEMORY.search(text):
            through = seen
        elif variable is not None and _FINISHED.search(text):
            return (through or seen).evidence("with NCCL_P2P_DISABLE=1 the same reduction completes")
    return None


def _acs(case: Case) -> Evidence | None:
    fact = case.fact("pci_acs")
    if isinstance(fact, Fact):
        on = [text for text in fact_texts(case, "pci_acs") if _ACS_ON.search(text)]
        return fact.evidence if on else None
    return _seen(first(case, re.compile(r"ACSCtl:.{0,40}(?:SrcValid|ReqRedir|CmpltRedir)\+"), ("ACSCtl",)), "ACS sends peer traffic up to the root complex")  # fmt: skip


def _iommu(case: Case) -> Evidence | None:
    fact = case.fact("iommu")
    if isinstance(fact, Fact):
        return fact.evidence if str(fact.value) == "translated" else None
    return _seen(first(case, _TRANSLATED, ("ommu", "IOMMU", "AMD-Vi")), "the IOMMU is on")


def _page_fault(case: Case) -> Evidence | None:
    seen = _seen(first(case, _FAULT, ("IO_PAGE_FAULT", "DMAR", "fault reason")), "the IOMMU refused an access of a device")  # fmt: skip
    if seen is not None:
        return seen
    fact = case.fact("kernel_log")
    if isinstance(fact, Fact):
        text = next((text for text in fact_texts(case, "kernel_log") if _FAULT.search(text[:1600])), None)
        if text is not None:
            return msgspec.structs.replace(fact.evidence, quote=text, statement="the IOMMU refused an access of a device")  # fmt: skip
    return None


def _seen(seen: Seen | None, statement: str) -> Evidence | None:
    return seen.evidence(statement) if seen is not None else None

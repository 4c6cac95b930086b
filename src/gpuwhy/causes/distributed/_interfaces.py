"""Network interfaces: which one a library was told to use or chose, and which the host really has."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.distributed._log_lines import Seen, fact_texts, matching
from gpuwhy.model.evidence import Evidence

VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME")
_SET_BY = lazy_pattern(r"(?P<variable>(?:NCCL|GLOO|TP|NVSHMEM_BOOTSTRAP_UID)_SOCK(?:ET)?_IFNAME) ?(?:set by environment to|set to|=) ?[\"']?(?P<value>[^\s\"',;]{1,120})")  # fmt: skip
_CHOSEN = lazy_pattern(r"(?:Bootstrap ?:|NET/Socket ?:|Gloo.{0,30}) ?Using (?:\[\d\])?(?P<name>[\w.-]{1,40}):(?P<address>[\w.:%]{2,60}?)(?:<\d{1,5}>)?(?:\s|$|\[)")  # fmt: skip
_VIRTUAL = lazy_pattern(r"^(?:lo\d*|docker\w*|veth\w*|virbr\w*|br-\w+|cni\w*|flannel\w*|cali\w*|cilium\w*|lxc\w*|lxd\w*|tailscale\w*|wg\d*|tun\d*|tap\d*|ibs\w*|ibp\w*|vmnet\w*|kube\w*|podman\w*|nerdctl\w*|dummy\w*|sit\d*|zt\w+)$")  # fmt: skip
LOCAL_ONLY = lazy_pattern(r"(?:^|[\[(/ :=])(?:127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1|169\.254\.\d{1,3}\.\d{1,3}|172\.1[78]\.0\.\d{1,3}|fe80:[\w:%]{2,40})")  # fmt: skip
"""Addresses that another host never reaches: loopback, link-local, Docker's bridge."""


class Choice(msgspec.Struct, frozen=True):
    """A variable that names interfaces, with the line or fact that shows it."""

    variable: str
    value: str
    evidence: Evidence

    @property
    def is_list(self) -> bool:
        """NCCL's forms that Gloo does not know: exclusion, exact match, several names."""
        return self.value.startswith(("^", "=")) or "," in self.value

    @property
    def name(self) -> str:
        return self.value.lstrip("^=").partition(",")[0].partition(":")[0]


def told(case: Case) -> tuple[Choice, ...]:
    """Variables that choose an interface: in the log first, then as facts."""
    found: dict[str, Choice] = {}
    for seen in matching(case, _SET_BY, ("IFNAME",)):
        name, value = seen.groups["variable"], seen.groups["value"].rstrip(".")
        found.setdefault(name, Choice(name, value, seen.evidence(f"{name} is {value}")))
    for name in VARIABLES:
        value, evidence = case.facts.value(f"env.{name}"), case.fact_evidence(f"env.{name}")
        if isinstance(value, str) and value and evidence is not None:
            found.setdefault(name, Choice(name, value, evidence))
    return tuple(found.values())


def chosen(case: Case) -> Seen | None:
    """The first line by which NCCL says over which interface the ranks meet; groups ``name`` and ``address``."""
    return next(matching(case, _CHOSEN, ("Using",)), None)


def of_host(case: Case) -> tuple[str, ...]:
    """Names of the host's interfaces; nothing when nobody looked."""
    names = (re.split(r"[\s:@(]", text.strip(), maxsplit=1)[0] for text in fact_texts(case, "net_interfaces"))
    return tuple(name for name in names if name)


def physical(names: tuple[str, ...]) -> str | None:
    """The first that can lead to another host."""
    return next((name for name in names if not _VIRTUAL.match(name)), None)


def is_absent(choice: Choice, names: tuple[str, ...]) -> bool:
    """The named interface is none of the host's. NCCL takes a name as a prefix."""
    return bool(names) and not choice.value.startswith("^") and not any(name.startswith(choice.name) for name in names)

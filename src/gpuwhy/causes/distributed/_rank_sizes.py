"""Parallel sizes that do not go into each other: groups of DP attention, expert or decode context parallelism within the ranks."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._signs import Sign, says
from gpuwhy.model.finding import Certainty, Link, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_OUTER = r"(?:self\.|server_args\.)?(?:tp_size|tensor_parallel_size|tensor_model_parallel_size|num_physical_experts)"
_INNER = r"(?:self\.|server_args\.)?(?P<inner>dp|dcp|decode_context_parallel|ep|attn_cp|moe_dp)(?:_size)?"
SIGN: Sign = says(
    "sizes-of-ranks",
    ("dp_size", "dcp_size", "ep_size", "cp_size", "decode_context_parallel_size"),
    rf"{_OUTER}\W{{0,3}}(?P<outer>\d{{1,4}})?\W{{0,3}}(?:(?:must|should|has to|needs to) be (?:evenly )?divisible by|%)\W{{0,4}}{_INNER}\b\W{{0,3}}(?P<size>\d{{1,4}})?",
)
_ARGUMENTS = {
    "dp": ("dp_size", "data_parallel_size"),
    "dcp": ("dcp_size", "decode_context_parallel_size"),
    "ep": ("ep_size", "expert_parallel_size"),
    "attn_cp": ("attn_cp_size", "attention_context_parallel_size"),
    "moe_dp": ("moe_dp_size",),
}
_FLAGS = {
    "sglang": {"dp": "--dp-size", "dcp": "--dcp-size", "ep": "--ep-size", "attn_cp": "--attention-context-parallel-size", "moe_dp": "--moe-dp-size"},
    "vllm": {"dp": "--data-parallel-size", "dcp": "--decode-context-parallel-size"},
}  # fmt: skip
_MOST = 4096


class RankSizes(msgspec.Struct, frozen=True):
    """``inner`` names the smaller groups; ``ranks``, ``size``: how many ranks, how many of such groups. None: not known."""

    match: Match
    inner: str
    ranks: int | None
    size: int | None
    of_experts: bool

    @property
    def best(self) -> int | None:
        """The largest smaller size that goes into the ranks."""
        if not self.ranks or not self.size:
            return None
        return next((each for each in range(min(self.size, self.ranks + 1) - 1, 0, -1) if self.ranks % each == 0), None)


def rank_sizes(case: Case) -> RankSizes | None:
    """None where no such check failed. A quoted condition counts where the failure is an assertion without words."""
    for match in case.all(SIGN.name):
        if match.is_code and not _is_asserted(match):
            continue
        inner = {"decode_context_parallel": "dcp"}.get(match.group("inner") or "", match.group("inner") or "")
        outer, size = match.group("outer"), match.group("size")
        of_experts = "num_physical_experts" in match.text
        ranks = int(outer) if outer else None if of_experts else _stated(case, ("tp_size", "tensor_parallel_size"))
        return RankSizes(match, inner, ranks, int(size) if size else _stated(case, _ARGUMENTS[inner]), of_experts)
    return None


def _is_asserted(match: Match) -> bool:
    return "assert" in match.text and match.event is not None and any("Assertion" in block.type for block in match.event.exceptions)  # fmt: skip


def _stated(case: Case, names: tuple[str, ...]) -> int | None:
    for name in names:
        value = case.facts.value(f"server_args.{name}")
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST:
            return value
    return None


def verdict_of(case: Case, found: RankSizes) -> Verdict:
    """The check and the size that goes into the ranks."""
    engine = case.engine if case.engine in _FLAGS else "sglang" if found.inner in ("attn_cp", "moe_dp", "ep") else "vllm"  # fmt: skip
    flag = _FLAGS[engine].get(found.inner, f"--{found.inner.replace('_', '-')}-size")
    whole = "the number of experts (copies included)" if found.of_experts else "the tensor-parallel size"
    numbers = f" ({found.ranks} by {found.size})" if found.ranks and found.size else ""
    shown = case.evidence(found.match, f"{whole} does not divide by {flag}{numbers}")
    value = str(found.best) if found.best else "lower"
    return Verdict(
        certainty=Certainty.PROVEN,
        component=engine,
        title=f"{flag}{f' {found.size}' if found.size else ''} does not go into {whole}{f' {found.ranks}' if found.ranks else ''}",
        chain=(
            Link("Ranks are divided into groups of one size", inferred("the start command")),
            Link("The groups do not come out even", shown),
            Link("The check ends the start"),
        ),
        evidence=(shown,),
        explains=case.explains(found.match),
        remedies=(Remedy(kind="flag", name=flag, value=value, summary=f"A size that divides{f': {value}' if found.best else f' {whole}'}", rank=0),),
        not_remedies=(NotARemedy("less memory, another attention backend", "the check is one of sizes"),),
        strength=80,
    )  # fmt: skip

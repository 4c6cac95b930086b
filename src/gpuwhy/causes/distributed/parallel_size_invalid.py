"""parallel-size-invalid: the model does not divide by the chosen parallel size."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.distributed import _parallel
from gpuwhy.causes.distributed._parallel import FLAGS, Size
from gpuwhy.causes.distributed._rank_sizes import SIGN as SIZES_OF_RANKS
from gpuwhy.causes.distributed._rank_sizes import rank_sizes, verdict_of
from gpuwhy.causes.memory import _use as uses
from gpuwhy.causes.memory._allocation import total_of
from gpuwhy.causes.memory._budget import Budget
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.memory_use import MemoryUse
from gpuwhy.model.remedy import NotARemedy, Remedy

_VLLM = lazy_pattern(
    r"VllmConfig|Total number of attention heads \(\d{1,6}\) must|Weight (?:in|out)put_(?:size_per_|)partition\w{0,10} = |weight quantization block_[nk]"
)
"""Words of vLLM's own checks (SGLang took the last two over; its frames name it)."""
_MIXTURE = lazy_pattern(r"(?i)moe|expert|gate's and up's|down's weight|w13|w2_weight|mixtral")
_ROUTED = lazy_pattern(r"FusedMoE|fused_moe|moe_layer|/moe/|_moe\.py|SparseMoe|experts\b")
_OF_MODEL = lazy_pattern(r"(?i)head|vocab|hidden|layer|intermediate|embedding|group|expert|partition|tp_size|world_size|output_size|input_size|size_[nk]\b|weight|shard|\bnum_|dim")  # fmt: skip
_BY_RANKS = lazy_pattern(r"(?i)tensor|\btp|parallel|shard|world|rank|pipeline|\bpp|expert[-_ ]parallel|\bep[-_ s]|\bdp|node|mp_size|devices?\b|gpus?\b")  # fmt: skip
_PARALLEL_FRAME = lazy_pattern(
    r"parallel|distributed|model_executor|layers|models|tensorrt_llm|lmdeploy|text_generation_server"
)


class Division(msgspec.Struct, frozen=True):
    """A division that leaves a rest.

    ``whole`` is divided by the parallel size when ``is_direct``; otherwise ``part`` is the share of one rank, and it is
    no multiple of ``tile``. ``size`` as far as the message names it.
    """

    match: Match
    is_direct: bool
    whole: int | None = None
    part: int | None = None
    tile: int | None = None
    size: int | None = None
    of_experts: bool = False
    is_pipeline: bool = False
    is_count: bool = False
    """More ranks than GPUs or experts: no division at all."""
    is_launch: bool = False
    """The engine was built for ``whole`` ranks, and another number of processes was started."""


@cause(
    "parallel-size-invalid",
    family="Distributed",
    signs=[
        says(
            "must-divide",
            ("must be divisible", "should be divisible", "not divisible", "be evenly divisible", "must divide", "has to be divisible", "be a multiple of", "needs to be divisible", "isn't divisible", "does not divide", "divisible by"),
            r"(?<!\w)(?=\S)(?P<what>[\w`'. -]{0,80}?)[ =:`(]{0,3}(?P<whole>\d{1,9})?[)`]{0,2},? ?(?:is |are )?(?:must|should|has to|have to|needs to|need to|not|isn't|does not|is not)(?: be)?(?: evenly)? (?:divisible|divide\w?|a multiple)(?: by| of)?(?P<by>.{0,120})",
        ),
        says(
            "assertion",
            ("% tp", "%tp", "tp_size == 0", "% self.tp", "% tensor", "% world_size", "% num_shards", "% self.total_num_kv_heads", "% ep_size", "% mp_size", "% process_group", "// tp_size == 0", "% parallel"),
            r"assert\b.{0,120}(?:% ?(?:\w{1,30}\.){0,4}(?:tp|attn_tp|moe_tp|tensor|world_size|num_shards|ep|mp|process_group|parallel|pp)\w{0,40}|(?:tp|tensor_model_parallel|world)_?(?:world_)?size % .{1,60}).{0,12}== ?0",
        ),
        says(
            "shard-misaligned",
            ("too large tensor parallel", "is not compatible with sharding", "not aligned with the quantized weight", "tile_n_size", "tile_k_size", "min_thread_", "invalid thread config", "consider reducing tensor_parallel_size", "% weight_block_size"),
            r"caused by too large tensor parallel|is not compatible with sharding on (?P<shards>\d{1,4}) shards|size_[nk] ?= ?(?P<part>\d{1,9}) is not divisible by tile_[nk]_size ?= ?(?P<tile>\d{1,6})|min_thread_[nk] ?= ?\d{1,6}|Invalid thread config|Consider reducing tensor_parallel_size|% weight_block_size_n ?=",
        ),
        says(
            "started-with-others",
            ("world size", "mpisize == tp", "mpi size"),
            r"[Ee]ngine world size \((?P<whole>\d{1,4})\) != [Rr]untime world size \((?P<size>\d{1,4})\)|mpiSize == tp \* pp|World size (?P<whole2>\d{1,4}) (?:does not match|is not equal to|!=) (?:the )?(?:MPI|runtime|launched) (?:world )?size (?P<size2>\d{1,4})",
        ),
        says(
            "too-many",
            ("cannot be larger than the number of available", "greater than the number of experts", "exceeds the number of", "larger than the number of attention heads", "is greater than the number of"),
            r"(?:tensor|tp|pipeline|world|expert|parallel).{0,60}\(?(?P<size>\d{1,4})?\)? ?(?:cannot be larger than|is (?:greater|larger) than|exceeds) the (?:total )?number of (?:available )?(?:GPUs|experts|attention heads|key/value heads|kv heads|layers|heads|devices)",
        ),
        SIZES_OF_RANKS,
    ],
)  # fmt: skip
def parallel_size_invalid(case: Case) -> Judgement:
    """The model's dimensions do not divide by the chosen parallel size.

    How it shows itself
      `Total number of attention heads (52) must be divisible by tensor parallel size (8)`, `151936 is not divisible by 7`, `The
      output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128`, `size_n = 9496 is not
      divisible by tile_n_size = 64`, or a bare AssertionError below `assert num_heads % tp_size == 0`.

    Why it happens
      Tensor parallelism gives each GPU the same share of heads, columns and vocabulary. The number of heads (and of key-value
      heads) must divide by it. With quantised weights each share must also be a multiple of the kernel's tile or of the
      quantisation block: 1536 / 8 = 192 is no multiple of 128, 1536 / 4 = 384 is.

    How to be sure
      Arithmetic with the model's config.json: num_attention_heads, num_key_value_heads, intermediate_size,
      moe_intermediate_size, vocab_size. If it does not divide at size 1 either, the size is not the reason.

    What helps
      A tensor-parallel size that divides everything, with pipeline parallelism for the other GPUs. For mixtures of experts
      expert parallelism, which gives each GPU whole experts.

    What does not help
      Downloading the weights again. More memory, another attention backend.

    Not to be confused with
      quantization-unsupported: it does not divide at size 1 either (the advice to reduce the size is then useless), bad-argument,
      no-device-visible (fewer GPUs are visible than there are).
    """
    sizes = rank_sizes(case)
    if sizes is not None:
        return verdict_of(case, sizes)
    division = _division(case)
    if division is None:
        return None
    size = _size(case, division)
    alone = _fails_alone(case, division, size)
    if alone is not None:
        return alone
    seen = case.evidence(division.match, _arithmetic(division, size))
    certainty = _certainty(division, size)
    shown = size.evidence if size is not None else None
    return Verdict(
        certainty=certainty,
        component=_component(case, division),
        title=_title(division, size),
        chain=(
            Link("A parallel size was chosen that the model does not divide by", shown or inferred("the start command")),
            Link(_arithmetic(division, size), seen),
            Link("The check ends the start"),
        ),
        evidence=tuple(each for each in (seen, shown, _calculated(case, division, size)) if each is not None),
        explains=case.explains(division.match),
        missing=_missing(case, size, certainty),
        rivals=("quantization-unsupported",) if certainty is not Certainty.PROVEN and not division.is_direct else (),
        remedies=_remedies(case, division, size),
        not_remedies=_IN_VAIN,
        strength=80 if division.is_direct else 65,
        memory=_memory(case),
    )  # fmt: skip


def _memory(case: Case) -> tuple[MemoryUse, ...]:
    """What the model would take of each GPU at that size; the settings that are refused stand beside it."""
    return uses.gpu_uses(case, case.engine, Budget(), total_of(case, ()))


def _division(case: Case) -> Division | None:
    for match in case.all("must-divide", "shard-misaligned", "too-many", "started-with-others"):
        if match.is_code:
            continue
        found = _read(case, match)
        if found is not None:
            return found
    for match in case.all("assertion"):  # the quoted condition is the message: such asserts have none
        if match.event is None or any("Assertion" in block.type for block in match.event.exceptions):
            return Division(match, is_direct=True, of_experts=_is_mixture(case, match))
    return None


def _read(case: Case, match: Match) -> Division | None:
    text = match.text[:1600]
    if match.sign == "too-many":
        size, there = match.group("size"), _THERE.search(text)
        return Division(match, is_direct=True, size=int(size) if size else None, whole=int(there[1]) if there else None, is_count=True)  # fmt: skip
    if match.sign == "started-with-others":
        ranks = match.group("whole") or match.group("whole2")
        return Division(match, is_direct=True, whole=int(ranks) if ranks else None, is_count=True, is_launch=True)
    if match.sign == "shard-misaligned":
        return _misaligned(case, match, text)
    by = match.group("by") or ""
    numbers = [int(number) for number in re.findall(r"(?<![\w.])(\d{1,9})(?![\w.]*\d)", by)]
    printed = match.group("whole")
    whole = int(printed) if printed else None
    if re.search(
        r"block_[nk]|min_thread|tile_|group_size|weight quantization|thread_[nk]|\b(?:16|32|64|128|256)\b", by
    ) and not _BY_RANKS.search(by.partition("Consider")[0]):
        if not re.search(
            r"(?i)partition|output_size|input_size|size_[nk]|shard|per_rank|intermediate|hidden|weight", text
        ):
            return None
        if whole is None and not re.search(r"(?i)partition|shard|per_rank", text):
            return None  # a dimension of the model that no kernel takes, at any size
        tile = numbers[0] if numbers else None
        return Division(match, is_direct=False, part=whole, tile=tile, of_experts=_is_mixture(case, match))
    ranks = text if "divide " in text else by  # "the world size must divide num_heads"
    if not (_BY_RANKS.search(ranks) or _is_of_parallel_layers(match)) or re.search(
        r"(?i)batch|page|block[ _-]size|seq|chunk|image|width|height|micro", text
    ):
        return None
    if not _OF_MODEL.search(text) and not _is_of_parallel_layers(match):
        return None
    is_pipeline = re.search(r"(?i)pipeline|\bpp", by) is not None
    got = re.search(r"got .{0,40}?(\d{1,9}).{0,40}?(\d{1,4})\b", by)
    if got is not None:
        whole, numbers = int(got.group(1)), [int(got.group(2))]
    return Division(match, is_direct=True, whole=whole, size=numbers[0] if numbers else None, of_experts=_is_mixture(case, match), is_pipeline=is_pipeline)  # fmt: skip


_THERE = lazy_pattern(r"the (?:total )?number of (?:available )?[A-Za-z/ -]{1,30}?[ (:=]{1,3}(\d{1,5})\b", re.ASCII)
"""More ranks than there are GPUs or experts: how many there are."""


def _misaligned(case: Case, match: Match, text: str) -> Division | None:
    mixture = _is_mixture(case, match)
    formula = re.search(r"moe_intermediate_size=(\d{1,9}) / moe_tp_size=(\d{1,4})\) % weight_block_size_n=(\d{1,6})", text)  # fmt: skip
    if formula is not None:
        total, ranks, block = (int(number) for number in formula.groups())
        return Division(match, is_direct=False, whole=total, part=total // max(ranks, 1), tile=block, size=ranks, of_experts=True)  # fmt: skip
    if match.group("shards"):
        whole = re.search(r"size (\d{1,9}) is not compatible", text)
        return Division(match, is_direct=True, whole=int(whole.group(1)) if whole else None, size=int(match.group("shards") or 0) or None)  # fmt: skip
    part, tile = match.group("part"), match.group("tile")
    if part is None:
        found = re.search(r"= ?(\d{1,9}) is not divisible by +(?:min_thread_[nk]|tile_[nk]_size) ?= ?(\d{1,6})", text)
        part, tile = (found.group(1), found.group(2)) if found is not None else (None, None)
    if part is None and "too large tensor parallel" not in text:
        return None  # a thread configuration can be refused for other reasons than the share of a rank
    return Division(match, is_direct=False, part=int(part) if part else None, tile=int(tile) if tile else None, of_experts=mixture)  # fmt: skip


def _is_mixture(case: Case, match: Match) -> bool:
    if _MIXTURE.search(match.text[:1600]):
        return True
    return any(_ROUTED.search(f"{frame.path} {frame.code}") for frame in match.frames[-8:]) or any(
        _ROUTED.search(line.text[:300]) for line in case.lines_around(match, 12, 0)
    )


def _is_of_parallel_layers(match: Match) -> bool:
    """``ensure_divisibility`` and its like: the message holds two numbers and nothing else."""
    bare = (
        re.search(r"(?:AssertionError|ValueError)?:? ?\b\d{1,9} is not divisible by \d{1,4}\b", match.text) is not None
    )
    if not bare:
        return False
    return not match.frames or any(_PARALLEL_FRAME.search(frame.path) for frame in match.frames)


def _size(case: Case, division: Division) -> Size | None:
    """The size in question: as the message names it, else as the server was given it."""
    if division.size is not None:
        return Size(division.size, None)
    given = _parallel.tensor(case)
    if (given is None or given.at_least) and division.part:
        return _from_model(case, division.part) or given
    return given


def _from_model(case: Case, part: int) -> Size | None:
    """The size that makes a rank's share of one of the model's dimensions."""
    for name in ("moe_intermediate_size", "intermediate_size", "hidden_size", "vocab_size"):
        whole = case.facts.value(f"model.{name}")
        if not isinstance(whole, int) or isinstance(whole, bool) or whole % part:
            continue
        if 0 < whole // part <= _parallel.MOST:
            return Size(whole // part, case.fact_evidence(f"model.{name}", f"{name} is {whole}, a rank's share {part}"))
    return None


def _whole(division: Division, size: Size | None) -> int | None:
    if division.whole is not None:
        return division.whole
    if division.part is None or size is None or size.at_least:
        return None
    return division.part * size.value


def _fails_alone(case: Case, division: Division, size: Size | None) -> RuledOut | None:
    """What does not divide for one GPU either is not the parallel size's fault."""
    if division.is_direct or division.tile is None:
        return None
    if size is not None and not size.at_least and size.value == 1:
        shown = (size.evidence,) if size.evidence is not None else ()
        return RuledOut("it does not divide at parallel size 1 either", (case.evidence(division.match, "the division"), *shown))  # fmt: skip
    whole = _whole(division, size)
    if whole is not None and whole % division.tile:
        return RuledOut(f"{whole} is no multiple of {division.tile} at parallel size 1 either", (case.evidence(division.match, "the division"),))  # fmt: skip
    return None


def _certainty(division: Division, size: Size | None) -> Certainty:
    if division.is_count:
        return Certainty.LIKELY
    if division.is_direct:
        return Certainty.PROVEN
    if _whole(division, size) is not None:
        return Certainty.PROVEN
    return Certainty.LIKELY if size is not None and size.value > 1 else Certainty.POSSIBLE


def _arithmetic(division: Division, size: Size | None) -> str:
    if division.is_launch:
        return "another number of processes was started than the engine was built for"
    if division.is_count:
        return "more ranks than there is to share"
    if division.is_direct:
        if division.whole is not None and size is not None:
            return f"{division.whole} / {size.value} leaves a rest of {division.whole % size.value}"
        return "a dimension of the model does not divide by the parallel size"
    whole = _whole(division, size)
    if whole is not None and size is not None and division.part is not None:
        return f"{whole} / {size.value} = {division.part}, which is no multiple of {division.tile}"
    return f"a rank's share{f' of {division.part}' if division.part else ''} is no multiple of what the kernel needs"


def _title(division: Division, size: Size | None) -> str:
    if division.is_launch:
        return "The number of processes is not the parallel size that the engine was built for"
    kind = "pipeline" if division.is_pipeline else "tensor"
    named = f"{kind}-parallel size {size.value}" if size is not None and not size.at_least else "the parallel size"
    return f"The model does not divide by {named}"


def _calculated(case: Case, division: Division, size: Size | None) -> Evidence | None:
    best = _best(case, division, size)
    if best is None:
        return None
    whole = _whole(division, size)
    return derived(f"{best} is the largest smaller size that fits{f': {whole} / {best} = {whole // best}' if whole else ''}", "arithmetic")  # fmt: skip


def _best(case: Case, division: Division, size: Size | None) -> int | None:
    """The largest smaller size that divides, powers of two first; all that the model is known to have, where it is known."""
    if size is None or size.at_least or division.is_launch:
        return None
    whole = _whole(division, size)
    if whole is None:
        return None
    if division.is_count:
        return 1 << (whole.bit_length() - 1) if 0 < whole < size.value else None
    units = (whole,) if division.is_direct else (whole, whole // division.tile) if division.tile else (whole,)
    best = _parallel.dividing(min(size.value, _parallel.MOST), *units) or 1
    if best & (best - 1) and not division.is_direct and not case.facts.group("model"):
        return 1  # the columns divide by it, the heads, of which nothing is known, hardly
    while best > 1 and not division.is_pipeline and _is_refused(case, best):
        best = _parallel.dividing(best, *units) or 1
    return best


def _is_refused(case: Case, size: int) -> bool:
    """Whether another of the model's dimensions does not divide by that size, as the calculator has it."""
    config = {name: fact.value for name, fact in case.facts.group("model").items() if fact.value is not None}
    if not config:
        return False
    from gpuwhy.fit.architecture import read_architecture
    from gpuwhy.fit.constraints import broken
    from gpuwhy.fit.hardware import hardware_of
    from gpuwhy.fit.settings import Settings
    from gpuwhy.knowledge.gpu_memory_sizes import memory_of

    memory = memory_of("80 GB")
    engine = "sglang" if case.engine == "sglang" else "vllm"
    return memory is not None and bool(broken(read_architecture(config), Settings(engine=engine, tensor=size), hardware_of(memory, size)))  # fmt: skip


def _component(case: Case, division: Division) -> str | None:
    if case.engine:
        return case.engine
    if _VLLM.search(division.match.text[:1600]):
        return "vllm"
    return case.component_near(division.match, "user-program")


def _missing(case: Case, size: Size | None, certainty: Certainty) -> tuple[Missing, ...]:
    if certainty is Certainty.PROVEN or (size is not None and not size.at_least):
        return ()
    wanted = (
        case.missing("command", "the parallel size: whether it divides at size 1", "tr '\\0' ' ' < /proc/PID/cmdline"),
        case.missing("model.intermediate_size", "the model's dimension that is shared out", "grep -E 'intermediate_size|hidden_size|num_.*heads' MODEL/config.json"),
    )  # fmt: skip
    return tuple(each for each in wanted if each is not None)


def _remedies(case: Case, division: Division, size: Size | None) -> tuple[Remedy, ...]:
    if division.is_launch:
        ranks = str(division.whole) if division.whole else "tensor- times pipeline-parallel size of the engine"
        return (Remedy(kind="flag", name="mpirun -n", value=ranks, summary=f"Start as many processes as the engine has ranks: mpirun -n {ranks}"), Remedy(kind="flag", name="--tp_size", value="number of processes", summary="Or build the engine for the number that is started", cost="a build", is_sure=False))  # fmt: skip
    engine = case.engine if case.engine in FLAGS else "vllm"
    tensor, pipeline, expert = FLAGS[engine]
    best = _best(case, division, size)
    remedies = []
    if division.of_experts and expert and not division.is_direct:
        value = (
            ""
            if engine == "vllm"
            else str(size.value)
            if size is not None and not size.at_least
            else "equal to the tensor-parallel size"
        )
        remedies.append(Remedy(kind="flag", name=expert, value=value, summary="Give each GPU whole experts instead of slices of all", rank=0))  # fmt: skip
    remedies.append(
        Remedy(
            kind="flag", name=pipeline if division.is_pipeline and pipeline else tensor, value=str(best) if best else "lower",
            summary=f"A size that divides{f': {best}' if best else ' heads, columns and vocabulary (a power of two as a rule)'}", cost="fewer GPUs hold the weights",
            rank=1,
        )
    )  # fmt: skip
    if pipeline and not division.is_pipeline and not division.is_count:
        beside, rest = _stages(case, division, size, best)
        together = f"{rest} with {tensor} {beside}" if beside else rest
        remedies.append(Remedy(kind="flag", name=pipeline, value=together, summary="Use the other GPUs as stages of a pipeline", cost="some latency", rank=0 if best == 1 else 2))  # fmt: skip
    if not division.is_direct:
        remedies.append(Remedy(kind="files", name="checkpoint", value="BF16 or per-channel quantised", summary="Or weights whose quantisation has no blocks", cost="more memory", is_sure=False))  # fmt: skip
    return tuple(remedies)


def _stages(case: Case, division: Division, size: Size | None, best: int | None) -> tuple[int | None, str]:
    """The tensor-parallel size and the stages that use all the GPUs: what divides the model and their number."""
    if size is None or best is None:
        return None, "the rest of the GPUs"
    whole = _whole(division, size)
    fitting = [
        each
        for each in range(best, 0, -1)
        if size.value % each == 0 and (whole is None or _goes_into(division, whole, each)) and (each == best or not _is_refused(case, each))
    ]  # fmt: skip
    return (fitting[0], str(size.value // fitting[0])) if fitting else (None, "the rest of the GPUs")


def _goes_into(division: Division, whole: int, size: int) -> bool:
    if whole % size:
        return False
    return division.is_direct or not division.tile or whole // size % division.tile == 0


_IN_VAIN = (
    NotARemedy("downloading the weights again", "the file is as the model is; the division has a rest"),
    NotARemedy("less memory, another attention backend", "the check is one of shapes"),
)

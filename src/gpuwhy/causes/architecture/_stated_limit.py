"""Sentences in which a program says which GPUs it accepts: the limit, the GPU it found, and what the limit is about.

The same kind of sentence belongs to three causes: the number format is the limit (dtype-unsupported-by-gpu), a whole
library ends above this GPU (gpu-too-old), or one feature has no implementation for it (arch-unsupported-by-library).
"""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import Sign, says
from gpuwhy.causes.architecture._missing_image import in_other_words
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import components, dtypes
from gpuwhy.model.fact import Unknown
from gpuwhy.model.host import Gpus

_ARCH = (
    r"(?:\bCUDA>=[5-9]\.\d\b|(?:compute|cuda|device|gpu)[ _]?capabilit(?:y|ies)|\bcapability [\[(<>=]|\bcapability (?:of )?(?:at least )?\d|\bsm ?_?\d{2,3}[af]?\+?(?![a-z])|\bSM ?(?:>=|>|<=|<|==)"
    r"|\bSM version|\bHopper\b|\bBlackwell\b|\bAmpere\b|\bTuring\b|\bVolta\b|\bPascal\b|\bAda\b|\bGPU arch\w*|\bCUDA arch\w*|\b[AH][12]00\+?)"
)
_LIMIT = (
    r"\b(?:require[sd]?\b|needs?\b|only (?:be )?(?:supports?|supported|available|works?|runs?|implemented|enabled|allowed|compatible|for|on)\b"
    r"|only\b(?=.{0,80}\b(?:is|are) (?:\w{1,20} )?supported\b)|supports? only\b|is only\b|must (?:have|be)\b|at least\b|minimum\b|not (?:\w{1,20} )?(?:supported|implemented|available|compatible)\b"
    r"|unsupported\b|(?:do(?:es)?(?: not|n't)|cannot|can't) (?:\w{1,20} )?(?:supports?|run|use)\b|(?:cannot|can't|can not) be (?:enabled|used|run|executed|selected|launched)\b|no (?:support|implementation|implemented)\b"
    r"|or (?:newer|higher|later|above|greater)\b|too old\b|no longer support)"
)
STATED_LIMIT = says(
    "stated-limit",
    (
        "capability", "capabilities", "sm75", "sm80", "sm86", "sm89", "sm90", "sm100", "sm103", "sm120", "sm121", "sm_", "sm 5", "sm 6",
        "sm 7", "sm 8", "sm 9", "sm 1", "sm>", "sm >", "sm version", "hopper", "blackwell", "ampere", "turing", "volta", "ada ", "gpu arch", "cuda arch",
        "h100", "a100", "cuda>=",
    ),
    # the look-ahead settles most lines in one pass, before the dearer search for both parts near each other
    rf"^(?=.{{0,4000}}?{_LIMIT}).{{0,2000}}?(?:{_ARCH}.{{0,160}}?{_LIMIT}|{_LIMIT}.{{0,160}}?{_ARCH})",
)  # fmt: skip
SIGNS: tuple[Sign, ...] = (STATED_LIMIT,)

_OTHERS = lazy_pattern(
    r"triton GPU compiler|_scaled_mm is only supported|supported by this library|Compute Capability detected|Triton only supports devices|CUDA (?:toolkit|version|runtime|>=|1\d\.)|\bnvcc\b|\bdriver\b|\bptxas\b|unsupported gpu architecture|flashinfer requires|requires device with capability"
    r"|minimum and maximum cuda|linearkernel requires capability|current pytorch install|which is of (?:cuda|compute) capability|no device code|no compiled |but was built for"
    r"|no supported cuda architectures|failed to get device capability|CUDA ?>= ?1\d|is not defined for option|unknown cuda arch|(?<!or )\brocm\b|\bhip\b|\bgfx\d",
    re.IGNORECASE,
)
"""Sentences of other causes, or with signs of their own."""
_HARMLESS = lazy_pattern(
    r"falling back|fall back|will be (?:used|disabled|slower)|using .{1,40} instead|detected!|is not fully optimized|not recommended|Casting|disabling|skipping",
    re.IGNORECASE,
)
"""The program went on without it."""
_SAYS_ERROR = lazy_pattern(r"\[E\]|\bERROR\b|\bError Code \d")
_SCHEME = lazy_pattern(
    r"quantization method|quantization scheme|\b(?:gptq|awq|marlin|squeezellm|aqlm|bitblas)", re.IGNORECASE
)
_DTYPE = lazy_pattern(
    r"\b(?P<dtype>bf16|bfloat16|torch\.bfloat16|fp8e4nv|fp8e4b15|float8_e4m3fn|e4m3(?:fn)?|e5m2|float8|fp8|mxfp8|nvfp4|mxfp4|fp4|fp6|tf32)(?=\b|_)",
    re.IGNORECASE,
)
_NUMBER = lazy_pattern(
    r"\bsm ?_?(?P<sm>\d{2,3})[af]?(?P<plus>\+?)|(?:capabilit(?:y|ies)|arch(?:itecture)?s?|SM(?: version)?|capability of)[^\w(\[]{0,12}(?:of |is |at least |less than |below |lower than |>=? ?|<=? ?|==? ?){0,3}[\[(']{0,2}"
    r"(?P<major>\d{1,2})(?:\.|, ?)(?P<minor>\d)\b|(?:capability|CC|SM|arch(?:itecture)?)[^\w]{0,12}(?:>=?|<=?|==?|:|of)? ?(?P<packed>\d{2,3})\b"
    r"|(?:>=?|<=?|==|at least|least|minimum(?: is| of)?|less than|below) ?[\[(']?(?P<major2>\d{1,2})(?:\.|, ?)(?P<minor2>\d)\b"
    r"|\b(?P<major3>\d{1,2})\.(?P<minor3>\d) (?:or|and) (?:newer|higher|later|above|greater)",
    re.IGNORECASE,
)
_OWN = lazy_pattern(
    r"(?:your|current|currently|got|actual|found|but|detected|has|running on|device is|is of|this gpu)\b[^.;\d]{0,50}$",
    re.IGNORECASE,
)
_REFUSES_NUMBER = lazy_pattern(
    r"(?:\bdo(?:es)?(?: not|n't) (?:\w+ )?support|\bunsupported)\b[^<>.]{0,60}$|^[^<>]{0,20}\b(?:is|are) not (?:\w+ )?supported",
    re.IGNORECASE,
)
"""``does not support compute capability 120``: the number is the GPU's, not a limit."""
_UPPER_BOUND = lazy_pattern(r"<=? ?\(?\[?(?:SM)?\d|up to|too new", re.IGNORECASE)
_GENERATIONS = {"volta": "7.0", "turing": "7.5", "ampere": "8.0", "a100": "8.0", "ada": "8.9", "hopper": "9.0", "h100": "9.0", "h200": "9.0", "blackwell": "10.0"}  # fmt: skip
_GENERATION = lazy_pattern(r"\b(?P<name>volta|turing|ampere|ada|hopper|blackwell|a100|h100|h200)\b", re.IGNORECASE)
_AND_UP = lazy_pattern(
    r">=|at least|or (?:newer|higher|later|above|greater)|and (?:newer|higher|later|above)|minimum|less than|lower than|below|< ?\(?\d|\d\+|\+ ?GPU|too old|higher required|above sm",
    re.IGNORECASE,
)
_PROGRAM = r"(?:vllm(?:_use_v1\S*)?|sglang|triton|flash ?-?attention(?: only)?|flash[_-]?attn|tensorrt(?:-llm)?|unsloth|exllama(?:v[23])?|lmdeploy|turbomind|bitsandbytes|ollama|text-generation-inference|tgi|cudf|rapids|cupy|jax|ctranslate2|onnxruntime)"
_WHOLE = lazy_pattern(
    rf"^(?:[\w.]{{0,80}}(?:Error|Exception)\w{{0,40}}:? {{0,4}}){{0,2}}\W{{0,20}}(?:{_PROGRAM}|gpus? with|(?:your|the|this|target|a) gpu|device|cuda devices? with)\b"
    rf"|\b{_PROGRAM} (?:only )?(?:requires?|supports?|needs?)\b|by this \w+ release",
    re.IGNORECASE,
)
"""The subject is a program or the GPU as such, not a feature."""


def number_format_in(text: str) -> str | None:
    """The first number format that a text names."""
    found = re.search(r"bf16|bfloat16|e4m3|e5m2|e2m1|nvfp4|mxfp8|mxfp4|fp8|fp4|tf32", text, re.IGNORECASE)
    return found[0].lower() if found else None


def is_about_scheme(match: Match) -> bool:
    """The sentence is about the kernels of a quantisation method."""
    return _SCHEME.search(match.text[:2000]) is not None


def is_remark(match: Match) -> bool:
    """The program says that it goes on without."""
    return match.is_code or (_HARMLESS.search(match.text[:2000]) is not None and not _is_raised(match))


def names_number_format(text: str) -> bool:
    """Whether an assembler's name of an instruction or feature speaks of a number format."""
    return re.search(r"bf16|e4m3|e5m2|e2m1|e2m3|e3m2|tf32|fp8|ue8m0|\bf16\b", text, re.IGNORECASE) is not None


class StatedLimit(msgspec.Struct, frozen=True):
    """One refusal. ``minimum``: the lowest accepted capability; ``named``: all that it names besides the GPU's own.

    ``goes_up``: every newer GPU is accepted too. ``kind``: ``dtype``, ``library``, ``scheme`` (a quantisation method's
    own limit) or ``feature``. ``is_raised``: it ended something; False for a line that may be only a remark.
    """

    match: Match
    kind: str
    dtype: str | None
    own: str | None
    minimum: str | None
    named: tuple[str, ...]
    goes_up: bool
    component: str | None
    is_raised: bool

    @property
    def excludes_own(self) -> bool | None:
        """Whether the GPU lies outside what is accepted; None when one of both is unknown."""
        gpu = capabilities.parse(self.own) if self.own else None
        accepted = [parsed for text in self.named if (parsed := capabilities.parse(text)) is not None]
        if gpu is None or not accepted:
            return None
        if self.goes_up:
            return gpu < min(accepted)
        return gpu.major not in {one.major for one in accepted} or gpu < min(accepted)


def read_stated_limit(case: Case, gpus: Gpus | Unknown, default: str | None = None) -> StatedLimit | None:
    """The refusal that matters: a raised one before a remark, the earliest first."""
    refusals = [match for match in case.all(STATED_LIMIT.name) if _is_refusal(match)]
    if not refusals:
        return None
    return _read(case, next((match for match in refusals if _is_raised(match)), refusals[0]), gpus, default)


def _is_refusal(match: Match) -> bool:
    text = match.text[:2000]
    return (
        not is_remark(match)
        and (_is_raised(match) or match.line.level not in ("info", "debug"))
        and not _OTHERS.search(text)
    )


def _is_raised(match: Match) -> bool:
    if match.event is not None and match.event.kind in ("exception", "crash", "build", "death"):
        return True
    return match.line.level in ("error", "critical") or _SAYS_ERROR.search(match.text[:300]) is not None


def _read(case: Case, match: Match, gpus: Gpus | Unknown, default: str | None) -> StatedLimit:
    text = match.text[:2000]
    found = _DTYPE.search(text)
    numbers, own = _numbers(text)
    if own is None and isinstance(gpus, Gpus):
        own = gpus.capability
    named = tuple(numbers) or tuple(_GENERATIONS[g["name"].lower()] for g in _GENERATION.finditer(text))
    minimum = min(
        named, key=lambda text: capabilities.parse(text) or capabilities.ComputeCapability(0, 0), default=None
    )
    dtype = found["dtype"].lower() if found else None
    return StatedLimit(
        match=match,
        kind=_kind(text, dtype, minimum, is_old=own is not None and not named and own < "8"),
        dtype=dtype,
        own=own,
        minimum=minimum,
        named=named,
        goes_up=_goes_up(text),
        component=_component(case, match, default),
        is_raised=_is_raised(match),
    )


def _kind(text: str, dtype: str | None, minimum: str | None, is_old: bool) -> str:
    if _SCHEME.search(text):
        return "scheme"
    if dtype is not None and not re.search(
        r"backend|kv[ -_]?cache|\bmoe\b|\bkernel|\bgemm\b|scaled_mm\w* for", text, re.IGNORECASE
    ):
        floor = dtypes.minimum_capability(dtype)
        least, limit = (capabilities.parse(value) if value else None for value in (floor, minimum))
        if limit is None or least is None or abs(limit.number - least.number) <= 1:
            return "dtype"
    return "library" if _WHOLE.search(text) and (_goes_up(text) or is_old) else "feature"


def _numbers(text: str) -> tuple[list[str], str | None]:
    """The capabilities a sentence names, and the one it says the GPU has."""
    numbers: list[str] = []
    own = None
    for found in _NUMBER.finditer(text):
        groups = found.groupdict()
        if groups["sm"] or groups["packed"]:
            digits = groups["sm"] or groups["packed"]
            number = f"{digits[:-1]}.{digits[-1]}"
        else:
            pair = next(p for p in ("", "2", "3") if groups.get("major" + p))
            number = f"{groups['major' + pair]}.{groups['minor' + pair]}"
        parsed = capabilities.parse(number)
        if parsed is None or not 3 <= parsed.major <= 13:
            continue
        before, after = text[max(0, found.start() - 70) : found.end()], text[found.end() : found.end() + 60]
        before = re.sub(r"[\W\d]+$", " ", before)
        if _OWN.search(before) or _REFUSES_NUMBER.search(before) or _is_refused(before, after):
            own = own or number
        else:
            numbers.append(number)
    return list(dict.fromkeys(numbers)), own


def _is_refused(before: str, after: str) -> bool:
    """``SM 61 is not supported``, but not ``capability less than 7.0 are not supported``."""
    compared = re.search(r"less than|lower than|below|under|[<>]", before[-30:], re.IGNORECASE)
    return (
        compared is None
        and re.match(r"\)?\W{0,2} ?(?:is|are) not (?:\w+ )?supported", after, re.IGNORECASE) is not None
    )


def _goes_up(text: str) -> bool:
    has_ceiling = _UPPER_BOUND.search(text) is not None and ">" in text
    return _AND_UP.search(text) is not None and not has_ceiling


def _component(case: Case, match: Match, default: str | None) -> str | None:
    """Who refuses: the frame that raises, else the words of the message."""
    for frame in reversed(match.frames[-4:]):
        component = components.component_of_module(frame.path)
        if component not in (None, "torch", "python"):
            return component
    return in_other_words(match.text) or case.component_near(match, default or case.engine or None)

"""What faults of kernels have in common: the part they sit in, what was tried, and what can be tried."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._component import GENERIC, WEAK, first_component
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.knowledge import components
from gpuwhy.knowledge.engine_messages import engine_of_log
from gpuwhy.knowledge.known_faults import KnownFault, known_fault
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Missing
from gpuwhy.model.host import Gpus
from gpuwhy.model.remedy import Remedy

ENGINES = ("vllm", "sglang", "tensorrt-llm", "lmdeploy", "text-generation-inference", "ktransformers")
KERNEL_LIBRARIES = frozenset(
    {"marlin", "flaggems", "flashinfer", "sgl-kernel", "flash-attn", "deepgemm", "deepep", "flashmla", "xformers", "exllama", "exllamav2", "exllamav3", "autoawq", "auto-gptq", "gptqmodel", "bitsandbytes", "mamba-ssm",
     "causal-conv1d", "lmcache", "transformer-engine", "sageattention", "triton"}
)  # fmt: skip
BACKEND_FLAG = {"vllm": "--attention-backend", "sglang": "--attention-backend"}
_WITHOUT_KERNELS = GENERIC | {
    "container-engine",
    "container-image",
    "nvidia-container-toolkit",
    "network",
    "fabric-manager",
    "kernel-linux",
}
"""Parts that a start command or a log names beside the failure, and in which no kernel sits."""
PACKAGES = {"flashinfer": "flashinfer-python", "sgl-kernel": "sgl-kernel", "flaggems": "flag_gems", "deepgemm": "deep-gemm"}  # fmt: skip
_COMPILED_BY_TORCH = lazy_pattern(r"torchinductor_|torch[/\\]_inductor[/\\]")
_DRAFT = lazy_pattern(r"speculative|draft|eagle|\bmtp\b|nextn|medusa", re.IGNORECASE)
_PREFIX = lazy_pattern(r"prefix[-_ ]cach|radix[-_ ]cache", re.IGNORECASE)
_GRAPHS = lazy_pattern(r"cuda_?graph|in replay\b|torch\.compile|inductor", re.IGNORECASE)
_ATTENTION = lazy_pattern(
    r"attention|attn|flash_?infer|\bfa[234]\b|flash_?mla|\bmla\b|\bsinks?\b|paged_kv|prefill_wrapper|decode_wrapper",
    re.IGNORECASE,
)
_LLAMA_ATTENTION = lazy_pattern(r"flash[-_ ]?att|fattn|(?<![\w-])-fa\b", re.IGNORECASE)
_LLAMA_GRAPHS = lazy_pattern(r"cuda_?graph(?!s? ?=)|graph_?(?:launch|instantiate|exec_update)|capturing", re.IGNORECASE)
_IS_OFF = lazy_pattern(r"[\w.]{1,60}[\"']?\s?[=:]\s?(?:None|False|null|false)\b")
"""A setting that is printed as switched off; engines print all of theirs at the start."""
_LOGGED = lazy_pattern(r"^\W{0,3}\d{4}-\d\d-\d\d[ T]|\b(?:INFO|DEBUG|WARNING|ERROR)\b|^\[\d{4}-")


def component_of(case: Case, match: Match, experiments: Experiments | Unknown, *, is_synchronous: bool) -> str:
    """The part that holds the kernel.

    The frames of a launch error are those where it surfaced. They count only if launches were synchronous; else what
    was tried names the library, then packages that were given by hand, then the engine.
    """
    tried = _named_by_experiments(experiments)
    if tried is not None:
        return tried
    if "Triton Error" in match.text and any(_COMPILED_BY_TORCH.search(frame.path) for frame in match.frames):
        return "torch"  # the kernel was written by torch.compile; Triton only launches it
    if "Triton Error" in match.text:
        frames = (components.component_of_module(frame.path) for frame in reversed(match.frames))
        owner = next((each for each in frames if each not in (None, "triton", *WEAK, *GENERIC)), None)
        if owner is not None:
            return owner  # whose kernel it is: Triton only launches it
    in_message = first_component([(match.text, False)])
    engine = engine_in_log(case)
    if is_synchronous or engine not in ENGINES:
        near = in_message if in_message in KERNEL_LIBRARIES else case.component_near(match)
        if near is not None and near not in WEAK and near not in _WITHOUT_KERNELS:
            return near
    if engine:
        return components.canonical(engine) or engine
    return _given_library(case) or in_message or "torch"


def engine_in_log(case: Case) -> str:
    """The engine that the log names, else the one whose messages stand in it."""
    return engine_of_log(case.engine, [line.raw for _, line in case.lines()])


def said(match: Match) -> str:
    """The line without torch's advice behind its message, which an exception's repr keeps on the same line."""
    return re.split(r"\\n|\s(?=CUDA kernel errors might)", match.text, maxsplit=1)[0].strip()


def _named_by_experiments(experiments: Experiments | Unknown) -> str | None:
    """A kernel library that the experiments name; else the engine of which releases were tried.

    A library that went well by being chosen is the way out, not the fault: of the good ones only what was left out counts.
    """
    if not isinstance(experiments, Experiments):
        return None
    telling = [
        *(f"{each.name} {each.outcome}" for each in experiments.tried if not each.is_good),
        *(each.switched_off or "" for each in experiments.good),
        *(each.release[0] for each in experiments.good if each.release is not None),
    ]
    words = [word for text in telling for word in re.findall(r"[\w.-]{3,60}", text)]
    named = [name for word in words if (name := components.canonical(word)) is not None]
    library = next((name for name in named if name in KERNEL_LIBRARIES), None)
    return library or next((name for name in named if name in ENGINES), None)


def _given_library(case: Case) -> str | None:
    names = [components.canonical(name) or name for name in case.facts.group("packages")]
    return next((name for name in names if name in KERNEL_LIBRARIES), None) or next((n for n in names if n in ENGINES), None)  # fmt: skip


def fault_known(case: Case, cause: str, gpus: Gpus | Unknown) -> KnownFault | None:
    """A fault that was found in public, if its conditions are met by the log and the facts."""
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    major = int(capability.partition(".")[0]) if capability and capability.partition(".")[0].isdigit() else None
    features = frozenset(name for name, fact in case.facts.group("model").items() if fact.value not in (None, False, ""))  # fmt: skip
    given = [*case.facts.group("packages"), *case.facts.group("binary_archs"), str(case.facts.value("command") or "")]
    lines = [line.text[:400] for _, line in case.lines()]
    releases = {name: str(fact.value) for name, fact in case.facts.group("packages").items() if fact.value is not None}
    return known_fault(
        cause,
        major=major,
        text="\n".join([*given, *lines]),
        features=features,
        engine=engine_in_log(case),
        releases=releases,
    )


_NAMED_KERNEL = lazy_pattern(
    r"=========\s{1,12}at (?:0x[0-9a-f]{1,16} in )?(?:void )?[\w:<>, ]{3,200}?(?:\(|\+0x| in )|in function \w{3,80}"
    r"|^#0\s{1,4}(?:0x[0-9a-f]{1,16} in )?(?:void )?[\w:]{3,200}|triggered at PC 0x[0-9a-f]{1,16}.{0,200}[a-z]\w{3,80}|Program hit.{0,60}kernel",
    re.IGNORECASE,
)
_OWNERS = (
    ("flashinfer", "flashinfer"), ("deep_gemm", "deepgemm"), ("deep_ep", "deepep"), ("marlin", "vllm"), ("vllm::", "vllm"), ("flash::", "flash-attn"), ("flash_fwd", "flash-attn"),
    ("tensorrt_llm::", "tensorrt-llm"), ("turbomind", "lmdeploy"), ("at::native", "torch"), ("ggml", "llama.cpp"), ("mul_mat", "llama.cpp"), ("sgl_", "sgl-kernel"), ("xformers", "xformers"), ("fmha_cutlass", "xformers"), ("selective_scan", "mamba-ssm"), ("causal_conv1d", "causal-conv1d"), ("exllama", "exllamav2"), ("gptq", "vllm"), ("awq", "vllm"),
)  # fmt: skip
"""Whose kernel a name is: by its namespace or prefix."""


KERNEL_BELOW = 8


def kernel_named(case: Case, match: Match) -> Evidence | None:
    """The kernel as compute-sanitizer and cuda-gdb print it under their message."""
    for line in sorted(case.lines_around(match, 0, KERNEL_BELOW), key=lambda each: each.number):
        if _NAMED_KERNEL.search(line.text[:600]):
            return Evidence("the kernel", line.text.strip()[:400], match.place)
    return None


def owner_of(kernel: Evidence | None) -> str | None:
    """The part a named kernel belongs to."""
    if kernel is None:
        return None
    return next((owner for word, owner in _OWNERS if word in kernel.quote), None)


def tried(experiments: Experiments | Unknown) -> tuple[Evidence, ...]:
    """The experiments as evidence: those that went well first, since they isolate the fault."""
    if not isinstance(experiments, Experiments):
        return ()
    return tuple(each.evidence for each in (*experiments.good, *experiments.bad))[:4]


def remedies_tried(experiments: Experiments | Unknown) -> tuple[Remedy, ...]:
    """What is known to help because it was tried."""
    return experiments.remedies if isinstance(experiments, Experiments) else ()


def remedies_to_try(case: Case, match: Match, component: str, experiments: Experiments | Unknown) -> tuple[Remedy, ...]:
    """One switch at a time, of what the log names; then another release of the part. After what was found by trying.

    A switch that nothing points to is no remedy but an experiment, for which ``missing`` asks.
    """
    found_by_trying = remedies_tried(experiments)
    if found_by_trying:
        return (*found_by_trying, newer(component, rank=3))
    shown = [match.text, *(frame.path + frame.code for frame in match.frames)]
    near = [*shown, *(_IS_OFF.sub("", line.text[:1000]) for line in case.lines_around(match, 300, 20))]
    command = str(case.facts.value("command") or "")
    engine = engine_in_log(case)
    engine = engine if engine in ENGINES else component
    found = []

    def names(pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(text) for text in (command, *near))

    def is_at_work(pattern: re.Pattern[str]) -> bool:
        """Of what every log mentions at its start only the failure itself, the command and the reporter's words count."""
        told = (line.text[:600] for line in case.lines_around(match, 60, 30) if not line.level and line.process is None and not _LOGGED.search(line.raw[:200]))  # fmt: skip
        return any(pattern.search(text) for text in (command, *shown, *told))

    draft = {"vllm": "--speculative-config", "sglang": "--speculative-algorithm"}.get(engine)
    if draft and names(_DRAFT):
        found.append(Remedy(kind="flag", name=draft, value="remove", summary="Without the draft model", is_sure=False, rank=1))  # fmt: skip
    if engine == "vllm" and names(_PREFIX):
        found.append(Remedy(kind="flag", name="--enable-prefix-caching", value="remove", summary="Without prefix caching", is_sure=False, rank=2))  # fmt: skip
    if engine == "sglang" and names(_PREFIX):
        found.append(Remedy(kind="flag", name="--disable-radix-cache", value="set", summary="Without the prefix cache", is_sure=False, rank=2))  # fmt: skip
    if engine in BACKEND_FLAG and len(found) < 2 and is_at_work(_ATTENTION):
        found.append(Remedy(kind="flag", name=BACKEND_FLAG[engine], value="another", summary="Another attention backend: it tells whether the kernel is one of attention", is_sure=False, rank=3))  # fmt: skip
    if engine == "sglang" and names(_GRAPHS) and len(found) < 2:
        found.append(Remedy(kind="flag", name="--disable-cuda-graph", value="set", summary="Without CUDA graphs", cost="slower", is_sure=False, rank=4))  # fmt: skip
    if engine in ("llama.cpp", "ollama"):
        if is_at_work(_LLAMA_GRAPHS):
            found.append(Remedy(kind="env", name="GGML_CUDA_DISABLE_GRAPHS", value="1", summary="Without CUDA graphs: they can replay stale addresses", is_sure=False, rank=2))  # fmt: skip
        if engine == "llama.cpp" and is_at_work(_LLAMA_ATTENTION):
            found.append(Remedy(kind="flag", name="--flash-attn", value="off", summary="Without the fused attention kernel", is_sure=False, rank=3))  # fmt: skip
    found.append(newer(component))
    if component in KERNEL_LIBRARIES and engine != component and engine in ENGINES:
        found.append(newer(engine, rank=2))
    return tuple(found)


def newer(component: str, rank: int = 1) -> Remedy:
    """Another release of the part; most such faults are mended within weeks."""
    return Remedy(
        kind="package", name=PACKAGES.get(component, component), value="newer",
        summary=f"A newer release of {component}; where the fault came with an upgrade, the release before",
        is_sure=False, rank=rank,
    )  # fmt: skip


def _from_sources(fault: KnownFault) -> tuple[str, ...]:
    """The commands that build a package from its repository, whose main branch has what was merged."""
    repository = fault.provenance.partition(" ")[0]
    return (
        f'python3 -m pip freeze > "$HOME"/before-{fault.package}.txt',
        f"python3 -m pip install git+https://github.com/{repository}",
        "# start the service again",
    )


def remedies_known(fault: KnownFault | None) -> tuple[Remedy, ...]:
    """What mends a fault that is known."""
    if fault is None:
        return ()
    found = []
    if fault.flag:
        found.append(Remedy(kind="flag", name=fault.flag, value=fault.flag_value, summary=f"Avoid it: {fault.mechanism}"))  # fmt: skip
    if fault.package:
        is_built = fault.fixed_in == "rebuild"
        found.append(Remedy(
            kind="package", name=fault.package, value=fault.fixed_in or "newer",
            summary=f"Build {fault.package} from sources that have the fix ({fault.provenance})" if is_built else f"A release with the fix ({fault.provenance})",
            # the sources of the installed release would be built with the fault once more
            commands=_from_sources(fault) if is_built else (),
            undo=(f'python3 -m pip install -r "$HOME"/before-{fault.package}.txt',) if is_built else (),
            cost="minutes to an hour of compilation, and a release that is not yet one" if is_built else "",
        ))  # fmt: skip
    return tuple(found)


def asked(*wanted: Missing | None) -> tuple[Missing, ...]:
    return tuple(each for each in wanted if each is not None)


def unique(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """The remedies without those that repeat kind and name."""
    seen: dict[tuple[str, str], Remedy] = {}
    for remedy in remedies:
        seen.setdefault((remedy.kind, remedy.name), remedy)
    return tuple(seen.values())

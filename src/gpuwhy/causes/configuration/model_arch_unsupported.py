"""model-arch-unsupported: the installed release does not know the model's architecture."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.configuration import _program as program
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.knowledge import model_architectures as architectures
from gpuwhy.knowledge.releases import public_version
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_GGUF_NAME = says(
    "gguf-architecture",
    ("unknown model architecture", "unknown architecture", "unsupported architecture", "unsupported model architecture", "gguf model with architecture", "architecture not supported", "not supported yet", "newer version of ollama", "unsupported gguf"),
    r"(?:unknown|unsupported) (?:model )?architecture(?: for \w{1,60})?[:=]? ?[\"'`(\[]{0,2}(?P<name>[\w.-]{2,80})"
    r"|GGUF model with architecture (?P<name2>[\w.-]{2,80}) is not supported"
    r"|[Aa]rchitecture ['\"]?(?P<name3>[\w.-]{2,80})['\"]? (?:is )?not (?:yet )?supported"
    r"|requires a newer version of Ollama|not supported by your version of Ollama",
)  # fmt: skip
_TRANSFORMERS = says(
    "transformers-type",
    ("does not recognize this architecture", "unrecognized configuration class", "does not exist or is not currently imported", "is not a registered model in the transformers library", "keyerror: '", "keyerror: \"", "is not the correct model type", "must be a dictionary with two fields", "untagged enum", "unrecognized processing class", "unrecognized image processor", "unrecognized feature extractor"),
    r"has model type [`'\"]?(?P<name>[\w.-]{2,80})[`'\"]? but Transformers does not recognize"
    r"|Unrecognized configuration class <class '(?P<name2>[\w.]{2,160})'> (?:for|to build) "
    r"|Tokenizer class (?P<tokenizer>\w{2,80}) does not exist or is not currently imported"
    r"|Cannot find model module\. '(?P<name3>\w{2,80})' is not a registered model"
    r"|does not recognize this architecture|data did not match any variant of untagged enum (?P<enum>\w{2,80})|Unrecognized (?P<processor>processing class|image processor|feature extractor) in"
    r"|`rope_scaling` must be a dictionary with two fields, .{0,80}got .{0,120}['\"](?:rope_type|llama3|mrope|longrope|yarn)"
    r"|^KeyError: ['\"](?P<key>[a-z][a-z0-9]{1,30}(?:[_.-][a-z0-9]{1,20}){0,5}|[A-Z]\w{2,60}(?:ForCausalLM|ForConditionalGeneration|Model))['\"]$",
)  # fmt: skip
_ENGINE = says(
    "engine-list",
    ("are not supported for now", "is not supported for now", "has no vllm implementation", "has no sglang implementation", "unsupported architectures", "unsupported model type", "unsupported model arch", "forcausallm is not supported", "forconditionalgeneration is not supported", "isn't supported yet", "model type", "is not supported for causal", "unknown model type", "unsupported model", "turbomind does not support", "failed to infer model", "not supported by tensorrt", "is not a supported model", "does not have a registered", "unknown model class", "not supported yet!", "model architecture", "no config builder", "model_arch", "not supported by turbomind", "rewrite for", "is not registered"),
    r"Model architectures? \[?['\"]?(?P<name>[\w.-]{2,80})['\"]?[^\n]{0,120}?\]? (?:are|is) not supported(?: for now)?"
    r"|(?P<name2>[A-Z]\w{2,80}) has no (?:vLLM|SGLang|SGlang) implementation"
    r"|Unsupported (?:model )?(?:architectures?|arch|types?|models?)[:=]? ?[\[\"'`]{0,3}(?P<name3>[A-Za-z][\w./-]{1,80})"
    r"|(?:TypeError: )(?P<name4>[\w.-]{2,60}) isn't supported yet"
    r"|\b[Mm]odel type:? [\"'`]?(?P<name5>[\w.-]{2,60})[\"'`]?(?: is)? (?:not (?:yet )?supported|unsupported)"
    r"|\b[Uu]nknown model (?:type|class)[:=]? ?[\"'`]{0,2}(?P<name6>[\w.-]{2,80})"
    r"|[Tt]urbo[Mm]ind does not support (?P<name7>[\w./-]{2,120})|not supported by turbomind"
    r"|Unsloth: (?P<name8>[\w./ -]{2,120}) (?:is )?not supported yet"
    r"|rewrite for (?P<name9>[\w.']{2,120}) is not available"
    r"|[Cc]an ?not f(?:ou|i)nd rewrite for (?:architectures?: )?\[?['\"]?(?P<name12>[A-Za-z][\w.]{1,80})"
    r"|[Ff]ailed to infer model type|is not a supported model (?:type|architecture)"
    r"|\bModel (?P<name11>[A-Z]\w{2,80}) is not supported"
    r"|AssertionError: (?P<name13>[A-Z]\w{2,60}) is not registered$"
    r"|Unknown architecture for AutoModel\w{0,40}: (?P<name10>\w{2,80})",
)  # fmt: skip
_LLAMA_VARIETY = says(
    "gguf-variety",
    ("unknown pre-tokenizer type", "wrong number of tensors", "invalid ggml type", "key not found in model", "has wrong shape; expected", "missing tensor '", "check_tensor_dims: tensor", "pre-tokenizer was not recognized", "unknown tokenizer: '", "unknown projector type", "invalid tensor type", "unknown data type", "combination: 46554747"),
    r"unknown pre-tokenizer type: '(?P<tokenizer>[\w.-]{1,60})'"
    r"|wrong number of tensors; expected (?P<expected>\d{1,6}), got (?P<got>\d{1,6})"
    r"|invalid ggml type (?P<type>\d{1,4})|key not found in model: (?P<key>[\w.-]{2,80})"
    r"|tensor '(?P<tensor>[\w.]{2,80})' has wrong shape; expected|missing tensor '(?P<tensor2>[\w.]{2,80})'"
    r"|check_tensor_dims: tensor '(?P<tensor3>[\w.]{2,80})' not found"
    r"|unknown projector type: (?P<projector>[\w.-]{2,60})|BPE pre-tokenizer was not recognized|unknown tokenizer: '(?P<tokenizer2>[\w.-]{1,60})'|combination: (?P<gguf>46554747), ?0{0,7}\d",
)  # fmt: skip
_LOADED_OTHERWISE = says(
    "parameter-names",
    ("there is no module or parameter named", "keyerror: 'model.", "keyerror: 'layers.", "keyerror: 'language_model."),
    r"There is no module or parameter named '(?P<name>[\w.]{2,120})' in (?P<class>\w{2,80})|^KeyError: '(?P<name2>(?:model|layers|language_model|transformer)\.[\w.]{2,120})'$",
)

_CONFIG_LOOKUP = lazy_pattern(r"configuration_auto|CONFIG_MAPPING|model_type|MODEL_MAP|MODEL_MAPPING|_LAZY_CONFIG|__getitem__|get_model_class|architectures|model_arch")  # fmt: skip
_REMOTE = lazy_pattern(r"contains custom code|requires you to execute")
_IMPORT_FAILED = lazy_pattern(
    r"Error in (?:inspecting|loading) model architecture|failed to be inspected|Ignore import error when loading"
)
_NOT_A_MODEL = lazy_pattern(
    r"(?i)\bsm_?\d{2}|compute_\d{2}|gpu arch|gpu architecture|cuda arch|nvcc|ptxas|TllmGen|FMHA|deepgemm|CUDA_ARCH|amd64|x86_64|aarch64|docker|platform linux|CPU arch|\bISA\b|machine"
)


class Sought(msgspec.Struct, frozen=True):
    """What the release does not know: ``name`` as printed ("" when the message has none), and who was asked."""

    match: Match
    name: str
    program: str
    certainty: Certainty
    strength: int
    what: str = "the architecture"


@cause(
    "model-arch-unsupported",
    family="Model and configuration",
    signs=[_GGUF_NAME, _TRANSFORMERS, _ENGINE, _LLAMA_VARIETY, _LOADED_OTHERWISE],
)
def model_arch_unsupported(case: Case) -> Judgement:
    """The installed release of the engine, of transformers or of llama.cpp does not know the model's architecture.

    How it shows itself
      transformers: `The checkpoint you are trying to load has model type `X` but Transformers does not recognize this
      architecture`, older ones a bare `KeyError: 'qwen3'` below configuration_auto.py. vLLM and SGLang: `Model architectures
      ['XForCausalLM'] are not supported for now`, `X has no vLLM implementation`. llama.cpp and ollama: `unknown model
      architecture: 'x'`, and for a new variety of a known one `unknown pre-tokenizer type`, `wrong number of tensors; expected
      292, got 291`. TensorRT-LLM: `Unknown architecture for AutoModelForCausalLM`. Quantisers: `x isn't supported yet`.

    Why it happens
      The code of a model comes with a release of the program that runs it. A model published later than the release
      names a class that is not there. Downloading, copying and quantising a model only move its files, so they succeed.

    How to be sure
      The architecture is in config.json (`architectures`, `model_type`) or in the GGUF's `general.architecture`; compare with
      the first release that lists it. Engines that use transformers need both: their own class and its configuration.

    What helps
      A release that knows it. Where that is not an option: a file made for this program, another engine, or for
      some models vLLM's and SGLang's generic implementation (`--model-impl transformers`).

    What does not help
      Converting or quantising again, editing the name in the file, downloading again.

    Not to be confused with
      weights-missing-or-corrupt (no readable config or weights), trust-remote-code (the model brings its own code),
      api-drift (`cannot import name`: two packages, no model), package-conflict (`is already used by a Transformers config`).
    """
    sought = _sought(case)
    if sought is None:
        return None
    first = architectures.first_release(sought.program, sought.name)
    installed = parts.version_of(case, parts.distribution_of(sought.program))
    known = _has(installed, first)
    quoted = case.evidence(sought.match, f"{sought.program} does not know {sought.what} {sought.name}".strip())
    if known and first is not None and sought.certainty is not Certainty.PROVEN:
        shown = parts.evidence_of(case, parts.distribution_of(sought.program), f"the installed {sought.program}")
        return RuledOut(f"{sought.program} {installed} knows {sought.name} (since {first})", (quoted, *shown))
    history = derived(f"{sought.name} is known from {sought.program} {first} on", "documented: release notes") if first else None  # fmt: skip
    installed_shown = parts.evidence_of(case, parts.distribution_of(sought.program), f"the installed {sought.program}")
    named = f" {sought.name}" if sought.name else ""
    return Verdict(
        certainty=sought.certainty,
        component=sought.program,
        title=f"This release of {sought.program} does not know {sought.what}{named}{f' (needs {first})' if first else ''}",
        chain=(
            Link(f"The model is newer than the installed {sought.program}, or made for another program", history or inferred("which release first has it is not recorded")),
            Link(f"{sought.what[0].upper()}{sought.what[1:]}{named} is looked up in the release's list", quoted),
            Link("It is not there, and loading ends"),
        ),
        evidence=(quoted, *((history,) if history else ()), *installed_shown),
        explains=case.explains(sought.match),
        missing=_missing(case, sought, installed),
        rivals=() if sought.certainty is Certainty.PROVEN else ("weights-missing-or-corrupt", "api-drift"),
        remedies=_remedies(case, sought, first),
        not_remedies=_IN_VAIN,
        strength=sought.strength,
    )  # fmt: skip


def _sought(case: Case) -> Sought | None:
    for read in (_listed, _of_transformers, _of_gguf, _variety, _parameters):
        found = read(case)
        if found is not None:
            return found
    return None


def _listed(case: Case) -> Sought | None:
    """An engine that keeps a list of the models it knows."""
    for match in _in_order(case, _ENGINE.name):
        if not _is_about_models(match) or _IMPORT_FAILED.search(match.text):
            continue
        if any(_IMPORT_FAILED.search(line.text) for line in case.lines_around(match, 40, 2)):
            continue  # the model's module is there and could not be imported: the import error above is the cause
        name = _name(match)
        if not name and not program.in_event(match):
            continue
        who = program.program_of(case, match, "vllm" if "rchitectures [" in match.text else "user-program")
        sure = program.in_event(match) and bool(name) and not match.group("name13")
        return Sought(match, name, who, Certainty.PROVEN if sure else Certainty.LIKELY, 82)
    return None


def _of_transformers(case: Case) -> Sought | None:
    for match in sorted(_in_order(case, _TRANSFORMERS.name), key=lambda match: match.group("key") is not None):
        key = match.group("key")
        if key is not None:
            if not _is_lookup(match):
                continue
            who = "transformers" if program.loader_of(match) == "transformers" or "_" in key else program.program_of(case, match)  # fmt: skip
            known = architectures.first_release("transformers", key) is not None
            return Sought(match, key, who, Certainty.PROVEN if known else Certainty.LIKELY, 78)
        if _says_remote(case, match):
            continue
        if match.group("tokenizer"):
            name = (match.group("tokenizer") or "").removesuffix("Fast").removesuffix("Tokenizer")
            return Sought(match, name, "transformers", Certainty.LIKELY, 66, "the tokenizer of")
        if match.group("enum"):
            return Sought(match, "", "tokenizers", Certainty.LIKELY, 64, "the format of this tokenizer")
        if match.group("processor"):
            return Sought(match, "", "transformers", Certainty.POSSIBLE, 50, "the processor of this model")
        if "rope_scaling" in match.text:
            return Sought(match, "", "transformers", Certainty.LIKELY, 66, "this kind of rope scaling")
        name = _name(match) or architectures.normalised(match.group("name2") or "")
        is_class = match.group("name2") is not None
        return Sought(match, name, "transformers", Certainty.LIKELY if is_class else Certainty.PROVEN, 70 if is_class else 86)  # fmt: skip
    return None


def _of_gguf(case: Case) -> Sought | None:
    for match in _in_order(case, _GGUF_NAME.name):
        if not _is_about_models(match):
            continue
        name = _name(match)
        who = "transformers" if "GGUF model with architecture" in match.text else program.program_of(case, match, "llama.cpp")  # fmt: skip
        if "Ollama" in match.text:
            who = "ollama"
        if not name and who != "ollama":
            continue
        return Sought(match, name, who, Certainty.PROVEN if program.in_event(match) or _is_error(match) else Certainty.LIKELY, 86)  # fmt: skip
    return None


def _variety(case: Case) -> Sought | None:
    """A GGUF of a known architecture with parts that this release does not know."""
    for match in _in_order(case, _LLAMA_VARIETY.name):
        tensor = match.group("tensor") or match.group("tensor2") or match.group("tensor3")
        who = program.program_of(case, match, "llama.cpp")
        if match.group("type") is not None:
            return Sought(match, match.group("type") or "", who, Certainty.LIKELY, 66, "the number format ggml type")
        if match.group("gguf") is not None:  # the four bytes "GGUF", read by a release from before that format
            return Sought(match, "GGUF", who, Certainty.LIKELY, 70, "the file format")
        projector = match.group("projector")
        if projector is not None:
            return Sought(match, projector, who, Certainty.LIKELY, 72, "the projector")
        if tensor is not None:
            return Sought(match, tensor, who, Certainty.POSSIBLE, 52, "the layout of")
        name = match.group("tokenizer") or match.group("tokenizer2") or match.group("key") or ""
        is_count = match.group("expected") is not None
        what = "all tensors of this file" if is_count else "the tokenizer" if not match.group("key") else "a model without the key"  # fmt: skip
        return Sought(match, name, who, Certainty.LIKELY, 72, what)
    return None


def _parameters(case: Case) -> Sought | None:
    """Weights whose names the model's class does not have: a variety of the model that the release does not know."""
    for match in _in_order(case, _LOADED_OTHERWISE.name):
        is_of_loader = "load_weights" in " ".join(frame.function for frame in match.frames) or match.group("class")
        if program.in_event(match) and is_of_loader:
            what = f"these weights of {match.group('class') or 'the model'}"
            return Sought(match, "", program.program_of(case, match), Certainty.POSSIBLE, 48, what)
    return None


def _in_order(case: Case, sign: str) -> list[Match]:
    return sorted((m for m in case.all(sign) if not m.is_code), key=lambda m: (not program.in_event(m), m.line.number))


def _name(match: Match) -> str:
    return next((value for name, value in sorted(match.groups.items()) if name.startswith("name")), "")


def _is_about_models(match: Match) -> bool:
    """The message's own words: long lists of the known models follow them."""
    return _NOT_A_MODEL.search(match.text[:240]) is None


def _is_error(match: Match) -> bool:
    return match.line.level in ("error", "critical", "fatal") or re.search(r"(?i)\berror\b|\bfailed\b", match.text[:300]) is not None  # fmt: skip


def _is_lookup(match: Match) -> bool:
    """A KeyError of a table of models, not of any dictionary."""
    if match.event is None:
        return False
    last = match.frames[-3:]
    return any(_CONFIG_LOOKUP.search(f"{frame.path} {frame.code}") for frame in last)


def _says_remote(case: Case, match: Match) -> bool:
    return any(_REMOTE.search(line.text) for line in (match.line, *case.lines_around(match, 12, 12)))


def _has(installed: str | None, first: str | None) -> bool | None:
    have, need = public_version(installed or ""), public_version(first or "")
    return None if have is None or need is None else have >= need


def _missing(case: Case, sought: Sought, installed: str | None) -> tuple[Missing, ...]:
    if installed is not None or sought.certainty is Certainty.PROVEN:
        return ()
    name = parts.distribution_of(sought.program)
    command = "ollama --version" if name == "ollama" else f"python -m pip show {name}"
    asked = case.missing(f"packages.{name}", f"which release of {name} runs", command)
    return (asked,) if asked is not None else ()


def _remedies(case: Case, sought: Sought, first: str | None) -> tuple[Remedy, ...]:
    who = sought.program
    engine = program.engine_of(case, sought.match) or who
    wanted = f">={first}" if first else "newer"
    told = f"{who} {first} or newer" if first else f"a release of {who} that lists the architecture"
    remedies = [Remedy(kind="package", name=who, value=wanted, summary=f"Install {told}", check=(f"python -m pip show {who}",) if who not in ("ollama", "llama.cpp") else ())]  # fmt: skip
    if who == "transformers" and engine in program.PYTHON_ENGINES:
        own = architectures.first_release(engine, sought.name)
        remedies.append(Remedy(kind="package", name=engine, value=f">={own}" if own else "newer", rank=1, summary=f"{engine} needs the class as well, and pins transformers: upgrade {engine}{f' to {own} or newer' if own else ''}"))  # fmt: skip
    elif engine in ("vllm", "sglang") and sought.match.sign == _ENGINE.name and first is None:
        remedies.append(Remedy(kind="flag", name="--model-impl", value="transformers", rank=1, is_sure=False, summary="Run the model by its implementation in transformers, where that is of the compatible kind", cost="slower"))  # fmt: skip
        remedies.append(Remedy(kind="package", name="transformers", value="newer", rank=2, is_sure=False, summary="The generic implementation needs a transformers that knows the model"))  # fmt: skip
    if who in ("ollama", "llama.cpp", "koboldcpp"):
        if who == "ollama":
            remedies.append(Remedy(kind="files", name="model", value="the file published for Ollama", summary="Take the model from Ollama's own library: third parties' files can name an architecture that it has under another name", commands=("ollama pull MODEL",)))  # fmt: skip
            remedies.append(Remedy(kind="package", name="llama.cpp", value="current", rank=2, summary="Or run the file with a current llama.cpp"))  # fmt: skip
        else:
            remedies.append(Remedy(kind="files", name="model", value="a file converted for this release", is_sure=False, summary="Or a file of this model that was converted for this release"))  # fmt: skip
    return tuple(remedies)


_IN_VAIN = (
    NotARemedy("converting, quantising or downloading the model again", "the files are right; the program lacks the code that runs them"),
    NotARemedy("editing the architecture's name in the file", "the tensors and settings stay those of the new architecture"),
)  # fmt: skip

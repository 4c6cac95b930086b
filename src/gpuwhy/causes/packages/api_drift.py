"""api-drift: one package asks another for a name that the installed release does not have."""

from __future__ import annotations

import re
import sys

import msgspec

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.causes.packages._asking import (
    USER_PROGRAM,
    Asking,
    asking,
    is_always_there,
    owner_of_class,
    owner_of_operators,
    package_of,
)
from gpuwhy.knowledge import components
from gpuwhy.knowledge.api_changes import ApiChange, change_of, dropped_by_python, module_change
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_SITE = lazy_pattern(r"(?:site|dist)-packages/")
_COMPILED_PART = lazy_pattern(r"(?:^|\.)_\w{0,40}C(?:_\w{1,20})?$|\._rust$|\.common_ops$|\._C\.|lib\w{2,20}$")
_LAYER = lazy_pattern(r"(?:Attention|DecoderLayer|RotaryEmbedding|Model)$")
_NOT_AN_API = frozenset({"common_ops", "transformers_modules", "intel_extension_for_pytorch", "__main__", "_ctypes", "_lzma", "_sqlite3", "_bz2", "setup", "utils", "main", "app"})  # fmt: skip


@cause(
    "api-drift",
    family="Packages",
    signs=[
        says(
            "cannot-import",
            "cannot import name",
            r"cannot import name ['\"]?(?P<name>\w{1,100})['\"]? from ['\"](?P<module>[\w.]{1,200})['\"](?: ?\((?P<path>[^)]{1,300})\))?",
        ),
        says(
            "no-module",
            "no module named",
            r"No module named ['\"]?(?P<module>[A-Za-z_][\w.]{0,200})['\"]?(?:; '(?P<parent>[\w.]{1,200})' is not a package)?",
        ),
        says(
            "module-attribute",
            "has no attribute",
            r"(?<!initialized )module ['\"](?P<module>[\w.]{1,200})['\"] has no attribute ['\"](?P<name>\w{1,100})['\"]",
        ),
        says(
            "object-attribute",
            "has no attribute",
            r"AttributeError: (?:type object )?['\"]?(?P<class>[A-Z]\w{2,100})['\"]?(?: object)? has no attribute ['\"]?(?P<name>\w{1,100})['\"]?",
        ),
        says(
            "unexpected-argument",
            ("unexpected keyword argument", "required positional argument", "positional arguments but", "positional argument but", "required keyword-only argument"),
            r"TypeError: (?P<function>[\w.<>]{1,160})\(\) (?:got an unexpected keyword argument ['\"](?P<name>\w{1,100})['\"]|missing \d{1,2} required (?:positional|keyword-only) arguments?: '(?P<name2>\w{1,80})'|takes (?:from )?\d{1,2}(?: to \d{1,2})? positional arguments? but \d{1,2} (?:were|was) given)",
        ),
        says(
            "operator-schema",
            ("expected at most", "is missing value for argument", "unknown keyword argument", "expected a value of type"),
            r"(?P<namespace>\w{1,40})::(?P<operator>\w{1,100})(?:\.\w{1,40})?\(\) (?:expected at most \d{1,3} argument|is missing value for argument|Expected a value of type)"
            r"|Unknown keyword argument '\w{1,60}' for operator '(?P<namespace2>\w{1,40})::(?P<operator2>\w{1,100})",
        ),
        says(
            "binding-arguments",
            ("incompatible function arguments", "mismatched number of arguments when calling", "mismatched type on argument"),
            r"(?P<function>[\w.]{1,100})\(\): incompatible (?:function|constructor) arguments|Mismatched (?:number of arguments|type on argument #?\d{1,2}) when calling",
        ),
        says("operator-absent", "_opnamespace", r"'_OpNamespace' '(?P<namespace>\w{1,60})' object has no attribute '(?P<operator>\w{1,80})'"),
        says(
            "was-removed",
            ("dataset scripts are no longer supported", "was removed in", "has been removed", "was a deprecated alias", "is no longer supported in"),
            r"[`'](?P<name>[\w.]{2,80})[`'] (?:was removed in (?:the )?(?P<package>NumPy|SciPy|pandas|[\w-]{3,30}) (?P<release>\d[\w.]{0,10})|was a deprecated alias)"
            r"|(?:ImportError|AttributeError|RuntimeError|PydanticImportError): [`']?(?P<name2>[\w.:]{3,100})[`']? has been removed(?: (?:in|from) (?:version |V)?(?P<release2>\d[\w.]{0,10}))?"
            r"|(?P<scripts>Dataset scripts) are no longer supported, but found",
        ),
        says(
            "pydantic-of-before",
            ("pydantic", "is removed", "non-annotated attribute", "root_validator", "__root__", "__modify_schema__"),
            r"Pydantic(?:User|Import)Error: (?:`(?P<name>\w{1,40})` (?:is removed[,.] use|has been moved to the `pydantic-settings`)|If you use `@(?P<name2>root_validator)` with pre=False|A (?P<name3>non-annotated attribute) was detected|The `(?P<name4>__\w{1,40}__)` method is not supported in Pydantic v2)"
            r"|TypeError: To define root models, use `pydantic\.RootModel` rather than a field called '(?P<name5>__root__)'",
        ),
    ],
)  # fmt: skip
def api_drift(case: Case) -> Judgement:
    """One package uses a name, module or argument that the installed release of another no longer, or not yet, has.

    How it shows itself
      `ImportError: cannot import name 'X' from 'package'`, `ModuleNotFoundError: No module named 'engine.some.module'`,
      `AttributeError: module 'package' has no attribute 'x'`, `got an unexpected keyword argument`, an operator that
      `expected at most 7 argument(s) but received 8`. It happens at import or in the first call.

    Why it happens
      Two packages were written for different releases of each other: one was upgraded alone, the requirement has no upper
      bound, or a plug-in lags behind its engine. The release that dropped or added the name is often in its release notes.

    How to be sure
      The last frame of the traceback is the package that asks; the name in the message says whom. `python -m pip list`
      gives both releases; the engine's own requirement (`python -m pip show NAME`, its pyproject) says which it wants.

    What helps
      The release of the library that the engine asks for; for a plug-in, its newer release (or the engine it was written for).

    What does not help
      Installing a package with the name of the missing module: a module of the engine itself is in no other package.
      Reinstalling the same two releases.

    Not to be confused with
      package-conflict (a version check says it in words), import-shadowed (the module that answered is a file or folder of
      your own), abi-mismatch (a compiled part; undefined symbol), model-arch-unsupported.
    """
    for read in (
        _cannot_import,
        _module_attribute,
        _was_removed,
        _for_first_pydantic,
        _no_module,
        _operator,
        _argument,
        _attribute,
    ):
        drift = read(case)
        if drift is not None:
            return _verdict(case, drift)
    return None


class Drift(msgspec.Struct, frozen=True):
    """A name that was asked for and is not there. ``what`` is how a person writes it."""

    match: Match
    what: str
    asked: Asking
    certainty: Certainty
    strength: int
    change: ApiChange | None = None


def _own(case: Case, *signs: str) -> tuple[Match, ...]:
    """The matches outside quoted code, those of a failure first."""
    matches = [match for match in case.all(*signs) if not match.is_code]
    return tuple(sorted(matches, key=lambda match: match.event is None or match.event.kind == "warning"))


def _cannot_import(case: Case) -> Drift | None:
    for match in _own(case, "cannot-import"):
        module, name, path = match.group("module") or "", match.group("name") or "", match.group("path") or ""
        provider = package_of(module)
        if provider is None or "partially initialized" in match.text:
            continue
        if path == "unknown location" and change_of(module, name) is None:
            continue  # an empty package: a folder of that name, or what is left of an installation
        if path and path.startswith(("/", "~")) and not _SITE.search(path) and provider not in path.replace("_", "-"):
            continue  # a file of that name from elsewhere: import-shadowed
        asked = asking(case, match, provider)
        change = change_of(module, name)
        is_seen = _SITE.search(path) is not None and asked.consumer not in (None, provider)
        certainty = Certainty.PROVEN if is_seen or change is not None else Certainty.LIKELY
        if match.event is None and change is None and not is_seen:
            certainty = Certainty.LIKELY
        return Drift(match, f"{name} of {module}", asked, certainty, 80, change)
    return None


def _module_attribute(case: Case) -> Drift | None:
    for match in _own(case, "module-attribute"):
        module, name = match.group("module") or "", match.group("name") or ""
        provider = package_of(module)
        if provider is None or name.startswith("__") or "partially initialized" in match.text:
            continue
        if module in sys.stdlib_module_names or is_always_there(module, name):
            continue
        if "libraries" in module or (provider == "torch" and module.startswith("torch.ops")):
            continue
        change = change_of(module, name)
        asked = asking(case, match, provider)
        is_pair = asked.consumer not in (None, provider)
        if asked.consumer == USER_PROGRAM and change is None and provider not in parts.ENGINES:
            return Drift(match, f"{name} of {module}", asked, Certainty.POSSIBLE, 45)
        certainty = Certainty.LIKELY if is_pair or change is not None else Certainty.POSSIBLE
        return Drift(match, f"{name} of {module}", asked, certainty, 72 if is_pair else 55, change)
    return None


_SCRIPTS = ApiChange("datasets", "datasets", "dataset scripts", gone=True, release="4.0")


def _was_removed(case: Case) -> Drift | None:
    for match in _own(case, "was-removed"):
        if match.event is None or match.event.kind == "warning":
            continue
        if match.group("scripts"):
            return Drift(
                match, "support of dataset scripts", Asking("datasets", USER_PROGRAM), Certainty.PROVEN, 80, _SCRIPTS
            )
        name = match.group("name") or match.group("name2") or ""
        package = (match.group("package") or name.partition(".")[0]).lower()
        provider = "numpy" if package in ("np", "numpy") else package_of(package)
        if provider is None:
            continue
        change = change_of("numpy" if provider == "numpy" else package, name.rpartition(".")[2])
        return Drift(match, name, asking(case, match, provider), Certainty.PROVEN, 80, change)
    return None


def _for_first_pydantic(case: Case) -> Drift | None:
    """pydantic 2 tells in its own words what was written for pydantic 1."""
    for match in _own(case, "pydantic-of-before"):
        if match.event is None or match.event.kind == "warning":
            continue
        name = next((value for group, value in match.groups.items() if group.startswith("name")), "")
        change = ApiChange("pydantic", "", name, gone=True, release="2")
        return Drift(match, name, asking(case, match, "pydantic"), Certainty.LIKELY, 78, change)
    return None


def _no_module(case: Case) -> Drift | None:
    for match in _own(case, "no-module"):
        module = (match.group("module") or "").rstrip(".")
        first = module.partition(".")[0]
        if first in _NOT_AN_API or _COMPILED_PART.search(module):
            continue
        dropped = dropped_by_python(module)
        if dropped is not None:
            asked = asking(case, match, "python")
            removal = ApiChange("python", "", module, gone=True, release=dropped)
            return Drift(match, f"the module {module}", asked, Certainty.LIKELY, 70, removal)
        change = module_change(module)
        if "." not in module and change is None:
            continue  # a package that is not installed
        provider = (change.distribution if change is not None and "." not in module else None) or package_of(module)
        if provider is None:
            continue
        asked = asking(case, match, provider)
        is_sure = change is not None or match.group("parent") is not None
        is_pair = asked.consumer not in (None, provider)
        certainty = Certainty.PROVEN if is_sure and is_pair else Certainty.LIKELY
        if match.event is None or match.event.kind == "warning":
            certainty = Certainty.LIKELY if is_pair else Certainty.POSSIBLE
        return Drift(match, f"the module {module}", asked, certainty, 78 if is_pair else 68, change)
    return None


def _operator(case: Case) -> Drift | None:
    for match in _own(case, "operator-schema"):
        namespace = match.group("namespace") or match.group("namespace2") or ""
        operator = match.group("operator") or match.group("operator2") or ""
        provider = owner_of_operators(namespace)
        if provider is None or namespace in ("aten", "prim", "c10d"):
            continue
        return Drift(match, f"the operator {namespace}::{operator} with these arguments", asking(case, match, provider), Certainty.LIKELY, 74)  # fmt: skip
    for match in _own(case, "operator-absent"):
        namespace = match.group("namespace") or ""
        provider = owner_of_operators(namespace)
        # a package that refuses to be imported without its compiled part has loaded it when an operator is asked for
        if provider is not None and not namespace.startswith("_"):
            return Drift(match, f"the operator {namespace}::{match.group('operator')}", asking(case, match, provider), Certainty.LIKELY, 60)  # fmt: skip
    for match in _own(case, "binding-arguments"):
        asked = asking(case, match, None)
        provider = "flashinfer" if "Mismatched" in match.text and case.component_near(match) == "flashinfer" else None
        consumer = asked.consumer if asked.consumer != USER_PROGRAM else None
        if provider or consumer:
            return Drift(match, f"{match.group('function') or 'a compiled function'} with these arguments", msgspec.structs.replace(asked, provider=provider), Certainty.POSSIBLE, 45)  # fmt: skip
    return None


def _argument(case: Case) -> Drift | None:
    for match in _own(case, "unexpected-argument"):
        function = match.group("function") or ""
        owner = owner_of_class(function.rpartition(".")[0]) or owner_of_class(function) or _of_function(function)
        asked = asking(case, match, owner)
        if owner is None or asked.consumer in (None, owner) or (asked.consumer == USER_PROGRAM and not asked.is_remote_code):  # fmt: skip
            between = _between_packages(asked)
            if between is None:
                continue
            asked = between
        name = match.group("name") or match.group("name2")
        certainty = Certainty.LIKELY if owner is not None else Certainty.POSSIBLE
        change = change_of(owner or "", name) if name else None
        what = f"{function}(){f' with {name}' if name else ''}"
        return Drift(match, what, asked, certainty, 66 if owner else 42, change)
    return None


def _of_function(function: str) -> str | None:
    """Plain functions whose name tells their package."""
    for start, owner in (
        ("flash_attn_", "flash-attn"),
        ("flash_mla", "flashmla"),
        ("fp8_gemm", "deepgemm"),
        ("trtllm_", "flashinfer"),
    ):
        if function.startswith(start):
            return owner
    return None


def _between_packages(asked: Asking) -> Asking | None:
    """A call from one package's file whose line names another package (``flashinfer.decode.plan(...)``)."""
    frame = asked.consumer_frame
    if frame is None or not frame.code or asked.consumer in (None, USER_PROGRAM):
        return None
    for word in re.findall(r"\b([A-Za-z_]\w{2,40})\.\w", frame.code[:300]):
        provider = package_of(word) if word not in ("self", "super", "torch", "np", "args", "kwargs", "cls") else None
        if provider in components.component_names() and provider != asked.consumer:
            return msgspec.structs.replace(asked, provider=provider)
    return None


def _attribute(case: Case) -> Drift | None:
    for match in _own(case, "object-attribute"):
        name, owner = match.group("name") or "", owner_of_class(match.group("class") or "")
        if owner is None or match.group("class") == "NoneType":
            continue
        asked = asking(case, match, owner)
        change = change_of(owner, name)
        if asked.consumer in (None, owner) and change is None:
            continue
        if _LAYER.search(match.group("class") or "") and asked.consumer in parts.ENGINES:
            continue  # engines have model classes of these names of their own
        if asked.consumer == USER_PROGRAM and not asked.is_remote_code and change is None:
            continue
        is_private = name.startswith("__")
        certainty = Certainty.LIKELY if change is not None or (not is_private and asked.consumer_frame is not None) else Certainty.POSSIBLE  # fmt: skip
        if owner == "transformers" and change is None and str(match.group("class")).endswith(("Config", "ForCausalLM", "ForConditionalGeneration")):  # fmt: skip
            certainty = Certainty.POSSIBLE  # a model's own configuration may lack it as well
        return Drift(match, f"{name} of {match.group('class')}", asked, certainty, 68 if change else 48, change)
    return None


def _verdict(case: Case, drift: Drift) -> Judgement:
    asked, match = drift.asked, drift.match
    provider, consumer = asked.provider, asked.consumer
    component = asked.out_of_step
    certainty = parts.capped(case, match, drift.certainty)
    who = "the model's own code" if asked.is_remote_code else consumer
    quoted = case.evidence(match, f"{provider or 'the library'} has no {drift.what}")
    known = derived(drift.change.why, "documented: release notes") if drift.change is not None else None
    versions = tuple(
        e
        for name in (provider, consumer)
        if name
        for e in parts.evidence_of(case, parts.distribution_of(name), f"the installed {name}")
    )[:2]
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{who or 'A package'} asks for {drift.what}, which the installed {provider or 'library'} does not have",
        chain=(
            Link(f"{who or 'one package'} was written for another release of {provider or 'a library'} than the one installed", known or inferred("which releases are installed is not in the log")),
            Link(f"{drift.what} is not there", quoted),
        ),
        evidence=(quoted, *((known,) if known else ()), *versions),
        explains=case.explains(match),
        missing=_missing(case, provider, consumer),
        rivals=("package-conflict",) if certainty is Certainty.PROVEN else ("package-conflict", "import-shadowed"),
        remedies=_remedies(case, drift),
        not_remedies=_in_vain(provider),
        notes=(f"{who} is in {asked.consumer_frame.path}",) if asked.consumer_frame is not None and who else (),
        strength=drift.strength,
    )  # fmt: skip


def _missing(case: Case, provider: str | None, consumer: str | None) -> tuple[Missing, ...]:
    asked = [
        case.missing(f"packages.{parts.distribution_of(name)}", f"which release of {name} is installed", f"python -m pip show {parts.distribution_of(name)}")
        for name in dict.fromkeys((provider, consumer))
        if name not in (None, USER_PROGRAM, "python") and parts.version_of(case, parts.distribution_of(name or "")) is None
    ]  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _in_vain(provider: str | None) -> tuple[NotARemedy, ...]:
    return (
        NotARemedy(
            f"installing a package with the name of what is missing{f', instead of another release of {provider}' if provider else ''}",
            "the name belongs to the library that is installed; no other package holds it",
        ),
    )


def _remedies(case: Case, drift: Drift) -> tuple[Remedy, ...]:
    """Move the one that is out of step first; then the other."""
    asked = drift.asked
    provider, consumer, component = asked.provider, asked.consumer, asked.out_of_step
    remedies: list[Remedy] = []
    fitting = drift.change.fitting if drift.change is not None else None
    if provider == consumer and provider in parts.ENGINES:
        return (
            Remedy(kind="package", name=str(provider), value="reinstall", summary=f"Remove {provider} altogether and install it anew: its files are of two releases", check=(f"python -m pip show -f {provider}",)),
            *parts.whole_engine(case),
        )  # fmt: skip
    if provider is not None:
        remedies.append(_provider(case, provider, fitting, consumer, rank=0 if component == provider else 3))
    if consumer not in (None, USER_PROGRAM, provider):
        remedies.extend(_consumer(case, str(consumer), provider, drift.change, rank=0 if component == consumer else 2))
    if asked.is_remote_code:
        remedies.append(Remedy(kind="files", name="model code", value="newer revision", summary="Take the model repository's present revision, whose code may have been adapted", is_sure=False))  # fmt: skip
    return tuple(remedies)


def _provider(case: Case, provider: str, fitting: str | None, consumer: str | None, rank: int) -> Remedy:
    if provider == "python":
        return Remedy(kind="package", name="python", value=fitting or "older", rank=5, summary=f"Or an environment with Python {fitting}", cost="a fresh environment")  # fmt: skip
    name = parts.distribution_of(provider, case)
    value = fitting
    pin = parts.required_by_engine(case, name)
    if pin is not None and pin.specifier:
        value, why = pin.specifier, f"as this {case.engine} requires"
    elif fitting is not None:
        why = "which still has it" if fitting.startswith("<") or fitting == "older" else "which has it"
    elif provider in parts.ENGINES:
        value, why = "older", f"that {consumer or 'its caller'} was written for"
    else:
        value = f"match:{consumer}" if consumer not in (None, USER_PROGRAM, provider) else "another release"
        why = f"that {consumer or 'its caller'} was written for"
    return Remedy(kind="package", name=name, value=value or "older", rank=rank, summary=f"Install the release of {name} {why}{f' ({value})' if value and value[0] in '<>=~' else ''}", check=(f"python -m pip show {name}", "python -m pip check"))  # fmt: skip


def _consumer(
    case: Case, consumer: str, provider: str | None, change: ApiChange | None, rank: int
) -> tuple[Remedy, ...]:
    name = parts.distribution_of(consumer, case)
    is_behind = change is None or change.gone
    value = "newer" if is_behind else "older"
    told = "that has followed the change" if is_behind else "that does not ask for it yet"
    remedies = [Remedy(kind="package", name=name, value=value, rank=rank, summary=f"Install a {value} release of {name}, {told}", check=(f"python -m pip show {name}",))]  # fmt: skip
    if consumer == "unsloth-zoo" and provider == "vllm":
        remedies.append(Remedy(kind="package", name="unsloth", value="newer", rank=rank + 1, summary="unsloth goes with its unsloth_zoo: upgrade both"))  # fmt: skip
    return tuple(remedies)

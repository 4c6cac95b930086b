"""import-shadowed: a file or folder of one's own hides an installed or standard module of the same name."""

from __future__ import annotations

import re
import sys

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.causes.packages._asking import USER_PROGRAM, is_always_there
from gpuwhy.knowledge import components
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_STANDARD = frozenset(name for name in sys.stdlib_module_names if not name.startswith("_")) - {"this", "test", "main"}
_OFTEN_HIDDEN = frozenset(
    {"torch", "triton", "transformers", "vllm", "sglang", "flashinfer", "numpy", "datasets", "evaluate", "tokenizers", "openai", "ray", "requests", "yaml", "regex", "accelerate", "flash_attn", "huggingface_hub", "safetensors", "xformers", "deepspeed", "peft", "trl", "cuda", "tensorrt_llm", "lmdeploy", "sgl_kernel", "wandb", "jinja2", "pydantic", "fastapi", "unsloth", "diffusers", "whisper", "faster_whisper", "llama_cpp", "gradio", "langchain", "bitsandbytes", "onnxruntime", "modelscope", "funasr", "tensorrt", "sentence_transformers", "exllamav2", "einops", "timm", "optimum", "streamlit", "outlines", "mamba_ssm", "tilelang"}
)  # fmt: skip
_INSTALLED = lazy_pattern(
    r"(?:site|dist)-packages/|/lib(?:64)?/python3\.\d{1,2}/|[/\\]Lib[/\\]|<frozen|/python3\.\d{1,2}/lib-dynload|\.zip/|/conda/lib/"
)
_FILE = r"[\w./\\+@~: -]{1,300}"


@cause(
    "import-shadowed",
    family="Packages",
    signs=[
        says(
            "said-by-python",
            "consider renaming",
            rf"module '(?P<module>[\w.]{{1,80}})' has no attribute '(?P<name>\w{{1,80}})' \(consider renaming '(?P<path>{_FILE})'|consider renaming '(?P<path2>{_FILE})'(?: since| if)",
        ),
        says(
            "partially-initialized",
            "partially initialized module",
            rf"partially initialized module '(?P<module>[\w.]{{1,80}})'(?: from '(?P<path>{_FILE})')? (?:has no attribute '(?P<name>\w{{1,80}})' )?\(most likely due to a circular import\)(?: \((?P<path2>{_FILE})\))?",
        ),
        says(
            "import-from-elsewhere",
            ("cannot import name", "has no attribute"),
            rf"cannot import name '(?P<name>\w{{1,80}})' from '(?P<module>[\w.]{{1,80}})' \((?P<path>{_FILE}\.py|unknown location)\)|module '(?P<module2>[\w]{{1,40}})' has no attribute '(?P<name2>\w{{1,80}})'",
        ),
        says("not-a-package", "is not a package", r"No module named '(?P<name>[\w.]{1,80})'; '(?P<module>[\w.]{1,80})' is not a package"),
        says(
            "source-folder",
            ("from its source directory", "torch/_c", "repository rather than the c extensions", "source tree"),
            r"torch/_C`? folder|PyTorch repository rather than the C extensions|(?:should not try to )?import numpy from its source directory|(?P<module>\w{2,40}) (?:from|in) its source (?:directory|tree)",
        ),
        says(
            "compiled-part-absent",
            "no module named",
            r"No module named '(?P<module>vllm\._C|vllm\._moe_C|vllm\._version|torch\._C|triton\._C|triton\._C\.libtriton|flash_attn_2_cuda|sgl_kernel\.common_ops|xformers\._C|tensorrt_llm\.bindings|llama_cpp\.lib|exllamav2_ext|deep_gemm_cpp|deep_ep_cpp|flash_mla\.cuda|flash_attn_3\._C|lmcache\.c_ops|causal_conv1d_cuda|selective_scan_cuda|_turbomind|torchao\._C|torchvision\._C|mamba_ssm\._C|xgrammar\.xgrammar_bindings)'",
        ),
        says(
            "own-file",
            (*(f"/{name}.py" for name in sorted(_STANDARD | _OFTEN_HIDDEN)), *(f"/{name}/__init__.py" for name in sorted(_OFTEN_HIDDEN))),
            rf"File \"(?P<path>{_FILE}[/\\](?P<module>(?!__init__)\w{{1,40}})(?:[/\\]__init__)?\.py)\", line \d{{1,7}}",
        ),
    ],
)  # fmt: skip
def import_shadowed(case: Case) -> Judgement:
    """A file or folder of the working directory, or of an earlier path entry, hides a module of the same name.

    How it shows itself
      `AttributeError: partially initialized module 'queue' has no attribute 'Queue' (most likely due to a circular import)`,
      `cannot import name 'X' from 'triton' (unknown location)`, `No module named 'vllm._C'` when started inside a checkout of vLLM. Python
      3.13 says it: `(consider renaming '/srv/app/queue.py' since it has the same name as the standard library module ...)`. A file such as
      timeit.py can also run quietly as part of the import, and hang or fail there.

    Why it happens
      Python searches the folder of the script, or the current one with `-m` and `-c`, and PYTHONPATH before its own modules. A file of the
      name of a module is taken for it; a folder without `__init__.py` becomes an empty package of that name (unknown location).

    How to be sure
      `python -c "import NAME; print(NAME.__file__, NAME.__path__)"` from the same folder: the path lies outside site-packages and the
      standard library.

    What helps
      Rename or move the file (and its `__pycache__`), start from another folder, take the folder out of PYTHONPATH; `python -P`.

    What does not help
      Installing or upgrading the package of that name: the file is still found first.

    Not to be confused with
      api-drift (the module that answered is the installed one), package-conflict, abi-mismatch (`vllm._C` fails to load with a reason).
    """
    for read in (_said, _source_folder, _elsewhere, _own_file, _compiled_part):
        judged = read(case)
        if judged is not None:
            return judged
    return None


def _said(case: Case) -> Judgement:
    """Python names the file itself, or its path lies outside of what is installed."""
    for match in case.all("said-by-python", "partially-initialized"):
        path = match.group("path") or match.group("path2") or ""
        module = match.group("module") or path.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
        if match.is_code or (
            match.sign == "partially-initialized" and (_INSTALLED.search(path) or not _is_hidden(module))
        ):
            continue
        if match.sign == "partially-initialized" and not path:
            path = _frame_of(match, module) or ""
        is_sure = match.sign == "said-by-python" or bool(path)
        return _verdict(
            case, match, module, path, Certainty.PROVEN if is_sure else Certainty.LIKELY, 88 if is_sure else 70
        )
    return None


def _source_folder(case: Case) -> Judgement:
    match = case.found("source-folder")
    if match is None or match.is_code:
        return None
    module = match.group("module") or ("torch" if "torch" in match.text.lower() else "numpy")
    certainty = Certainty.PROVEN if "torch/_C" in match.text else Certainty.LIKELY
    return _verdict(case, match, module, "", certainty, 82 if certainty is Certainty.PROVEN else 55)


def _elsewhere(case: Case) -> Judgement:
    """The module that answered lies outside of site-packages and the standard library."""
    for match in case.all("import-from-elsewhere", "not-a-package"):
        module = match.group("module") or match.group("module2") or ""
        path = match.group("path") or ""
        first = module.partition(".")[0]
        if match.is_code or not _is_hidden(first):
            continue
        if path and path != "unknown location" and not _INSTALLED.search(path):
            is_own_package = re.search(rf"[/\\]{re.escape(first)}[/\\]", path) is not None
            certainty = Certainty.PROVEN if first in _STANDARD or not is_own_package else Certainty.LIKELY
            return _verdict(case, match, first, path, certainty, 86 if certainty is Certainty.PROVEN else 60)
        if (
            path == "unknown location" and "." not in module and first != "cuda"
        ):  # cuda is a package without a place of its own
            return _verdict(case, match, first, "", Certainty.LIKELY, 64)
        missed = match.group("name") or match.group("name2") or ""
        if not path and is_always_there(module, missed):
            own = _frame_of(match, first)
            return _verdict(case, match, first, own or "", Certainty.LIKELY, 66)
        if not path and first in _STANDARD:
            own = _frame_of(match, first)
            if own is not None:
                return _verdict(case, match, first, own, Certainty.PROVEN, 84)
            if match.sign == "not-a-package":
                return _verdict(case, match, first, "", Certainty.LIKELY, 70)
    return None


def _own_file(case: Case) -> Judgement:
    """A frame in a file named like a module, that was entered by an import of that module."""
    for match in case.all("own-file"):
        path, module = match.group("path") or "", match.group("module") or ""
        if match.is_code or _INSTALLED.search(path) or match.event is None or match.event.kind != "exception":
            continue
        is_standard = module in _STANDARD and components.component_of_module(path) in (None, USER_PROGRAM)
        if not is_standard and not _is_no_checkout(module, path):
            continue
        frames = match.frames
        at = next((i for i, frame in enumerate(frames) if frame.path == path), 0)
        importing = re.compile(rf"^\s*(?:import|from) (?:[\w., ]{{0,80}}\b)?{re.escape(module)}\b")
        if at and (importing.search(frames[at - 1].code) or "importlib" in frames[at - 1].path or "<frozen" in frames[at - 1].path) and frames[at].function == "<module>":  # fmt: skip
            if is_standard:
                return _verdict(case, match, module, path, Certainty.PROVEN, 84)
            if _INSTALLED.search(frames[at - 1].path):
                return _verdict(case, match, module, path, Certainty.LIKELY, 62)
    return None


_OFTEN_CHECKED_OUT = frozenset({"vllm", "sglang", "flashinfer", "lmdeploy", "ktransformers"})
_FOLDERS_OF_CHECKOUTS = frozenset({"python", "src", "lib", "source"})


def _is_no_checkout(module: str, path: str) -> bool:
    """Whether a third-party module of this path is somebody's own file: an editable installation lies in its project."""
    folders = path.replace("\\", "/").removesuffix("/__init__.py").removesuffix(".py").split("/")[:-1]
    around = [folder.lower().replace("-", "_") for folder in folders[-2:]]
    return module in _OFTEN_HIDDEN - _OFTEN_CHECKED_OUT and not any(
        folder in _FOLDERS_OF_CHECKOUTS or folder.startswith(module) for folder in around
    )


def _compiled_part(case: Case) -> Judgement:
    """A compiled module is absent, and the package around it is a checkout and not the installed one."""
    match = case.found("compiled-part-absent")
    if match is None or match.is_code:
        return None
    if (
        parts.says_around(case, match, r"GLIBC\w{0,3}_\d|undefined symbol|cannot open shared object", 40, 40)
        is not None
    ):
        return None  # it is there, and the reason why it does not load is told
    module = match.group("module") or ""
    first = _PACKAGE_OF_PART.get(module, module.partition(".")[0])
    known = _module_path(case, first)
    if known is not None and _INSTALLED.search(str(known.value)):
        return RuledOut(
            f"{first} is imported from {known.value}, where it is installed", (case.evidence(match, ""), known.evidence)
        )
    path = known.value if known is not None else _frame_of(match, first)
    if path is None and not any("/" + first + "/" in frame.path for frame in match.frames):
        return None if match.frames or match.event is None else _verdict(case, match, first, "", Certainty.POSSIBLE, 28)
    own = str(path) if path else next(f.path for f in match.frames if "/" + first + "/" in f.path)
    if _INSTALLED.search(own):
        return None
    certainty = Certainty.PROVEN if known is not None else Certainty.LIKELY
    return _verdict(case, match, first, own, certainty, 66)


_PACKAGE_OF_PART = {
    "deep_gemm_cpp": "deep_gemm",
    "deep_ep_cpp": "deep_ep",
    "flash_attn_2_cuda": "flash_attn",
    "causal_conv1d_cuda": "causal_conv1d",
    "selective_scan_cuda": "mamba_ssm",
    "exllamav2_ext": "exllamav2",
    "_turbomind": "lmdeploy",
}
"""Compiled parts that lie beside their package and not in it."""


def _module_path(case: Case, module: str) -> Fact | None:
    for name, fact in case.facts.group("files").items():
        if name in (module, f"{module}.__file__") and isinstance(fact.value, str):
            return fact
    return None


def _file_of_that_name(case: Case, module: str) -> Fact | None:
    """A file or folder of the module's name that was found outside of what is installed."""
    for path, fact in case.facts.group("files").items():
        name = path.rstrip("/").replace("\\", "/").rpartition("/")[2]
        is_there = fact.value not in (None, "", False, "absent", "missing")
        if "/" in path and name in (module, f"{module}.py") and is_there and not _INSTALLED.search(path):
            return fact
    return None


def _is_hidden(module: str) -> bool:
    """Whether a module of this name comes from the standard library, or is one that packages of this field are called."""
    first = module.partition(".")[0]
    return first in _STANDARD or first in _OFTEN_HIDDEN


def _frame_of(match: Match, module: str) -> str | None:
    """A frame's file of the module's name outside of what is installed."""
    for frame in match.frames:
        path = frame.path.replace("\\", "/")
        if (path.endswith(f"/{module}.py") or path == f"{module}.py" or f"/{module}/" in path) and not _INSTALLED.search(path):  # fmt: skip
            return frame.path
    return None


def _verdict(case: Case, match: Match, module: str, path: str, certainty: Certainty, strength: int) -> Judgement:
    quoted = case.evidence(match, f"the module that answers to {module} is not the one that was meant")
    seen = _file_of_that_name(case, module)
    if seen is not None:
        path, certainty = path or seen.key.partition(".")[2], Certainty.PROVEN
    where = path or f"a file or folder named {module}"
    is_folder = bool(path) and re.search(rf"[/\\]{re.escape(module)}[/\\]", path) is not None
    known = components.canonical(module)
    return Verdict(
        certainty=certainty,
        component=USER_PROGRAM if certainty is not Certainty.POSSIBLE else known or USER_PROGRAM,
        title=f"{where} hides the module {module}",
        chain=(
            Link(f"{where} lies in a folder that Python searches first", quoted if path else inferred("its place is not in the log")),
            Link(f"whoever imports {module} gets it, and misses what it asks for", quoted),
        ),
        evidence=(quoted, *((seen.evidence,) if seen is not None else ())),
        explains=case.explains(match),
        missing=() if certainty is Certainty.PROVEN else _missing(case, module),
        rivals=() if certainty is Certainty.PROVEN else ("api-drift", "abi-mismatch"),
        remedies=_remedies(module, path, is_folder=is_folder, is_beside_script=_is_beside_script(match, path)),
        not_remedies=(NotARemedy(f"installing or upgrading {module}", "the file or folder is still found first"),),
        strength=strength,
    )  # fmt: skip


def _missing(case: Case, module: str) -> tuple[Missing, ...]:
    asked = (
        case.missing(f"files.{module}.__file__", "from where the module is imported", f'python -c "import {module}; print({module}.__file__, {module}.__path__)"'),
        case.missing("env.PYTHONPATH", "which folders are searched first"),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _is_beside_script(match: Match, path: str) -> bool:
    """Whether the script that was started lies in the same folder: Python searches that one from wherever it is started."""
    first = match.frames[0] if match.frames else None
    own = path.replace("\\", "/").rpartition("/")[0]
    return bool(own) and first is not None and first.path.replace("\\", "/").rpartition("/")[0] == own


def _remedies(module: str, path: str, *, is_folder: bool, is_beside_script: bool) -> tuple[Remedy, ...]:
    folder = Remedy(kind="config", name="working directory", value="another folder", summary=f"Start the program from another folder than the one that holds {module}", check=(f'python -c "import {module}; print({module}.__file__)"',))  # fmt: skip
    name = path.replace("\\", "/").rpartition("/")[2] or module
    rename = Remedy(kind="files", name=module if is_folder else name, value="rename", summary=f"Rename or move {path or module}, and delete its __pycache__; take its folder out of PYTHONPATH, if it is there", check=(f'python -c "import {module}; print({module}.__file__)"',), rank=1)  # fmt: skip
    return (rename,) if is_beside_script else (rename, folder)

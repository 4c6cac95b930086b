"""Runs functions of real packages where facts hold: in child processes with stand-ins for torch, nvcc and the file system.

    python really.py <cases.json

It knows nothing of the replay: facts become answers of stand-ins here in their own way. Standard input is a list of
{entry, folders, facts, not_run, before}; it prints one JSON document a line, in the same order.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import logging
import os
import posixpath
import re
import shutil
import subprocess
import sys
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

VALUES = ("torch.version.cuda", "torch.version.hip", "torch.__version__", "sys.platform")


class Anything(types.ModuleType):
    """A module that has every attribute, each callable, decorating nothing and good as a base class."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "2.9.0"
        if name.startswith("__"):
            raise AttributeError(name)
        made = Anything(f"{self.__name__}.{name}")
        made.__path__ = []
        setattr(self, name, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __mro_entries__(self, bases: Any) -> Any:
        return (type(self.__name__.rpartition(".")[2], (), {}),)

    def __getitem__(self, key: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __neg__(self) -> Any:
        return self


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages without their own code, and :class:`Anything` for what is not in the folders."""

    def __init__(self, folders: list[Path], absent: set[str]) -> None:
        self.folders = folders
        self.absent = absent

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        top = name.partition(".")[0]
        if name in self.absent:
            return None
        for folder in self.folders:
            base = folder.joinpath(*name.split("."))
            if (base / "__init__.py").is_file() and name in PACKAGES_NOT_RUN:
                spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
                spec.submodule_search_locations = [str(base)]
                return spec
            for file in (base / "__init__.py", base.with_name(base.name + ".py")):
                if file.is_file():
                    return importlib.util.spec_from_file_location(name, file)
        if top in sys.stdlib_module_names or top in ("packaging", "typing_extensions"):
            return None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = []
        return spec

    def create_module(self, spec: Any) -> Any:
        if spec.name in PACKAGES_NOT_RUN and spec.name != "torch":
            hollow = types.ModuleType(spec.name)
            if spec.name == "vllm.platforms":
                vars(hollow).update(current_platform=Anything("platform"), CpuArchEnum=Anything("architecture"))
            return hollow
        module = Anything(spec.name)
        if spec.name == "vllm.logger":
            vars(module)["init_logger"] = engine_logger
        return module

    def exec_module(self, module: Any) -> None:
        return


def engine_logger(name: str) -> Any:
    """vLLM's logger: it can say a thing once."""
    logger: Any = logging.getLogger(name)
    for level in ("info", "warning", "debug"):
        setattr(logger, f"{level}_once", functools.partial(said_once, getattr(logger, level)))
    return logger


def said_once(say: Any, *args: Any, scope: str = "") -> None:
    say(*args, stacklevel=2)


PACKAGES_NOT_RUN: set[str] = set()


def main() -> None:
    # what every package imports is loaded once; each case then has a process of its own
    import dataclasses, typing, multiprocessing, asyncio, packaging.version, sysconfig, ctypes, uuid  # noqa: E401, F401, I001

    importlib.import_module("setuptools")
    for case in json.load(sys.stdin):
        child = os.fork()
        if not child:
            try:
                run(case)
            except BaseException as error:  # noqa: BLE001
                print(json.dumps({"stopped": repr(error)}))
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)


def run(case: dict[str, Any]) -> None:
    facts: dict[str, Any] = case["facts"]
    roots = [Path(folder).resolve() for folder in case["folders"]]
    name, _, text = case["entry"].partition(":")
    for module in (name, *case["not_run"]):
        parts = module.split(".")
        PACKAGES_NOT_RUN.update(".".join(parts[:end]) for end in range(1, len(parts)))
    environment = {key[4:]: value for key, value in facts.items() if key.startswith("env.") and value is not None}
    os.environ.clear()
    os.environ.update(environment)
    absent = {key[8:] for key, value in facts.items() if key.startswith("modules.") and value is False}
    sys.meta_path.insert(0, StandIns(roots, absent))
    answer_files(facts)
    answer_commands(facts)
    answer_packages(facts, absent)
    answer_externals(facts)
    lines = listen(roots)
    for module in case["before"]:
        importlib.import_module(module)
    lines.clear()
    print(json.dumps({"lines": lines, **outcome(name, text, roots)}))


def outcome(name: str, text: str, roots: list[Path]) -> dict[str, Any]:
    try:
        module = importlib.import_module(name)
        if not text:
            return {"returned": "None"}
        value = eval(text, vars(module))
        if callable(value) and not text.endswith(")"):
            value = value()
        return {"returned": repr(value)}
    except Exception as error:  # noqa: BLE001
        site = next(
            (
                [shown(frame.filename, roots), frame.lineno]
                for frame in reversed(traceback.extract_tb(error.__traceback__))
                if shown(frame.filename, roots)
            ),
            None,
        )
        return {"raised": type(error).__name__, "message": str(error), "site": site}


def shown(path: str, roots: list[Path]) -> str:
    for root in roots:
        if path.startswith(f"{root}/"):
            return path.removeprefix(f"{root}/")
    return ""


def listen(roots: list[Path]) -> list[Any]:
    lines: list[Any] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            file = shown(record.pathname, roots)
            if file:
                lines.append([record.levelname.lower(), record.name, record.getMessage(), file, record.lineno])

    def warned(message: Any, category: Any, filename: str, lineno: int, *_: Any) -> None:
        if shown(filename, roots):
            lines.append(["warn", category.__name__, str(message), shown(filename, roots), lineno])

    logging.getLogger().addHandler(Listener())
    logging.getLogger().setLevel(1)
    warnings.simplefilter("always")
    vars(warnings)["showwarning"] = warned
    return lines


def answer_files(facts: dict[str, Any]) -> None:
    known = {key[6:]: value for key, value in facts.items() if key.startswith("files.")}
    for key, value in facts.items():
        if key.startswith("other_toolkits."):
            known[key[15:] + "/bin/nvcc"] = known[key[15:]] = value
    home = facts.get("cuda_home") or facts.get("env.CUDA_HOME")
    if "cuda_toolkit" in facts and home:
        known.setdefault(home + "/bin/nvcc", facts["cuda_toolkit"])
    real, real_open = os.path.exists, builtins.open

    def exists(path: Any) -> bool:
        path = posixpath.normpath(os.fspath(path))
        return bool(known[path]) if path in known else real(path) if path.startswith(sys.prefix) else False

    def opened(file: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, (str, os.PathLike)) and str(file) in known:
            content = known[str(file)]
            if not content:
                raise FileNotFoundError(2, "No such file or directory", str(file))
        if str(file).startswith(facts.get("env.HOME") or "/nowhere"):
            file = os.devnull
        return real_open(file, *args, **kwargs)

    os.path.exists = exists
    builtins.open = opened
    os.makedirs = lambda *_, **__: None


def answer_commands(facts: dict[str, Any]) -> None:
    known: dict[str, Any] = {key[9:]: value for key, value in facts.items() if key.startswith("commands.")}
    for key, version in facts.items():
        if key.startswith("other_toolkits."):
            known.setdefault(f"{key[15:]}/bin/nvcc --version", release_text(version))
    home = facts.get("cuda_home") or facts.get("env.CUDA_HOME") or facts.get("env.CUDA_PATH")
    if "nvcc_path" in facts:
        path = facts["nvcc_path"]
        known["which nvcc"] = {"returncode": 1} if path is None else path + "\n"
        home = home or (posixpath.dirname(posixpath.dirname(path)) if path else None)
    if "cuda_toolkit" in facts:
        known.setdefault(f"{home or '/usr/local/cuda'}/bin/nvcc --version", release_text(facts["cuda_toolkit"]))

    def ran(command: Any, check: bool, kwargs: dict[str, Any]) -> Any:
        line = command if isinstance(command, str) else " ".join(map(str, command))
        if line not in known:
            raise SystemExit(f"the test gives no answer to: {line}")
        answer = known[line]
        if answer is None:
            raise FileNotFoundError(2, "No such file or directory", command[0])
        if isinstance(answer, str):
            answer = {"stdout": answer}
        if answer.get("raises") == "FileNotFoundError":
            raise FileNotFoundError(2, "No such file or directory", command[0])
        if answer.get("raises") == "PermissionError":
            raise PermissionError(13, "Permission denied", command[0])
        as_text = kwargs.get("text") or kwargs.get("universal_newlines")
        out, err = (text if as_text else text.encode() for text in (answer.get("stdout", ""), answer.get("stderr", "")))
        code = answer.get("returncode", 0)
        if check and code:
            raise subprocess.CalledProcessError(code, command, out)
        return subprocess.CompletedProcess(command, code, out, err)

    vars(subprocess)["run"] = lambda command, check=False, **kwargs: ran(command, check, kwargs)
    vars(subprocess)["check_output"] = lambda command, **kwargs: ran(command, True, kwargs).stdout

    def which(program: str, *_: Any, **__: Any) -> Any:
        answer = known.get(f"which {program}", {"returncode": 1})
        return answer.strip() if isinstance(answer, str) else None

    vars(shutil)["which"] = which


def release_text(version: str | None) -> str | None:
    if version is None:
        return None
    return f"nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release {version}, V{version}\n"


def answer_packages(facts: dict[str, Any], absent: set[str]) -> None:
    known = {key[9:]: value for key, value in facts.items() if key.startswith("packages.")}

    def version(name: str) -> str:
        if known.get(name) is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return str(known[name])

    vars(importlib.metadata)["version"] = version
    real = importlib.util.find_spec

    def find_spec(name: str, package: Any = None) -> Any:
        return None if name in absent else real(name, package)

    importlib.util.find_spec = find_spec


def answer_externals(facts: dict[str, Any]) -> None:
    answers: dict[str, Any] = {}
    gpus = facts.get("gpus")
    if gpus is not None:
        pairs = [re.search(r"\((\d+)\.(\d+)\)$", gpu) for gpu in gpus]
        capabilities = [(int(pair[1]), int(pair[2])) for pair in pairs if pair]
        answers["torch.cuda.device_count"] = lambda: len(capabilities)
        answers["torch.cuda.get_device_capability"] = lambda device=0: capabilities[device]
    if "torch_cuda" in facts:
        answers["torch.version.cuda"] = facts["torch_cuda"]
        answers["torch.version.hip"] = None
        answers["torch.cuda._is_compiled"] = lambda: facts["torch_cuda"] is not None
    if "torch" in facts:
        answers["torch.version.__version__"] = answers["torch.__version__"] = facts["torch"]
    if "torch_arch_list" in facts:
        answers["torch.cuda.get_arch_list"] = lambda: list(facts["torch_arch_list"])
    for key, value in facts.items():
        if key.startswith("external."):
            name = key[9:]
            answers[name] = value if name in VALUES else answering(value, name.endswith("get_device_capability"))
    for name, answer in answers.items():
        holder, _, last = name.rpartition(".")
        target = sys if holder == "sys" else importlib.import_module(holder.partition(".")[0])
        path = holder.partition(".")[0]
        for part in holder.split(".")[1:]:
            path += f".{part}"
            if not hasattr(target, part):
                importlib.import_module(path)
            target = getattr(target, part)
        setattr(target, last, answer)
    for name in [name for name, module in sys.modules.items() if isinstance(module, Anything)]:
        fill(name, sys.modules[name])


def fill(name: str, module: Any) -> None:
    for key, value in list(vars(module).items()):
        if isinstance(value, Anything):
            sys.modules[f"{name}.{key}"] = value
            fill(f"{name}.{key}", value)


def answering(value: Any, as_tuple: bool) -> Any:
    def answer(*_: Any, **__: Any) -> Any:
        if isinstance(value, dict) and "expression" in value:
            module, _, text = value["expression"].partition(":")
            return eval(text, vars(importlib.import_module(module)))
        if isinstance(value, dict) and "raises" in value:
            raise getattr(builtins, value["raises"])(*([value["message"]] if "message" in value else []))
        return tuple(value) if as_tuple and isinstance(value, list) else value

    return answer


if __name__ == "__main__":
    main()

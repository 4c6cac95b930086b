"""Answers to what replayed code asks the outside, from facts alone.

The keys are those of ``docs/facts.md``; ``external.``, ``commands.`` and ``modules.`` (``docs/replay.md``) name any other
call, command and module. A question that no fact answers raises :class:`NeedsFactError` with the key that would.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from gpuwhy.model.fact import Facts
from gpuwhy.source.replay.stops import NeedsFactError

_GROUPS = ("env", "packages", "files", "other_toolkits", "toolkit_resolved", "external", "commands", "modules", "links")
_COMMAND_LINE = re.compile(r"(?P<folder>/.{0,400})/bin/nvcc")
_CAPABILITY = re.compile(r"\((?:sm_?)?(\d{1,2})\.(\d)\)\s*$")


class Answer(msgspec.Struct, frozen=True):
    """``keys`` are the facts it rests on."""

    value: Any
    keys: tuple[str, ...]


class Output(msgspec.Struct, frozen=True):
    """What a command did. ``raises`` names an exception of starting it; ``errno`` is that of an OSError."""

    stdout: str = ""
    stderr: str = ""
    returncode: int = 0
    raises: str = ""
    message: str = ""


class Oracle:
    """Facts under their keys. ``consumer`` is the package whose code asks: its own toolkit goes first."""

    def __init__(self, facts: Facts | Mapping[str, Any], consumer: str = "") -> None:
        self._facts = _flat(facts)
        self._hidden = frozenset(facts.unknowns()) if isinstance(facts, Facts) else frozenset()
        self._consumer = consumer
        outside = [key.removeprefix("external.") for key in self._facts if key.startswith("external.")]
        self._calls = frozenset(name.partition("(")[0] for name in outside) | _CALLS.keys()
        self._holders = frozenset(
            name[:at]
            for full in outside
            for name in [full.partition("(")[0]]
            for at, sign in enumerate(name)
            if sign == "."
        )

    def __contains__(self, key: str) -> bool:
        return key in self._facts

    def fact(self, key: str, command: str = "") -> Answer:
        """The fact itself."""
        if key not in self._facts:
            raise NeedsFactError(key, command)
        return Answer(self._facts[key], (key,))

    # variables

    def variable(self, name: str) -> Answer:
        """A variable of the process; None when it is not set."""
        key = f"env.{name}"
        if key in self._facts:
            value = self._facts[key]
            return Answer(None if value is None else str(value), (key,))
        if self._facts.get("environment_complete") is True and key not in self._hidden:
            return Answer(None, ("environment_complete",))
        raise NeedsFactError(key, f"tr '\\0' '\\n' </proc/PID/environ | grep ^{name}=")

    def variables(self) -> Answer:
        """All variables of the process."""
        complete = self.fact("environment_complete", "tr '\\0' '\\n' </proc/PID/environ")
        if complete.value is not True or any(key.startswith("env.") for key in self._hidden):
            raise NeedsFactError("environment_complete")
        found = {
            key[4:]: str(value) for key, value in self._facts.items() if key.startswith("env.") and value is not None
        }
        return Answer(found, complete.keys)

    # modules and packages

    def module_exists(self, name: str) -> Answer:
        """Whether a module without source here can be imported."""
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            key = f"modules.{'.'.join(parts[:end])}"
            if key in self._facts and (end == len(parts) or not self._facts[key]):
                return Answer(bool(self._facts[key]), (key,))
        distribution = f"packages.{parts[0].replace('_', '-')}"
        if distribution in self._facts and len(parts) == 1:
            return Answer(self._facts[distribution] is not None, (distribution,))
        raise NeedsFactError(
            f"modules.{name}", f"python -c 'import importlib.util as u; print(u.find_spec(\"{name}\"))'"
        )

    def package_version(self, name: str) -> Answer:
        """The version of a distribution; None when it is not installed."""
        spelled = {name, re.sub(r"[-_.]{1,9}", "-", name).lower(), name.replace("-", "_"), name.replace("_", "-")}
        for key in (*(f"packages.{each}" for each in sorted(spelled)), *(["torch"] if name == "torch" else [])):
            if key in self._facts:
                value = self._facts[key]
                return Answer(None if value is None else str(value), (key,))
        raise NeedsFactError(f"packages.{name}", f"pip show {name}")

    # commands and files

    def command(self, arguments: list[str]) -> Answer:
        """What running a command gives, as :class:`Output`."""
        line = " ".join(arguments)
        key = f"commands.{line}"
        if key in self._facts:
            return Answer(_output(self._facts[key], arguments[0]), (key,))
        if len(arguments) == 2 and arguments[0] == "which":
            return _which(self.program(arguments[1]))
        if arguments[1:] in (["--version"], ["-V"]):
            if arguments[0] == "nvcc":
                path = self.program("nvcc")
                if path.value is None:
                    return Answer(_absent("nvcc"), path.keys)
                return self.command([path.value, *arguments[1:]])
            found = _COMMAND_LINE.fullmatch(arguments[0])
            if found:
                version = self.toolkit(found["folder"])
                output = _absent(arguments[0]) if version.value is None else Output(_nvcc_text(version))
                return Answer(output, version.keys)
        raise NeedsFactError(key, line)

    def program(self, name: str) -> Answer:
        """The path that PATH gives for a program; None when there is none."""
        line = f"which {name}"
        if f"commands.{line}" in self._facts:
            output = _output(self._facts[f"commands.{line}"], "which")
            return Answer(output.stdout.strip() or None, (f"commands.{line}",))
        key = {"nvcc": "nvcc_path", "ninja": "ninja_path"}.get(name, f"commands.{line}")
        answer = self.fact(key, line)
        return Answer(None if answer.value is None else str(answer.value), answer.keys)

    def toolkit(self, folder: str) -> Answer:
        """The version of the CUDA toolkit in a folder; None when there is no nvcc in it."""
        folder = posixpath.normpath(folder)
        for key in (f"other_toolkits.{folder}", f"other_toolkits.{folder}/"):
            if key in self._facts:
                return Answer(self._facts[key], (key,))
        # facts of the toolkit that the process resolves: a process that resolves another folder has another toolkit
        home = self._facts.get("cuda_home")
        if home is not None and posixpath.normpath(str(home)) != folder:
            raise NeedsFactError(f"other_toolkits.{folder}", f"{folder}/bin/nvcc --version")
        for key in (f"toolkit_resolved.{self._consumer}", "cuda_toolkit"):
            value = self._facts.get(key, 0)
            if value is None or isinstance(value, (str, float)):
                return Answer(None if value is None else str(value), (key,) if home is None else (key, "cuda_home"))
        raise NeedsFactError("cuda_toolkit", f"{folder}/bin/nvcc --version")

    def exists(self, path: str) -> Answer:
        """Whether a path exists: True or False, or ``"file"`` or ``"directory"`` where that is known too."""
        path = posixpath.normpath(path)
        key = f"files.{path}"
        if key in self._facts:
            return Answer(_kind_of_file(self._facts[key]), (key,))
        folder = path.removesuffix("/bin/nvcc")
        if folder != path:
            try:
                version = self.toolkit(folder)
            except NeedsFactError:
                raise NeedsFactError(key, f"ls -ld {path}") from None
            return Answer(False if version.value is None else "file", version.keys)
        known = f"other_toolkits.{path}"
        if self._facts.get(known) is not None:
            return Answer("directory", (known,))
        if self._facts.get("cuda_home") == path and self._facts.get("cuda_toolkit") is not None:
            return Answer("directory", ("cuda_home", "cuda_toolkit"))
        raise NeedsFactError(key, f"ls -ld {path}")

    def is_known_folder(self, path: str) -> bool:
        """Whether a fact says that a folder stands there."""
        key = f"files.{posixpath.normpath(path)}"
        return key in self._facts and _kind_of_file(self._facts[key]) == "directory"

    def real_path(self, path: str) -> Answer | None:
        """The path without symbolic links; None where no fact tells it."""
        key = f"links.{posixpath.normpath(path)}"
        value = self._facts.get(key)
        return Answer(value, (key,)) if isinstance(value, str) and value.startswith("/") else None

    def content(self, path: str) -> Answer:
        """The text of a file; None when it is absent."""
        key = f"files.{posixpath.normpath(path)}"
        value = self._facts.get(key, "")
        if key in self._facts and (value is None or value is False):
            return Answer(None, (key,))
        if isinstance(value, Mapping) and isinstance(value.get("content"), str):
            return Answer(value["content"], (key,))
        raise NeedsFactError(f"{key} (its content)", f"cat {path}")

    # calls and values of other modules

    def value_of(self, name: str) -> Answer | None:
        """The value of ``torch.version.cuda`` and the like; None when no fact has to do with it."""
        key = f"external.{name}"
        if key in self._facts:
            return Answer(self._facts[key], (key,))
        derived = _VALUES.get(name)
        return derived(self) if derived else None

    def call_of(self, name: str, shown: str) -> Answer | None:
        """What a call gives. ``shown`` is its arguments as text; None when no fact has to do with it."""
        for key in (f"external.{name}({shown})", f"external.{name}"):
            if key in self._facts:
                value = self._facts[key]
                return Answer(tuple(value) if isinstance(value, list) and name in _TUPLES else value, (key,))
        derived = _CALLS.get(name)
        return derived(self, shown) if derived else None

    def answers_call(self, name: str) -> bool:
        """Whether facts, or keys that may be among them, have to do with a call of that name."""
        return name in self._calls

    def has_member(self, name: str) -> bool:
        """Whether facts speak of something below a dotted name."""
        return name in self._holders

    def visible_gpus(self) -> Answer:
        """Compute capabilities of the GPUs that the process sees, in its order."""
        keys = ["gpus"]
        capabilities: list[tuple[int, int] | None] = []
        for gpu in self.fact("gpus", "nvidia-smi --query-gpu=index,name,compute_cap --format=csv").value or ():
            found = _CAPABILITY.search(str(gpu)[:400])
            capabilities.append((int(found[1]), int(found[2])) if found else None)
        chosen = self.variable("CUDA_VISIBLE_DEVICES")
        keys += chosen.keys
        if chosen.value is not None:
            indices = chosen.value.split(",") if chosen.value else []
            if not all(index.strip().isdigit() and int(index) < len(capabilities) for index in indices):
                raise NeedsFactError("external.torch.cuda.device_count")
            capabilities = [capabilities[int(index)] for index in indices]
        return Answer(capabilities, tuple(keys))


def _flat(facts: Facts | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(facts, Facts):
        return {fact.key: fact.value for fact in facts}
    flat: dict[str, Any] = {}
    for key, value in facts.items():
        if key in _GROUPS and isinstance(value, Mapping):
            flat.update({f"{key}.{name}": each for name, each in value.items()})
        else:
            flat[key] = value
    return flat


def _output(fact: Any, program: str) -> Output:
    if fact is None:
        return _absent(program)
    if isinstance(fact, Mapping):
        fields = {name: fact[name] for name in ("stdout", "stderr", "returncode", "raises", "message") if name in fact}
        return Output(**fields)
    return Output(str(fact))


def _absent(program: str) -> Output:
    return Output(raises="FileNotFoundError", message=program)


def _which(path: Answer) -> Answer:
    return Answer(Output(returncode=1) if path.value is None else Output(f"{path.value}\n"), path.keys)


def _nvcc_text(version: Answer) -> str:
    """What nvcc of that version prints, as far as the version tells: the build is only there when the fact has it."""
    release = ".".join(version.value.split(".")[:2])
    return (
        "nvcc: NVIDIA (R) Cuda compiler driver\n"
        f"Cuda compilation tools, release {release}, V{version.value}\n"
    )  # fmt: skip


def _kind_of_file(fact: Any) -> bool | str:
    if isinstance(fact, Mapping):
        return "file" if "content" in fact else str(fact.get("kind", "")) or True
    if fact in ("file", "directory"):
        return str(fact)
    return bool(fact)


def _torch_cuda(oracle: Oracle) -> Answer:
    return oracle.fact("torch_cuda", "python -c 'import torch; print(torch.version.cuda)'")


def _torch_hip(oracle: Oracle) -> Answer:
    # one build of torch is for one vendor
    if "torch_cuda" in oracle and oracle.fact("torch_cuda").value is not None:
        return Answer(None, ("torch_cuda",))
    raise NeedsFactError("external.torch.version.hip")


def _torch_version(oracle: Oracle) -> Answer:
    return oracle.fact("torch", "python -c 'import torch; print(torch.__version__)'")


def _is_compiled(oracle: Oracle, _: str) -> Answer:
    cuda = _torch_cuda(oracle)
    if cuda.value is None:
        raise NeedsFactError("external.torch.cuda._is_compiled")
    return Answer(True, cuda.keys)


def _device_count(oracle: Oracle, _: str) -> Answer:
    gpus = oracle.visible_gpus()
    return Answer(len(gpus.value), gpus.keys)


def _is_available(oracle: Oracle, _: str) -> Answer:
    """Needs a driver for torch's CUDA: with an older one devices are counted, and none is available."""
    known = ("torch_cuda", "gpus", "driver_cuda")
    driver, built = (_major(oracle.fact(key).value) if key in oracle else None for key in ("driver_cuda", "torch_cuda"))
    if "gpus" not in oracle or driver is None or built is None or driver < built:
        raise NeedsFactError("external.torch.cuda.is_available()", _AVAILABLE)
    gpus = oracle.visible_gpus()
    return Answer(bool(gpus.value), (*known, *(key for key in gpus.keys if key != "gpus")))


def _major(version: Any) -> int | None:
    first = str(version).partition(".")[0]
    return int(first) if first.isdigit() and len(first) < 4 else None


_AVAILABLE = "python -c 'import torch; print(torch.cuda.is_available())'"


def _capability(oracle: Oracle, shown: str) -> Answer:
    gpus = oracle.visible_gpus()
    if shown and not shown.isdigit():
        raise NeedsFactError(f"external.torch.cuda.get_device_capability({shown})")
    index = int(shown or 0)
    if index >= len(gpus.value):
        raise NeedsFactError(f"external.torch.cuda.get_device_capability({shown})")
    if gpus.value[index] is not None:
        return Answer(gpus.value[index], gpus.keys)
    cc = oracle.fact("cc", "nvidia-smi --query-gpu=compute_cap --format=csv").value if len(gpus.value) == 1 else None
    if cc is None:
        raise NeedsFactError("gpus (with compute capabilities)")
    major, _, minor = str(cc).partition(".")
    return Answer((int(major), int(minor or 0)), (*gpus.keys, "cc"))


def _arch_list(oracle: Oracle, _: str) -> Answer:
    answer = oracle.fact("torch_arch_list", "python -c 'import torch; print(torch.cuda.get_arch_list())'")
    return Answer(list(answer.value), answer.keys)


def _platform(oracle: Oracle) -> Answer:
    for key in ("os", "kernel_release", "glibc"):
        if key in oracle:
            return Answer("linux", (key,))
    raise NeedsFactError("external.sys.platform", "uname -s")


def _python(oracle: Oracle) -> Answer:
    answer = oracle.fact("python", "python --version")
    numbers = str(answer.value).split(".")
    if len(numbers) != 3 or not all(number.isdigit() for number in numbers):
        raise NeedsFactError("python (with its patch level)", "python --version")
    return Answer((*(int(number) for number in numbers), "final", 0), answer.keys)


_VALUES = {
    "torch.version.cuda": _torch_cuda,
    "torch.version.hip": _torch_hip,
    "torch.__version__": _torch_version,
    "torch.version.__version__": _torch_version,
    "sys.platform": _platform,
    "sys.version_info": _python,
}
_CALLS = {
    "torch.cuda._is_compiled": _is_compiled,
    "torch.cuda.device_count": _device_count,
    "torch.cuda.is_available": _is_available,
    "torch.cuda.get_device_capability": _capability,
    "torch.cuda.get_arch_list": _arch_list,
}
_TUPLES = frozenset({"torch.cuda.get_device_capability", "torch.cuda.mem_get_info"})

"""Python packages: installed into the service's own environment, with the list of what was there before."""

from __future__ import annotations

import re
import shlex

from gpuwhy.knowledge import pins, torch
from gpuwhy.remedies.change import Change, ServicePlace
from gpuwhy.remedies.setting import Setting

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,100}[A-Za-z0-9])?")
_CONSTRAINT = re.compile(
    r"(?:==|!=|<=|>=|<|>|~=)\s*[A-Za-z0-9.*+!_-]+(?:\s*,\s*(?:==|!=|<=|>=|<|>|~=)\s*[A-Za-z0-9.*+!_-]+)*"
)
_VERSION = re.compile(r"\d[A-Za-z0-9.+!_-]*")
_SAME_RELEASE = frozenset({"flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache"})
"""Packages that must be of one release, and carry the same version number. Others that belong together do not."""
_NOT_FROM_PIP = frozenset(
    {"llama.cpp", "ollama", "whisper.cpp", "llama-box", "koboldcpp", "lemonade", "localai", "gpustack"}
)
"""Programs that come as binaries or images of their own."""
_TORCH_BUILD = re.compile(r"(cu1\d{2}) build")
_TORCH_INDEX = "https://download.pytorch.org/whl"


def change_package(setting: Setting, place: ServicePlace, name: str, value: str) -> Change:
    """Commands that bring ``name`` to ``value`` (a constraint, ``newer``, ``older``, ``rebuild``, ``remove``, ``match:PKG``).

    Without commands when the value only describes a build (``CUDA 12 build``, ``with PR 12``), or the program does not
    come from pip.
    """
    arguments = (
        pip_arguments(setting, name, value) or _torch_build(setting, name, value) or _pinned(setting, name, value)
    )
    if arguments is None or not _NAME.fullmatch(name) or name in _NOT_FROM_PIP:
        return Change()
    shows = "! " if value == "remove" else ""
    if setting.is_container:
        line = f"RUN python3 -m pip {shlex.join(arguments)}"
        return Change(
            commands=(
                f"# in a Dockerfile that starts FROM the image in use: {line}",
                "# start the service from that image",
            ),
            undo=("# start the service from the image that was in use before",),
            check=(
                place.inside(f"{shows}python3 -m pip show {shlex.quote(name)}"),
                place.inside("python3 -m pip check"),
            ),
            limits=("installed into the running container only, it is gone when the container is made anew",),
        )
    pip = _Pip(setting)
    before = f'"$HOME"/before-{shlex.quote(name)}.txt'
    return Change(
        commands=(f"{pip.freeze()} > {before}", pip.run(arguments), *place.restart()),
        undo=(
            *_removed_again(setting, pip, name),
            pip.run(["install", *_index_of(setting, name)]) + f" -r {before}",
            *place.restart(),
        ),
        check=(shows + pip.run(["show", name]), pip.run(["check"])),
        limits=() if setting.python else ("python3 stands for the interpreter that runs the service",),
    )


class _Pip:
    """The installer of one environment: its own pip, or uv where uv made the environment (it has no pip then)."""

    def __init__(self, setting: Setting) -> None:
        self._python = shlex.quote(setting.python or "python3")
        self._is_uv = setting.is_uv_managed

    def run(self, arguments: list[str]) -> str:
        if not self._is_uv:
            return f"{self._python} -m pip {shlex.join(arguments)}"
        verb, *rest = [argument for argument in arguments if argument != "--yes"]
        return " ".join(part for part in (f"uv pip {verb} --python {self._python}", shlex.join(rest)) if part)

    def freeze(self) -> str:
        return self.run(["freeze"])


def pip_arguments(setting: Setting, name: str, value: str) -> list[str] | None:
    """What pip is given, from its verb on; None where the value only describes a build."""
    installed = setting.packages.get(name) or setting.packages.get(name.replace("_", "-"))
    if value == "remove":
        return ["uninstall", "--yes", name]
    if value == "rebuild":
        return [
            "install",
            "--force-reinstall",
            "--no-deps",
            "--no-build-isolation",
            "--no-cache-dir",
            f"--no-binary={name}",
            name,
        ]
    if value == "older":
        return ["install", f"{name}<{installed}"] if installed and _VERSION.fullmatch(installed) else None
    if value.startswith("match:"):
        other = value.removeprefix("match:")
        same = (setting.packages.get(other) or "").partition("+")[0]
        return ["install", f"{name}=={same}"] if {name, other} <= _SAME_RELEASE and _VERSION.fullmatch(same) else None
    if value in ("", "newer"):
        return ["install", "--upgrade", name, *_companions(setting, name)]
    if _CONSTRAINT.fullmatch(value):
        constraint = value.replace(" ", "")
        return ["install", name + constraint, *(each + constraint for each in _companions(setting, name))]
    return ["install", f"{name}=={value}"] if _VERSION.fullmatch(value) else None


def _torch_build(setting: Setting, name: str, value: str) -> list[str] | None:
    """torch for another CUDA, from PyTorch's index of that name, with its companions; the release stays where it has such a build."""
    found = _TORCH_BUILD.fullmatch(value)
    if name != "torch" or found is None:
        return None
    build = found[1]
    release = (setting.packages.get("torch") or "").partition("+")[0]
    has_it = bool(release) and any(each.build == build for each in torch.builds_of(release))
    companions = [each for each in ("torchvision", "torchaudio") if setting.packages.get(each)]
    wanted = f"torch=={release}+{build}" if has_it and _VERSION.fullmatch(release) else "torch"
    return ["install", "--upgrade", wanted, *companions, "--index-url", f"{_TORCH_INDEX}/{build}"]


def _pinned(setting: Setting, name: str, value: str) -> list[str] | None:
    """``match:sglang``: the release of a package that the installed engine asks for, where its requirements were read."""
    engine = value.removeprefix("match:")
    release = setting.packages.get(engine)
    pin = (
        pins.pin_of(engine, release, name)
        if value.startswith("match:") and engine in pins.engines() and release
        else None
    )
    if pin is None or not pin.exact or not _VERSION.fullmatch(pin.version or "") or not _NAME.fullmatch(pin.package):
        return None
    return ["install", "--force-reinstall", "--no-deps", f"{pin.package}=={pin.version}"]


def _index_of(setting: Setting, name: str) -> list[str]:
    """Where a torch that is no longer installed came from: ``2.9.0+cu128`` is in PyTorch's own index alone."""
    found = re.search(r"\+(cu\d{3})\Z", setting.packages.get("torch") or "")
    return ["--extra-index-url", f"{_TORCH_INDEX}/{found[1]}"] if name == "torch" and found else []


def _companions(setting: Setting, name: str) -> list[str]:
    """What must move with the package. flashinfer-jit-cache is in no public index, so pip could not move it."""
    is_there = name == "flashinfer-python" and setting.packages.get("flashinfer-cubin")
    return ["flashinfer-cubin"] if is_there else []


def _removed_again(setting: Setting, pip: _Pip, name: str) -> tuple[str, ...]:
    """A package that was not there before is not in the list of what was: it must go by itself."""
    absent = name in setting.packages and setting.packages[name] is None
    return (pip.run(["uninstall", "--yes", name]),) if absent else ()
